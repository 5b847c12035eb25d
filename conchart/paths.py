"""Names of files that DuckDB takes: UTF-8 only, while a name is any bytes. In: a path. Out: one that is UTF-8."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def utf8_path(path: Path) -> Iterator[Path]:
    """Give another name of an existing file or folder where its own is no UTF-8; it holds as long as the block.

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
