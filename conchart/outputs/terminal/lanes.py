"""Lanes: one line per connection on a common time axis, grouped by server, in the page's order.

In: a report. Out: lines of text.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.cells import cell_len
from rich.text import Text

from conchart.labels.phases import PHASES
from conchart.labels.units import count_of, format_ns, format_tick, tick_step
from conchart.outputs.terminal.strip import Axis, draw_strip, swatch
from conchart.outputs.terminal.words import clipped, fit, flow, names_text
from conchart.report.lanes import MOST_LANES, Lane
from conchart.report.report import Report

_FOLD = "≈"
"""Marks where the axis leaves a silence out."""
BESIDE_LANES = 3
"""Lines of the axis and, 80 columns wide, of the legend."""
_ORDINARY = ("complete", "open")


def lane_lines(report: Report, width: int, *, colours: bool, room: int = 2 * MOST_LANES + 1) -> Iterator[Text]:
    """Give the lines: those connections are drawn whose users waited the longest, in the order of time at each server.

    Args:
        report: What there is to draw.
        width: Columns.
        colours: Whether there are colours.
        room: Lines for connections, their servers and the count of those left out; no more than ``MOST_LANES``
            connections are drawn.
    """
    count = report.overview.connections
    if not count:
        return
    time = report.axis
    drawn = report.lanes(room - bool(time.folds))
    labels = {lane.stream: f"{lane.stream:>3} {lane.client}" for lane in drawn}
    results = {lane.stream: _result(lane) for lane in drawn}
    label_width = min(max(map(cell_len, labels.values())), max(20, width // 4))
    result_width = max(map(cell_len, results.values()))
    axis = Axis(0, time.span, max(16, width - label_width - result_width - 4), colours)
    stretches = report.stretches(drawn, axis.slots)
    for server, group in groupby(drawn, key=_server):
        yield Text(server, "bold")
        for lane in group:
            strip = draw_strip(stretches[lane.stream], axis)
            label, result = fit(labels[lane.stream], label_width), results[lane.stream]
            yield Text.assemble(f"  {label} ", strip, f" {result:>{result_width}}")
    for line in scale(axis, [fold.at for fold in time.folds]):
        yield Text(" " * (label_width + 3) + line, "dim")
    if time.folds:
        more = f" and {count_of(len(time.folds) - 1, 'more silence')}" if len(time.folds) > 1 else ""
        yield Text(f"{_FOLD} {time.folds[0].says}{more}: no connection was open", "dim")
    if count > len(drawn):
        more = f"… and {count_of(count - len(drawn), 'more connection')}, with less to wait for: -w out.html draws them"
        yield from map(Text, clipped(more, width, 1))
    kinds = {stretch.kind for lane in stretches.values() for stretch in lane}
    signs = ((phase, swatch(phase, colours=colours)) for phase in PHASES if phase.name in kinds)
    yield from flow((Text.assemble(sign, f" {phase.name}") for phase, sign in signs), width)


def _server(lane: Lane) -> str:
    return "  ".join(filter(None, (lane.server, names_text(lane.names), lane.owner)))


def _result(lane: Lane) -> str:
    return format_ns(lane.lasts_ns) + ("" if lane.state in _ORDINARY else f" {lane.state}")


def scale(axis: Axis, folds: Sequence[int] = ()) -> Iterator[str]:
    """The axis: a ruler with ticks, then their labels, in time since it began; a mark where it leaves time out."""
    step = tick_step(axis.span, max(2, axis.cells // 12))
    ruler, labels = ["─"] * axis.cells, ""
    for tick in range(0, axis.span + 1, step):
        cell = min(axis.cells - 1, tick * axis.cells // axis.span)
        ruler[cell] = "┴"
        label = format_tick(tick, step)
        place = min(cell, axis.cells - len(label))
        if place > len(labels) or not labels:
            labels = labels.ljust(place) + label
    for fold in folds:
        ruler[min(axis.cells - 1, fold * axis.cells // axis.span)] = _FOLD
    yield "".join(ruler)
    yield labels
