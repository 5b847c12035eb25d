"""DuckDB: the whole trace as a database file, for ``Trace.load``, the ``duckdb`` shell and every tool that reads it."""

from pathlib import Path
from typing import TYPE_CHECKING

from conchart.sql import literal

if TYPE_CHECKING:
    from conchart.trace import Trace


def write_duckdb(trace: "Trace", path: Path) -> None:
    """Write every table; the file did not exist before."""
    trace.execute(f"ATTACH {literal(str(path))} AS saved")
    try:
        trace.execute("COPY FROM DATABASE memory TO saved")
    finally:
        trace.execute("DETACH saved")
