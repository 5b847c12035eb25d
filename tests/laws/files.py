"""Packets to capture files: every container, byte order, resolution and link layer that a law compares.

In: packets of ``talk``. Out: the bytes of a file. Checksums are right, so that any other tool can read the files too.
"""

from __future__ import annotations

import gzip
import ipaddress
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tests.laws.talk import Packet

MACS = bytes.fromhex("020000000001020000000002")
Container = Literal["pcap", "pcapng"]
ByteOrder = Literal["<", ">"]
Resolution = Literal[1, 1000]
Compression = Literal["", "gzip", "zstd"]


def _sum(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def datagram(packet: Packet) -> bytes:
    """The IP packet: IPv4 or IPv6 by the look of the addresses."""
    source, destination = (ipaddress.ip_address(end[0]) for end in (packet.source, packet.destination))
    length = 20 + len(packet.options) + len(packet.payload)
    header = struct.pack(
        ">HHIIBBHHH",
        packet.source[1],
        packet.destination[1],
        packet.seq,
        packet.ack,
        (20 + len(packet.options)) // 4 << 4,
        packet.flags,
        0xFFFF,
        0,
        0,
    )
    pseudo = source.packed + destination.packed + struct.pack(">IHBB", length, 0, 0, 6)
    check = _sum(pseudo + header + packet.options + packet.payload)
    tcp = header[:16] + check.to_bytes(2, "big") + header[18:] + packet.options + packet.payload
    if source.version == 6:
        return struct.pack(">IHBB", 6 << 28, length, 6, 64) + source.packed + destination.packed + tcp
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + length, packet.ip_id, 0x4000, 64, 6, 0)
    ip += source.packed + destination.packed
    return ip[:10] + _sum(ip).to_bytes(2, "big") + ip[12:] + tcp


def _ethertype(ip: bytes) -> bytes:
    return b"\x86\xdd" if ip[0] >> 4 == 6 else b"\x08\x00"


def _ethernet(ip: bytes) -> bytes:
    return (MACS + _ethertype(ip) + ip).ljust(60, b"\xaa")  # padding that is no payload


def _null(ip: bytes) -> bytes:
    return struct.pack("<I", 10 if ip[0] >> 4 == 6 else 2) + ip


@dataclass(frozen=True, slots=True)
class Link:
    """A link layer: libpcap's number and how to wrap an IP packet in it."""

    number: int
    wrap: Callable[[bytes], bytes]


LINKS = {
    "ethernet": Link(1, _ethernet),
    "vlan": Link(1, lambda ip: MACS + b"\x81\x00\x20\x07" + _ethertype(ip) + ip),
    "qinq": Link(1, lambda ip: MACS + b"\x88\xa8\x00\x64\x81\x00\x20\x07" + _ethertype(ip) + ip),
    "sll": Link(113, lambda ip: b"\0\0\0\1\0\6" + MACS[:6] + b"\0\0" + _ethertype(ip) + ip),
    "sll2": Link(276, lambda ip: _ethertype(ip) + b"\0\0\0\0\0\2\0\1\0\6" + MACS[:6] + b"\0\0" + ip),
    "raw": Link(101, lambda ip: ip),
    "null": Link(0, _null),
    "loop": Link(108, lambda ip: struct.pack(">I", 10 if ip[0] >> 4 == 6 else 2) + ip),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """How to write a capture."""

    container: Container = "pcap"
    order: ByteOrder = "<"
    resolution_ns: Resolution = 1000
    link: str = "ethernet"
    compress: Compression = ""

    def write(self, packets: Sequence[Packet]) -> bytes:
        """The whole file."""
        return self.pack(b"".join(self.parts(packets)))

    def parts(self, packets: Sequence[Packet]) -> list[bytes]:
        """The file's header, then one item per packet: the places where it can be cut cleanly."""
        wrap = LINKS[self.link].wrap
        return self.of_frames([(packet.at, wrap(datagram(packet))) for packet in packets])

    def of_frames(self, frames: Sequence[tuple[int, bytes]]) -> list[bytes]:
        """As ``parts``, from frames and their times."""
        link = LINKS[self.link]
        if self.container == "pcap":
            return [self._pcap_header(link), *(self._pcap_record(at, frame) for at, frame in frames)]
        return [self._pcapng_header(link), *(self._enhanced_packet(at, frame) for at, frame in frames)]

    def pack(self, data: bytes) -> bytes:
        """The compression, if any."""
        if self.compress == "gzip":
            return gzip.compress(data, compresslevel=1, mtime=0)
        return _zstd_stored(data) if self.compress == "zstd" else data

    def _pcap_header(self, link: Link) -> bytes:
        magic = 0xA1B23C4D if self.resolution_ns == 1 else 0xA1B2C3D4
        return struct.pack(self.order + "IHHIIII", magic, 2, 4, 0, 0, 262_144, link.number)

    def _pcap_record(self, at: int, frame: bytes) -> bytes:
        second, rest = divmod(at, 10**9)
        return struct.pack(self.order + "4I", second, rest // self.resolution_ns, len(frame), len(frame)) + frame

    def _block(self, kind: int, body: bytes) -> bytes:
        length = 12 + len(body)
        return struct.pack(self.order + "II", kind, length) + body + struct.pack(self.order + "I", length)

    def _pcapng_header(self, link: Link) -> bytes:
        section = self._block(0x0A0D0D0A, struct.pack(self.order + "IHHq", 0x1A2B3C4D, 1, 0, -1))
        resolution = struct.pack(self.order + "HHB3xHH", 9, 1, 9 if self.resolution_ns == 1 else 6, 0, 0)
        return section + self._block(1, struct.pack(self.order + "HHI", link.number, 0, 262_144) + resolution)

    def _enhanced_packet(self, at: int, frame: bytes) -> bytes:
        high, low = divmod(at // self.resolution_ns % 2**64, 2**32)
        padded = frame.ljust(-(-len(frame) // 4) * 4, b"\0")
        return self._block(6, struct.pack(self.order + "5I", 0, high, low, len(frame), len(frame)) + padded)


def _zstd_stored(data: bytes) -> bytes:
    """A zstd frame of raw blocks (RFC 8878 section 3.1.1): valid for any reader, needs no library."""
    size = 1 << 16
    chunks = [data[start : start + size] for start in range(0, len(data), size)] or [b""]
    blocks = (
        (len(chunk) << 3 | (number == len(chunks) - 1)).to_bytes(3, "little") + chunk
        for number, chunk in enumerate(chunks)
    )
    # Descriptor: no checksum, no dictionary, content size unknown; window 2^17.
    return b"\x28\xb5\x2f\xfd" + b"\x00" + bytes([7 << 3]) + b"".join(blocks)
