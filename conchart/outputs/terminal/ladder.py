"""The ladder of a connection on the terminal: packets, silences, facts, what other programs would print.

In: a ladder. Out: lines on a sheet.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from conchart.outputs.terminal.sheet import Sheet
from conchart.outputs.terminal.words import wrapped
from conchart.questions.explain import Clock, Ladder, Rung, Silence
from conchart.questions.explain.bytes import Dissected
from conchart.questions.explain.clocks import WHY
from conchart.words.units import format_ns

if TYPE_CHECKING:
    from conchart.questions.dissect.packets import Packet

_INDENT = 26
_FIGURES = 47
_MOST_EXCHANGES = 3


def print_ladder(ladder: Ladder, sheet: Sheet) -> None:
    """Write all of it."""
    sheet.show(Text(f"Connection {ladder.stream} ({ladder.filter}): {ladder.client} → {ladder.server}", "bold"))
    sheet.tell(ladder.facts)
    sheet.section(
        "Packets: milliseconds since the first, frame, → client to server, ← server to client", _rungs(ladder, sheet)
    )
    sheet.section("What other programs would print", _clocks(ladder.clocks, sheet))


def _rungs(ladder: Ladder, sheet: Sheet) -> Iterator[Text]:
    silences = {silence.start_frame: silence for silence in ladder.silences}
    for rung in ladder.rungs:
        yield from _rung(rung, rung.seen_at - ladder.opened_at, sheet)
        if rung.frame in silences:
            yield from _silence(silences[rung.frame], sheet)


def _rung(rung: Rung, after_ns: int, sheet: Sheet) -> Iterator[Text]:
    arrow = "→" if rung.sender == "client" else "←"
    head = f"{after_ns / 1_000_000:12.3f} {rung.frame:>8}  {arrow}  "
    first, *more = wrapped(rung.label or "…", sheet.width - _INDENT)
    yield Text.assemble((head, ""), (first, "bold"))
    yield from (Text.assemble(" " * _INDENT, (line, "bold")) for line in more)
    if rung.says:
        yield from (Text.assemble(" " * _INDENT, (line, "dim")) for line in wrapped(rung.says, sheet.width - _INDENT))


def _silence(silence: Silence, sheet: Sheet) -> Iterator[Text]:
    for number, line in enumerate(wrapped(silence.says, sheet.width - _INDENT)):
        yield Text.assemble(" " * (_INDENT - 3), "   " if number else "⋮  ", (line, "italic"))


def _clocks(clocks: list[Clock], sheet: Sheet) -> Iterator[Text]:
    told = [clock for clock in clocks if clock.exchange < _MOST_EXCHANGES]
    exchange, program = -1, ""
    for clock in told:
        if clock.exchange != exchange:
            exchange, program = clock.exchange, ""
            if exchange or told[-1].exchange:
                yield Text(f"Request {exchange}", "bold")
        took = "not known" if clock.took_ns is None else format_ns(clock.took_ns)
        label = "" if clock.program == program else clock.program
        program = clock.program
        first, *more = wrapped(clock.meaning, sheet.width - _FIGURES)
        yield Text(f"  {label:<10} {clock.name:<20} {took:>10}   {first}")
        yield from (Text(f"{'':{_FIGURES}}{line}") for line in more)
    if len(told) < len(clocks):
        yield Text(f"  … and of {clocks[-1].exchange + 1 - _MOST_EXCHANGES} more requests")
    if told:
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


def print_segments(segments: list[Packet], sheet: Sheet) -> None:
    """Write the segments header by header, by dpkt."""
    sheet.section(
        "Segments: frame, sender's port, flags, seq, ack, window as sent, bytes, options", _segments(segments)
    )


def _segments(segments: list[Packet]) -> Iterator[Text]:
    for one in segments:
        options = ", ".join(one.options)
        yield Text(
            f"{one.frame:>8} {one.source_port:>6} {one.flags:<4} {one.seq:>10} {one.ack:>10} {one.window:>6} "
            f"{one.bytes:>6}  {options}"
        )
