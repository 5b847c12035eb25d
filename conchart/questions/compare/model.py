"""What a comparison is: plain values, for the terminal, the page and tools alike.

In: nothing. Out: the dataclasses. Texts in them are safe to print; the page escapes them besides.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from conchart.labels.units import count_of, format_count, format_ns
from conchart.questions.compare.lanes import Lanes
from conchart.questions.compare.noise import Spread, Verdict
from conchart.questions.compare.samples import Measure
from conchart.report.servers import Server

_COUNTS = {
    "connections": "connections",
    "requests": "requests",
    "handshakes_full": "full TLS handshakes",
    "handshakes_resumed": "resumed",
    "handshakes_failed": "failed",
    "refused": "refused",
    "unanswered": "unanswered",
}
"""What is counted of a server, and what it is called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One measure of one server, in both captures."""

    measure: Measure
    before: Spread
    after: Spread
    verdict: Verdict
    chance: float | None
    """p of the rank-sum test; None where none was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """One server in both captures."""

    before: Server
    after: Server
    tier: int
    """How many servers stand before it."""
    by: str
    """What tells that they are one: ``address``, ``name``, ``place``."""
    same_work: bool
    """They were asked the same number of times and, where that is to be seen, for the same things."""
    differences: tuple[Difference, ...]

    @property
    def in_front(self) -> bool:
        """Users wait for it, not only somebody for whom they wait."""
        return self.after.role in ("front", "server") or self.before.role in ("front", "server")

    def counts(self) -> Iterator[tuple[str, str, str]]:
        """Give what was counted, as ``connections``, before, after; nothing of what there was none of.

        Where the work differs, what users waited cannot be compared but per request: that comes first.
        """
        if not self.same_work and self.before.requests and self.after.requests:
            before, after = (format_ns(side.waited_ns // side.requests) for side in (self.before, self.after))
            yield "waited per request", before, after
        for name, noun in _COUNTS.items():
            numbers = getattr(self.before, name), getattr(self.after, name)
            if any(numbers):
                yield noun, format_count(numbers[0]), format_count(numbers[1])

    def verdict(self, measure: str) -> Verdict | None:
        """Give the verdict on a measure, by its name."""
        return next((one.verdict for one in self.differences if one.measure.name == measure), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingChange:
    """A finding about one server, in either capture or in both."""

    change: str
    """``gone``, ``new``, ``changed``, ``same``."""
    finding: str
    title: str
    severity: str
    """The worse of both."""
    server: str
    """Names and address; empty where it is about no server."""
    before_ns: int | None
    """What users waited for it that no other finding counts; None where it was not found."""
    after_ns: int | None
    before_count: int | None
    after_count: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The comparison in a sentence, and how far it can be trusted."""

    sentence: str
    remark: str
    """May be empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two captures."""

    name: str
    """Of its files."""
    packets: int
    span_ns: int
    connections: int
    requests: int
    only: tuple[Server, ...]
    """Servers that the other one has not."""
    lanes: Lanes

    @property
    def extent(self) -> str:
        """``265 packets, 337 ms, 6 connections, 6 requests``."""
        counts = (count_of(self.connections, "connection"), count_of(self.requests, "request"))
        return ", ".join((count_of(self.packets, "packet"), format_ns(self.span_ns), *counts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two captures, compared."""

    before: Side
    after: Side
    headlines: tuple[Headline, ...]
    hops: tuple[Hop, ...]
    """In the order in which to list them: the costliest front first, after it what stands behind it."""
    findings: tuple[FindingChange, ...]
    span_ns: int
    """Of the longer one: both are drawn on this scale."""
    waited_ns: int
    """The most that users waited for one server, in either: all bars are drawn on this scale."""
