"""JSON: every table in one document, ``{"conchart": 2, "captures": [...], …}``, same bytes for the same capture.

``docs/command-line.md`` describes it. Other formats that are JSON are streamed by what stands here, too.
"""

from collections.abc import Iterable, Iterator
from typing import IO, Any

from duckdb import DuckDBPyRelation

from conchart.store.schema import SCHEMA_VERSION, TABLES
from conchart.store.tables import Tables

_ROWS_AT_A_TIME = 10_000


def dump_json(tables: Tables, sink: IO[str]) -> None:
    """Write all tables, one row per line, without ever holding a whole table.

    Times are integers of nanoseconds, NULL is null. ``packets`` is left out when it is empty. Integers above 2^53
    (every instant) need a reader that keeps them, as Python's, jq's from 1.7 and DuckDB's do.
    """
    sink.write(f'{{"conchart": {SCHEMA_VERSION}')
    for table in TABLES:
        rows = fetched(tables.sql(f"SELECT to_json(t) FROM (FROM {table.name} ORDER BY {table.key}) t"))
        listed = lines(row for (row,) in rows)
        first = next(listed, "")
        if first or table.name != "packets":
            sink.write(f',\n"{table.name}": [{first}')
            sink.writelines(listed)
            sink.write("]")
    sink.write("}\n")


def fetched(relation: DuckDBPyRelation) -> Iterator[tuple[Any, ...]]:
    """Give the rows of a relation; only some thousands are ever held."""
    while batch := relation.fetchmany(_ROWS_AT_A_TIME):
        yield from batch


def lines(items: Iterable[str]) -> Iterator[str]:
    """Give the items of a JSON array with what stands between them: one per line."""
    separator = "\n"
    for item in items:
        yield separator + item
        separator = ",\n"
