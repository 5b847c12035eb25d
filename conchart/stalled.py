"""What stalls cost: how much time each kind explains, and of which phases.

In: stalls, phases and connections of a trace. Out: times, and sentences about them. Stalls explain phases: no time here
is to be added to theirs.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conchart.phases import PHASES, PhaseKind
from conchart.stalls import DETAIL, StallKind, stall_kind
from conchart.units import count_of, format_ns

if TYPE_CHECKING:
    from conchart.trace import Trace

MOST_TOLD = 3
LEAST_TOLD = 0.55
"""A cause that is surer than not is told; less sure ones are in the table, and on their lanes."""
_LITTLE_NS = 10_000_000
"""What costs less is told only if it is a hundredth of the connections' time."""

OVERLAPS = f"""
    WITH cuts AS (
        SELECT stream, unnest([start_at, end_at]) AS cut_at FROM stalls
        UNION SELECT stream, unnest([start_at, end_at]) FROM phases SEMI JOIN stalls USING (stream)),
    pieces AS (
        SELECT stream, cut_at, lead(cut_at) OVER (PARTITION BY stream ORDER BY cut_at) - cut_at AS ns FROM cuts)
    SELECT pieces.stream, phases.kind AS phase, s.kind, s.detail, s.confidence, ns
    FROM pieces
    ASOF JOIN (SELECT stream, kind, {DETAIL} AS detail, confidence, start_at, end_at FROM stalls) s
        ON s.stream = pieces.stream AND s.start_at <= cut_at
    ASOF JOIN (FROM phases WHERE end_at > start_at) phases
        ON phases.stream = pieces.stream AND phases.start_at <= cut_at
    WHERE cut_at < s.end_at AND cut_at < phases.end_at
        AND (phases.kind = 'idle' AND s.detail IN ('ack', 'spurious')) IS NOT TRUE"""
"""SQL: pieces of time in which one phase and one stall of a connection lie over each other, but where nobody missed
what was sent again: it had arrived, and nothing was owed. Connections are cut where either begins or ends: to compare
each phase with each stall would take hours for one of a hundred thousand requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StallCost:
    """What one kind of stall cost in all."""

    kind: StallKind
    total_ns: int
    connections: int

    def __str__(self) -> str:
        """``held: 1.25 s on 29 connections, a small segment waits …``."""
        where = count_of(self.connections, "connection")
        return f"{self.kind.word}: {format_ns(self.total_ns)} on {where}, {self.kind.meaning}"


def stall_costs(trace: "Trace") -> list[StallCost]:
    """Name the kinds of stall that matter, the costliest first."""
    (lived,), *_ = trace.sql("SELECT coalesce(sum(closed_at - opened_at), 0)::HUGEINT FROM connections").fetchall()
    costs = (
        StallCost(kind=stall_kind(name, detail), total_ns=ns, connections=connections)
        for name, detail, ns, connections in trace.sql(
            f"""
            SELECT kind, detail, sum(ns), count(DISTINCT stream) FROM ({OVERLAPS}) WHERE confidence >= {LEAST_TOLD}
            GROUP BY ALL
            """
        ).fetchall()
    )
    told = [cost for cost in costs if cost.total_ns >= _LITTLE_NS or cost.total_ns * 100 >= lived]
    return sorted(told, key=lambda cost: (-cost.total_ns, cost.kind.meaning))[:MOST_TOLD]


Stalled = Counter[str]
"""Nanoseconds by word."""


def stalled_phases(trace: "Trace") -> dict[tuple[str, int], dict[str, Stalled]]:
    """Give, for each server, the stalled part of each kind of phase."""
    servers: dict[tuple[str, int], dict[str, Stalled]] = {}
    for ip, port, phase, name, detail, ns in trace.sql(
        f"""
        SELECT server_ip, server_port, phase, kind, detail, sum(ns)
        FROM ({OVERLAPS}) JOIN connections USING (stream) GROUP BY ALL
        """
    ).fetchall():
        stalled = servers.setdefault((ip, port), {}).setdefault(phase, Counter())
        stalled[stall_kind(name, detail).word] += ns
    return servers


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one kind of phase cost, or of idling one that was none: somebody had something to send."""

    phase: PhaseKind
    word: str | None = None
    """What to call it instead of idle; None where the phase's own name is right."""
    total_ns: int
    stalled: Stalled
    """What stalls explain of it, but for trifles."""

    @property
    def why(self) -> str:
        """``held 1.25 s, lost 200 ms``, the most first; empty where nothing is to be said, or the word says it all."""
        parts = sorted(self.stalled.items(), key=lambda part: (-part[1], part[0]))
        return "" if self.word else ", ".join(f"{word} {format_ns(ns)}" for word, ns in parts)


def parts(phases: Mapping[str, int], stalled: Mapping[str, Stalled]) -> Iterator[Part]:
    """Tell the time of each kind of phase, in the order of ``PHASES``; what was stalled is not called idle.

    Args:
        phases: Nanoseconds by kind.
        stalled: One server's part of ``stalled_phases``, or several's.
    """
    for phase in PHASES:
        whole = phases.get(phase.name, 0)
        why = Counter({word: ns for word, ns in stalled.get(phase.name, {}).items() if ns * 100 >= whole})
        if phase.name == "idle":
            for word, ns in sorted(why.items()):
                yield Part(phase=phase, word=word, total_ns=ns, stalled=Counter({word: ns}))
                whole -= ns
            why.clear()
        if whole > 0:
            yield Part(phase=phase, total_ns=whole, stalled=why)
