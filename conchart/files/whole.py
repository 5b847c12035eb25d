"""Whole files or none: a file is written beside its target and moved over it when it is complete."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb

from conchart.errors import OutputError
from conchart.files.paths import temporary_folder, utf8_path

_UNWRITTEN = (duckdb.IOException, duckdb.TransactionException, duckdb.FatalException)
"""What DuckDB says of a full disk: when it writes, commits, checkpoints."""


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
    except _UNWRITTEN as error:
        raise OutputError(f"cannot write {path}: {error}") from None


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Give a place for a new folder; success puts it at ``path``, any failure leaves nothing and ``path`` untouched.

    A folder that is there is replaced only if it has a file of the same name as one of the new ones.

    Raises:
        OutputError: ``path`` is something else, its folder is missing or closed to us, the disk is full.
    """
    try:
        if not path.absolute().parent.is_dir():
            raise OutputError(f"cannot write {path}: there is no folder {path.absolute().parent}")
        with temporary_folder(path.absolute().parent) as folder, utf8_path(folder) as writable:
            unfinished = writable / "unfinished"
            yield unfinished
            if path.exists():
                made = {entry.name for entry in unfinished.iterdir() if entry.is_file()}
                if not path.is_dir() or not any((path / name).is_file() for name in made):
                    raise OutputError(f"cannot write {path}: it is there, and nothing that conchart wrote")
                path.rename(folder / "before")
            unfinished.rename(path)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from None
    except _UNWRITTEN as error:
        raise OutputError(f"cannot write {path}: {error}") from None


def _follow(path: Path) -> Path:
    """Follow symbolic links, also one to what does not exist yet; of a pipe in ``/dev/stdout`` they lead to no name."""
    if path.exists() and not path.is_file():
        return path
    with suppress(RuntimeError):  # Python before 3.13: links in a loop
        target = path.resolve()
        if not target.is_symlink():
            return target
    raise OutputError(f"cannot write {path}: its symbolic links form a loop")


def _hand_on(old: Path, new: Path) -> None:
    """Give ``new`` the owner and the mode of ``old``, if there is one; an owner that is not ours to give stays out."""
    if old.exists():
        before = old.stat()
        with suppress(PermissionError):
            os.chown(new, before.st_uid, before.st_gid)
        new.chmod(before.st_mode & 0o777)
