"""What must come out of captures at several places: an oracle that knows the lines' log and the clocks.

In: a folder as ``examples/places/make-captures`` writes it, or other captures of the same packets with a truth of their
clocks. Packets are read by dpkt. Nothing of conchart's is used, and no code that wrote the truth.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import dpkt

SECOND = 10**9
LINKS = {
    dpkt.pcap.DLT_EN10MB: dpkt.ethernet.Ethernet,
    dpkt.pcap.DLT_LINUX_SLL: dpkt.sll.SLL,
    dpkt.pcap.DLT_LINUX_SLL2: dpkt.sll2.SLL2,
}
"""Others have no header before IP."""
SERVER_PORTS = {53, 443, 8080}
End = tuple[str, int]


@dataclass(frozen=True, kw_only=True)
class Packet:
    """A packet in a capture."""

    frame: int
    """1-based, in its own file."""
    at: int
    """The true time, as far as the capture's resolution lets it be known."""
    written_at: int
    source: End
    destination: End
    core: tuple[object, ...]
    """What an address translation leaves as it is, and a line's log has: protocol, IP ID, sequence numbers, payload."""
    options: bytes
    """TCP options; they make a repeated SYN-ACK another packet."""
    seq: int | None
    length: int
    """Bytes of payload, also of those that the capture does not have."""

    @property
    def flow(self) -> frozenset[End]:
        """Both ends, whoever sends."""
        return frozenset((self.source, self.destination))

    @property
    def sender(self) -> str:
        """``client`` or ``server``."""
        return "server" if self.source[1] in SERVER_PORTS else "client"


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A stretch of a clock in which it is a straight line, see ``examples/places/clocks.py``."""

    true_at: int
    written_at: int
    drift_ppb: int
    frames: tuple[int, int] | None

    def reads(self, at: int) -> int:
        """Return what the clock reads at a true instant."""
        since = at - self.true_at
        return self.written_at + since + since * self.drift_ppb // SECOND

    def true(self, written_at: int) -> int:
        """Return the true instant at which the clock read that, to the nanosecond."""
        since = (written_at - self.written_at) * SECOND // (SECOND + self.drift_ppb)
        at = self.true_at + since
        return next(
            at + step for step in (0, 1, -1, 2, -2) if self.reads(at + step) >= written_at > self.reads(at + step - 1)
        )


@dataclass(frozen=True, kw_only=True)
class Clock:
    """A clock, from the truth's JSON."""

    pieces: tuple[Piece, ...]
    resolution_ns: int

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Clock:
        """Read it."""
        pieces = (
            Piece(**{**piece, "frames": piece["frames"] and tuple(piece["frames"])}) for piece in document["pieces"]
        )
        return cls(pieces=tuple(pieces), resolution_ns=document["resolution_ns"])

    def reads(self, at: int) -> int:
        """Return what the clock reads at a true instant, to the nanosecond: its resolution is another matter."""
        return self.pieces[self.piece_at(at)].reads(at)

    def writes(self, at: int) -> int:
        """Return what a capture says of a packet at a true instant."""
        reads = self.reads(at)
        return reads - reads % self.resolution_ns

    def piece_at(self, at: int) -> int:
        """Return the number of the piece that a true instant lies in."""
        return max((number for number, piece in enumerate(self.pieces) if piece.true_at <= at), default=0)

    def true(self, frame: int, written_at: int) -> int:
        """Return the true instant of a frame, by what the capture says."""
        (piece,) = (each for each in self.pieces if each.frames and each.frames[0] <= frame <= each.frames[1])
        return piece.true(written_at)

    def jumps(self, since: int, until: int) -> bool:
        """Say whether the clock was set between two true instants. A new drift alone is no jump."""
        return any(
            since < after.true_at <= until and abs(before.reads(after.true_at) - after.written_at) > 1
            for before, after in pairwise(self.pieces)
        )


