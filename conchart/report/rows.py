"""How a table is read to be shown: SQL in, plain rows or columns out, every text made harmless to read.

In: tables. Out: Python values. HTML escaping is not done here: the page does it, once, for everything.
"""

from collections.abc import Iterator
from typing import Any

from conchart.labels.printable import printable
from conchart.store.tables import Tables

_HARMLESS = frozenset(
    f"{kind}{several}"
    for kind in (
        "BOOLEAN",
        "DOUBLE",
        "FLOAT",
        "BLOB",
        "INTEGER",
        "UINTEGER",
        *(f"{sign}{size}INT" for sign in ("", "U") for size in ("TINY", "SMALL", "BIG", "HUGE")),
    )
    for several in ("", "[]")
)
"""Types of DuckDB whose values hold no text. There are several of such columns for each with texts, and nobody has to
look at every value of theirs."""

Row = dict[str, Any]
Columns = dict[str, list[Any]]

MAX_TEXT = 300
"""Longest text from a capture that is shown: a request target may have 64 kB."""


def _clean(value: object) -> object:
    if isinstance(value, str):
        return printable(value, MAX_TEXT)
    if isinstance(value, list) and value and isinstance(value[0], str | list):
        return [_clean(item) for item in value]
    return value


def rows(tables: Tables, query: str, params: object = None) -> Iterator[Row]:
    """Run ``query`` and yield one dictionary per row; texts are cleaned."""
    names, types, records = tables.fetch_typed(query, params)
    texts = [name for name, kind in zip(names, types, strict=True) if kind not in _HARMLESS]
    for values in records:
        row = dict(zip(names, values, strict=True))
        for name in texts:
            if row[name] is not None:
                row[name] = _clean(row[name])
        yield row


def columns(tables: Tables, query: str) -> Columns:
    """Run ``query`` and return one list per column, which is the smaller way to write a table as JSON."""
    names, types, records = tables.fetch_typed(query)
    return {
        name: [values[i] if types[i] in _HARMLESS else _clean(values[i]) for values in records]
        for i, name in enumerate(names)
    }
