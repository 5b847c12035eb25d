"""The first screen: the answer, where the time went, the lanes, what was captured, on one screen.

In: a report. Out: lines. What is cut or left out here, ``-v`` tells in full.
"""

from collections.abc import Iterable, Iterator
from itertools import islice

from rich.text import Text

from conchart.labels.units import count_of
from conchart.outputs.options import DrawOptions
from conchart.outputs.terminal.answer import Brevity, answer_lines
from conchart.outputs.terminal.attribution import block
from conchart.outputs.terminal.facts import brief_facts
from conchart.outputs.terminal.lanes import BESIDE_LANES, lane_lines
from conchart.outputs.terminal.logs import TITLE as LOGGED
from conchart.outputs.terminal.logs import log_lines
from conchart.outputs.terminal.places import TITLE as PLACES
from conchart.outputs.terminal.places import first_place_lines
from conchart.outputs.terminal.queries import brief_queries
from conchart.outputs.terminal.words import clipped
from conchart.report.report import Report

LINES = 40
"""Of a screen."""
_ANSWER = 16
"""Lines of the answer at most: texts that are too long for it are cut, and the smaller rows have their first line."""
_SHORTER = (
    Brevity(lines=3, full=4),
    Brevity(lines=2, full=4),
    Brevity(lines=1, full=4),
    Brevity(lines=1, full=4, wide=1),
    Brevity(lines=1, full=3, wide=1),
    Brevity(lines=1, full=2, wide=1),
    Brevity(lines=1, full=1, wide=1),
    Brevity(lines=1, full=1, wide=0),
    Brevity(lines=1, full=1, wide=0, changes=3),
    Brevity(lines=1, full=1, wide=0, changes=2),
    Brevity(lines=1, full=1, wide=0, changes=1),
)
"""Ever shorter answers."""
_FACTS = 5
"""Lines of what was captured."""
_SERVERS = 12
"""Lines of where the time went."""
_BLOCK = 4
"""Lines of the first server."""
_LANES = 8
"""Lines that lanes have at least, if there are as many."""
_QUERIES = 3
"""Lines of what stores were asked, where there is room."""
_PLACES = 8
"""Lines of what several places tell, where there is room."""
_LEAST_PLACES = 5
"""Lines of it in any case: the first server's time, and what happened first on the way."""
_LOGS = 5
"""Lines of what access logs say."""
_COMPARED = 2
"""Requests among them, of which log and wire are compared."""
_TITLE = 2
_BELOW = 2 * _TITLE + _BLOCK + 1 + BESIDE_LANES + 3
"""Lines of the first server, of a connection, and of how many more there are of both."""
_LABEL = 9


def first_screen(report: Report, width: int, *, colours: bool, options: DrawOptions) -> list[Text]:
    """Give the lines: no more than ``LINES`` from 80 columns on."""
    answer = report.verdict if options.findings else report.verdict.unsaid
    logged = list(_section(LOGGED, islice(log_lines(report, width, most=_COMPARED, brief=True), _LOGS)))
    most_facts = 1 if logged or report.have_places else 3
    bottom = _first_that_fits((list(_facts(report, width, most)) for most in range(most_facts, 0, -1)), _FACTS, width)
    left = LINES - len(bottom) - len(logged) - 1
    least_placed = _TITLE + _LEAST_PLACES if report.have_places else 0
    top = _first_that_fits(
        (list(answer_lines(answer, width, brevity)) for brevity in _SHORTER),
        min(_ANSWER, left - _BELOW - least_placed),
        width,
    )
    left -= _height(top, width)
    placed = max(_LEAST_PLACES, min(_PLACES, left - _BELOW - _TITLE))
    between = [*_section(PLACES, first_place_lines(report, width, placed)), *logged]
    left -= len(between) - len(logged)
    least = min(_LANES, report.overview.connections + report.totals.count)
    spare = left - 2 * _TITLE - BESIDE_LANES - least - _BLOCK
    queries = list(_labelled("queries", brief_queries(report, width - _LABEL, min(_QUERIES, spare))))
    room = left - 2 * _TITLE - BESIDE_LANES - len(queries)
    servers = list(_servers(report, width, min(_SERVERS, room - least), colours=colours))
    drawn = list(lane_lines(report, width, colours=colours, room=room - len(servers)))
    return [
        *top,
        *between,
        *_section("Where the time went (what users waited for, then the rest)", servers),
        *_section("When (one line per connection)", drawn),
        Text(),
        *queries,
        *bottom,
    ]


def _first_that_fits(attempts: Iterable[list[Text]], room: int, width: int) -> list[Text]:
    """Give the first of these that there is room for; at the least, the last one."""
    lines: list[Text] = []
    for lines in attempts:
        if _height(lines, width) <= room:
            break
    return lines


def _height(lines: Iterable[Text], width: int) -> int:
    """Count the lines of a terminal, which wraps what is longer."""
    return sum(max(1, -(-line.cell_len // width)) for line in lines)


def _section(title: str, lines: Iterable[Text]) -> Iterator[Text]:
    for number, line in enumerate(lines):
        if not number:
            yield Text()
            yield Text(title, "bold underline")
        yield line


def _facts(report: Report, width: int, most: int) -> Iterator[Text]:
    for label, text in brief_facts(report):
        yield from _labelled(label, map(Text, clipped(text, width - _LABEL, most)))


def _labelled(label: str, lines: Iterable[Text]) -> Iterator[Text]:
    for number, line in enumerate(lines):
        yield Text.assemble((f"{'' if number else label:<{_LABEL}}", "bold"), line)


def _servers(report: Report, width: int, room: int, *, colours: bool) -> Iterator[Text]:
    """Give the servers, those that are alike as one, as many as there is room for; of the others, how many.

    Servers at which nobody waited and everybody was served are told only where there is nothing else to tell.
    """
    count = report.totals.count
    shown, used = 0, 0
    for group in report.alike(max(1, room)):
        if shown and not group.server.waited_ns and not group.server.in_vain:
            continue
        is_last = shown + 1 + group.others == count
        left = room - used - (not is_last) - bool(group.rest)
        for with_strip, with_split in ((True, True), (True, False), (False, False)):
            lines = list(block(group.server, width, colours=colours, with_strip=with_strip, with_split=with_split))
            if len(lines) <= left:
                break
        if shown and len(lines) > left:
            break
        yield from lines
        if group.rest:
            yield Text(group.rest)
        shown, used = shown + 1 + group.others, used + len(lines) + bool(group.rest)
    if shown < count:
        yield Text(f"… and {count_of(count - shown, 'more server')}")
