"""Parts of captures: whole files, or ranges of a large pcap file.

In: a path or a URL. Out: :class:`Part`, and its bytes as something that the native core reads.

Nothing marks where a record begins inside a pcap file. A cut is proposed where a chain of plausible record headers
begins, and it is proved when the part before it is read: that part has to end there exactly. A cut that is not proved
is refused.
"""

import fcntl
import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Thread
from typing import IO, Any, cast

from conchart.errors import CaptureError, MissingToolError

_HEADER = 24
"""Bytes of the header of a pcap file (draft-ietf-opsawg-pcap section 4)."""
_ORDERS = {
    b"\xa1\xb2\xc3\xd4": ">",
    b"\xa1\xb2\x3c\x4d": ">",
    b"\xd4\xc3\xb2\xa1": "<",
    b"\x4d\x3c\xb2\xa1": "<",
}
"""Magic numbers of pcap files in microseconds and nanoseconds, with their byte order for ``struct``."""
_LEAST = 16 << 20
"""Smaller ranges of a file are not worth a process."""
_CHAIN = 64
"""Plausible record headers in a row that make a cut."""
_SEARCHED = 1 << 20
"""Bytes in which a cut has to be found."""
_LONGEST = 262_144
"""Bytes of a record at most (libpcap's MAXIMUM_SNAPLEN)."""
_APART = 86_400
"""Seconds that the times of two records in a row may differ for a cut."""
_COPIED = 1 << 20


@dataclass(frozen=True, slots=True)
class Part:
    """A capture, or a range of one."""

    capture: int
    """The number of its first file among all, from 0."""
    paths: tuple[str, ...]
    """Paths and URLs; of a range, one."""
    size: int = 0
    """Bytes, compressed as they are; 0 where that is not known."""
    begin: int = 0
    """Its first byte; of a range behind the first one, the file's header is put in front of it."""
    end: int | None = None
    """The byte behind its last one; None is the end of the file."""
    number: int = 0
    """Among all parts, in the order of time."""
    changed: tuple[str, ...] = ()
    """When each file changed last, or its tag: what another content would not have."""

    def placed(self, number: int) -> "Part":
        """Give it its number."""
        return replace(self, number=number)

    @property
    def is_range(self) -> bool:
        """Is it less than a file?"""
        return self.begin > 0 or self.end is not None

    @contextmanager
    def opened(self) -> Iterator[list[str]]:
        """Give a path under which the native core reads each file, as long as the block lasts.

        Raises:
            CaptureError: One cannot be opened.
        """
        with ExitStack() as stack:
            yield [stack.enter_context(self._readable(path)) for path in self.paths]

    @contextmanager
    def _readable(self, path: str) -> Iterator[str]:
        if not self.is_range and "://" not in path:
            yield path
            return
        reading, writing = os.pipe()
        try:
            source = _opened(path)
        except BaseException:
            os.close(reading)
            os.close(writing)
            raise
        feeder = Thread(target=self._feed, args=(source, writing), daemon=True)
        feeder.start()
        try:
            yield f"/dev/fd/{reading}"
        finally:
            os.close(reading)
            feeder.join()

    def _feed(self, source: IO[bytes], writing: int) -> None:
        """Write the bytes of the part into a pipe, until they end or nobody reads on."""
        with source, os.fdopen(writing, "wb", buffering=0) as pipe, suppress(BrokenPipeError):
            if self.begin:
                pipe.write(source.read(_HEADER))
                source.seek(self.begin)
            left = None if self.end is None else self.end - self.begin
            if self.is_range and hasattr(os, "splice"):
                _splice(source, pipe, self.begin, left)
                return
            while left is None or left > 0:
                read = source.read(_COPIED if left is None else min(_COPIED, left))
                if not read:
                    return
                for start in range(0, len(read), 1 << 16):
                    _write_all(pipe, read[start : start + (1 << 16)])
                if left is not None:
                    left -= len(read)


def _splice(source: IO[bytes], pipe: IO[bytes], begin: int, left: int | None) -> None:
    """Have the kernel move bytes of a file into a pipe (Linux): a third of the cost of reading and writing them."""
    with suppress(OSError):  # many pipes, or a limit: a smaller one does
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _COPIED)
    while left is None or left > 0:
        moved = os.splice(source.fileno(), pipe.fileno(), min(_COPIED, left or _COPIED), offset_src=begin)
        if not moved:
            return
        begin += moved
        left = None if left is None else left - moved


def _write_all(pipe: IO[bytes], data: bytes) -> None:
    while data:
        data = data[pipe.write(data) :]


