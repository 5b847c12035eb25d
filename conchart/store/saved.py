"""Saved traces: a DuckDB file, or a folder of Parquet files, that somebody else may have made: data and nothing else.

In: a path. Out: one relation per table of the schema, in the manner of the native core's batches. Views, macros,
defaults, generated columns and everything else in the file that could compute something is never asked, and the
database that opens the file may open no other one.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import duckdb

from conchart.errors import CaptureError
from conchart.files.paths import utf8_path
from conchart.store.schema import FORMER, ROLES, SCHEMA_VERSION, SEVERITIES, TABLES, VOCABULARIES, Former, Table
from conchart.store.sql import literal
from conchart.store.tables import Rows
from conchart.version import VERSION, version

MANIFEST = "manifest.json"
"""The file that says that a folder holds the tables of a trace."""


class _About(NamedTuple):
    table: str
    schema: str
    version: str


ABOUT = _About("about", "tables", "conchart")
"""The table of a saved database that says who wrote it, and its columns: the schema's version, conchart's."""

_LARGEST_MANIFEST = 100_000
_VERSION = re.compile(r"\d{1,4}(\.\d{1,4}){1,2}([.+-]?[a-z0-9]{1,8})?")
"""Of conchart, as we write it: what else stands there is nobody's business."""
_BEFORE_VERSIONS = "0.1"
"""What wrote files that do not say who did."""

_MAGIC = slice(8, 12), b"DUCK"
"""Where a DuckDB file says what it is: after the checksum of its first block."""

_FARTHEST = (1 << 62) - 1
"""Instants are at most this far from 1970, so that differences are BIGINTs; so are sums of what is counted."""

_WORDS: dict[str, dict[str, Sequence[str]]] = {
    "times": {"phase": VOCABULARIES["PHASE"], "kind": VOCABULARIES["STALL"]},
    "servers": {"role": ROLES},
    "findings": {"severity": SEVERITIES},
}
"""Columns that charts have words and colours for, besides those whose type says which words they may have."""

_COLUMNS = """
    SELECT column_name, data_type, column_default IS NOT NULL
    FROM duckdb_columns() JOIN duckdb_tables() USING (table_oid, database_oid)
    WHERE duckdb_columns.database_name = 'saved' AND duckdb_columns.schema_name = 'main'
        AND duckdb_columns.table_name = ?
"""
"""Of a base table; views are no tables here."""


def is_saved(path: Path) -> bool:
    """Tell a DuckDB file by its content, and a folder of tables by its manifest."""
    place, magic = _MAGIC
    try:
        if path.is_dir():
            return (path / MANIFEST).is_file()
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
    connection = duckdb.connect(":memory:")
    try:
        path.stat()
        if not is_saved(path):
            raise _Foreign("it is no DuckDB file, and no folder of tables")
        connection.execute(
            "SET autoinstall_known_extensions = false; SET autoload_known_extensions = false;"
            "SET enable_progress_bar = false"
        )
        with utf8_path(path) as readable:
            if path.is_dir():
                writer = _writer_of_folder(path)
                with _of(writer, duckdb.Error):
                    _take_folder(connection, readable, writer.former)
            else:
                connection.execute(f"ATTACH {literal(str(readable))} AS saved (READ_ONLY)")
                writer = _writer(connection)
        connection.execute("SET enable_external_access = false; SET lock_configuration = true")
        former = Former() if path.is_dir() else writer.former
        with _of(writer, _Foreign):
            for table in TABLES:
                if table.name not in former.absent:
                    _check_columns(connection, table, former)
        for table in TABLES:
            connection.execute(_present(table, former))
        for table in TABLES:
            _check_rows(connection, table)
        for table in TABLES:
            sink(table.name, Rows(connection.sql(f"FROM {table.name}")))
    except _OfAnother as error:
        raise CaptureError(f"{path}: {error}") from None
    except _Foreign as error:
        raise CaptureError(f"{path}: not a trace that conchart saved: {error}") from None
    except OSError as error:
        raise CaptureError(f"{path}: cannot be opened: {error.strerror or error}") from None
    except duckdb.OutOfMemoryException:
        raise
    except duckdb.Error as error:
        raise CaptureError(f"{path}: cannot be opened: {error}") from None
    finally:
        connection.close()


