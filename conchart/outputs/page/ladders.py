"""Ladders of the page: the packets of those connections whose packets are all kept.

In: a trace whose lanes are numbered. Out: tables for the page. What a packet is for is ``questions.explain``'s to say.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from conchart.errors import MissingToolError
from conchart.labels.printable import printable
from conchart.labels.units import count_of, format_count
from conchart.outputs.options import DrawOptions
from conchart.questions.explain import Ladder, connections, count_complete, ladder
from conchart.questions.explain.bytes import dissected
from conchart.report import logs
from conchart.report.axis import TimeAxis
from conchart.store.tables import Tables

_TYPES = {
    "rungs": "lane INTEGER, frame BIGINT, seen_at BIGINT, up BOOLEAN, flags VARCHAR, bytes INTEGER, seq BIGINT, "
    "ack BIGINT, window_bytes BIGINT, mark VARCHAR, label VARCHAR, says VARCHAR",
    "silences": "lane INTEGER, frame BIGINT, start_at BIGINT, took_ns BIGINT, says VARCHAR",
    "facts": "lane INTEGER, name VARCHAR, says VARCHAR",
    "clocks": "lane INTEGER, exchange INTEGER, program VARCHAR, name VARCHAR, took_ns BIGINT, meaning VARCHAR",
    "columns": "lane INTEGER, place VARCHAR, doubt_ns BIGINT",
    "ways": "lane INTEGER, frame BIGINT, place VARCHAR, seen_at BIGINT, lost_to VARCHAR",
    "fields": "lane INTEGER, number INTEGER, frame BIGINT, message VARCHAR, name VARCHAR, value VARCHAR, depth INTEGER",
    "logged": "lane INTEGER, exchange INTEGER, place VARCHAR, line VARCHAR, says VARCHAR",
}


MAX_PACKETS = 100_000
"""Of all ladders together; those whose users waited the longest come first."""
MAX_RUNGS = 2_000
"""Of one ladder."""
MAX_CLOCKS = 3
"""Exchanges of one ladder of which is told what other programs would print."""


@contextmanager
def ladders(tables: Tables, axis: TimeAxis, options: DrawOptions) -> Iterator[tuple[dict[str, str], tuple[str, ...]]]:
    """Give the query for each table, and what is left out, as long as the block lasts.

    Instants are where they stand on the axis.
    """
    lanes = dict(tables.fetch("SELECT stream, lane FROM drawn"))
    gathered = connections(tables, names=options.names, most=MAX_PACKETS, first=options.explained)
    shown = [
        (lanes[one.stream], ladder(one, most_clocks=MAX_CLOCKS, most_rungs=MAX_RUNGS))
        for one in gathered
        if one.stream in lanes
    ]
    shown.sort(key=lambda pair: pair[0])
    found = {
        "rungs": _rungs(shown, axis),
        "silences": _silences(shown, axis),
        "facts": ((lane, *fact) for lane, one in shown for fact in _facts(one)),
        "clocks": (
            (lane, clock.exchange, clock.program, clock.name, clock.took_ns, clock.meaning)
            for lane, one in shown
            for clock in one.clocks
        ),
        "fields": _fields(tables, lanes, options),
    }
    if tables.have_places:
        found |= {
            "columns": ((lane, place, ns) for lane, one in shown for place, ns in one.places),
            "ways": _ways(shown, axis),
        }
    if options.explained is not None and options.explained in lanes and logs.are_there(tables):
        found["logged"] = _logged(tables, lanes[options.explained], options.explained)
    with ExitStack() as lent:
        for name, records in found.items():
            types = dict(column.split() for column in _TYPES[name].split(", "))
            lent.enter_context(tables.lent(f"page_{name}", types, records))
        yield {name: f"FROM page_{name}" for name in found}, tuple(_limits(count_complete(tables), len(shown)))


def _limits(complete: int, shown: int) -> Iterator[str]:
    if shown < complete:
        yield (
            f"{format_count(shown)} of {format_count(complete)} connections have a ladder here: those waited for "
            "longest. conchart explain CAPTURE STREAM prints that of any."
        )


def _facts(one: Ladder) -> Iterator[tuple[str, str]]:
    yield from one.facts
    if one.packets > MAX_RUNGS:
        yield (
            "left out",
            f"{count_of(one.packets - MAX_RUNGS, 'packet')} after the first {format_count(MAX_RUNGS)}: "
            f"conchart explain CAPTURE {one.stream} -v",
        )


def _rungs(shown: list[tuple[int, Ladder]], axis: TimeAxis) -> Iterator[tuple[object, ...]]:
    for lane, one in shown:
        for rung in one.rungs[:MAX_RUNGS]:
            yield (
                lane,
                rung.frame,
                axis.at(rung.seen_at),
                rung.sender == "client",
                rung.flags,
                rung.bytes,
                rung.seq,
                rung.ack,
                rung.window_bytes,
                rung.mark,
                rung.label,
                rung.says,
            )


def _ways(shown: list[tuple[int, Ladder]], axis: TimeAxis) -> Iterator[tuple[object, ...]]:
    """Say when each place saw each packet, in the order of the packet's way."""
    for lane, one in shown:
        for rung in one.rungs[:MAX_RUNGS]:
            for place, at in rung.seen:
                yield (lane, rung.frame, place, axis.at(at), rung.lost_to if place == rung.seen[-1][0] else None)


def _silences(shown: list[tuple[int, Ladder]], axis: TimeAxis) -> Iterator[tuple[object, ...]]:
    for lane, one in shown:
        end_at = one.rungs[:MAX_RUNGS][-1].seen_at
        for silence in (silence for silence in one.silences if silence.end_at <= end_at):
            yield (lane, silence.start_frame, axis.at(silence.start_at), silence.took_ns, silence.says)


def _logged(tables: Tables, lane: int, stream: int) -> Iterator[tuple[object, ...]]:
    """Give the lines of access logs about the requests of the connection that is explained."""
    for row in logs.of_stream(tables, stream):
        text = printable(row["text"], limit=logs.MOST_CHARACTERS)
        yield (lane, row["exchange"], logs.where(row), text, logs.says(row))


def _fields(tables: Tables, lanes: dict[int, int], options: DrawOptions) -> Iterator[tuple[object, ...]]:
    """What scapy says of the handshake messages of the connection that is explained; nothing where it is missing."""
    if options.explained is None or options.explained not in lanes:
        return
    lane = lanes[options.explained]
    try:
        found = dissected(tables, options.explained)
    except MissingToolError as missing:
        yield (lane, 0, None, "", "not dissected", str(missing).splitlines()[0], 0)
        return
    for number, message in enumerate(found):
        for field in message.fields:
            yield (lane, number, message.frame, message.name, field.name, field.value, field.depth)
