"""The answer, before anything else: the worst findings, then where most of the wait was. In: a report. Out: lines.

A finding has its title and cost, what to change, and the commands that show more; a wait has what it consists of.
"""

import shlex
from collections.abc import Iterator

from rich.cells import cell_len
from rich.text import Text

from conchart.outputs.terminal.words import both_ends, clipped
from conchart.report.report import Report
from conchart.report.verdict import Entry, Verdict
from conchart.words.printable import printable
from conchart.words.units import format_ns

STYLES = {"serious": "bold red", "warning": "bold yellow", "note": "bold"}
STATES = {"nobody served": "bold red", "healthy": "bold green"}
"""Colours of states; the others have none."""
_LABEL = 9
"""Columns of the severity."""
_SOME_CAPTURE = "CAPTURE"


def answer_lines(answer: Verdict, capture: str, width: int, *, most: int | None = None) -> Iterator[Text]:
    """Give the lines.

    Args:
        answer: What to tell.
        capture: What to type for the capture.
        width: Columns.
        most: Lines of one text; whatever is longer is cut. None: nothing is.
    """
    if answer.state != "nobody served" or not answer.entries:
        yield Text(_waited(answer), "bold")
    waits = 0
    for entry in answer.entries:
        if entry.kind == "state":
            told = ": ".join(filter(None, (entry.title, entry.detail)))
            for line in clipped(told, width, most):
                yield Text(line, STATES.get(answer.state, ""))
            continue
        first, *others = _entry(entry, width, capture, most)
        yield first
        waits += entry.kind == "wait"
        if waits < 2 or most != 1:
            yield from others
    if answer.unjudged:
        yield from _labelled("unjudged", answer.unjudged, width, most)
    if answer.in_vain and answer.state != "nobody served":
        yield from _labelled("in vain", answer.in_vain, width, most)
    if answer.left:
        titles = dict.fromkeys(one.title for one in answer.left)
        yield from _labelled("besides", f"{answer.more}: {'; '.join(titles)}", width, most)
    if answer.left or any(entry.kind == "finding" for entry in answer.entries):
        yield from _labelled("in full", f"conchart findings {capture}", width, most)


def _waited(answer: Verdict) -> str:
    if answer.waited_ns:
        return f"Users waited {format_ns(answer.waited_ns)}."
    if answer.state == "nobody served":
        return "Nobody was served."
    return "Nobody waited, as far as the capture shows."


def _entry(entry: Entry, width: int, capture: str, most: int | None) -> Iterator[Text]:
    room = width - _LABEL
    cost = f"{format_ns(entry.cost_ns)} ({entry.share})" if entry.cost_ns else ""
    title = entry.title if entry.kind == "finding" else " · ".join(filter(None, (entry.title, entry.where)))
    first, *others = clipped(title, room - cell_len(cost) - 2, most)
    label = (f"{entry.severity or entry.kind:<{_LABEL}}", STYLES.get(entry.severity, "bold"))
    yield Text.assemble(label, both_ends(Text(first), cost, room))
    for line in others:
        yield Text.assemble(" " * _LABEL, line)
    if entry.change:
        yield from _labelled("", f"change: {entry.change}", width, most)
    elif entry.detail:
        yield from _labelled("", entry.detail, width, most)
    where = entry.where if entry.kind == "finding" else ""
    if told := _see(where, entry.stream, capture, room):
        yield from _labelled("", told, width, most)


def _see(where: str, stream: int | None, capture: str, room: int) -> str:
    """Say where it is, and what shows one of its connections: with the capture's path, where there is room for it."""
    if stream is None:
        return where
    for path in (capture, _SOME_CAPTURE):
        told = f"{where and f'{where}; '}see: conchart explain {path} {stream}"
        if cell_len(told) <= room:
            break
    return told


def _labelled(label: str, text: str, width: int, most: int | None) -> Iterator[Text]:
    for number, line in enumerate(clipped(text, width - _LABEL, most)):
        yield Text.assemble((f"{'' if number else label:<{_LABEL}}", "bold"), line)


def to_type(report: Report) -> str:
    """Write what to type for the capture; of several, or of a selection of packets, that is for the reader to say."""
    paths = report.overview.paths
    if len(paths) != 1 or report.overview.selection or paths[0] == "-":
        return _SOME_CAPTURE
    return printable(shlex.quote(paths[0]))
