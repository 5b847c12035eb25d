"""The answer, before anything else: what users waited, divided, the largest part first. In: a report. Out: lines.

A finding has its title and cost, and what to change; a wait that none explains has what it consists of, and what to do
next; both have the command that shows more. What is to be typed stands on one line, whole.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from rich.cells import cell_len
from rich.text import Text

from conchart.labels.units import format_ns, format_share
from conchart.outputs.terminal.words import both_ends, clipped
from conchart.report.verdict import Entry, Verdict

STYLES = {"serious": "bold red", "warning": "bold yellow", "note": "bold"}
STATES = {"nobody served": "bold red", "healthy": "bold green"}
"""Colours of states; the others have none."""
_LABEL = 9
"""Columns of the severity."""
_LEAST_TITLE = 30
"""Columns of a title that is cut for the sake of its server."""


class Brevity(NamedTuple):
    """How short an answer is."""

    lines: int | None = None
    """Of one text; whatever is longer is cut, but for what to change and to type. None: nothing is."""
    full: int | None = None
    """Rows with all their lines, the first ones; of the others, the first line, and what a serious finding changes.
    None: all."""
    changes: int | None = None
    """Rows that say what to change, the first ones. None: all."""
    wide: int = 2
    """Commands that may be wider than a line: 2 of one connection and of all findings, 1 of one connection."""


def answer_lines(answer: Verdict, width: int, brevity: Brevity = Brevity()) -> Iterator[Text]:  # noqa: B008  (a constant)
    """Give the lines."""
    most, full, changes, wide = brevity
    if answer.state != "nobody served" or not answer.entries:
        yield Text(answer.headline, "bold")
    rows, typed = 0, set[str]()
    for entry in answer.entries:
        if entry.kind == "state":
            for line in clipped(answer.sentence, width, None):
                yield Text(line, STATES.get(answer.state, ""))
            continue
        rows += 1
        if not wide and cell_len(entry.command) > width - _LABEL:
            entry = replace(entry, command="")
        if changes is not None and rows > changes:
            entry = replace(entry, change="")
        yield from _entry(entry, width, most, typed, is_full=full is None or rows <= full)
    if answer.rest_ns:
        share = format_share(answer.rest_ns, answer.waited_ns)
        parts = f": {answer.rest}" if answer.rest else ""
        yield from _labelled("the rest", f"{format_ns(answer.rest_ns)} ({share}){parts}", width, most)
    if answer.unjudged:
        yield from _labelled("unjudged", answer.unjudged, width, most)
    if answer.in_vain and answer.state != "nobody served":
        yield from _labelled("in vain", answer.in_vain, width, most)
    if answer.left:
        titles = dict.fromkeys(one.title for one in answer.left)
        yield from _labelled("besides", f"{answer.more}: {'; '.join(titles)}", width, most)
    if answer.command and (wide > 1 or cell_len(answer.command) <= width - _LABEL):
        yield from _typed("in full", answer.command)


def _entry(entry: Entry, width: int, most: int | None, typed: set[str], *, is_full: bool) -> Iterator[Text]:
    room = width - _LABEL
    cost = f"{format_ns(entry.cost_ns)} ({entry.share})" if entry.cost_ns else ""
    title, where, left = entry.title, entry.where, room - cell_len(cost) - 2
    if (entry.kind == "wait" or not is_full) and where:
        # What has one line names its server, too: of two rows with one title, that tells them apart.
        where = where if is_full else where.partition(", ")[0].partition("; ")[0]
        if not is_full and (shorter := left - cell_len(where) - 3) >= _LEAST_TITLE:
            title = next(iter(clipped(title, shorter, 1)))
        if cell_len(both := f"{title} · {where}") <= left:
            title, where = both, ""
    first, *others = clipped(title, left, most)
    label = (f"{entry.severity or entry.kind:<{_LABEL}}", STYLES.get(entry.severity, "bold"))
    yield Text.assemble(label, both_ends(Text(first), cost, room))
    if not is_full:
        if entry.change and entry.severity == "serious":
            yield from _labelled("", f"change: {entry.change}", width, None)
        return
    for line in others:
        yield Text.assemble(" " * _LABEL, line)
    if entry.change:
        yield from _labelled("", f"change: {entry.change}", width, None)
    elif entry.detail:
        yield from _labelled("", entry.detail, width, most)
    if entry.next_step and entry.stream is not None:
        yield from _labelled("", f"next: {entry.next_step}", width, None)
    yield from _see(entry, where, width, most, typed)


def _see(entry: Entry, where: str, width: int, most: int | None, typed: set[str]) -> Iterator[Text]:
    """Say where it is, and what shows one of its connections; a command that is wider than a line, once."""
    if not entry.command or entry.command in typed:
        if where:
            yield from _labelled("", where, width, most)
        return
    command = f"see: {entry.command}"
    if cell_len(command) > width - _LABEL:
        typed.add(entry.command)
    if where and cell_len(line := f"{where}; {command}") <= width - _LABEL:
        yield from _typed("", line)
        return
    if where:
        yield from _labelled("", where, width, most)
    yield from _typed("", command)


def _typed(label: str, text: str) -> Iterator[Text]:
    """Write what is to be typed: it is not cut, and a terminal that is too narrow wraps it."""
    yield Text.assemble((f"{label:<{_LABEL}}", "bold"), text)


def _labelled(label: str, text: str, width: int, most: int | None) -> Iterator[Text]:
    for number, line in enumerate(clipped(text, width - _LABEL, most)):
        yield Text.assemble((f"{'' if number else label:<{_LABEL}}", "bold"), line)
