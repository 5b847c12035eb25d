"""What was recorded of a run: the packets at both ends, what the line did to each, and what either kernel knew.

The captures, the line's log and the diaries have one clock, as all of it happened on one machine.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import dpkt

SYN, RST, ACK, FIN = 0x02, 0x04, 0x10, 0x01
PORTS = (80, 443)
"""Of servers."""
ENDS = {"left": "client", "right": "server"}
SKEW_NS = 300_000
"""A packet enters the line so long after tcpdump saw it leave, or is seen so long after it was due, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A TCP segment, or a super-segment, in a capture."""

    number: int
    """1-based."""
    at: int
    """Nanoseconds since the Unix epoch."""
    side: str
    """``client`` or ``server``: who sent it."""
    port: int
    """The client's."""
    flags: int
    seq: int
    ack: int
    length: int
    window: int
    """As in the header: not scaled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A TCP segment on the line."""

    at: int
    due_at: int
    """When it was due at the other end, held back or not."""
    side: str
    port: int
    """The client's."""
    kind: str
    seq: int
    ack: int
    length: int
    lost: bool
    held: bool

    def covers(self, seq: int) -> bool:
        """Say whether a byte is in it."""
        return (seq - self.seq) % 2**32 < self.length


@dataclass(frozen=True, kw_only=True)
class Diary:
    """What one end wrote down, see ``witness.py``."""

    events: list[dict[str, Any]]
    samples: list[dict[str, int]]
    counters: dict[str, int]

    def between(self, start_at: int, end_at: int) -> list[dict[str, int]]:
        """Return the samples of a stretch."""
        return [sample for sample in self.samples if start_at < sample["at"] < end_at]


@dataclass(frozen=True)
class Run:
    """One connection of a run of a case."""

    folder: Path
    largest: int | None
    """Bytes of the largest packet that the router passes on from the client; None: there is no such router."""
    stream: int = 0
    """0-based, in the order of their SYNs."""

    @cached_property
    def ports(self) -> list[int]:
        """The client's ports, in the order of their SYNs: the connections that were captured."""
        return list(dict.fromkeys(frame.port for frame in read_frames(self.folder / "client.pcap")))

    @cached_property
    def passages(self) -> list[Passage]:
        """The connection's segments that entered the line, in order."""
        return [each for each in self.all_passages if each.port == self.ports[self.stream]]

    @cached_property
    def all_passages(self) -> list[Passage]:
        """All segments that entered the line, in order."""
        lines = (json.loads(line) for line in (self.folder / "line.jsonl").read_text().splitlines())
        return [
            Passage(
                at=entry["at"], due_at=entry["due_at"], side=ENDS[entry["from"]], kind=entry["kind"],
                port=entry["ports"][entry["from"] == "right"], seq=entry["seq"], ack=entry["ack"],
                length=entry["length"], held=entry["verdict"] == "hold",
                lost=entry["verdict"] == "drop"
                or (self.largest is not None and entry["from"] == "left" and entry["size"] > self.largest),
            )
            for entry in lines
        ]  # fmt: skip

    @cached_property
    def frames(self) -> dict[str, list[Frame]]:
        """The connection's segments in the captures at both ends."""
        port = self.ports[self.stream]
        captures = {place: read_frames(self.folder / f"{place}.pcap") for place in ENDS.values()}
        return {place: [frame for frame in frames if frame.port == port] for place, frames in captures.items()}

    @cached_property
    def diaries(self) -> dict[str, Diary]:
        """What each end wrote down about the connection; a server like nginx writes nothing."""
        found = {}
        for role in ENDS.values():
            if (path := self.folder / f"{role}.json").is_file():
                diary = json.loads(path.read_text())
                diary["samples"] = [sample for sample in diary["samples"] if sample["stream"] == self.stream]
                found[role] = Diary(**diary)
        return found

    def new_data(self, side: str) -> list[Frame]:
        """Return the frames with data that ``side`` sent for the first time, as seen at ``side``."""
        found: list[Frame] = []
        for frame in self.frames[side]:
            if frame.side == side and frame.length:
                if found and (frame.seq - (found[-1].seq + found[-1].length)) % 2**32 >= 2**31:
                    continue
                found.append(frame)
        return found

    def passages_of(self, frame: Frame) -> list[Passage]:
        """Return what became of a frame of its sender's capture: several, if it was a super-segment."""
        near = (each for each in self.passages if each.side == frame.side and each.at >= frame.at - SKEW_NS)
        found: list[Passage] = []
        for each in near:
            offset = (each.seq - frame.seq) % 2**32
            if each.length == frame.length and offset == 0 and each.ack == frame.ack:
                return [each]
            if frame.length and each.length and offset < frame.length and each not in found:
                found.append(each)
                if offset + each.length >= frame.length:
                    return found
        raise LookupError(f"frame {frame.number} of the {frame.side} never entered the line")

    def sent(self, passage: Passage) -> Frame:
        """Return the frame of a passage in its sender's capture."""
        *_, found = (
            frame for frame in self.frames[passage.side] if is_in(passage, frame) and frame.at <= passage.at + SKEW_NS
        )
        return found

    def arrived(self, passage: Passage, place: str) -> Frame:
        """Return the frame of a passage that was not lost in its receiver's capture."""
        return next(
            frame for frame in self.frames[place] if is_in(passage, frame) and frame.at >= passage.due_at - SKEW_NS
        )


def is_in(passage: Passage, frame: Frame) -> bool:
    """Say whether a frame is a passage, or holds it."""
    if frame.side != passage.side:
        return False
    if not passage.length:
        return (frame.seq, frame.ack, frame.length) == (passage.seq, passage.ack, 0)
    return (passage.seq - frame.seq) % 2**32 + passage.length <= frame.length


def read_frames(capture: Path) -> Iterator[Frame]:
    """Read the TCP segments of a capture; ICMP counts as a frame and is none of them."""
    with capture.open("rb") as file:
        reader = dpkt.pcap.Reader(file)
        ethernet = reader.datalink() == dpkt.pcap.DLT_EN10MB
        for number, (at, raw) in enumerate(reader, start=1):
            ip = dpkt.ip.IP(raw[14:] if ethernet else raw)
            tcp = ip.data
            if not isinstance(tcp, dpkt.tcp.TCP):
                continue
            from_client = tcp.dport in PORTS
            yield Frame(
                number=number, at=int(at * 10**9), side="client" if from_client else "server", flags=tcp.flags,
                port=tcp.sport if from_client else tcp.dport,
                seq=tcp.seq, ack=tcp.ack if tcp.flags & ACK else 0, length=ip.len - ip.hl * 4 - tcp.off * 4,
                window=tcp.win,
            )  # fmt: skip
