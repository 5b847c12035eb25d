"""What several places tell together. In: a report. Out: lines; none where nobody named places."""

from collections.abc import Iterator
from itertools import chain

from rich.text import Text

from conchart.labels.printable import printable
from conchart.outputs.terminal.words import clipped, wrapped
from conchart.report.report import Report

TITLE = "Where it was spent (hosts, and paths between places)"


def place_lines(report: Report, width: int) -> Iterator[Text]:
    """Give all lines."""
    return chain.from_iterable(_parts(report, width, None))


def first_place_lines(report: Report, width: int, room: int) -> Iterator[Text]:
    """Give the first lines: where the time at the first server was spent, and what else there is room for, whole."""
    for lines in _parts(report, width, 1):
        room -= len(lines)
        if room < 0:
            return
        yield from lines


def _parts(report: Report, width: int, most: int | None) -> Iterator[list[Text]]:
    """Give where the time was spent, losses, clocks, each with its lines. ``most``: servers."""
    if not report.have_places:
        return
    for one in report.spent[:most]:
        lines = wrapped(str(one), width - 2) if most is None else clipped(str(one), width - 2, 2)
        yield [Text(one.endpoint, "bold"), *(Text(f"  {line}") for line in lines)]
    facts = [f"lost   {lost}" for lost in report.losses]
    for label, ways in (("order  ", report.disorders), ("queue  ", report.queues), ("changed ", report.changes)):
        facts += (f"{label}{way}" for way in ways)
    facts += (
        f"clock  {printable(clock.place)}: {clock}"
        for clock in report.clocks
        if clock.method != "reference" or most is None
    )
    yield from ([Text(line) for line in wrapped(fact, width, indent="       ")] for fact in facts)
