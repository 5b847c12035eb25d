"""Files that must not be replaced: what the same run reads, and what conchart did not write.

In: the names of inputs and outputs, with the options that gave them. Out: a refusal, before anything is read. A capture
is evidence that nobody can take again.
"""

import glob
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import duckdb

from conchart.errors import UsageError
from conchart.files.paths import utf8_path

_STANDARD = {"input": "/dev/stdin", "output": "/dev/stdout"}
_HEAD = 256 << 10
"""Bytes of a file that tell what it is: the comments of conchart stand at a capture's first packets."""
_SHOWN = 4 << 10
"""Bytes that tell whether a file is text."""

Identity = tuple[int, int] | str
"""Device and inode of what exists, else its path without symbolic links: the same for every name of one file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A file or folder, and what named it."""

    option: str
    """As a user types it: ``-w``, ``--keylog``, ``CAPTURE``."""
    path: str


def refuse_inputs(outputs: Iterable[Named], inputs: Iterable[Named]) -> None:
    """Refuse an output that is an input of the same run, contains one or lies in one; and two outputs in one place.

    Files are compared by device and inode: relative names, symbolic and hard links, and other cases where the file
    system ignores case, are names of one file. Pipes, terminals and devices are never refused.

    Raises:
        UsageError: Names both, and what to do.
    """
    by_identity: dict[Identity, tuple[str, Named]] = {}
    containing: dict[Identity, tuple[str, Named]] = {}
    for kind, named in [*(("input", one) for one in inputs), *(("output", one) for one in outputs)]:
        for path in _files(named.path, kind):
            place, *folders = _places(path) or [""]
            if kind == "output" and place:
                inside = next((by_identity[folder] for folder in folders if folder in by_identity), None)
                for other, relation in (
                    (by_identity.get(place), "the same file as"),
                    (containing.get(place), "a folder that contains"),
                    (inside, "inside"),
                ):
                    if other:
                        _refuse(named, relation, *other)
            by_identity.setdefault(place, (kind, named))
            for folder in folders:
                containing.setdefault(folder, (kind, named))


def _refuse(output: Named, relation: str, kind: str, other: Named) -> None:
    reason = "conchart never replaces what it reads" if kind == "input" else "each output needs a place of its own"
    raise UsageError(
        f"{output.option} {output.path}: this is {relation} the {kind} {other.option} {other.path}, and {reason}\n"
        "  Write to another name."
    )


def _files(name: str, kind: str) -> Iterator[str]:
    """Give the files of this machine that a name stands for: URLs of elsewhere are none."""
    if name == "-":
        yield _STANDARD[kind]
    elif "://" not in name:
        yield name
    else:
        for piece in name.split("::"):  # fsspec has URLs inside URLs
            scheme, _, path = piece.partition("://")
            if scheme in ("file", "local"):
                yield from glob.glob(path, recursive=True) or [path]  # noqa: PTH207  (the pattern is absolute)


def _places(path: str) -> list[Identity]:
    """Give the identity of a file, then of the folders around it; nothing of a pipe, a terminal, a device."""
    with suppress(OSError):
        mode = Path(path).stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            return []
    real = Path(os.path.realpath(path))
    return [_identity(Path(path), real), *(_identity(folder, folder) for folder in real.parents)]


def _identity(path: Path, real: Path) -> Identity:
    with suppress(OSError):
        about = path.stat()
        return about.st_dev, about.st_ino
    return str(real)


def folder_files(folder: str, pattern: str) -> list[str]:
    """Give the files of a folder that a run reads: those whose names match the pattern."""
    return [str(path) for path in sorted(Path(folder).glob(pattern))]


# --- what a file is


def refuse_foreign(path: str, suffix: str, *, option: str = "-w") -> None:
    """Refuse to replace an existing file that has another format than ``suffix`` and that conchart did not write.

    Of a capture or a database, the format is not enough: conchart must have written it.

    Args:
        path: What would be replaced. A symbolic link stands for its target.
        suffix: That of the format: ``.html``.
        option: What named it.

    Raises:
        UsageError: Says what the file is.
    """
    with suppress(OSError):
        if not Path(path).is_file():
            return
        with Path(path).open("rb") as file:
            head = file.read(_HEAD)
        if not head or any(mark in head for mark in _OF_CONCHART):
            return
        kind, suffixes = next((kind, suffixes) for kind, (is_it, suffixes) in _FORMATS.items() if is_it(head))
        if kind == _DATABASE and _is_trace(path):
            return
        if suffix in suffixes and (kind != _TEXT or Path(path).suffix.lower() == suffix):
            return
        raise UsageError(
            f"{option} {path}: this file exists, and conchart did not write it: it is {kind}\n"
            "  Write to another name, or replace the file (--force)."
        )


def _is_trace(path: str) -> bool:
    """Tell a trace that conchart saved from any other database of DuckDB."""
    try:
        with utf8_path(Path(path)) as name, duckdb.connect(str(name), read_only=True) as connection:
            tables = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    except duckdb.Error:
        return False
    return {("captures",), ("connections",), ("exchanges",)} <= {*tables}


def _begins(*starts: bytes) -> Callable[[bytes], bool]:
    return lambda head: head.startswith(starts)


def _begins_text(*starts: bytes) -> Callable[[bytes], bool]:
    return lambda head: head[:_SHOWN].removeprefix(b"\xef\xbb\xbf").lstrip().lower().startswith(starts)


def _is_text(head: bytes) -> bool:
    shown = head[:_SHOWN]
    try:
        shown.decode()
    except UnicodeDecodeError as error:
        if len(shown) < _SHOWN or error.start < _SHOWN - 3:  # else it is the last character that is cut
            return False
    return b"\0" not in shown


_OF_CONCHART = (b"conchart: ", b'content="conchart ')
"""Comments in captures, and the generator of a page."""
_DATABASE, _TEXT = "a DuckDB database", "a text file"
_FORMATS: Mapping[str, tuple[Callable[[bytes], bool], frozenset[str]]] = {
    "a packet capture (pcapng)": (_begins(b"\x0a\x0d\x0d\x0a"), frozenset()),
    "a packet capture (pcap)": (
        _begins(b"\xa1\xb2\xc3\xd4", b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\x3c\x4d", b"\x4d\x3c\xb2\xa1"),
        frozenset(),
    ),
    "a compressed file (gzip or zstd)": (_begins(b"\x1f\x8b", b"\x28\xb5\x2f\xfd"), frozenset()),
    "a picture (PNG)": (_begins(b"\x89PNG"), frozenset({".png"})),
    "a Parquet file": (_begins(b"PAR1"), frozenset({".parquet"})),
    _DATABASE: (lambda head: head[8:12] == b"DUCK", frozenset()),
    "an HTML page": (_begins_text(b"<!doctype html", b"<html"), frozenset({".html"})),
    "a picture (SVG)": (lambda head: b"<svg" in head[:_SHOWN], frozenset({".svg"})),
    "a JSON document": (
        _begins_text(b"{", b"[", b"\x1e{"),
        frozenset({".json", ".har", ".perfetto.json", ".otlp.json", ".qlog", ".sqlog"}),
    ),
    _TEXT: (_is_text, frozenset({".txt", ".csv"})),
    "a binary file": (lambda _: True, frozenset()),
}
"""What a file is by its first bytes, and the formats of outputs that may replace it."""
