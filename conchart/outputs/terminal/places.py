"""What several places tell together. In: a report. Out: lines; none where nobody named places."""

from collections.abc import Iterator

from rich.text import Text

from conchart.labels.printable import printable
from conchart.outputs.terminal.words import clipped, wrapped
from conchart.report.report import Report

TITLE = "Where it was spent (hosts, and paths between places)"


def place_lines(report: Report, width: int, most: int | None = None) -> Iterator[Text]:
    """Give the lines: where the time was spent, losses, clocks. ``most``: of servers, and lines of each."""
    if not report.have_places:
        return
    for one in report.spent[:most]:
        yield Text(one.endpoint, "bold")
        lines = wrapped(str(one), width - 2) if most is None else clipped(str(one), width - 2, 2)
        yield from (Text(f"  {line}") for line in lines)
    for lost in report.losses:
        yield from (Text(line) for line in wrapped(f"lost   {lost}", width, indent="       "))
    for label, ways in (("order  ", report.disorders), ("queue  ", report.queues), ("changed ", report.changes)):
        for way in ways:
            yield from (Text(line) for line in wrapped(f"{label}{way}", width, indent="       "))
    for clock in report.clocks:
        if clock.method != "reference" or most is None:
            yield from (
                Text(line) for line in wrapped(f"clock  {printable(clock.place)}: {clock}", width, indent="       ")
            )
