"""Temporary folders, and file names that DuckDB accepts.

In: a path. Out: a path, for as long as a block lasts.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from conchart.files.unfinished import Undone

_TRIES = 10
"""A thread of DuckDB's may make a file while we remove the folder."""


@contextmanager
def utf8_path(path: Path) -> Iterator[Path]:
    """Give another name of an existing file or folder where its own is no UTF-8: DuckDB takes nothing else.

    Linux has one for everything that is open. Other systems have no names but UTF-8.
    """
    try:
        str(path).encode()
    except UnicodeEncodeError:
        opened = os.open(path, os.O_RDONLY)
        try:
            yield Path(f"/proc/self/fd/{opened}")
        finally:
            os.close(opened)
    else:
        yield path


@contextmanager
def temporary_folder(parent: str | os.PathLike[str] | None = None) -> Iterator[Path]:
    """Make a folder that only we can read, and that goes with its block or with the process.

    Args:
        parent: Where to make it.  [default: where the system keeps temporary files]
    """
    folder = Path(parent or tempfile.gettempdir(), f".conchart-{os.urandom(8).hex()}")
    with Undone(lambda: remove_folder(folder)):
        folder.mkdir(mode=0o700)
        yield folder


def remove_folder(folder: Path) -> None:
    """Remove a folder with all that is in it, if it is there."""
    for _ in range(_TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