@dataclass(frozen=True, kw_only=True)
class Loss:
    """A packet that was seen at one place and lost before the other."""

    from_place: str
    to_place: str
    frame: int
    """In the capture of ``from_place``, numbered over all files in the order of the places."""
    sender: str
    ends: tuple[End, End]
    """The sender's and the receiver's, as seen at ``from_place``."""
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Sighting:
    """A packet that two places saw."""

    here: Packet
    there: Packet

    @property
    def way_ns(self) -> int:
        """How long it took from the first place to the second; negative if it went the other way."""
        return self.there.at - self.here.at


class Truth:
    """What is true of a set of captures."""

    def __init__(
        self, folder: Path, captures: Mapping[str, Path] | None = None, clocks: Mapping[str, Any] | None = None
    ) -> None:
        """Read a case's folder.

        Args:
            folder: Has ``truth.json`` and ``drops.jsonl``.
            captures: The files by place, in the order of the command line; those in the folder unless told.
            clocks: The truth of their clocks; that of the folder unless told.
        """
        self.folder = folder
        self.document = json.loads((folder / "truth.json").read_text())
        self.captures = dict(captures or {place: folder / f"{place}.pcap" for place in self.document["places"]})
        self.clocks = {place: Clock.read(each) for place, each in (clocks or self.document["clocks"]).items()}
        self.drops = [json.loads(line) for line in (folder / "drops.jsonl").read_text().splitlines()]
        self.packets = {place: list(packets(path, self.clocks[place])) for place, path in self.captures.items()}

    def first_frame(self, place: str) -> int:
        """Return the number that the first frame of a place has when all files are numbered through."""
        before = list(self.captures)[: list(self.captures).index(place)]
        return 1 + sum(self.frames[each] for each in before)

    @cached_property
    def frames(self) -> dict[str, int]:
        """How many frames each file has."""
        return {place: sum(1 for _ in records(path)) for place, path in self.captures.items()}

    def ahead_ns(self, place: str, reference: str, at: int) -> int:
        """Return how far one clock is ahead of another's at a true instant."""
        return self.clocks[place].reads(at) - self.clocks[reference].reads(at)

    def resolution_ns(self, *places: str) -> int:
        """Add up how coarse the clocks of places are: no comparison of their times can be known better."""
        return sum(self.clocks[place].resolution_ns for place in places if self.clocks[place].resolution_ns > 1)

    def place_packets(self, here: str, there: str) -> list[Sighting]:
        """Pair the packets that both places saw, in the order of time.

        Packets that are alike are paired in order, without those that the line dropped in between.
        """
        lost = {
            place: {loss.frame - self.first_frame(place) + 1 for loss in self.losses if self._between(loss, here, there)
                    and loss.from_place == place}
            for place in (here, there)
        }  # fmt: skip
        seen: dict[tuple[object, ...], list[Packet]] = defaultdict(list)
        for packet in self.packets[there]:
            if packet.frame not in lost[there]:
                seen[packet.core, packet.options].append(packet)
        return [
            Sighting(here=packet, there=alike.pop(0))
            for packet in self.packets[here]
            if packet.frame not in lost[here] and (alike := seen.get((packet.core, packet.options)))
        ]

    def least_round_trip_ns(self, here: str, there: str, since: int = -(1 << 63), until: int = 1 << 63) -> int | None:
        """Return the least time there and the least time back, added up; None unless packets went both ways.

        Of packets that were at both places between ``since`` and ``until``, two true instants. Ask captures of which
        the resolution is fine: the answer is as coarse as they are.
        """
        ways = [
            each.way_ns
            for each in self.place_packets(here, there)
            if since <= min(each.here.at, each.there.at) and max(each.here.at, each.there.at) < until
        ]
        out, back = ([way for way in ways if way > 0], [-way for way in ways if way < 0])
        return min(out) + min(back) if out and back else None

    @cached_property
    def losses(self) -> list[Loss]:
        """What the lines dropped, each as the capture before the line has it."""
        found = []
        for drop in self.drops:
            left, right = drop["line"].split("-")
            place, other = (left, right) if drop["from"] == "left" else (right, left)
            packet = self._dropped(place, drop)
            found.append(
                Loss(
                    from_place=place, to_place=other, frame=packet.frame + self.first_frame(place) - 1,
                    sender=packet.sender, ends=(packet.source, packet.destination), bytes=packet.length,
                )
            )  # fmt: skip
        return found

    def unaccounted(self, here: str, there: str) -> list[Packet]:
        """Name packets of connections that both places saw which are at one only, and which no log has as dropped.

        Both captures are whole, so there must be none: this holds the log against the captures. Segments that were cut
        or joined on the way are named, too.
        """
        pairs = self.place_packets(here, there)
        lost = {(loss.from_place, loss.frame) for loss in self.losses if self._between(loss, here, there)}
        found = []
        for place, paired in ((here, [pair.here for pair in pairs]), (there, [pair.there for pair in pairs])):
            flows, frames = {packet.flow for packet in paired}, {packet.frame for packet in paired}
            found += [
                packet
                for packet in self.packets[place]
                if packet.flow in flows
                and packet.frame not in frames
                and (place, packet.frame + self.first_frame(place) - 1) not in lost
            ]
        return found

    def _dropped(self, place: str, drop: Mapping[str, Any]) -> Packet:
        """Find a dropped packet: the last one like it that the place saw before the line dropped it."""
        core = core_of(drop["protocol"], drop["ip_id"], drop["seq"], drop["ack"], drop["flags"], drop["length"],
                       drop["payload"])  # fmt: skip
        margin_ns = self.clocks[place].resolution_ns
        alike = [
            packet for packet in self.packets[place] if packet.core == core and packet.at <= drop["at"] + margin_ns
        ]
        assert alike, f"{place}: no packet of the capture is {drop}"
        return alike[-1]

    @staticmethod
    def _between(loss: Loss, here: str, there: str) -> bool:
        return {loss.from_place, loss.to_place} == {here, there}


