"""What stalls cost, in sentences."""

import pytest

from conchart.report.stalls import stall_costs
from tests.charts.story import MS, Story
from tests.conftest import TellTrace

SERVER = ("10.0.0.2", 80)


def idling(idle: int) -> Story:
    """A connection that idles after its response."""
    story = Story()
    story.connect(("10.0.0.1", 1), SERVER, 0, [("request", 50 * MS), ("wait", 50 * MS), ("idle", idle)])
    story.capture()
    return story


@pytest.mark.parametrize(
    ("idle", "stalled", "count"), [(900 * MS, 10 * MS, 1), (100 * MS, 2 * MS, 1), (900 * MS, 8 * MS, 0)]
)
def test_ten_milliseconds_are_told_and_so_is_a_hundredth(
    trace_of: TellTrace, idle: int, stalled: int, count: int
) -> None:
    story = idling(idle)
    story.stall(0, "nagle", 100 * MS, 100 * MS + stalled)
    assert len(stall_costs(trace_of(story))) == count


@pytest.mark.parametrize(("confidence", "sure"), [(0.5, " (50 % sure)"), (0.95, "")])
def test_what_is_not_sure_is_told_with_how_sure_it_is(trace_of: TellTrace, confidence: float, sure: str) -> None:
    story = idling(900 * MS)
    story.stall(0, "sender", 100 * MS, 400 * MS, confidence=confidence)
    trace = trace_of(story)
    (cost,) = stall_costs(trace)
    assert str(cost) == (f"paused: 300 ms on 1 connection, the sending program pauses in the middle of a message{sure}")
    assert trace.sql("SELECT waited_ns FROM servers").fetchall() == [(400 * MS,)]


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
