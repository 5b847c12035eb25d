"""How charts read a trace: SQL in, plain rows or columns out, every text made harmless to read.

In: a trace. Out: Python values. HTML escaping is not done here: the page does it, once, for everything.
"""

from typing import TYPE_CHECKING, Any

from conchart.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conchart.trace import Trace

Row = dict[str, Any]
Columns = dict[str, list[Any]]

MAX_TEXT = 300
"""Longest text from a capture that the page carries: a request target may have 64 kB."""


def _clean(value: object) -> object:
    if isinstance(value, str):
        return printable(value, MAX_TEXT)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return value


def rows(trace: "Trace", query: str) -> "Iterator[Row]":
    """Run ``query`` and yield one dictionary per row; texts are cleaned."""
    relation = trace.sql(query)
    names = relation.columns
    for values in relation.fetchall():
        yield {name: _clean(value) for name, value in zip(names, values, strict=True)}


def columns(trace: "Trace", query: str) -> Columns:
    """Run ``query`` and return one list per column, which is the smaller way to write a table as JSON."""
    relation = trace.sql(query)
    table = relation.fetchall()
    return {name: [_clean(values[i]) for values in table] for i, name in enumerate(relation.columns)}
