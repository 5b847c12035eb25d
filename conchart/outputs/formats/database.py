"""DuckDB: the whole trace as a database file, for ``Trace.load``, the ``duckdb`` shell and every tool that reads it.

The table ``about`` beside the others says which conchart wrote the file.
"""

from pathlib import Path

from conchart.store.saved import ABOUT
from conchart.store.schema import SCHEMA_VERSION
from conchart.store.sql import literal
from conchart.store.tables import Tables
from conchart.version import version


def write_duckdb(tables: Tables, path: Path) -> None:
    """Write every table; the file did not exist before."""
    tables.execute(f"ATTACH {literal(str(path))} AS saved")
    try:
        tables.execute("COPY FROM DATABASE memory TO saved")
        about = f"{SCHEMA_VERSION} AS {ABOUT.schema}, {literal(version())} AS {ABOUT.version}"
        tables.execute(f"CREATE TABLE saved.{ABOUT.table} AS SELECT {about}")
    finally:
        tables.execute("DETACH saved")
