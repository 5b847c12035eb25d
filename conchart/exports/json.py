"""JSON: every table in one document, ``{"conchart": 1, "captures": [...], …}``, same bytes for the same capture."""

from pathlib import Path
from typing import IO

from conchart.schema import SCHEMA_VERSION, TABLES
from conchart.tables import Tables

_ROWS_AT_A_TIME = 10_000


def write_json(tables: Tables, path: Path) -> None:
    """Write all tables, one row per line; times are integers of nanoseconds, NULL is null.

    ``packets`` is left out when it is empty. Integers above 2^53 (every instant) need a reader that keeps them, as
    Python's, jq's from 1.7 and DuckDB's do.
    """
    with path.open("w", encoding="utf-8", newline="\n") as sink:
        dump_json(tables, sink)


def dump_json(tables: Tables, sink: IO[str]) -> None:
    """Write the document of ``write_json`` to an open file, without ever holding a whole table."""
    sink.write(f'{{"conchart": {SCHEMA_VERSION}')
    for table in TABLES:
        rows = tables.sql(f"SELECT to_json(t) FROM (FROM {table.name} ORDER BY {table.key}) t")
        batch = rows.fetchmany(_ROWS_AT_A_TIME)
        if not batch and table.name == "packets":
            continue
        sink.write(f',\n"{table.name}": [')
        separator = "\n"
        while batch:
            sink.write(separator + ",\n".join(row for (row,) in batch))
            separator = ",\n"
            batch = rows.fetchmany(_ROWS_AT_A_TIME)
        sink.write("]")
    sink.write("}\n")
