"""The law of cost for what people read: pages, texts and files of four times as much take four times the work."""

from pathlib import Path

import pytest

from conchart import Trace
from tests.conftest import analysed
from tests.cost.meter import Costs, Metered, counting_lines
from tests.cost.shapes import SHAPES, Shape, fill
from tests.cost.test_rows import LITTLE, MOST_GROWTH, SIZE, TIMES

NAMES = (
    "plain",
    "a scan of ports",
    "many clients of one server",
    "many requests on one connection",
    "requests at once on one connection",
    "lookups on one socket",
    "many names",
    "many handshakes and many stalls of one server",
    "many findings",
    "one long connection with many stalls",
)
"""Shapes with much of what is told. Others differ in who talks with whom, which matters to the analysis."""

SUFFIXES = (".html", ".txt", ".json", ".csv", ".har")


def cost_of(shape: Shape, size: int, folder: Path) -> Costs:
    """Write a capture of a shape in every format; give what that cost, the analysis apart."""
    costs = Costs()
    with Trace(Metered(costs)) as trace:  # type: ignore[arg-type]  # a database but for its class
        trace.create()
        fill(trace, shape, size)
        analysed(trace)
        costs.rows.clear()
        costs.fetched.clear()
        with counting_lines(costs):
            for suffix in SUFFIXES:
                trace.write(folder / f"{size}{suffix}")
    return costs


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape.name in NAMES], ids=lambda shape: shape.name)
def test_no_format_grows_faster_than_the_capture(shape: Shape, tmp_path: Path) -> None:
    small, large = (cost_of(shape, size, tmp_path) for size in (SIZE, TIMES * SIZE))
    grown = {
        (what, place): (before[place], count)
        for what, before, after in (
            ("rows", small.rows, large.rows),
            ("fetched", small.fetched, large.fetched),
            ("lines", small.lines, large.lines),
        )
        for place, count in after.items()
        # What is told of large captures only has nothing to grow from.
        if before[place] and count > MOST_GROWTH * max(before[place], LITTLE)
    }
    assert large.rows
    assert not grown
