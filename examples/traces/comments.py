"""Write a capture once more as pcapng, with comments beside packets as ptcpdump writes them.

ptcpdump needs eBPF and the rights for it. This takes the addresses of a machine's sockets and who owns them, and writes
what ptcpdump would: a comment with process, one with container, one with pod, and the direction of the packet
(github.com/mozillazg/ptcpdump, internal/writer/pcapng.go).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

MAGIC = 0xA1B23C4D
SLL2 = 276
OUTGOING = 4
"""Packet type of LINUX_SLL2: sent by this machine."""


@dataclass(frozen=True, kw_only=True)
class Owner:
    """A process, and where it runs."""

    pid: int
    program: str
    arguments: str
    container: tuple[str, str] | None = None
    """Name and id."""
    pod: tuple[str, str] | None = None
    """Name and namespace."""

    def comments(self) -> list[str]:
        """Give them one by one, as ptcpdump has it."""
        texts = [f"PID: {self.pid}\nCmd: {self.program}\nArgs: {self.arguments}"]
        if self.container:
            name, number = self.container
            texts.append(f"ContainerName: {name}\nContainerId: {number}\nContainerImage: shop:1\nContainerLabels: {{}}")
        if self.pod:
            name, namespace = self.pod
            uid = "5f0d8f6a-0b1c-4f5e-9a51-7d0c3f6f2c11"
            texts.append(
                f"PodName: {name}\nPodNamespace: {namespace}\nPodUID: {uid}\nPodLabels: {{}}\nPodAnnotations: {{}}"
            )
        return texts


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + value + b"\0" * (-len(value) % 4)


def _block(kind: int, body: bytes) -> bytes:
    length = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", kind) + length + body + length


def add_comments(capture: Path, into: Path, owners: Mapping[tuple[str, int], Owner]) -> None:
    """Read a pcap file of ``tcpdump -i any --time-stamp-precision=nano``, and write it with comments.

    Args:
        capture: Its link type is LINUX_SLL2.
        into: A pcapng file.
        owners: By address and port of a socket. Of port 0: all of that address.
    """
    data = capture.read_bytes()
    magic, *_, link = struct.unpack("<IHHiIII", data[:24])
    if (magic, link) != (MAGIC, SLL2):
        raise ValueError(f"{capture}: expected pcap with nanoseconds and LINUX_SLL2")
    blocks = [
        _block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)),
        _block(1, struct.pack("<HHI", SLL2, 0, 0) + _option(9, b"\x09") + _option(0, b"")),
    ]
    at = 24
    while at < len(data):
        seconds, nanos, captured, original = struct.unpack("<IIII", data[at : at + 16])
        frame = data[at + 16 : at + 16 + captured]
        at += 16 + captured
        options = b"".join(_option(*one) for one in _options_of(frame, owners))
        time = seconds * 1_000_000_000 + nanos
        body = struct.pack("<IIIII", 0, time >> 32, time & 0xFFFFFFFF, captured, original) + frame
        blocks.append(_block(6, body + b"\0" * (-captured % 4) + options + _option(0, b"")))
    into.write_bytes(b"".join(blocks))


def _options_of(frame: bytes, owners: Mapping[tuple[str, int], Owner]) -> Sequence[tuple[int, bytes]]:
    """Give the options of a packet: those of the socket of this machine that sent it or gets it."""
    ip = frame[20:]
    header = (ip[0] & 15) * 4
    source, target = (".".join(map(str, ip[start : start + 4])) for start in (12, 16))
    ports = struct.unpack(">HH", ip[header : header + 4])
    outgoing = frame[10] == OUTGOING
    address, port = (source, ports[0]) if outgoing else (target, ports[1])
    owner = owners.get((address, port)) or owners.get((address, 0))
    if owner is None:
        return []
    return [
        *((1, comment.encode()) for comment in owner.comments()),
        (2, struct.pack("<I", 2 if outgoing else 1)),
    ]
