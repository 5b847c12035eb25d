"""Access logs on the terminal. In: a report, rows of lines. Out: lines; none without a log."""

from collections.abc import Iterable, Iterator

from rich.text import Text

from conchart.labels.printable import printable
from conchart.outputs.terminal.words import clipped, wrapped
from conchart.report import logs
from conchart.report.report import Report
from conchart.report.rows import Row

TITLE = "What the access log says, and what the wire says (the largest differences first)"
MOST = 20
"""Requests that ``-v`` tells."""


def log_lines(report: Report, width: int, *, most: int, brief: bool = False) -> Iterator[Text]:
    """Give what is known of each log, and the requests for which it tells the least of what users waited."""
    for summary in report.logs:
        lines = clipped(summary, width, 2) if brief else wrapped(summary, width)
        yield from map(Text, lines)
    for one in report.compared_with_logs(most):
        text = f"{one.name}  {one.says}"
        if brief:
            yield Text(clipped(text, width, 1)[0])
            continue
        yield from map(Text, wrapped(text, width))
        yield Text(f"  connection {one.stream}, request {one.exchange}; {one.where}", "dim")


def lines_of(found: Iterable[Row], width: int) -> Iterator[Text]:
    """Give the lines of logs about the requests of one connection, each with its comparison."""
    for row in found:
        yield Text(f"Request {row['exchange']}: {logs.where(row)}", "bold")
        yield from (
            Text(f"  {line}", "dim") for line in wrapped(printable(row["text"], limit=logs.MOST_CHARACTERS), width - 2)
        )
        yield from (Text(f"  {line}") for line in wrapped(logs.says(row), width - 2))
