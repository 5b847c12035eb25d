"""The command line. In: arguments. Out: text, files and exit codes; what is computed and drawn lives elsewhere.

This module is small because it comes first: it says what a signal does before anything else is imported, which takes a
third of a second.
"""

import gc
import os
import signal
import sys
from types import ModuleType

from conchart.files.unfinished import undo_all

__all__ = ["main"]

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SIGNALLED = 128
"""What shells add to the number of a signal."""
_RARELY = 50_000
"""Objects after which Python looks for garbage among the new ones: 700 of them come with every module."""


def main(args: list[str] | None = None) -> None:
    """Run the command line and leave the process: 0 done, 1 findings, 2 usage, 3 unreadable capture, 4 cannot write.

    Args:
        args: Those of the process where they are not given: then the process is ours, and its signals too.
    """
    ours = [number for number in _ENDING if args is None and signal.getsignal(number) != signal.SIG_IGN]
    for number in ours:
        signal.signal(number, _leave)
    if args is None:
        gc.set_threshold(_RARELY)
        sys.modules["duckdb._version"] = _VersionOfDuckDB("duckdb._version")

    from conchart.cli.command import run

    code = run(args)
    for number in ours:  # Everything is written: there is nothing left to interrupt.
        signal.signal(number, signal.SIG_IGN)
    if args is None:
        os._exit(code)  # a twentieth of the time of a small capture goes into taking modules apart
    sys.exit(code)


class _VersionOfDuckDB(ModuleType):
    """The module in which DuckDB looks up its version among all installed packages, which nobody here asks for.

    With what it imports for that, it takes a twentieth of the time of a small capture.
    """

    __version__ = __duckdb_version__ = "unknown"

    @staticmethod
    def version() -> str:
        return "unknown"


def _leave(number: int, _frame: object) -> None:
    """Undo what is unfinished and end the process here and now.

    An exception would have to find its way out: through imports, finalizers that print and drop it, and DuckDB, which
    makes a ``RuntimeError`` of it.
    """
    try:
        undo_all()
        if number != signal.SIGINT:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
    finally:
        os._exit(_SIGNALLED + number)
