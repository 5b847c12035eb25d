"""Files made from a trace: one format per module, chosen by suffix or by name, written whole or not at all.

In: a trace, a path. Out: the file. ``page`` and ``pictures`` draw, ``terminal`` writes text, ``formats`` writes for
other tools.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, TYPE_CHECKING

from conchart.errors import UsageError
from conchart.files.whole import whole_file, whole_folder
from conchart.outputs.formats.database import write_duckdb
from conchart.outputs.formats.flat import flat_query, write_csv, write_parquet
from conchart.outputs.formats.folder import write_folder
from conchart.outputs.formats.har import dump_har
from conchart.outputs.formats.json import dump_json
from conchart.outputs.formats.otlp import dump_otlp
from conchart.outputs.formats.pcapng import check_captures, write_pcapng
from conchart.outputs.formats.perfetto import dump_perfetto
from conchart.outputs.formats.qlog import dump_qlog, dump_sqlog
from conchart.outputs.options import DrawOptions
from conchart.outputs.page import prepare_page, write_page
from conchart.outputs.pictures import check_drawing, write_png, write_svg
from conchart.store.tables import Tables

if TYPE_CHECKING:
    from conchart.report.report import Report


def _write_text(report: "Report", path: Path, options: DrawOptions) -> None:
    from conchart.outputs.terminal import write_text  # not above: nothing else needs rich, which takes a while

    write_text(report, path, options)


def _from_report(write: Callable[["Report", Path, DrawOptions], None]) -> Callable[[Tables, Path, DrawOptions], None]:
    """Have what is written of a report written of tables."""

    def writing(tables: Tables, path: Path, options: DrawOptions) -> None:
        from conchart.report.report import report_of  # not above: other formats need none

        with report_of(tables, names=options.names) as report:
            write(report, path, options)

    return writing


ONE_TABLE: dict[str, Callable[[Tables, str, Path], None]] = {".csv": write_csv, ".parquet": write_parquet}
FOLDERS: dict[str, Callable[[Tables, Path], None]] = {".tables": write_folder}
WHOLE_TRACE: dict[str, Callable[[Tables, Path], None]] = {".duckdb": write_duckdb}
DRAWN: dict[str, Callable[[Tables, Path, DrawOptions], None]] = {
    ".html": write_page,
    ".txt": _from_report(_write_text),
    ".svg": _from_report(write_svg),
    ".png": _from_report(write_png),
    ".pcapng": write_pcapng,
}
DOCUMENTS: dict[str, Callable[[Tables, IO[str]], None]] = {
    ".json": dump_json,
    ".har": dump_har,
    ".perfetto.json": dump_perfetto,
    ".otlp.json": dump_otlp,
    ".qlog": dump_qlog,
    ".sqlog": dump_sqlog,
}
"""Those that a pipe can have, too."""
SUFFIXES = (*DRAWN, *DOCUMENTS, *WHOLE_TRACE, *ONE_TABLE, *FOLDERS)
FORMATS = {suffix.split(".")[1]: suffix for suffix in SUFFIXES}
"""What a format is called, where the suffix is not to choose it: the first word of its own suffix."""
PICTURES = frozenset({".svg", ".png"})
PACKET_BY_PACKET = frozenset({".qlog", ".sqlog"})
"""What is empty where not all packets are kept."""
READ_AGAIN = frozenset({".pcapng"})
"""What is made of the captures themselves, beside the tables."""


def check(path: Path, *, table: str | None = None, form: str | None = None, captures: Iterable[str] = ()) -> None:
    """Refuse what ``write`` would refuse, before a long capture is read.

    Args:
        path: What to write.
        table: As for ``write``.
        form: As for ``write``.
        captures: What is read.

    Raises:
        UsageError: No format has this suffix or name, or there is no such table, or the format holds more than one, or
            needs captures that can be read again, or a library that is not installed.
    """
    suffix = _suffix(path, form)
    if table is not None:
        if suffix not in ONE_TABLE:
            raise UsageError(f"cannot write {path}: --table applies to {' and '.join(ONE_TABLE)}, not to {suffix}")
        flat_query(table)
    if suffix in PICTURES:
        check_drawing(path)
    if suffix in READ_AGAIN:
        check_captures(captures, path)


def form_of(output: str | os.PathLike[str], form: str | None) -> str | None:
    """Give the format of an output that somebody named: a name that ends in ``/`` is a folder of tables."""
    return "tables" if form is None and os.fspath(output).endswith("/") else form


def prepare(path: Path, *, form: str | None = None) -> None:
    """Do what can be done for ``write`` while the captures are read."""
    if _suffix(path, form) == ".html":
        prepare_page()


def write(tables: Tables, path: Path, *, table: str | None, options: DrawOptions, form: str | None = None) -> None:
    """Write ``path`` in the format of its suffix, or the one named; ``Trace.write`` is the public door and says more.

    Raises:
        UsageError: As ``check``.
        OutputError: The file cannot be written; what was there before is untouched.
    """
    captures = [name for (name,) in tables.stored("SELECT path FROM captures ORDER BY capture").fetchall()]
    check(path, table=table, form=form, captures=captures)
    suffix = _suffix(path, form)
    if suffix in FOLDERS:
        with whole_folder(path) as unfinished:
            FOLDERS[suffix](tables, unfinished)
        return
    with whole_file(path) as unfinished:
        if suffix in ONE_TABLE:
            ONE_TABLE[suffix](tables, flat_query(table or "connections"), unfinished)
        elif suffix in WHOLE_TRACE:
            WHOLE_TRACE[suffix](tables, unfinished)
        elif suffix in DOCUMENTS:
            with unfinished.open("w", encoding="utf-8", newline="\n") as sink:
                DOCUMENTS[suffix](tables, sink)
        else:
            DRAWN[suffix](tables, unfinished, options)


def dump(tables: Tables, sink: IO[str], form: str) -> None:
    """Write a document to an open file.

    Raises:
        UsageError: The format is no document.
    """
    check_dump(form)
    DOCUMENTS[FORMATS[form]](tables, sink)


def check_dump(form: str) -> None:
    """Refuse what ``dump`` would refuse.

    Raises:
        UsageError: As ``dump``.
    """
    writable = [name for name, suffix in FORMATS.items() if suffix in DOCUMENTS]
    if form not in writable:
        raise UsageError(f"cannot write {form} to standard output, only {' '.join(writable)}")


def reads_again(output: str, form: str | None) -> bool:
    """Tell whether a format needs the captures once more."""
    return output != "-" and _suffix(Path(output), form) in READ_AGAIN


def wants_packets(output: str, form: str | None) -> bool:
    """Tell whether a format needs all packets of a large capture."""
    return (f".{form}" if output == "-" else _suffix(Path(output), form)) in PACKET_BY_PACKET


def matching_suffix(path: str | os.PathLike[str], form: str | None = None) -> str | None:
    """Give the suffix that stands for a format: the longest that fits, or that of the format named. None if unknown."""
    if form is not None:
        return FORMATS.get(form)
    name = "".join(Path(path).suffixes).lower()
    return max((suffix for suffix in SUFFIXES if name.endswith(suffix)), key=len, default=None)


def _suffix(path: Path, form: str | None) -> str:
    """Give the suffix that stands for a format: the longest that fits, or that of the format named."""
    if form is not None:
        if form not in FORMATS:
            raise UsageError(f"cannot write {path}: there is no format {form!r}; conchart knows {' '.join(FORMATS)}")
        return FORMATS[form]
    if suffix := matching_suffix(path):
        return suffix
    given = f"the suffix {path.suffix!r}" if path.suffix else "no suffix"
    raise UsageError(f"cannot write {path}: {given}; conchart writes {' '.join(SUFFIXES)}")
