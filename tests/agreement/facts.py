"""One vocabulary for what two readers say about a capture, and the comparison.

In: facts of a reference and facts of ours. Out: one outcome per fact that either of them states. A fact that the
reference cannot know is absent; `None` is a real value ("nobody sent a FIN").
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

End = tuple[str, int]
"""Address and port."""
Value = Any
"""What a fact says: text, a number, an end, or None."""

TCP_FACTS = (
    "stream", "number", "endpoints", "client", "first_frame", "last_frame", "syn_at", "syn_frame", "syn_ack_at",
    "ack_at", "ack_frame", "bytes", "packets", "frames", "copies", "resent", "resent_frames", "fin_by", "rst_by",
)  # fmt: skip
TLS_FACTS = (
    "tls", "hello_at", "hello_frame", "server_hello_at", "server_done_at", "version", "version_offered", "cipher",
    "group", "sni", "alpn", "hello_retry", "resumed", "kind", "alert", "ja3", "ech", "client_auth", "certificates",
    "complete_at",
)  # fmt: skip
HTTP_FACTS = ("request", "request_at", "method", "target", "host", "status", "response_at")
FACTS = (*TCP_FACTS, *TLS_FACTS, *HTTP_FACTS)


@dataclass(slots=True, kw_only=True)
class Exchange:
    """A request and its response; only what is known is in ``facts``."""

    request_at: int
    """First byte of the request, in nanoseconds since the Unix epoch: what two readers' requests are matched by."""
    frame: int
    facts: dict[str, Value] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Packets:
    """The packets of one sender, by the numbers of their frames."""

    frames: list[int] = field(default_factory=list)
    """All of them, copies included."""
    resent: list[int] = field(default_factory=list)
    """Those that repeat bytes or come late, copies apart."""
    counted: int = 0
    """Of ours: how many were sent again or came late, by the counters of the connection."""
    twins: set[int] = field(default_factory=set)
    """Of the reference: those that an earlier packet equals, whenever that was."""
    copies: set[int] = field(default_factory=set)
    """Of ours: packets captured a second time."""


@dataclass(slots=True, kw_only=True)
class Stream:
    """One TCP connection as one reader sees it."""

    number: int
    ends: frozenset[End]
    first_frame: int
    facts: dict[str, Value] = field(default_factory=dict)
    """TCP facts by name."""
    by_end: dict[str, dict[End, int]] = field(default_factory=dict)
    """Counters of each sender: who is the client may be unknown."""
    packets: dict[End, Packets] | None = None
    """None when a reference counts packets, but does not name them."""
    tls: dict[str, Value] | None = None
    """Facts of the first handshake; None when no hello was recognized."""
    http: list[Exchange] = field(default_factory=list)
    tunnel: str = ""
    """The tunnel that carries this connection, for the report."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One fact, compared."""

    fact: str
    agrees: bool
    capture: str
    stream: int
    """The reference's number; ours for a stream that only we have."""
    frame: int
    expected: Value
    got: Value
    sender: End | None = None
    """Whose packets or bytes were counted."""
    rules: tuple[str, ...] = ()
    """The classes whose rule holds for this disagreement."""

    def __str__(self) -> str:
        """One line with what a person needs to open the place in Wireshark."""
        of = f" of {shown(self.sender)}" if self.sender else ""
        place = f"{self.capture} stream {self.stream} frame {self.frame}"
        return f"{place}: {self.fact}{of}: expected {shown(self.expected)}, got {shown(self.got)}"


