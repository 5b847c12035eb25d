"""DuckDB: the whole trace as a database file, for ``Trace.load``, the ``duckdb`` shell and every tool that reads it."""

from pathlib import Path

from conchart.store.sql import literal
from conchart.store.tables import Tables


def write_duckdb(tables: Tables, path: Path) -> None:
    """Write every table; the file did not exist before."""
    tables.execute(f"ATTACH {literal(str(path))} AS saved")
    try:
        tables.execute("COPY FROM DATABASE memory TO saved")
    finally:
        tables.execute("DETACH saved")
