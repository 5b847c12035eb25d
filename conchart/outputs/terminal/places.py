"""What several places tell together. In: a trace. Out: lines; none where nobody named places."""

from collections.abc import Iterator

from rich.text import Text

from conchart.outputs.terminal.words import clipped, wrapped
from conchart.report.path_changes import changes, disorders, queues
from conchart.report.places import clocks, losses, spent
from conchart.store.tables import Tables
from conchart.words.printable import printable

TITLE = "Where it was spent (hosts, and paths between places)"


def place_lines(tables: Tables, width: int, most: int | None = None) -> Iterator[Text]:
    """Give the lines: where the time was spent, losses, clocks. ``most``: of servers, and lines of each."""
    if not tables.have_places:
        return
    told = spent(tables)
    for one in told[:most]:
        yield Text(one.endpoint, "bold")
        lines = wrapped(str(one), width - 2) if most is None else clipped(str(one), width - 2, 2)
        yield from (Text(f"  {line}") for line in lines)
    for lost in losses(tables):
        yield from (Text(line) for line in wrapped(f"lost   {lost}", width, indent="       "))
    for label, ways in (("order  ", disorders), ("queue  ", queues)):
        for told_of in ways(tables):
            yield from (Text(line) for line in wrapped(f"{label}{told_of}", width, indent="       "))
    for changed in changes(tables):
        yield from (Text(line) for line in wrapped(f"changed {changed}", width, indent="       "))
    for clock in clocks(tables):
        if clock.method != "reference" or most is None:
            yield from (
                Text(line) for line in wrapped(f"clock  {printable(clock.place)}: {clock}", width, indent="       ")
            )
