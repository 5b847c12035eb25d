"""The law of cost: a capture four times as large costs four times as much, whatever its shape."""

import pytest

from conchart import Trace
from tests.conftest import analysed
from tests.cost.meter import Costs, Metered, counting_lines
from tests.cost.shapes import SHAPES, Shape, fill

SIZE, TIMES = 150, 4
MOST_GROWTH = 1.1 * TIMES
LITTLE = 40 * SIZE
"""Rows and lines that a step may cost in any case: with the size, other rules are asked and other pairs are found."""


def cost_of(shape: Shape, size: int) -> Costs:
    """Analyse a capture of a shape; give what that cost."""
    costs = Costs()
    with Trace(Metered(costs)) as trace:  # type: ignore[arg-type]  # a database but for its class
        trace.create()
        fill(trace, shape, size)
        costs.rows.clear()
        with counting_lines(costs):
            analysed(trace)
    return costs


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_no_step_grows_faster_than_the_capture(shape: Shape) -> None:
    small, large = cost_of(shape, SIZE), cost_of(shape, TIMES * SIZE)
    grown = {
        (what, place): (before[place], count)
        for what, before, after in (
            ("rows", small.rows, large.rows),
            ("fetched", small.fetched, large.fetched),
            ("lines", small.lines, large.lines),
        )
        for place, count in after.items()
        # A rule that the small capture gives no reason to ask has nothing to grow from.
        if (before[place] or "_ask, " not in place) and count > MOST_GROWTH * max(before[place], LITTLE)
    }
    assert not grown
