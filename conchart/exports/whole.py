"""Whole files or none: a file is written beside its target and moved over it when it is complete."""

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb

from conchart.errors import OutputError
from conchart.paths import utf8_path
from conchart.unfinished import Undone

_TRIES = 10
"""A thread of DuckDB's may make a file while we remove the folder."""


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a place to write to; success moves it over ``path``, any failure leaves nothing and ``path`` untouched.

    A symbolic link is followed. A file that is replaced hands on its mode, and its owner where we may set it; a new
    one gets what the umask says. What is no regular file, ``/dev/stdout`` say, is written into and not replaced.

    Raises:
        OutputError: The folder is missing or closed to us, ``path`` is a folder or a loop of links, the disk is full.
    """
    try:
        target = _follow(path)
        if target.is_dir():
            raise OutputError(f"cannot write {path}: it is a folder")
        for parent in (path.parent, target.parent):
            if not parent.is_dir():
                raise OutputError(f"cannot write {path}: there is no folder {parent}")
        replace = target.is_file() or not target.exists()
        with temporary_folder(target.parent if replace else None) as folder, utf8_path(folder) as writable:
            unfinished = writable / f"unfinished{path.suffix}"
            yield unfinished
            if replace:
                _hand_on(target, unfinished)
                os.replace(unfinished, target)
            else:
                with unfinished.open("rb") as source, target.open("wb") as sink:
                    shutil.copyfileobj(source, sink)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from None
    except duckdb.IOException as error:
        raise OutputError(f"cannot write {path}: {error}") from None


@contextmanager
def temporary_folder(parent: str | os.PathLike[str] | None = None) -> Iterator[Path]:
    """Make a folder that only we can read, and that goes with its block or with the process.

    Args:
        parent: Where to make it.  [default: where the system keeps temporary files]
    """
    folder = Path(parent or tempfile.gettempdir(), f".conchart-{secrets.token_hex(8)}")
    with Undone(lambda: _remove(folder)):
        folder.mkdir(mode=0o700)
        yield folder


def _remove(folder: Path) -> None:
    for _ in range(_TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return


def _follow(path: Path) -> Path:
    """Follow symbolic links, also one to what does not exist yet."""
    try:
        return path.resolve()
    except RuntimeError:  # Python 3.13 and newer: an OSError
        raise OutputError(f"cannot write {path}: too many symbolic links") from None


def _hand_on(old: Path, new: Path) -> None:
    """Give ``new`` the owner and the mode of ``old``, if there is one; an owner that is not ours to give stays out."""
    if old.exists():
        before = old.stat()
        with suppress(PermissionError):
            os.chown(new, before.st_uid, before.st_gid)
        new.chmod(before.st_mode & 0o777)
