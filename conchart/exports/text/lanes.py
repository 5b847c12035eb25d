"""Lanes: one line per connection on a common time axis, grouped by server. In: a trace. Out: lines of text."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

from conchart.exports.text.attribution import NAMES
from conchart.exports.text.strip import Axis, Stretch, draw_strip, swatch
from conchart.exports.text.words import endpoint, fit, flow, names_text
from conchart.phases import PHASES
from conchart.sql import UNREAD
from conchart.units import count_of, format_ns, format_tick, tick_step

if TYPE_CHECKING:
    from conchart.trace import Trace

MOST_LANES = 40
_ORDINARY = ("complete", "open")

_LANES = """
    WITH kept AS (FROM connections ORDER BY {unread}, closed_at - opened_at DESC, stream LIMIT {most})
    SELECT server_ip, server_port, names, stream, client_ip, client_port, state, opened_at, closed_at
    FROM kept LEFT JOIN ({names}) USING (server_ip, server_port)
    ORDER BY bool_and({unread}) OVER (PARTITION BY server_ip, server_port),
        min(opened_at) OVER (PARTITION BY server_ip, server_port), server_ip, server_port, opened_at, stream
"""

_PHASES = """
    SELECT stream, kind, start_at, end_at FROM phases WHERE list_contains($streams, stream) ORDER BY stream, start_at
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lane:
    server: str
    label: str
    result: str
    stretches: list[Stretch]


def lanes(trace: "Trace", width: int, *, colours: bool, names: bool) -> Iterator[Text]:
    """Give the lines; when there are more than ``MOST_LANES`` connections, those that lived longest are drawn."""
    (count, start, end), *_ = trace.sql("SELECT count(*), min(opened_at), max(closed_at) FROM connections").fetchall()
    if not count:
        return
    drawn = _lanes(trace, names=names)
    label_width = min(max(cell_len(lane.label) for lane in drawn), max(20, width // 4))
    result_width = max(cell_len(lane.result) for lane in drawn)
    axis = Axis(start, end, max(16, width - label_width - result_width - 4), colours)
    for server, group in groupby(drawn, key=lambda lane: lane.server):
        yield Text(server, "bold")
        for lane in group:
            strip = draw_strip(lane.stretches, axis)
            yield Text.assemble(f"  {fit(lane.label, label_width)} ", strip, f" {lane.result:>{result_width}}")
    for line in _scale(axis):
        yield Text(" " * (label_width + 3) + line, "dim")
    if count > len(drawn):
        yield Text(
            f"… and {count_of(count - len(drawn), 'more connection')}, shorter than these: -w out.html draws them"
        )
    kinds = {stretch.kind for lane in drawn for stretch in lane.stretches}
    yield Text()
    signs = ((phase, swatch(phase, colours=colours)) for phase in PHASES if phase.name in kinds)
    yield from flow((Text.assemble(sign, f" {phase.name}") for phase, sign in signs), width)


def _lanes(trace: "Trace", *, names: bool) -> list[_Lane]:
    rows = trace.sql(_LANES.format(most=MOST_LANES, names=NAMES, unread=UNREAD)).fetchall()
    stretches: dict[int, list[Stretch]] = {row[3]: [] for row in rows}
    for stream, kind, start, end in trace.sql(_PHASES, {"streams": list(stretches)}).fetchall():
        stretches[stream].append(Stretch(kind, start, end))
    return [
        _Lane(
            server=f"{endpoint(server_ip, server_port)}  {names_text(called) if names else ''}".rstrip(),
            label=f"{stream:>3} {endpoint(client_ip, client_port)}",
            result=format_ns(closed_at - opened_at) + ("" if state in _ORDINARY else f" {state}"),
            stretches=stretches[stream] or [Stretch("unseen", opened_at, closed_at)],
        )
        for server_ip, server_port, called, stream, client_ip, client_port, state, opened_at, closed_at in rows
    ]


def _scale(axis: Axis) -> Iterator[str]:
    """The axis: a ruler with ticks, then their labels, in time since the axis began."""
    step = tick_step(axis.span, max(2, axis.cells // 12))
    ruler, labels = ["─"] * axis.cells, ""
    for tick in range(0, axis.span + 1, step):
        cell = min(axis.cells - 1, tick * axis.cells // axis.span)
        ruler[cell] = "┴"
        label = format_tick(tick, step)
        place = min(cell, axis.cells - len(label))
        if place > len(labels) or not labels:
            labels = labels.ljust(place) + label
    yield "".join(ruler)
    yield labels