def shown(value: Value) -> str:
    """A value as a report and the file of places have it: one short line, different for different values."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case (str() as address, int() as port):
            return f"{address}:{port}"
        case list() | tuple() | set() | frozenset():
            parts = [shown(one) for one in value]
            text = " ".join(parts) or "none"
            few = f"{' '.join(parts[:6])} … {len(parts)} in all"
        case _:
            text = ascii(value)[1:-1] if isinstance(value, str) else str(value)
            few = f"{text[:40]}… {len(text)} characters"
    if len(text) <= 80:
        return text
    return f"{few}, {hashlib.sha256(text.encode()).hexdigest()[:8]}"


def compare(capture: str, reference: Iterable[Stream], ours: Iterable[Stream]) -> Iterator[Outcome]:
    """Compare stream by stream: same ends and first frame, or else same ends and number; none of ours twice.

    Whether a stream is there is the fact ``stream``; that it has the same number is ``number``, compared up to the
    first stream that only the reference has, such as one in a tunnel, or to a hole in the reference's own numbers.
    """
    reference, ours = list(reference), list(ours)
    pairs = pairs_of(reference, ours)
    in_step = True
    for expected, (theirs, mine) in enumerate(zip(reference, pairs, strict=True)):
        found = mine.number if mine else None
        tunnel = f" in {theirs.tunnel}" if theirs.tunnel else ""
        place = (capture, theirs.number, theirs.first_frame)
        yield Outcome(f"stream{tunnel}", mine is not None, *place, theirs.number, found)
        in_step = in_step and mine is not None and theirs.number == expected
        if in_step:
            yield Outcome("number", found == theirs.number, *place, theirs.number, found)
        if mine:
            yield from compare_streams(capture, theirs, mine)
    matched = {id(mine) for mine in pairs if mine}
    for mine in ours:
        if id(mine) not in matched:
            yield Outcome("stream", False, capture, mine.number, mine.first_frame, None, mine.number)


def pairs_of(reference: list[Stream], ours: list[Stream]) -> list[Stream | None]:
    """For each stream of the reference the one of ours that it is."""
    keys: tuple[Callable[[Stream], Any], ...] = (
        lambda stream: (stream.ends, stream.first_frame, stream.number),
        lambda stream: (stream.ends, stream.first_frame),
        lambda stream: (stream.ends, stream.number),
    )
    pairs: list[Stream | None] = [None] * len(reference)
    left = list(ours)
    for key in keys:
        waiting: defaultdict[Any, list[Stream]] = defaultdict(list)
        for mine in left:
            waiting[key(mine)].append(mine)
        for index, theirs in enumerate(reference):
            if pairs[index] is None and waiting[key(theirs)]:
                pairs[index] = waiting[key(theirs)].pop(0)
        left = [mine for some in waiting.values() for mine in some]
    return pairs


def compare_streams(capture: str, theirs: Stream, mine: Stream) -> Iterator[Outcome]:
    """Every fact that the two state about one stream."""
    return _Pair(capture, theirs, mine).outcomes()


@dataclass(slots=True)
class _Pair:
    """The two sides of one stream."""

    capture: str
    theirs: Stream
    mine: Stream

    def outcome(
        self, fact: str, expected: Value, got: Value, frame: int | None = None, sender: End | None = None
    ) -> Outcome:
        frame = self.theirs.first_frame if frame is None else frame
        return Outcome(fact, expected == got, self.capture, self.theirs.number, frame, expected, got, sender)

    def outcomes(self) -> Iterator[Outcome]:
        theirs, mine = self.theirs, self.mine
        yield self.outcome("endpoints", sorted(theirs.ends), sorted(mine.ends))
        yield self.outcome("first_frame", theirs.first_frame, mine.first_frame)
        for fact, value in theirs.facts.items():
            if fact in mine.facts:
                yield self.outcome(fact, value, mine.facts[fact])
        for fact, counts in theirs.by_end.items():
            for end, count in sorted(counts.items()):
                if fact in mine.by_end:
                    yield self.outcome(fact, count, mine.by_end[fact].get(end), sender=end)
        if theirs.packets is not None and mine.packets is not None:
            yield from self.packets(theirs.packets, mine.packets)
        yield from self.tls()
        yield from self.http()

    def packets(self, theirs: dict[End, Packets], mine: dict[End, Packets]) -> Iterator[Outcome]:
        """Frame by frame; a disagreement names the frames that only one reader has."""
        copies = {frame for some in mine.values() for frame in some.copies}
        last = max((frame for some in theirs.values() for frame in some.frames if frame not in copies), default=None)
        yield self.outcome("last_frame", last, self.mine.facts["last_frame"])
        for end in sorted({*theirs, *mine}):
            reference, ours = theirs.get(end, Packets()), mine.get(end, Packets())
            yield self.difference("frames", end, reference.frames, ours.frames)
            resent = [frame for frame in reference.resent if frame not in ours.copies]
            yield self.outcome("resent", len(resent), ours.counted, sender=end)
            yield self.difference("resent_frames", end, resent, ours.resent)
            if ours.copies:
                yield self.difference("copies", end, reference.twins & ours.copies, ours.copies)

    def difference(self, fact: str, sender: End, theirs: Iterable[int], mine: Iterable[int]) -> Outcome:
        """Two sets of frames, or lists where a frame can stand twice."""
        expected, got = Counter(theirs), Counter(mine)
        alone, also = sorted((expected - got).elements()), sorted((got - expected).elements())
        frame = min([*alone, *also], default=None)
        return self.outcome(fact, alone, also, frame, sender)

    def tls(self) -> Iterator[Outcome]:
        theirs, mine = self.theirs.tls, self.mine.tls
        if theirs is None and mine is None:
            return
        frame = mine.get("hello_frame") if mine and theirs is None else None
        yield self.outcome("tls", theirs is not None, mine is not None, frame)
        for fact, value in (theirs or {}).items():
            if mine and fact in mine:
                yield self.outcome(fact, value, mine[fact])

    def http(self) -> Iterator[Outcome]:
        """Requests are the same when their first bytes came at one time, in order; else by method and target."""
        keys: tuple[Callable[[Exchange], Any], ...] = (
            lambda exchange: exchange.request_at,
            lambda exchange: (exchange.facts["method"], exchange.facts["target"]),
        )
        theirs, mine = list(self.theirs.http), list(self.mine.http)
        for key in keys:
            waiting: defaultdict[Any, list[Exchange]] = defaultdict(list)
            for exchange in mine:
                waiting[key(exchange)].append(exchange)
            unmatched = []
            for exchange in theirs:
                if not waiting[key(exchange)]:
                    unmatched.append(exchange)
                    continue
                match = waiting[key(exchange)].pop(0)
                mine.remove(match)
                yield self.outcome("request", True, True, exchange.frame)
                yield self.outcome("request_at", exchange.request_at, match.request_at, exchange.frame)
                for fact, value in exchange.facts.items():
                    yield self.outcome(fact, value, match.facts.get(fact), exchange.frame)
            theirs = unmatched
        for exchange in theirs:
            yield self.outcome("request", True, False, exchange.frame)
        for exchange in mine:
            yield self.outcome("request", False, True, exchange.frame)
