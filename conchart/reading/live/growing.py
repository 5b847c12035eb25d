"""A growing capture as a pipe: the native core reads it like any other capture, and conchart can end it.

In: a file or a pipe that somebody else writes. Out: a pipe with the same bytes, which ends when somebody says so.
"""

import fcntl
import os
import select
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING

from conchart.errors import CaptureError

if TYPE_CHECKING:
    from conchart.reading.live.sockets import Sockets

PAUSE = 0.1
"""Seconds between two looks at what may have come, or whether somebody has said that it is over."""
_GRACE = 1.0
"""Seconds in which a writer that is told to stop, as we are, may write what it still has."""
_SILENCE = 0.3
"""Seconds without a byte after which it has nothing."""
_BLOCK = 1 << 20


class Growing(ABC):
    """A capture that is still growing. It can be read once."""

    def __init__(self, name: str) -> None:
        """Call it ``name`` in the tables."""
        self.name = name
        self.packets: int | None = None
        """So many have come, where that is known before they are read."""
        self.dropped: int | None = None
        """So many were lost before they could be read, where the system says so."""
        self.broken: str | None = None
        """Why it ended, where nobody said that it should."""
        self.sockets: Sockets | None = None
        """Whose the sockets of this machine are, where it is this machine's traffic and somebody asked."""
        self._over = Event()

    def end(self) -> None:
        """Say that it is over: what has come until now is still read. Safe in a signal handler and in any thread."""
        self._over.set()

    @contextmanager
    def opened(self) -> Iterator[str]:
        """Let it flow into a pipe; gives the path at which that is read."""
        source, sink = os.pipe()
        with suppress(AttributeError, OSError):  # only Linux has it, and may refuse so much
            fcntl.fcntl(sink, fcntl.F_SETPIPE_SZ, _BLOCK)
        pump = Thread(target=self._run, args=(sink,), name="conchart-pump", daemon=True)
        pump.start()
        try:
            yield f"/dev/fd/{source}"
        finally:
            self.end()
            os.close(source)  # who still writes learns of it
            pump.join()
            if self.sockets:
                self.sockets.end()

    def _run(self, sink: int) -> None:
        try:
            self._pump(sink)
        except BrokenPipeError:
            pass  # enough was read
        except (CaptureError, OSError) as error:
            self.broken = str(error)
        finally:
            os.close(sink)

    @abstractmethod
    def _pump(self, sink: int) -> None:
        """Write to ``sink`` until it is over."""


class Piped(Growing):
    """Standard input, where that is no file."""

    def __init__(self) -> None:
        """Take standard input, which nobody else may read."""
        super().__init__("-")

    @staticmethod
    def is_standard_input() -> bool:
        """Tell whether standard input is a pipe, or something else that comes bit by bit."""
        try:
            return not stat.S_ISREG(os.fstat(0).st_mode)
        except OSError:
            return False

    def _pump(self, sink: int) -> None:
        until = last = 0.0
        while True:
            if select.select([0], [], [], PAUSE)[0]:
                if not (block := os.read(0, _BLOCK)):
                    return
                write_all(sink, block)
                last = monotonic()
            if self._over.is_set():
                until = until or monotonic() + _GRACE
                if monotonic() > min(until, last + _SILENCE):
                    return


class Followed(Growing):
    """A file to which somebody else appends."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Read it from its beginning.

        Raises:
            CaptureError: There is no such file, or it is something else.
        """
        super().__init__(os.fspath(path))
        try:
            if not stat.S_ISREG(Path(path).stat().st_mode):
                raise CaptureError(f"{self.name}: only a regular file can be followed: leave --follow out")
            self._file = Path(path).open("rb", buffering=0)  # noqa: SIM115  (the pump closes it)
        except OSError as error:
            raise CaptureError(f"{self.name}: {error.strerror or error}") from None

    def _pump(self, sink: int) -> None:
        with self._file as file:
            while True:
                over = self._over.is_set()
                copy_new(file.fileno(), sink)
                if over:
                    return
                self._over.wait(PAUSE)


def copy_new(source: int, sink: int) -> None:
    """Copy what a file has beyond where it was read; what is appended meanwhile waits for the next time."""
    left = os.fstat(source).st_size - os.lseek(source, 0, os.SEEK_CUR)
    while left > 0 and (block := os.read(source, min(left, _BLOCK))):
        write_all(sink, block)
        left -= len(block)


def write_all(sink: int, block: bytes) -> None:
    """Write all of it, however little a pipe takes at a time."""
    rest = memoryview(block)
    while rest:
        rest = rest[os.write(sink, rest) :]
