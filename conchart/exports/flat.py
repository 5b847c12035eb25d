"""CSV and Parquet: one table per file, sorted by its key.

``connections`` is the one people open in a spreadsheet, so it carries the answer: who the server is, how many
requests there were, and how many nanoseconds each phase took.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from conchart.errors import UsageError
from conchart.phases import PHASES
from conchart.schema import TABLES
from conchart.sql import literal

if TYPE_CHECKING:
    from conchart.trace import Trace

_KEYS = {table.name: table.key for table in TABLES}


def flat_query(table: str) -> str:
    """Give the SQL for one table as a file holds it.

    Raises:
        UsageError: There is no such table.
    """
    if table not in _KEYS:
        raise UsageError(f"there is no table {table!r}: {', '.join(_KEYS)}")
    return f"FROM ({_CONNECTIONS if table == 'connections' else f'FROM {table}'}) ORDER BY {_KEYS[table]}"


def write_csv(trace: "Trace", query: str, path: Path) -> None:
    """Write CSV with a header; NULL is an empty field.

    Text that a spreadsheet would run as a formula (``=…``, ``+…``, ``-…``, ``@…``) gets an apostrophe in front:
    names and paths in a capture are written by whoever sent the packets.
    """
    relation = trace.sql(query)
    columns = ", ".join(
        rf"regexp_replace({name}, '^([=+@\t\r]|-.)', '''\1', 's') AS {name}" if str(kind) == "VARCHAR" else name
        for name, kind in zip(relation.columns, relation.types, strict=True)
    )
    trace.execute(f"COPY (SELECT {columns} FROM ({query})) TO {literal(str(path))} (FORMAT csv, HEADER)")


def write_parquet(trace: "Trace", query: str, path: Path) -> None:
    """Write Parquet, compressed with zstd."""
    trace.execute(f"COPY ({query}) TO {literal(str(path))} (FORMAT parquet, COMPRESSION zstd)")


_PHASE_COLUMNS = ", ".join(
    f"coalesce(sum(end_at - start_at) FILTER (kind = '{phase.name}'), 0)::BIGINT AS {phase.name}_ns" for phase in PHASES
)
_CONNECTIONS = f"""
    SELECT c.*, coalesce(sni, host) AS server_name, coalesce(requests, 0) AS requests, phases.* EXCLUDE (stream)
    FROM connections c
    LEFT JOIN (SELECT stream, arg_min(sni, number) AS sni FROM handshakes GROUP BY stream) USING (stream)
    LEFT JOIN (
        SELECT stream, arg_min(host, number) AS host, count(*) AS requests FROM exchanges GROUP BY stream
    ) USING (stream)
    LEFT JOIN (SELECT stream, {_PHASE_COLUMNS} FROM phases GROUP BY stream) phases USING (stream)
"""
