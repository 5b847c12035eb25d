"""CSV and Parquet: one table per file, sorted by its key.

``connections`` is the one people open in a spreadsheet, so it carries the answer: beside who the server is and how long
users waited, how many requests there were, how many nanoseconds each phase took, and how many of them were stalled.
"""

from pathlib import Path

from duckdb.sqltypes import DuckDBPyType

from conchart.errors import UsageError
from conchart.labels.phases import PHASES
from conchart.store.schema import TABLES
from conchart.store.sql import literal
from conchart.store.tables import Tables

_NUMBERS = frozenset(
    ("boolean", "tinyint", "smallint", "integer", "bigint", "hugeint", "utinyint", "usmallint", "uinteger", "ubigint")
    + ("uhugeint", "float", "double", "decimal")
)
_NO_GLYPH = r"[^\P{Cc}\t\n]|[\p{Cf}\p{Co}\p{Zl}\p{Zp}]"
"""Control characters but tab and line feed; byte order marks, bidi marks, zero width, private ones, separators."""
_FORMULA = r"^([\s\p{Z}]*([=+@＝＋＠﹦﹢﹫]|[-－﹣−].)|[\t\n])"
_DISARMED = r"'\0"

_KEYS = {table.name: table.key for table in TABLES}


def flat_query(table: str) -> str:
    """Give the SQL for one table as a file holds it.

    Raises:
        UsageError: There is no such table.
    """
    if table not in _KEYS:
        raise UsageError(f"there is no table {table!r}: {', '.join(_KEYS)}")
    return f"FROM ({_CONNECTIONS if table == 'connections' else f'FROM {table}'}) ORDER BY {_KEYS[table]}"


def write_csv(tables: Tables, query: str, path: Path) -> None:
    """Write CSV with a header; NULL is an empty field. Texts are as ``harmless`` has them."""
    relation = tables.sql(query)
    columns = ", ".join(
        f"{harmless(name, kind)} AS {name}" for name, kind in zip(relation.columns, relation.types, strict=True)
    )
    tables.execute(f"COPY (SELECT {columns} FROM ({query})) TO {literal(str(path))} (FORMAT csv, HEADER)")


def harmless(value: str, kind: DuckDBPyType | None = None) -> str:
    """Give the SQL for a value as CSV holds it: names and paths in a capture come from the senders of the packets.

    Text that a spreadsheet would run as a formula (``=…``, ``+…``, ``-…``, ``@…``, also full-width and after spaces)
    gets an apostrophe in front. Characters that move a terminal's cursor or hide what follows become ``\ufffd``.

    Args:
        value: An SQL expression.
        kind: Its type; numbers are left alone.  [default: text]
    """
    if kind is not None and kind.id in _NUMBERS:
        return value
    glyphs = f"regexp_replace(({value})::VARCHAR, {literal(_NO_GLYPH)}, {literal(chr(0xFFFD))}, 'g')"
    return f"regexp_replace({glyphs}, {literal(_FORMULA)}, {literal(_DISARMED)}, 's')"


def write_parquet(tables: Tables, query: str, path: Path) -> None:
    """Write Parquet, compressed with zstd."""
    tables.execute(f"COPY ({query}) TO {literal(str(path))} (FORMAT parquet, COMPRESSION zstd)")


_PHASE_COLUMNS = ", ".join(
    f"coalesce(sum(end_at - start_at) FILTER (kind = '{phase.name}'), 0)::BIGINT AS {phase.name}_ns" for phase in PHASES
)
_CONNECTIONS = f"""
    SELECT c.*, coalesce(requests, 0) AS requests, phases.* EXCLUDE (stream),
        CASE WHEN transport = 'tcp' THEN coalesce(stalled_ns, 0) END AS stalled_ns
    FROM connections c
    LEFT JOIN (SELECT stream, count(*) AS requests FROM exchanges GROUP BY stream) USING (stream)
    LEFT JOIN (SELECT stream, {_PHASE_COLUMNS} FROM phases GROUP BY stream) phases USING (stream)
    LEFT JOIN (SELECT stream, sum(end_at - start_at)::BIGINT AS stalled_ns FROM stalls GROUP BY stream) USING (stream)
"""
