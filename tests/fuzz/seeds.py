"""Inputs to begin with: our captures, written as each target reads its input.

A target's input is described at the top of its source. Only IPv4 is looked at; segments are taken in order, and what
a stream has already said is left out.
"""

import shutil
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.conftest import ROOT

LINK_HEADERS = {1: 14, 101: 0, 276: 20}
"""Bytes before IP: Ethernet, none, Linux cooked."""
LONGEST_FILE = 12_000
LONGEST_STREAM = 6_000
SERVER = 1
MICROSECOND_LATER = 1 << 4


@dataclass(frozen=True, slots=True)
class Segment:
    """What a target is told of a TCP segment."""

    ends: tuple[bytes, bytes]
    seq: int
    ack: int
    flags: int
    payload: bytes


@dataclass(slots=True)
class Connection:
    """A connection's segments; who sent each (0: the client)."""

    client: bytes
    segments: list[tuple[int, Segment]] = field(default_factory=list)

    def payloads(self) -> Iterator[tuple[int, bytes]]:
        """Give what each side says, every byte once."""
        following: dict[int, int] = {}
        total = 0
        for sender, segment in self.segments:
            begin = (segment.seq + (segment.flags >> 1 & 1)) & 0xFFFF_FFFF
            overlap = (following.setdefault(sender, begin) - begin) & 0xFFFF_FFFF
            fresh = segment.payload[overlap:] if overlap < 1 << 31 else segment.payload
            if fresh and total < LONGEST_STREAM:
                following[sender] = (begin + len(segment.payload)) & 0xFFFF_FFFF
                total += len(fresh)
                yield sender, fresh


def sized(value: bytes) -> bytes:
    return struct.pack("<H", len(value)) + value


def frames(capture: bytes) -> tuple[int, list[bytes]]:
    """Give link type and frames of a pcap file."""
    order = "<" if capture[3] in (0xA1,) else ">"
    (link,) = struct.unpack_from(order + "I", capture, 20)
    found, at = [], 24
    while at < len(capture):
        (length,) = struct.unpack_from(order + "I", capture, at + 8)
        found.append(capture[at + 16 : at + 16 + length])
        at += 16 + length
    return link, found


def segment(packet: bytes) -> Segment | None:
    """Read an IPv4 packet."""
    if len(packet) < 40 or packet[0] >> 4 != 4 or packet[9] != 6:
        return None
    tcp = packet[(packet[0] & 15) * 4 : int.from_bytes(packet[2:4], "big") or len(packet)]
    seq, ack, words, flags = struct.unpack_from(">IIBB", tcp, 4)
    ends = packet[12:16] + tcp[:2], packet[16:20] + tcp[2:4]
    return Segment(ends, seq, ack, flags, tcp[(words >> 4) * 4 :])


def conversations(link: int, captured: list[bytes]) -> list[bytes]:
    """Write the datagrams of each UDP conversation, one after the other."""
    found: dict[frozenset[bytes], tuple[bytes, list[bytes]]] = {}
    for frame in captured:
        packet = frame[LINK_HEADERS[link] :]
        if len(packet) < 28 or packet[0] >> 4 != 4 or packet[9] != 17:
            continue
        udp = packet[(packet[0] & 15) * 4 :]
        ends = packet[12:16] + udp[:2], packet[16:20] + udp[2:4]
        client, datagrams = found.setdefault(frozenset(ends), (ends[0], []))
        datagrams.append(bytes([MICROSECOND_LATER | (ends[0] != client)]) + sized(udp[8:]))
    return [b"".join(datagrams) for _, datagrams in found.values()]


def connections(link: int, captured: list[bytes]) -> list[Connection]:
    found: dict[frozenset[bytes], Connection] = {}
    for frame in captured:
        if (read := segment(frame[LINK_HEADERS[link] :])) is not None:
            connection = found.setdefault(frozenset(read.ends), Connection(read.ends[0]))
            connection.segments.append((int(read.ends[0] != connection.client), read))
    return list(found.values())


def talk(connection: Connection, manner: int = MICROSECOND_LATER) -> bytes:
    """Write what both sides say, packet by packet."""
    return b"".join(bytes([manner | sender]) + sized(payload) for sender, payload in connection.payloads())


def tcp(connection: Connection) -> bytes:
    def one(sender: int, segment: Segment) -> bytes:
        numbers = struct.pack("<BII", segment.flags, segment.seq, segment.ack)
        return bytes([0x70 | sender, 0x3F]) + numbers + struct.pack("<H", len(segment.payload))

    return b"".join(one(*sent) for sent in connection.segments[:60])


def blocks(link: int, captured: list[bytes]) -> bytes:
    """Write an interface of that link type, and a packet block for each frame."""
    links = [1, 101, 113, 276]
    head = bytes([0, 9, links.index(link), 0, 0, 0])
    return head + b"".join(b"\x57\x64\x01" + sized(frame) + b"\0\0" for frame in captured[:12])


def write(directory: Path) -> None:
    """Write the seeds of every target into a folder of its own, in place of what was there."""
    shutil.rmtree(directory, ignore_errors=True)

    def put(target: str, name: str, seed: bytes) -> None:
        (directory / target).mkdir(parents=True, exist_ok=True)
        (directory / target / name).write_bytes(seed)

    for path in sorted((ROOT / "captures").glob("*/*/input.pcap")):
        case = f"{path.parent.parent.name}-{path.parent.name}"
        capture = path.read_bytes()
        link, captured = frames(capture)
        keys = path.with_name("keys.log")
        log = keys.read_bytes() if keys.exists() else b""
        if len(capture) <= LONGEST_FILE:
            put("file", case, capture)
        put("packet", case, struct.pack("<HH", link, 0) + b"".join(sized(frame) for frame in captured[:8]))
        if link not in LINK_HEADERS:
            continue
        put("pcapng", case, blocks(link, captured))
        for number, conversation in enumerate(conversations(link, captured)[:4]):
            put("datagrams", f"{case}-{number}", conversation)
        for number, connection in enumerate(connections(link, captured)[:4]):
            name = f"{case}-{number}"
            put("tcp", name, tcp(connection))
            if any(payload[:1] == b"\x16" for _, payload in connection.payloads()):
                put("tls", name, b"\x10" + talk(connection, 3 << 1 | MICROSECOND_LATER))
                put("tls_keys", name, b"\x01\x10" + sized(log) + talk(connection))
            elif any(payload[:4] == b"PRI " for _, payload in connection.payloads()):
                put("http2", name, b"\x50" + talk(connection, 7 << 1 | MICROSECOND_LATER))
            else:
                put("http1", name, b"\x10" + talk(connection))
