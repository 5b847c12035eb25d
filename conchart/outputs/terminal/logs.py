"""Access logs on the terminal. In: a trace. Out: lines; none without a log."""

from collections.abc import Iterator

from rich.text import Text

from conchart.outputs.terminal.words import clipped, wrapped
from conchart.report import logs
from conchart.store.tables import Tables
from conchart.words.printable import printable

TITLE = "What the access log says, and what the wire says (the largest differences first)"
MOST = 20
"""Requests that ``-v`` tells."""


def log_lines(tables: Tables, width: int, *, most: int, brief: bool = False) -> Iterator[Text]:
    """Give what is known of each log, and the requests for which it tells the least of what users waited."""
    for summary in logs.summaries(tables):
        lines = clipped(summary, width, 2) if brief else wrapped(summary, width)
        yield from map(Text, lines)
    for one in logs.worst(tables, most=most):
        told = f"{one.name}  {one.says}"
        if brief:
            yield Text(clipped(told, width, 1)[0])
            continue
        yield from map(Text, wrapped(told, width))
        yield Text(f"  connection {one.stream}, request {one.exchange}; {one.where}", "dim")


def lines_of(tables: Tables, stream: int, width: int) -> Iterator[Text]:
    """Give the lines about the requests of one connection, each with its comparison."""
    for row in logs.of_stream(tables, stream):
        yield Text(f"Request {row['exchange']}: {logs.where(row)}", "bold")
        yield from (
            Text(f"  {line}", "dim") for line in wrapped(printable(row["text"], limit=logs.MOST_CHARACTERS), width - 2)
        )
        yield from (Text(f"  {line}") for line in wrapped(logs.says(row), width - 2))
