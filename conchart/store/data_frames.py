"""Keeps DuckDB from importing pandas and pyarrow for nobody.

Before DuckDB takes its first parameter or batch of rows, it imports what data frames are made with, if it is installed:
one to three seconds. Conchart gives it none.

In: nothing. Out: from ``refuse`` on, what conchart's own code calls finds neither of the two, unless somebody else has
imported it. Whoever imports it, or asks a relation for a data frame (``trace.sql(…).df()``), gets it.
"""

import sys
from collections.abc import Sequence
from types import FrameType, ModuleType

_THEIRS = ("pandas", "pyarrow")
_OURS = __name__.partition(".")[0]
_THREAD = ""
"""A thread of DuckDB's, in which no Python runs."""


class _Refusal:
    """A finder of modules, ahead of all others."""

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,  # noqa: ARG002  (the protocol of finders)
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> None:
        if name in _THEIRS and _importer() in (_OURS, _THREAD):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def _importer() -> str:
    """Name the package of the code that imports, which is the innermost one outside of the machinery of imports.

    There is none in a thread of DuckDB's.
    """
    frame: FrameType | None = sys._getframe(2)
    while frame and frame.f_globals.get("__name__", "").startswith("importlib"):
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] if frame else _THREAD


def refuse() -> None:
    """Refuse both from now on."""
    if not any(isinstance(finder, _Refusal) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Refusal())