def core_of(
    protocol: int, ip_id: int | None, seq: int | None, ack: int | None, flags: int | None, length: int, payload: str
) -> tuple[object, ...]:
    """Return what is left of a packet after a translation. TCP has enough without the payload, which a capture cuts."""
    return (protocol, ip_id, seq, ack, flags, length, None if seq is not None else payload)


def records(capture: Path) -> Iterator[tuple[int, int, bytes]]:
    """Read a pcap file: link type, nanoseconds since the Unix epoch, bytes."""
    with capture.open("rb") as file:
        reader = dpkt.pcap.Reader(file)
        for at, raw in reader:
            # A Decimal where times are nanoseconds, otherwise a float that is right to the microsecond.
            yield reader.datalink(), round(at * 1_000_000) * 1_000 if isinstance(at, float) else int(at * SECOND), raw


def packets(capture: Path, clock: Clock) -> Iterator[Packet]:
    """Read the TCP segments and UDP datagrams over IPv4."""
    for frame, (link, written_at, raw) in enumerate(records(capture), start=1):
        ip = LINKS[link](raw).data if link in LINKS else dpkt.ip.IP(raw)
        inner = ip.data
        tcp = isinstance(inner, dpkt.tcp.TCP)
        if not tcp and not isinstance(inner, dpkt.udp.UDP):
            continue
        length = ip.len - ip.hl * 4 - (inner.off * 4 if tcp else 8)
        payload = hashlib.blake2b(bytes(inner.data), digest_size=8).hexdigest()
        seq, ack, flags = (inner.seq, inner.ack, inner.flags) if tcp else (None, None, None)
        yield Packet(
            frame=frame, at=clock.true(frame, written_at), written_at=written_at,
            source=(address(ip.src), inner.sport), destination=(address(ip.dst), inner.dport),
            core=core_of(ip.p, ip.id, seq, ack, flags, length, payload), options=bytes(inner.opts) if tcp else b"",
            seq=seq, length=length,
        )  # fmt: skip


def address(packed: bytes) -> str:
    """Print an IPv4 address."""
    return ".".join(map(str, packed))
