"""Whole files or none: a file is written beside its target and moved over it when it is complete."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from conchart.errors import OutputError


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a place to write to; success moves it over ``path``, any failure leaves nothing and ``path`` untouched.

    A symbolic link is followed. What is no regular file, ``/dev/stdout`` say, is written into and not replaced.

    Raises:
        OutputError: The folder is missing or closed to us, ``path`` is a folder, the disk is full.
    """
    try:
        target = path.resolve()
        if target.is_dir():
            raise OutputError(f"cannot write {path}: it is a folder")
        if not target.parent.is_dir():
            raise OutputError(f"cannot write {path}: there is no folder {path.parent}")
        replace = target.is_file() or not target.exists()
        with tempfile.TemporaryDirectory(prefix=".conchart-", dir=target.parent if replace else None) as folder:
            unfinished = Path(folder, target.name)
            yield unfinished
            if replace:
                os.replace(unfinished, target)
            else:
                with unfinished.open("rb") as source, target.open("wb") as sink:
                    shutil.copyfileobj(source, sink)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from None
    except duckdb.IOException as error:
        raise OutputError(f"cannot write {path}: {error}") from None