def _take_folder(connection: duckdb.DuckDBPyConnection, folder: Path, former: Former) -> None:
    """Take the Parquet files of a folder into a database of their own, with the types of the schema."""
    connection.execute("ATTACH ':memory:' AS saved; USE saved")
    for table in TABLES:
        connection.execute(table.ddl)
        if table.name in former.absent:
            continue
        files = literal(str(folder / former.names.get(table.name, table.name) / "*.parquet"))
        filled = former.filled.get(table.name, {})
        others = ", ".join(map(literal, (*former.gone.get(table.name, ()), *filled)))
        made = (f"{sql} AS {name}" for name, sql in filled.items())
        columns = ", ".join([f"COLUMNS(name -> name NOT IN ({others}))" if others else "*", *made])
        connection.execute(f"INSERT INTO {table.name} BY NAME SELECT {columns} FROM read_parquet({files})")
    connection.execute("USE memory")


def _present(table: Table, former: Former) -> str:
    """Write the statement that makes a view: a table of the file, with the columns of this version."""
    if table.name in former.absent:
        columns = ", ".join(f"NULL::{kind} AS {name}" for name, kind in table.types.items())
        return f"CREATE VIEW {table.name} AS SELECT {columns} WHERE false"
    filled = former.filled.get(table.name, {})
    columns = ", ".join(
        f"({filled[name]})::{kind} AS {name}" if name in filled else name for name, kind in table.types.items()
    )
    return f"CREATE VIEW {table.name} AS SELECT {columns} FROM saved.main.{former.names.get(table.name, table.name)}"


@dataclass(frozen=True, slots=True)
class _Writer:
    """Who wrote a saved trace, as far as the file says so."""

    schema: int | None
    version: str | None
    is_old: bool = False
    """It does not say so, but has one of our tables."""

    @property
    def former(self) -> Former:
        """How its tables differ from those of this version."""
        return FORMER.get(self.schema or SCHEMA_VERSION, Former())

    def __str__(self) -> str:
        return f"conchart {self.version or '(which version, it does not say)'}"


@contextmanager
def _of(writer: _Writer, refusal: type[Exception]) -> Iterator[None]:
    """Say of tables that another version of conchart wrote what to do with them.

    A file that does not say who wrote it, as those of conchart 0.1, is taken if its tables are ours.

    Args:
        writer: What the file says.
        refusal: What the block raises of tables that are not ours; passed on where this version wrote them.
    """
    if writer.schema is not None and writer.schema not in FORMER:
        raise _OfAnother(
            writer, f"its tables have version {writer.schema}, and this conchart knows version {SCHEMA_VERSION}"
        )
    try:
        yield
    except duckdb.OutOfMemoryException:
        raise
    except refusal as error:
        if writer.is_old and isinstance(error, _Foreign):
            raise _Foreign(f"{error}\n  If conchart {_BEFORE_VERSIONS} saved it: read the captures again") from None
        if writer.version in (None, VERSION):
            raise
        raise _OfAnother(writer, str(error).partition("\n")[0]) from None


def _writer(connection: duckdb.DuckDBPyConnection) -> _Writer:
    """Read who wrote a database. Whatever the table is, only two plain values are taken from it."""
    stored = {name: (kind, computed) for name, kind, computed in connection.execute(_COLUMNS, [ABOUT.table]).fetchall()}
    if stored != {ABOUT.schema: ("INTEGER", False), ABOUT.version: ("VARCHAR", False)}:
        return _Writer(None, None, is_old=bool(connection.execute(_COLUMNS, ["captures"]).fetchall()))
    row = connection.execute(f"SELECT {ABOUT.schema}, {ABOUT.version} FROM saved.main.{ABOUT.table} LIMIT 1").fetchone()
    schema, wrote = row or (None, None)
    return _Writer(schema, wrote if wrote and _VERSION.fullmatch(wrote) else None)


