"""One vocabulary for what two readers say about a capture, and the comparison.

In: facts of a reference and facts of ours. Out: one outcome per fact that the reference knows. A fact that the
reference cannot know is absent; `None` is a real value ("nobody sent a FIN").
"""

from __future__ import annotations

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
    "ack_at", "ack_frame", "bytes", "packets", "resent", "fin_by", "rst_by",
)  # fmt: skip
TLS_FACTS = (
    "tls", "hello_at", "hello_frame", "server_hello_at", "server_done_at", "version", "cipher", "group", "sni", "alpn",
    "hello_retry", "resumed", "kind", "alert", "ja3", "ech", "client_auth", "certificates", "complete_at",
)  # fmt: skip
HTTP_FACTS = ("requests", "request", "method", "target", "host", "status", "response_at")
FACTS = (*TCP_FACTS, *TLS_FACTS, *HTTP_FACTS)


@dataclass(slots=True, kw_only=True)
class Exchange:
    """A request and its response; only what is known is in ``facts``."""

    request_at: int
    """First byte of the request, in nanoseconds since the Unix epoch: what two readers' requests are matched by."""
    frame: int
    facts: dict[str, Value] = field(default_factory=dict)


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
    tls: dict[str, Value] | None = None
    """Facts of the first handshake; None when no TLS was recognized."""
    http: list[Exchange] | None = None
    """None when no HTTP/1 was recognized."""
    http_is_whole: bool = False
    """True when ``http`` holds every request, whole ones and others."""
    tunnel: str = ""
    """The tunnel that carries this connection, for the report."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One fact, compared."""

    fact: str
    agrees: bool
    capture: str
    stream: int
    frame: int
    expected: Value
    got: Value

    def __str__(self) -> str:
        """One line with what a person needs to open the place in Wireshark."""
        place = f"{self.capture} stream {self.stream} frame {self.frame}"
        return f"{place}: {self.fact}: expected {self.expected!r}, got {self.got!r}"


def compare(capture: str, reference: Iterable[Stream], ours: Iterable[Stream]) -> Iterator[Outcome]:
    """Compare stream by stream: same number, or else same ends and first frame.

    Whether a stream is there is the fact ``stream``; that it has the same number is ``number``, compared up to the
    first stream that only the reference has, such as one in a tunnel, or to a hole in the reference's own numbers.
    """
    in_step = True
    by_number = {stream.number: stream for stream in ours}
    by_place = {(stream.ends, stream.first_frame): stream for stream in by_number.values()}
    for expected, theirs in enumerate(reference):
        mine = by_number.get(theirs.number)
        if mine is None or mine.ends != theirs.ends or mine.first_frame != theirs.first_frame:
            mine = by_place.get((theirs.ends, theirs.first_frame), mine if mine and mine.ends == theirs.ends else None)
        found = mine.number if mine else None
        tunnel = f" in {theirs.tunnel}" if theirs.tunnel else ""
        place = (capture, theirs.number, theirs.first_frame)
        yield Outcome(f"stream{tunnel}", mine is not None, *place, theirs.number, found)
        in_step = in_step and mine is not None and theirs.number == expected
        if in_step:
            yield Outcome("number", found == theirs.number, *place, theirs.number, found)
        if mine:
            yield from _compare_stream(capture, theirs, mine)


def _compare_stream(capture: str, theirs: Stream, mine: Stream) -> Iterator[Outcome]:
    def outcome(fact: str, expected: Value, got: Value, frame: int = theirs.first_frame) -> Outcome:
        return Outcome(fact, expected == got, capture, theirs.number, frame, expected, got)

    yield outcome("endpoints", sorted(theirs.ends), sorted(mine.ends))
    yield outcome("first_frame", theirs.first_frame, mine.first_frame)
    for fact, value in theirs.facts.items():
        if fact in mine.facts:
            yield outcome(fact, value, mine.facts[fact])
    for fact, counts in theirs.by_end.items():
        for end, count in counts.items():
            if fact in mine.by_end:
                yield outcome(fact, count, mine.by_end[fact].get(end))
    if theirs.tls is not None:
        yield outcome("tls", True, mine.tls is not None)
        known = mine.tls or {}
        for fact, value in theirs.tls.items():
            if fact in known:
                yield outcome(fact, value, known[fact])
    if theirs.http is not None:
        if theirs.http_is_whole:
            yield outcome("requests", len(theirs.http), len(mine.http or []))
        yield from _compare_http(outcome, theirs.http, mine.http or [])


def _compare_http(outcome: Any, theirs: list[Exchange], mine: list[Exchange]) -> Iterator[Outcome]:  # noqa: ANN401
    """Requests are matched by the time of their first byte, and by order within one packet."""
    waiting: defaultdict[int, list[Exchange]] = defaultdict(list)
    for exchange in mine:
        waiting[exchange.request_at].append(exchange)
    for exchange in theirs:
        same_time = waiting[exchange.request_at]
        match = same_time.pop(0) if same_time else None
        yield outcome("request", True, match is not None, exchange.frame)
        if match:
            for fact, value in exchange.facts.items():
                yield outcome(fact, value, match.facts.get(fact), exchange.frame)


@dataclass(slots=True)
class Tally:
    """How often each fact was compared and agreed."""

    explain: Callable[[Outcome], str | None] = lambda _outcome: None
    """Why a disagreement is known and in order; None when it is not."""
    agreed: Counter[str] = field(default_factory=Counter)
    explained: Counter[str] = field(default_factory=Counter)
    disagreements: dict[str, list[Outcome]] = field(default_factory=dict)
    """Those that nobody has explained."""

    def add(self, outcomes: Iterable[Outcome]) -> None:
        """Count outcomes; disagreements are kept."""
        for outcome in outcomes:
            if outcome.agrees:
                self.agreed[outcome.fact] += 1
            elif self.explain(outcome):
                self.explained[outcome.fact] += 1
            else:
                self.disagreements.setdefault(outcome.fact, []).append(outcome)

    def compared(self, fact: str) -> int:
        """How often the reference knew this fact."""
        return self.agreed[fact] + self.explained[fact] + len(self.disagreements.get(fact, ()))

    def rows(self) -> Iterator[tuple[str, int, int, int, int]]:
        """Fact, compared, agree, disagree (explained or not), explained; facts in their usual order."""
        extra = sorted({*self.agreed, *self.explained, *self.disagreements} - {*FACTS})
        for fact in (*FACTS, *extra):
            if compared := self.compared(fact):
                yield fact, compared, self.agreed[fact], compared - self.agreed[fact], self.explained[fact]

    def rate(self, facts: Iterable[str], *, explained: bool = False) -> float | None:
        """Share of comparisons of these facts that agree (or are ``explained``); None when there was none."""
        facts = tuple(facts)
        total = sum(self.compared(fact) for fact in facts)
        good = sum(self.agreed[fact] + (self.explained[fact] if explained else 0) for fact in facts)
        return good / total if total else None
