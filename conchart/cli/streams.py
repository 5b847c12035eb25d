"""Standard output and standard error, for as long as a command runs.

In: the process's descriptors. Out: ``sys.stdout`` whose failures are told from those of every other file: whoever
prints, a full disk is ``OutputError`` and a reader that has gone is ``ReaderLeft``. What standard error does not take
is dropped: there is nobody to tell.
"""

import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import TYPE_CHECKING, TextIO

from conchart.errors import OutputError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class ReaderLeft(Exception):
    """The reader of standard output has closed the pipe: not an error, but the end."""


@contextmanager
def standard_streams() -> Iterator[TextIO]:
    """Put guarded streams in the place of the process's own; gives standard output.

    What is printed in the block raises ``OutputError`` when standard output is closed, on a full disk, or broken in
    another way, and ``ReaderLeft`` when it is a pipe that nobody reads.
    """
    out = _guarded(sys.stdout, _Output(1, closed=sys.stdout is None))
    err = _guarded(sys.stderr, _Descriptor(2, closed=sys.stderr is None))
    _occupy_closed_descriptors()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            yield out
        finally:
            with suppress(OutputError, ReaderLeft):
                out.flush()
            err.flush()


class _Descriptor(io.RawIOBase):
    """An open file descriptor; after its first failure it takes everything and writes nothing."""

    def __init__(self, number: int, *, closed: bool) -> None:
        self._number = number
        self._closed = closed
        self._failed = False

    def fileno(self) -> int:
        return self._number

    def isatty(self) -> bool:
        return not self._closed and os.isatty(self._number)

    def writable(self) -> bool:
        return True

    def write(self, data: "ReadableBuffer", /) -> int:
        if not self._failed:
            try:
                if self._closed:
                    raise OSError("it is closed")
                select.select([], [self._number], [])  # another process that shares it may have made it non-blocking
                return os.write(self._number, data)
            except OSError as error:
                self._failed = True
                self.fail(error)
        return memoryview(data).nbytes

    def fail(self, error: OSError) -> None:
        """Do something about a failure."""


class _Output(_Descriptor):
    def fail(self, error: OSError) -> None:
        if isinstance(error, BrokenPipeError):
            raise ReaderLeft from None
        raise OutputError(f"cannot write standard output: {error.strerror or error}") from None


def _guarded(stream: TextIO | None, descriptor: _Descriptor) -> TextIO:
    """Make a text stream of a descriptor; characters that its encoding lacks become question marks."""
    encoding = stream.encoding if stream is not None else "utf-8"
    return io.TextIOWrapper(
        io.BufferedWriter(descriptor), encoding, errors="replace", line_buffering=descriptor.isatty()
    )


def _occupy_closed_descriptors() -> None:
    """Open what the shell has closed (``>&-``), lest the next file that is opened becomes the standard output."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:  # the lowest number that is free
        pass
    os.close(number)
