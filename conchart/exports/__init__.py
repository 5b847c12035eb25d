"""Files made from a trace: one format per module, chosen by suffix, written whole or not at all.

In: a trace, a path. Out: the file. What is drawn is ``charts``' business.
"""

from collections.abc import Callable
from pathlib import Path

from conchart.errors import UsageError
from conchart.exports.database import write_duckdb
from conchart.exports.flat import flat_query, write_csv, write_parquet
from conchart.exports.html import write_page
from conchart.exports.json import write_json
from conchart.exports.text import write_text
from conchart.exports.whole import whole_file
from conchart.options import DrawOptions
from conchart.tables import Tables

ONE_TABLE: dict[str, Callable[[Tables, str, Path], None]] = {".csv": write_csv, ".parquet": write_parquet}
WHOLE_TRACE: dict[str, Callable[[Tables, Path], None]] = {".json": write_json, ".duckdb": write_duckdb}
DRAWN: dict[str, Callable[[Tables, Path, DrawOptions], None]] = {".html": write_page, ".txt": write_text}
SUFFIXES = (*DRAWN, *WHOLE_TRACE, *ONE_TABLE)


def check(path: Path, *, table: str | None = None) -> None:
    """Refuse what ``write`` would refuse, before a long capture is read.

    Raises:
        UsageError: No format has this suffix, or there is no such table, or the format holds more than one.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        given = f"the suffix {path.suffix!r}" if path.suffix else "no suffix"
        raise UsageError(f"cannot write {path}: {given}; conchart writes {' '.join(SUFFIXES)}")
    if table is not None:
        if suffix not in ONE_TABLE:
            raise UsageError(f"cannot write {path}: a table is chosen for {' and '.join(ONE_TABLE)}, not for {suffix}")
        flat_query(table)


def write(tables: Tables, path: Path, *, table: str | None, options: DrawOptions) -> None:
    """Write ``path`` in the format of its suffix; ``Trace.write`` is the public door and says more.

    Raises:
        UsageError: As ``check``.
        OutputError: The file cannot be written; what was there before is untouched.
    """
    check(path, table=table)
    suffix = path.suffix.lower()
    with whole_file(path) as unfinished:
        if suffix in ONE_TABLE:
            ONE_TABLE[suffix](tables, flat_query(table or "connections"), unfinished)
        elif suffix in WHOLE_TRACE:
            WHOLE_TRACE[suffix](tables, unfinished)
        else:
            DRAWN[suffix](tables, unfinished, options)
