"""Scripted conversations: what two hosts say to each other, played as TCP packets.

In: steps (open, say, pause, close). Out: packets with times, sequence numbers and lengths as a capture at one fixed
point would hold them. How a message is cut into segments, and in which order these pass, is chosen when playing, so
that the same script can be played in many ways.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.laws.hello import Speaker

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
MESSAGE_NS = 100_000
"""From the first to the last segment of a message, however it is cut: cutting moves no first byte."""

Endpoint = tuple[str, int]
Cut = Callable[[bytes], list[bytes]]
Order = Callable[[list["Packet"]], list["Packet"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Packet:
    """One TCP segment at its capture time."""

    at: int
    """Nanoseconds since the Unix epoch."""
    source: Endpoint
    destination: Endpoint
    seq: int
    ack: int
    flags: int
    payload: bytes = b""
    options: bytes = b""
    ip_id: int = 0


@dataclass(frozen=True, slots=True)
class Say:
    """One message: what a side sends without waiting for the other."""

    who: Speaker
    data: bytes


@dataclass(frozen=True, slots=True)
class Pause:
    """Nobody sends for this long."""

    ns: int


@dataclass(frozen=True, slots=True)
class Finish:
    """A side closes its direction; the other acknowledges."""

    who: Speaker


@dataclass(frozen=True, slots=True)
class Reset:
    """A side resets the connection."""

    who: Speaker


Step = Say | Pause | Finish | Reset


def every(size: int) -> Cut:
    """Cuts a message into segments of ``size`` bytes, as TCP does with a full window."""
    return lambda data: [data[start : start + size] for start in range(0, len(data), size)]


@dataclass(kw_only=True)
class Talk:
    """One connection: who talks, from when, and what is said."""

    client: Endpoint = ("10.0.0.5", 51_344)
    server: Endpoint = ("10.0.0.9", 443)
    opened_at: int = 1_700_000_000_000_000_000
    rtt: int = 2_000_000
    client_isn: int = 1_000
    server_isn: int = 2_000
    steps: list[Step] = field(default_factory=list)
    sees_open: bool = True
    """False for a capture that starts in the middle."""

    def packets(self, cut: Cut | None = None, order: Order | None = None) -> list[Packet]:
        """Play the script.

        Args:
            cut: Splits a message into the payloads of its segments; whole MSS by default.
            order: Rearranges the segments of one message; their times stay, the contents move.
        """
        return _Player(self, cut or every(1_448), order).play()


class _Player:
    """The state of a connection while its script is played."""

    def __init__(self, talk: Talk, cut: Cut, order: Order | None) -> None:
        self.talk, self.cut, self.order = talk, cut, order
        self.clock = talk.opened_at
        self.next = {"client": talk.client_isn, "server": talk.server_isn}
        self.sent = {"client": 0, "server": 0}
        self.out: list[Packet] = []

    def play(self) -> list[Packet]:
        if self.talk.sees_open:
            self.open()
        else:
            self.next = {side: number + 1 for side, number in self.next.items()}
        for step in self.talk.steps:
            match step:
                case Say(who, data):
                    self.say(who, data)
                case Pause(ns):
                    self.clock += ns
                case Finish(who):
                    self.emit(who, FIN | ACK)
                    self.next[who] += 1
                    self.answer(who)
                case Reset(who):
                    self.emit(who, RST | ACK)
        return self.out

    def open(self) -> None:
        mss = b"\2\4\5\xb4"
        self.out.append(self.packet("client", SYN, options=mss, ack=0))
        self.next["client"] += 1
        self.clock += self.talk.rtt
        self.emit("server", SYN | ACK, options=mss)
        self.next["server"] += 1
        self.answer("server")

    def say(self, who: Speaker, data: bytes) -> None:
        pieces = self.cut(data)
        start, segments = self.clock, []
        for number, piece in enumerate(pieces):
            share = MESSAGE_NS * number // max(len(pieces) - 1, 1)
            self.clock = start + share // 1_000 * 1_000  # whole microseconds: any file can hold them
            segments.append(self.packet(who, PSH | ACK, payload=piece))
            self.next[who] = self.next[who] + len(piece)
        if self.order:
            times = [segment.at for segment in segments]
            segments = [_at(segment, at) for segment, at in zip(self.order(segments), times, strict=True)]
        self.out += segments
        self.clock = start + MESSAGE_NS
        self.answer(who)

    def answer(self, who: Speaker) -> None:
        """The other side acknowledges: from far away when the server does, at once when the client does."""
        self.clock += self.talk.rtt if who == "client" else 20_000
        self.emit("server" if who == "client" else "client", ACK)

    def emit(self, who: Speaker, flags: int, options: bytes = b"") -> None:
        self.out.append(self.packet(who, flags, options=options))

    def packet(
        self, who: Speaker, flags: int, *, payload: bytes = b"", options: bytes = b"", ack: int | None = None
    ) -> Packet:
        client, server = self.talk.client, self.talk.server
        source, destination, peer = (client, server, "server") if who == "client" else (server, client, "client")
        self.sent[who] += 1
        return Packet(
            at=self.clock,
            source=source,
            destination=destination,
            seq=self.next[who] % 2**32,
            ack=self.next[peer] % 2**32 if ack is None else ack,
            flags=flags,
            payload=payload,
            options=options,
            ip_id=self.sent[who] % 2**16,
        )


def _at(packet: Packet, at: int) -> Packet:
    return replace(packet, at=at)


def together(talks: Iterable[Sequence[Packet]]) -> list[Packet]:
    """The packets of several connections as one capture, in order of time."""
    return list(heapq.merge(*talks, key=lambda packet: packet.at))
