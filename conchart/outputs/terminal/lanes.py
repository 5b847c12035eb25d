"""Lanes: one line per connection on a common time axis, grouped by server, in the page's order.

In: a trace. Out: lines of text.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.cells import cell_len
from rich.text import Text

from conchart.outputs.terminal.strip import Axis, Stretch, draw_strip, swatch
from conchart.outputs.terminal.words import clipped, fit, flow, names_text
from conchart.report.axis import TimeAxis, time_axis
from conchart.report.owners import who
from conchart.store.sql import COSTLIEST
from conchart.store.tables import Tables
from conchart.words.phases import PHASES
from conchart.words.printable import endpoint, printable
from conchart.words.units import count_of, format_ns, format_tick, tick_step

MOST_LANES = 40
_FOLD = "≈"
"""Marks where the axis leaves a silence out."""
BESIDE_LANES = 3
"""Lines of the axis and, 80 columns wide, of the legend."""
_ORDINARY = ("complete", "open")

_LANES = f"""
    SELECT server_ip, server_port, names, stream, client_ip, client_port, state, {{opened}}, closed_at - opened_at,
        {who("client", brief=True)}, max({who("server")}) OVER (PARTITION BY server_ip, server_port)
    FROM connections JOIN (SELECT server_ip, server_port, rank, names FROM servers) USING (server_ip, server_port)
    WHERE list_contains($streams, stream) ORDER BY rank, server_ip, server_port, opened_at, stream
"""
_COSTLIEST = f"""
    SELECT stream, server_ip, server_port FROM connections JOIN (SELECT server_ip, server_port FROM servers)
        USING (server_ip, server_port) ORDER BY {COSTLIEST} LIMIT {MOST_LANES}
"""

_PHASES = """
    SELECT stream, kind, min(start_ns) AS start_ns, (min(start_ns) + sum(end_ns - start_ns))::BIGINT
    FROM (SELECT stream, kind, {start} AS start_ns, {start} + end_at - start_at AS end_ns
        FROM phases WHERE list_contains($streams, stream))
    GROUP BY stream, kind, start_ns::HUGEINT * $slots // $span, (end_ns::HUGEINT * $slots - 1) // $span
    ORDER BY stream, start_ns
"""
"""Phases of one kind in one slot become one: of a connection they do not overlap, so the slot is filled as before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lane:
    stream: int
    server: str
    label: str
    result: str
    life: Stretch
    """What is drawn where it has no phases."""


def lanes(tables: Tables, width: int, *, colours: bool, names: bool, room: int = 2 * MOST_LANES + 1) -> Iterator[Text]:
    """Give the lines: those connections are drawn whose users waited the longest, in the order of time at each server.

    Args:
        tables: Of the trace.
        width: Columns.
        colours: Whether there are colours.
        names: With names found in the capture.
        room: Lines for connections, their servers and the count of those left out; no more than ``MOST_LANES``
            connections are drawn.
    """
    count = tables.count("connections")
    if not count:
        return
    time = time_axis(tables)
    drawn = _lanes(tables, _chosen(tables, count, room - bool(time.folds)), time, names=names)
    label_width = min(max(cell_len(lane.label) for lane in drawn), max(20, width // 4))
    result_width = max(cell_len(lane.result) for lane in drawn)
    axis = Axis(0, time.span, max(16, width - label_width - result_width - 4), colours)
    stretches = _stretches(tables, drawn, axis, time)
    for server, group in groupby(drawn, key=lambda lane: lane.server):
        yield Text(server, "bold")
        for lane in group:
            strip = draw_strip(stretches[lane.stream], axis)
            yield Text.assemble(f"  {fit(lane.label, label_width)} ", strip, f" {lane.result:>{result_width}}")
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


def _chosen(tables: Tables, count: int, room: int) -> list[int]:
    """Choose the connections that are drawn, the longest wait first, until there is no room for another one."""
    chosen: list[int] = []
    servers: set[tuple[str, int]] = set()
    for stream, *server in tables.fetch(_COSTLIEST):
        with_it = servers | {(server[0], server[1])}
        has_more = len(chosen) + 1 < count
        if chosen and len(chosen) + 1 + len(with_it) + has_more > room:
            break
        chosen.append(stream)
        servers = with_it
    return chosen


def _lanes(tables: Tables, streams: list[int], time: TimeAxis, *, names: bool) -> list[_Lane]:
    rows = tables.fetch(_LANES.format(opened=time.place("opened_at")), {"streams": streams})
    return [
        _Lane(
            stream=stream,
            server=_server(endpoint(server_ip, server_port), names_text(called), serves, names=names),
            label=f"{stream:>3} {printable(asks, limit=40) if names and asks else endpoint(client_ip, client_port)}",
            result=format_ns(took) + ("" if state in _ORDINARY else f" {state}"),
            life=Stretch("unseen", opened, opened + took),
        )
        for server_ip, server_port, called, stream, client_ip, client_port, state, opened, took, asks, serves in rows
    ]


def _server(address: str, called: str, owner: str | None, *, names: bool) -> str:
    told = (called, printable(owner, limit=60) if owner else "") if names else ()
    return "  ".join(part for part in (address, *told) if part)


def _stretches(tables: Tables, drawn: list[_Lane], axis: Axis, time: TimeAxis) -> dict[int, list[Stretch]]:
    """Give what fills the slots of each lane: no more than a strip can show, however many phases there are."""
    found: dict[int, list[Stretch]] = {lane.stream: [] for lane in drawn}
    asked = {"streams": list(found), "span": axis.span, "slots": axis.slots}
    for stream, kind, start, end in tables.fetch(_PHASES.format(start=time.place("start_at")), asked):
        found[stream].append(Stretch(kind, start, end))
    return {lane.stream: found[lane.stream] or [lane.life] for lane in drawn}


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
