"""What stalls cost, a sentence per kind, and where they are. In: the table ``phase_stalls``. Out: plain values.

Stalls explain phases: no time here is to be added to theirs.
"""

from dataclasses import dataclass

from conchart.labels.stalls import DETAIL, StallKind, stall_kind
from conchart.labels.units import count_of, format_ns, format_share
from conchart.store.tables import Tables

MOST_LISTED = 3
_SURE = 0.85
"""What is less sure, on the average of its time, is told with how sure it is."""
_LITTLE_NS = 10_000_000
"""What costs less is told only if it is a hundredth of the connections' time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StallCost:
    """What one kind of stall cost in all."""

    kind: StallKind
    total_ns: int
    connections: int
    confidence: float

    def __str__(self) -> str:
        """``held: 1.25 s on 29 connections, a small segment waits …``."""
        where = count_of(self.connections, "connection")
        sure = "" if self.confidence >= _SURE else f" ({format_share(round(100 * self.confidence), 100)} sure)"
        return f"{self.kind.word}: {format_ns(self.total_ns)} on {where}, {self.kind.meaning}{sure}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalled:
    """A stretch in which the next byte of a connection did not come."""

    stream: int
    kind: StallKind
    side: str
    """Whose byte."""
    phase: str
    """As ``phases.kind``."""
    start_at: int
    end_at: int


def stalled(tables: Tables, most: int) -> list[Stalled]:
    """List where connections were stalled, in the order of time; the first ``most`` stretches."""
    query = f"""
        SELECT stream, kind, {DETAIL} AS detail, side, phase, start_at, end_at FROM phase_stalls
        ORDER BY start_at, stream LIMIT {most}"""
    return [
        Stalled(stream=stream, kind=stall_kind(kind, detail), side=side, phase=phase, start_at=start_at, end_at=end_at)
        for stream, kind, detail, side, phase, start_at, end_at in tables.fetch(query)
    ]


def stall_costs(tables: Tables) -> list[StallCost]:
    """Name the kinds of stall that matter, the costliest first."""
    ((lived,),) = tables.fetch("SELECT coalesce(sum(total_ns), 0)::HUGEINT FROM servers")
    costs = (
        StallCost(kind=stall_kind(name, detail), total_ns=ns, connections=connections, confidence=confidence)
        for name, detail, ns, connections, confidence in tables.fetch(
            f"""
            SELECT kind, {DETAIL}, sum(end_at - start_at), count(DISTINCT stream),
                sum((end_at - start_at) * confidence) / sum(end_at - start_at)
            FROM phase_stalls GROUP BY ALL
            """
        )
    )
    large = [cost for cost in costs if cost.total_ns >= _LITTLE_NS or cost.total_ns * 100 >= lived]
    return sorted(large, key=lambda cost: (-cost.total_ns, cost.kind.meaning))[:MOST_LISTED]