def _writer_of_folder(folder: Path) -> _Writer:
    """Read who wrote a folder of tables."""
    with (folder / MANIFEST).open(encoding="utf-8") as file:
        text = file.read(_LARGEST_MANIFEST)
    try:
        manifest = json.loads(text)
        schema, wrote = manifest["conchart"], manifest["version"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _Foreign(f"{MANIFEST} does not say which conchart wrote the tables") from None
    plain = isinstance(wrote, str) and _VERSION.fullmatch(wrote)
    return _Writer(schema if isinstance(schema, int) else None, wrote if plain else None)


class _OfAnother(Exception):
    """Tables of another version of conchart; the text says what to do."""

    def __init__(self, writer: _Writer, difference: str) -> None:
        with_it = f"pip install 'conchart=={writer.version}'" if writer.version else "the conchart that wrote it"
        super().__init__(
            f"saved by {writer}; this is conchart {version()}: {difference}\n"
            f"  Read the captures again with this version, or open the file with the one that wrote it: {with_it}"
        )


class _Foreign(Exception):
    """A table that is not ours; the text says why."""


def _check_columns(connection: duckdb.DuckDBPyConnection, table: Table, former: Former) -> None:
    """Refuse a table whose columns are not those of the schema, with their types, and plainly stored."""
    stored_name = former.names.get(table.name, table.name)
    stored = {name: (kind, computed) for name, kind, computed in connection.execute(_COLUMNS, [stored_name]).fetchall()}
    if not stored:
        raise _Foreign(f"it has no table {stored_name}")
    filled = former.filled.get(table.name, {})
    for name in (*former.gone.get(table.name, ()), *filled):
        stored.pop(name, None)
    for name, expected in ((name, kind) for name, kind in table.types.items() if name not in filled):
        kind, computed = stored.pop(name, (None, False))
        if kind is None:
            raise _Foreign(f"{table.name} has no column {name}")
        if kind != expected:
            raise _Foreign(f"{table.name}.{name} is {kind}, not {expected}")
        if computed:
            raise _Foreign(f"{table.name}.{name} is computed")
    if stored:
        raise _Foreign(f"{table.name} has another column: {', '.join(stored)}")


def _check_rows(connection: duckdb.DuckDBPyConnection, table: Table) -> None:
    """Refuse values that no capture gives, on which charts and sums would fail."""
    flaws = list(_flaws(table))
    conditions = ", ".join(condition for _, condition in flaws)
    found = connection.execute(f"SELECT {conditions} FROM {table.name}").fetchall()[0]
    for (flaw, _), is_so in zip(flaws, found, strict=True):
        if is_so:
            raise _Foreign(f"{table.name}.{flaw}")


def _flaws(table: Table) -> Iterator[tuple[str, str]]:
    """Give what may be wrong with a column, and the SQL that tells over all rows."""
    for name in filter(None, f"{table.key}, {table.not_null}".split(", ")):
        if name in table.unknown:
            continue
        yield f"{name} is NULL", f"bool_or({name} IS NULL)"
    for name, kind in table.types.items():
        if name.endswith("_at"):
            yield f"{name} is out of range", f"bool_or({name} NOT BETWEEN {-_FARTHEST} AND {_FARTHEST})"
        elif name in table.signed:
            continue
        elif name.endswith("_ns") and kind == "BIGINT":
            yield f"{name} is out of range", f"bool_or({name} < 0)"
        elif kind in ("INTEGER", "BIGINT"):
            yield f"{name} is out of range", f"bool_or({name} < 0) OR sum({name}) > {_FARTHEST}"
        elif kind == "DOUBLE":
            yield f"{name} is out of range", f"bool_or({name} NOT BETWEEN 0 AND 1)"
        elif kind.endswith("[]") and name not in table.unknown:
            yield f"{name} holds a NULL", f"bool_or(len({name}) <> list_count({name}))"
    if table.name == "captures":
        yield "first_at and last_at are not known together", "bool_or((first_at IS NULL) <> (last_at IS NULL))"
    for name, words in _WORDS.get(table.name, {}).items():
        yield f"{name} is none that conchart knows", f"bool_or({name} NOT IN ({', '.join(map(literal, words))}))"
    if {"start_at", "end_at"} <= table.types.keys():
        yield "end_at is before start_at", "bool_or(end_at < start_at)"
        charged = f"SELECT sum(end_at::HUGEINT - start_at) AS ns FROM {table.name} GROUP BY stream"
        yield "end_at is out of range", f"(SELECT max(ns) FROM ({charged})) > {2 * _FARTHEST}"
    if table.name == "findings":
        roots = "SELECT number FROM findings WHERE root IS NULL"
        yield "root is no finding that is shown", f"bool_or(root NOT IN ({roots}))"
    if table.name == "connections":
        listed = "SELECT (server_ip, server_port) FROM servers"
        yield "server_ip is none of those in servers", f"bool_or((server_ip, server_port) NOT IN ({listed}))"
