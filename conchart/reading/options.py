"""Options of reading: one value, which the command line, parts, places and the door to the native core get whole.

In: what somebody chose. Out: the same, checked.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from conchart.errors import UsageError
from conchart.reading.selection import Selection
from conchart.store.memory import LEAST, table_limit

Progress = Callable[[int, int], None]
"""Told about every 8 MiB: bytes read so far, frames so far. What it raises ends the reading."""
Statements = Literal["shape", "full", "off"]
"""How much is kept of what stores are asked: statements without their values and keys, whole statements, neither."""
STATEMENTS: tuple[Statements, ...] = get_args(Statements)
SeenFrom = Literal["client", "capture", "server"]
VIEWPOINTS: tuple[SeenFrom, ...] = get_args(SeenFrom)
LAST_STREAM = (1 << 31) - 1
"""Streams are INTEGERs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How to read: each field is an argument of ``conchart.read``, which explains it; the first one has four.

    Raises:
        UsageError: There is no such stream or choice of statements.
    """

    selection: Selection = Selection()
    packets: bool = False
    explain: int | None = None
    statements: Statements = "shape"
    seen_from: SeenFrom = "capture"
    findings: tuple[str, ...] = ()
    thresholds: Mapping[str, float] = field(default_factory=dict)
    memory: int | str | None = None
    workers: int = 1
    scheduler: str | None = None
    parts: str | None = None
    progress: Progress | None = None
    watch: Callable[[Any], object] | None = None
    """Called with the trace."""

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        if self.explain is not None and not 0 <= self.explain <= LAST_STREAM:
            raise UsageError(f"explain: a stream is a number from 0 to {LAST_STREAM:,}, not {self.explain}")
        if self.statements not in STATEMENTS:
            raise UsageError(f"statements: {' or '.join(STATEMENTS)}, not {self.statements}")

    def of_task(self, tasks: int) -> "ReadOptions":
        """Give the options of each of several tasks that run side by side.

        Together their tables take half of what the tables of the trace may take, but each may take the least that
        works. A task knows nothing of what is done with its rows, so that these do not depend on it.
        """
        return replace(
            self,
            memory=max(table_limit(self.memory) // (2 * max(tasks, 1)), LEAST),
            seen_from="capture",
            findings=(),
            thresholds={},
            workers=1,
            scheduler=None,
            parts=None,
            progress=None,
            watch=None,
        )
