"""Saved traces: a DuckDB file that somebody else may have made, read as data and nothing else.

In: a path. Out: one relation per table of the schema, in the manner of the native core's batches. Views, macros,
defaults, generated columns and everything else in the file that could compute something is never asked, and the
database that opens the file may open no other one.
"""

from collections.abc import Callable
from pathlib import Path

import duckdb

from conchart.errors import CaptureError
from conchart.paths import utf8_path
from conchart.schema import TABLES, Table
from conchart.sql import literal

_MAGIC = slice(8, 12), b"DUCK"
"""Where a DuckDB file says what it is: after the checksum of its first block."""

_COLUMNS = """
    SELECT column_name, data_type, column_default IS NOT NULL
    FROM duckdb_columns() JOIN duckdb_tables() USING (table_oid, database_oid)
    WHERE duckdb_columns.database_name = ? AND duckdb_columns.schema_name = 'main' AND duckdb_columns.table_name = ?
"""
"""Of a base table; views are no tables here."""


def is_saved(path: Path) -> bool:
    """Tell a DuckDB file by its content."""
    place, magic = _MAGIC
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(place.stop)[place] == magic
    except OSError:
        return False


def read_saved(path: Path, sink: Callable[[str, object], None]) -> None:
    """Hand every table of a saved trace to ``sink``: its name, and rows that speak Arrow.

    Raises:
        CaptureError: The file is missing, damaged, or none that conchart saved.
    """
    if not path.exists():
        raise CaptureError(f"{path}: no such file")
    if not is_saved(path):
        raise CaptureError(f"{path}: not a trace that conchart saved: not a DuckDB file")
    connection = duckdb.connect(":memory:")
    try:
        with utf8_path(path) as readable:
            connection.execute(
                "SET autoinstall_known_extensions = false; SET autoload_known_extensions = false;"
                f"ATTACH {literal(str(readable))} AS saved (READ_ONLY);"
                "SET enable_external_access = false; SET lock_configuration = true"
            )
        columns = {table.name: _checked(connection, table) for table in TABLES}
        for name, names in columns.items():
            sink(name, _Rows(connection.sql(f"SELECT {', '.join(names)} FROM saved.main.{name}")))
    except (duckdb.Error, OSError, _Foreign) as error:
        raise CaptureError(f"{path}: not a trace that conchart saved: {error}") from None
    finally:
        connection.close()


class _Rows:
    """A relation of one database, for another one: as such, DuckDB would refuse it."""

    def __init__(self, relation: duckdb.DuckDBPyRelation) -> None:
        self._relation = relation

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._relation.__arrow_c_stream__(requested_schema)


class _Foreign(Exception):
    """A table that is not ours; the text says why."""


def _checked(connection: duckdb.DuckDBPyConnection, table: Table) -> list[str]:
    """Give the names of the columns, which are those of the schema with their types, and plainly stored."""
    connection.execute(table.ddl)
    ours = connection.execute(_COLUMNS, ["memory", table.name]).fetchall()
    found = {
        name: (kind, computed)
        for name, kind, computed in connection.execute(_COLUMNS, ["saved", table.name]).fetchall()
    }
    if not found:
        raise _Foreign(f"it has no table {table.name}")
    for name, kind, _ in ours:
        stored, computed = found.pop(name, (None, False))
        if stored is None:
            raise _Foreign(f"{table.name} has no column {name}")
        if stored != kind:
            raise _Foreign(f"{table.name}.{name} is {stored}, not {kind}")
        if computed:
            raise _Foreign(f"{table.name}.{name} is computed")
    if found:
        raise _Foreign(f"{table.name} has another column: {', '.join(found)}")
    return [name for name, *_ in ours]
