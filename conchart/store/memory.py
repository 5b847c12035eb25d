"""How much memory the tables of a trace may take, and where they go beyond that.

In: what the user allows, what the machine has. Out: a limit in bytes, a folder for DuckDB to spill into, and what to
say when there is room in neither. The core's own memory is bounded by what it keeps of open connections
(``docs/capturing.md``), and comes on top.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import duckdb

from conchart.errors import NoRoomError, UsageError
from conchart.labels.units import format_bytes, parse_bytes

LEAST = 128_000_000
"""With less, DuckDB cannot even sort the connections of a large capture."""
_MOST = 1 << 60
"""DuckDB reads no larger number; no machine has so much."""
_PLACES = ("/var/tmp", "/tmp")
_CGROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def table_limit(allowed: int | str | None) -> int:
    """Say how many bytes the tables may take: as allowed, else half of what this machine or container has.

    Args:
        allowed: Bytes, or text such as ``2GB`` or ``512 MiB``.

    Raises:
        UsageError: The text cannot be read, or it is less than anything works with.
    """
    if allowed is None:
        return max(min(_memories()) // 2, LEAST)
    size = parse_bytes(allowed) if isinstance(allowed, str) else allowed
    if size < LEAST:
        raise UsageError(f"memory: {format_bytes(size)} is too little: give at least {format_bytes(LEAST)}")
    return min(size, _MOST)


def _memories() -> Iterator[int]:
    """Give every limit on memory that is known."""
    yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in _CGROUPS:
        with suppress(OSError, ValueError):  # no such group, or "max"
            yield int(Path(path).read_text())


def spill_folder() -> Path:
    """Name a folder that does not exist yet; DuckDB makes it when it needs it, and takes it away again.

    It is in ``TMPDIR``, else in ``/var/tmp``: ``/tmp`` is often memory itself. DuckDB takes only names in UTF-8.
    """
    usable = (place for place in (os.environ.get("TMPDIR"), *_PLACES) if place and place.isprintable())
    parent = next((place for place in usable if os.access(place, os.W_OK)), _PLACES[0])
    return Path(parent, f"conchart-{os.getpid()}-{os.urandom(4).hex()}")


def no_room(error: duckdb.Error) -> NoRoomError:
    """Say what to do about an error of DuckDB's that means: neither memory nor disk has room for the tables."""
    reason = str(error).split("\n")[0].removeprefix("Out of Memory Error: ").removeprefix("IO Error: ")
    return NoRoomError(
        f"no room for the tables: {reason}\n"
        "  Read less of the capture (-f, -s, -e, -c), allow more memory (--memory 8GB), or let TMPDIR name a folder on "
        "a disk with more room."
    )
