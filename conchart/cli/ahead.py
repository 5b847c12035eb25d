"""Modules that are needed when a capture has been read, imported while it is read.

In: their names. Out: nothing; whoever imports them later finds them. DuckDB and the core work without Python most of
the time, and all modules take a third of the time of a small capture.
"""

import sys
from contextlib import suppress
from importlib import import_module
from threading import Thread

_SWITCH_S = 0.0005
"""How long one thread keeps Python from another that wants it, ten times less than usual: DuckDB wants it often, and
never for long."""


def import_ahead(*names: str) -> None:
    """Import modules in a thread of their own."""
    sys.setswitchinterval(_SWITCH_S)
    Thread(target=_import, args=(names,), daemon=True).start()


def _import(names: tuple[str, ...]) -> None:
    for name in names:
        with suppress(Exception):  # who needs it gets the same error, and tells it
            import_module(name)
