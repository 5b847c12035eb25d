"""The ladder of a connection on the terminal: packets, silences, facts, what other programs would print.

In: a ladder. Out: lines on a sheet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from conchart.labels.units import count_of, format_count, format_ns
from conchart.outputs.terminal.sheet import Sheet
from conchart.outputs.terminal.words import fit, wrapped
from conchart.questions.explain import Ladder, LadderRow, Pause
from conchart.questions.explain.bytes import Dissected
from conchart.questions.explain.clocks import WHY

if TYPE_CHECKING:
    from conchart.questions.dissect.packets import Packet

_INDENT = 26
_COLUMN = 12
_LEAST_COLUMN = 8
_GAP = 5
_FRAME = 10
_LEAST_ROOM = 24
_ARROWS = {True: " ──▶ ", False: " ◀── "}
_LOST = {True: " ──✕ ", False: " ✕── "}
"""By whether the client sent it."""
_FIGURES = 47
MAX_CLOCKS = 3
"""Exchanges of which is told what other programs would print."""
MAX_RUNGS = 4_000
"""Packets that are shown without ``-v``, besides those that matter."""


def print_ladder(ladder: Ladder, sheet: Sheet, rungs: Iterable[LadderRow] | None = None, *, more: str = "-v") -> None:
    """Write all of it.

    Args:
        ladder: The ladder.
        sheet: Where to.
        rungs: All packets, in place of those that the ladder has; each is written before the next is asked for.
        more: What to type to see what the ladder leaves out.
    """
    sheet.show(Text(f"Connection {ladder.stream} ({ladder.filter}): {ladder.client} → {ladder.server}", "bold"))
    sheet.tell(ladder.facts)
    left_out = ladder.left_out if rungs is None else {}
    if left_out:
        sheet.tell([("left out", _left_out(ladder, more))])
    of_places = "ms since the first packet, when each place saw them, by one clock"
    of_one = "milliseconds since the first, frame, → client to server, ← server to client"
    sheet.section(f"Packets: {of_places if ladder.places else of_one}", _rungs(ladder, sheet, rungs))
    sheet.section("What other programs would print", _clocks(ladder, sheet))


def _left_out(ladder: Ladder, more: str) -> str:
    first = next(number for number, rung in enumerate(ladder.rungs, 1) if rung.frame in ladder.left_out)
    count = format_count(sum(ladder.left_out.values()))
    return (
        f"{count} of {count_of(ladder.packets, 'packet')}. Here are the first {format_count(first)} packets, those "
        f"beside pauses, the first losses and repetitions, and the last packets. All of them: {more}"
    )


def _rungs(ladder: Ladder, sheet: Sheet, rungs: Iterable[LadderRow] | None) -> Iterator[Text]:
    silences = {silence.start_frame: silence for silence in ladder.silences}
    left_out = ladder.left_out if rungs is None else {}
    if ladder.places:
        yield from _columns(ladder, _column(ladder, sheet))
    for rung in ladder.rungs if rungs is None else rungs:
        yield from _rung(rung, ladder, sheet)
        if rung.frame in silences:
            yield from _silence(silences[rung.frame], sheet)
        if rung.frame in left_out:
            yield Text(f"{'':{_INDENT - 3}}⋮  {count_of(left_out[rung.frame], 'packet')} left out", "dim")


def _column(ladder: Ladder, sheet: Sheet) -> int:
    """Give the width of the column of a place: many places have narrow ones."""
    fits = (sheet.width - _FRAME) // max(1, len(ladder.places)) - _GAP
    return max(_LEAST_COLUMN, min(_COLUMN, fits))


def _columns(ladder: Ladder, column: int) -> Iterator[Text]:
    """Name the places above their columns, and how far their clocks may be wrong."""
    uncertainties = [
        "" if number == 0 else "unknown" if ns is None else f"± {format_ns(ns)}"
        for number, (_, ns) in enumerate(ladder.places)
    ]
    doubts = "".join(f"{one:>{column}}{'':{_GAP}}" for one in uncertainties)
    names = "".join(f"{fit(place, column).strip():>{column}}{'':{_GAP}}" for place, _ in ladder.places)
    yield Text(f"{names}{'frame':>{_FRAME - 2}}", "bold")
    yield Text(doubts, "dim")


def _rung(rung: LadderRow, ladder: Ladder, sheet: Sheet) -> Iterator[Text]:
    head = (
        _way(rung, ladder, _column(ladder, sheet)) if ladder.places else _moment(rung, rung.seen_at - ladder.opened_at)
    )
    # Many columns leave no room for words: these stand below.
    room = sheet.width - len(head)
    lines = list(wrapped(rung.label or "…", room if room >= _LEAST_ROOM else sheet.width - _INDENT))
    first = lines.pop(0) if room >= _LEAST_ROOM else ""
    yield Text.assemble((head, ""), (first, "bold"))
    indent = " " * (len(head) if room >= _LEAST_ROOM and not ladder.places else _INDENT)
    yield from (Text.assemble(indent, (line, "bold")) for line in lines)
    if rung.says:
        yield from (Text.assemble(" " * _INDENT, (line, "dim")) for line in wrapped(rung.says, sheet.width - _INDENT))


def _moment(rung: LadderRow, after_ns: int) -> str:
    return f"{after_ns / 1_000_000:12.3f} {rung.frame:>8}  {'→' if rung.sender == 'client' else '←'}  "


def _way(rung: LadderRow, ladder: Ladder, column: int) -> str:
    """Draw the packet from place to place: when each saw it, in its column, and an arrow where it went on."""
    seen = dict(rung.seen)
    names = [place for place, _ in ladder.places]
    ahead = rung.sender == "client"
    cells = [f"{(seen[name] - ladder.opened_at) / 1_000_000:{column}.3f}" if name in seen else "" for name in names]
    drawn = ""
    for number, (name, cell) in enumerate(zip(names, cells, strict=True)):
        farther = names[number + 1] if number + 1 < len(names) else None
        gap = ""
        if farther and {rung.seen[-1][0] if rung.seen else None, rung.lost_to} == {name, farther}:
            gap = _LOST[ahead]
        elif farther and cell and any(cells[number + 1 :]):
            gap = _ARROWS[ahead]
        elif farther and not cell and any(cells[:number]) and any(cells[number + 1 :]):
            cell, gap = "─" * column, _ARROWS[ahead]
        drawn += f"{cell:>{column}}{gap:^{_GAP}}"
    return f"{drawn}{rung.frame:>8}  "


def _silence(silence: Pause, sheet: Sheet) -> Iterator[Text]:
    for number, line in enumerate(wrapped(silence.says, sheet.width - _INDENT)):
        yield Text.assemble(" " * (_INDENT - 3), "   " if number else "⋮  ", (line, "italic"))


def _clocks(ladder: Ladder, sheet: Sheet) -> Iterator[Text]:
    shown = [clock for clock in ladder.clocks if clock.exchange < MAX_CLOCKS]
    exchange, program = -1, ""
    for clock in shown:
        if clock.exchange != exchange:
            exchange, program = clock.exchange, ""
            if exchange or shown[-1].exchange:
                yield Text(f"Request {exchange}", "bold")
        took = "not known" if clock.took_ns is None else format_ns(clock.took_ns)
        label = "" if clock.program == program else clock.program
        program = clock.program
        first, *more = wrapped(clock.meaning, sheet.width - _FIGURES)
        yield Text(f"  {label:<10} {clock.name:<20} {took:>10}   {first}")
        yield from (Text(f"{'':{_FIGURES}}{line}") for line in more)
    if ladder.last_clocked >= MAX_CLOCKS:
        yield Text(f"  … and of {ladder.last_clocked + 1 - MAX_CLOCKS} more requests")
    if shown:
        for sentence in WHY:
            yield from (Text(line, "dim") for line in wrapped(sentence, sheet.width))


def print_fields(messages: list[Dissected], sheet: Sheet) -> None:
    """Write the fields of handshake messages, by scapy."""
    for message in messages:
        arrow = "→" if message.sender == "client" else "←"
        sheet.section(f"{arrow} {message.name}, frame {message.frame}", _fields(message, sheet))


def _fields(message: Dissected, sheet: Sheet) -> Iterator[Text]:
    for field in message.fields:
        indent = "  " * (field.depth + 1)
        lines = wrapped(f"{field.name}: {field.value}" if field.value else field.name, sheet.width, indent="    ")
        yield from (Text(f"{indent}{line}") for line in lines)


def print_segments(segments: Iterable[Packet], sheet: Sheet) -> None:
    """Write the segments header by header, by dpkt."""
    sheet.section(
        "Segments: frame, sender's port, flags, seq, ack, window as sent, bytes, options", _segments(segments)
    )


def _segments(segments: Iterable[Packet]) -> Iterator[Text]:
    for one in segments:
        options = ", ".join(one.options)
        yield Text(
            f"{one.frame:>8} {one.source_port:>6} {one.flags:<4} {one.seq:>10} {one.ack:>10} {one.window:>6} "
            f"{one.bytes:>6}  {options}"
        )
