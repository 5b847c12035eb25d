"""What stalls cost: sums over phases, sentences, and what is no longer called idle."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conchart.stalled import OVERLAPS, parts, stall_costs, stalled_phases
from tests.charts.conftest import TellTrace, trace_of
from tests.charts.story import MS, Story
from tests.conftest import empty_trace

__all__ = ["trace_of"]

SERVER = ("10.0.0.2", 80)


def kept_waiting(idle: int = 900 * MS) -> Story:
    """A connection that idles after its response."""
    story = Story()
    story.connect(("10.0.0.1", 1), SERVER, 0, [("request", 50 * MS), ("wait", 50 * MS), ("idle", idle)])
    story.capture()
    return story


def cuts(most: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, 40), min_size=2, max_size=most).map(sorted)


@settings(deadline=None, max_examples=50)
@given(
    phases=cuts(12),
    kinds=st.lists(st.sampled_from(["idle", "wait", "transfer"]), min_size=12, max_size=12),
    stalls=cuts(12).filter(lambda at: len(set(at)) == len(at)),
)
def test_overlaps_are_those_of_every_stall_with_every_phase(
    phases: list[int], kinds: list[str], stalls: list[int]
) -> None:
    """Phases touch and may be empty; between two stalls there may be time."""
    told_phases = list(zip(kinds, phases, phases[1:], strict=False))
    told_stalls = list(zip(stalls[::2], stalls[1::2], strict=False))
    expected: Counter[str] = Counter()
    for kind, start, end in told_phases:
        for stalled, resumed in told_stalls:
            if (both := min(end, resumed) - max(start, stalled)) > 0:
                expected[kind] += both
    with empty_trace() as trace:
        for kind, start, end in told_phases:
            trace.execute(f"INSERT INTO phases SELECT unnest([0, 7]), NULL, '{kind}', {start}, {end}, 1, 1, false")
        for stalled, resumed in told_stalls:
            trace.execute(f"INSERT INTO stalls SELECT 7, 'rto', NULL, 'client', {stalled}, {resumed}, 1, 1, 1, 1, 1")
        found = trace.sql(f"SELECT stream, phase, kind, sum(ns) FROM ({OVERLAPS}) GROUP BY ALL").fetchall()
    assert {(stream, kind) for stream, _, kind, _ in found} <= {(7, "rto")}
    assert {phase: ns for _, phase, _, ns in found} == expected


def test_idling_that_was_stalled_is_called_what_it_was(trace_of: TellTrace) -> None:
    story = kept_waiting()
    story.stall(0, "nagle", 60 * MS, 700 * MS)
    story.stall(0, "rto", 700 * MS, 900 * MS)
    phases = {phase["kind"]: phase["end_at"] - phase["start_at"] for phase in story.phases}
    told = list(parts(phases, stalled_phases(trace_of(story))[SERVER]))
    assert [(part.phase.name, part.word, part.total_ns // MS, part.why) for part in told] == [
        ("request", None, 50, ""),
        ("wait", None, 50, "held 40.0 ms"),
        ("idle", "held", 600, ""),
        ("idle", "lost", 200, ""),
        ("idle", None, 100, ""),
    ]


def test_no_idling_is_left_where_all_of_it_was_stalled(trace_of: TellTrace) -> None:
    story = kept_waiting()
    story.stall(0, "nagle", 100 * MS, 1_000 * MS)
    told = list(parts({"idle": 900 * MS}, stalled_phases(trace_of(story))[SERVER]))
    assert [(part.word, part.total_ns) for part in told] == [("held", 900 * MS)]


def test_trifles_are_left_out(trace_of: TellTrace) -> None:
    story = kept_waiting()
    story.stall(0, "nagle", 100 * MS, 108 * MS)
    trace = trace_of(story)
    (told,) = parts({"idle": 900 * MS}, stalled_phases(trace)[SERVER])
    assert (told.word, told.total_ns, told.why) == (None, 900 * MS, "")
    assert stall_costs(trace) == []


@pytest.mark.parametrize(("idle", "stalled"), [(900 * MS, 10 * MS), (100 * MS, 2 * MS)])
def test_ten_milliseconds_are_told_and_so_is_a_hundredth(trace_of: TellTrace, idle: int, stalled: int) -> None:
    story = kept_waiting(idle)
    story.stall(0, "nagle", 100 * MS, 100 * MS + stalled)
    assert len(stall_costs(trace_of(story))) == 1


def test_the_costliest_three_are_told_with_their_connections(trace_of: TellTrace) -> None:
    story = Story()
    for _ in range(2):
        story.connect(("10.0.0.1", 1), SERVER, 0, [("idle", 5_000 * MS)])
    story.capture()
    story.stall(0, "nagle", 0, 600 * MS, detail="delayed-ack")
    story.stall(1, "nagle", 0, 650 * MS, detail="delayed-ack")
    story.stall(0, "nagle", 600 * MS, 610 * MS, detail="round-trip")
    story.stall(0, "rto", 1_000 * MS, 2_000 * MS, detail="tail")
    story.stall(1, "rto", 1_000 * MS, 2_000 * MS, detail="middle")
    story.stall(0, "sender", 2_000 * MS, 2_500 * MS)
    assert [str(cost) for cost in stall_costs(trace_of(story))] == [
        "lost: 2.00 s on 2 connections, a segment was lost, and sent again when a timer ran out",
        "held: 1.25 s on 2 connections, a small segment waits for a delayed acknowledgement (Nagle)",
        "paused: 500 ms on 1 connection, the sending program pauses in the middle of a message",
    ]