def _opened(path: str) -> IO[bytes]:
    """Open a file or URL for reading.

    Raises:
        CaptureError: A URL cannot be opened.
    """
    if "://" not in path:
        return Path(path).open("rb")
    with _remote(path) as (system, place):
        return cast("IO[bytes]", system.open(place, "rb"))


def cut(capture: int, path: str, pieces: int, *, least: int = _LEAST) -> list[Part]:
    """Give the parts of a capture: ranges of a plain pcap file, else the file in one part.

    Args:
        capture: The number of the file.
        path: Path or URL.
        pieces: Ranges at most.
        least: Bytes of a range at least.
    """
    size, changed = _about(path)
    whole = Part(capture, (path,), size=size, changed=(changed,))
    pieces = min(pieces, whole.size // least)
    if pieces < 2 or "://" in path:
        return [whole]
    with Path(path).open("rb") as file:
        head = file.read(_HEADER)
        order = _ORDERS.get(head[:4])
        if order is None or len(head) < _HEADER:
            return [whole]
        wanted = (whole.size * piece // pieces for piece in range(1, pieces))
        cuts = sorted({found for place in wanted if (found := _record_from(file, place, order)) is not None})
    begins, ends = [0, *cuts], [*cuts, None]
    return [
        Part(capture, (path,), size=(end or size) - begin, begin=begin, end=end, changed=(changed,))
        for begin, end in zip(begins, ends, strict=True)
    ]


def grouped(parts: Sequence[Part], most: int) -> list[Part]:
    """Put small files that follow each other into one part: a part costs some tenths of a second, whatever it holds.

    Args:
        parts: In the order of time.
        most: Bytes of such a part at most.
    """
    groups: list[Part] = []
    for part in parts:
        last = groups[-1] if groups else None
        joins = last and not (last.is_range or part.is_range) and last.size and part.size
        if last and joins and last.size + part.size <= most:
            changed = last.changed + part.changed
            groups[-1] = replace(last, paths=last.paths + part.paths, size=last.size + part.size, changed=changed)
        else:
            groups.append(part)
    return groups


def _about(path: str) -> tuple[int, str]:
    """Give the size of a file, and what changes with its content: when it was written, or the tag of an object.

    Raises:
        CaptureError: A URL cannot be asked.
        MissingToolError: fsspec is not installed.
    """
    if "://" not in path:
        with suppress(OSError):
            about = Path(path).stat()
            return about.st_size, str(about.st_mtime_ns)
        return 0, ""
    with _remote(path) as (system, place):
        info = system.info(place)
    tag = next((str(info[name]) for name in ("ETag", "mtime", "LastModified", "last_modified") if name in info), "")
    return int(info.get("size") or 0), tag


@contextmanager
def _remote(path: str) -> Iterator[tuple[Any, str]]:
    """Give the file system of a URL, and the place there.

    Raises:
        MissingToolError: fsspec is not installed.
        CaptureError: The block fails.
    """
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise MissingToolError(
            f"{path}: fsspec opens URLs, and is not installed: pip install 'conchart[cluster]'"
        ) from None
    try:
        yield url_to_fs(path)
    except Exception as error:  # each file system raises its own
        raise CaptureError(f"{path}: cannot be opened: {error}") from None


def expanded(path: str) -> list[str]:
    """Give the URLs that a pattern with ``*`` stands for, in the order of their names; another path as it is.

    Raises:
        CaptureError: No file has such a name.
    """
    if "://" not in path or "*" not in path:
        return [path]
    with _remote(path) as (system, place):
        found = sorted(system.unstrip_protocol(name) for name in system.glob(place))
    if not found:
        raise CaptureError(f"{path}: no file has such a name")
    return found


def _record_from(file: IO[bytes], place: int, order: str) -> int | None:
    """Give where a record seems to begin, from a place on."""
    file.seek(place)
    data = file.read(_SEARCHED + _LONGEST * 4)
    header = struct.Struct(f"{order}IIII")
    for start in range(min(_SEARCHED, len(data))):
        if _begins(data, start, header):
            return place + start
    return None


def _begins(data: bytes, start: int, header: "struct.Struct") -> bool:
    """Does a chain of records seem to begin here?"""
    seconds_before: int | None = None
    for _ in range(_CHAIN):
        if start + header.size > len(data):
            return False
        seconds, fraction, captured, original = cast("tuple[int, ...]", header.unpack_from(data, start))
        if not (0 < captured <= _LONGEST and captured <= original <= 1 << 20 and fraction < 1_000_000_000):
            return False
        if seconds_before is not None and abs(seconds - seconds_before) > _APART:
            return False
        seconds_before = seconds
        start += header.size + captured
    return True
