"""Tables that are worked out only when somebody asks for them.

In: steps, each with the facts that it reads and those that it writes. Out: nothing of its own; a step runs before the
first query that needs what it writes, after the steps that write what it reads. The order follows from that.

A fact is a table (``links``), or a column that is worked out of a table that the core fills
(``connections.vantage``).
"""

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

_WORD = re.compile(r"\w+")
_ANY_TABLE = re.compile(r"(?i)\b(query|query_table)\s*\(|\bdatabase\b")
"""SQL that may read tables that it does not name: ``EXPORT DATABASE``, ``COPY FROM DATABASE``, ``query(…)``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One part of the analysis."""

    name: str
    reads: frozenset[str]
    """Facts. Of a table that the core fills, the name alone stands for the columns that the core fills."""
    writes: frozenset[str]
    """Facts. No other step writes them."""
    run: Callable[[], None]


class Steps:
    """The steps that have not run yet."""

    def __init__(self, steps: Iterable[Step] = ()) -> None:
        """Owe these steps.

        Raises:
            ValueError: Two steps write the same fact.
        """
        self._due: dict[str, Step] = {}
        self.running: Step | None = None
        """The step that is at work; its own statements provide nothing."""
        for step in steps:
            if twice := step.writes & self._due.keys():
                raise ValueError(f"{step.name} and another step write {', '.join(sorted(twice))}")
            self._due |= dict.fromkeys(step.writes, step)

    def provide(self, facts: Collection[str]) -> None:
        """Run the steps that write these facts, unless they have run.

        A step that fails is owed still: the next one who asks gets the same error.
        """
        if self.running is None:
            for fact in sorted(self._due.keys() & set(facts)):
                self._run(fact)

    def provide_named(self, query: str) -> None:
        """Run what a query needs: all facts of every table whose name stands somewhere in its text.

        The text is not parsed: a word that only looks like a table costs time, a table that is overlooked would be
        empty.
        """
        if self._due and self.running is None:
            words = None if _ANY_TABLE.search(query) else {word.lower() for word in _WORD.findall(query)}
            self.provide([fact for fact in self._due if words is None or fact.partition(".")[0] in words])

    def _run(self, fact: str) -> None:
        step = self._due.get(fact)
        if step is None:  # it came with a fact before
            return
        for read in sorted(step.reads & self._due.keys() - step.writes):
            self._run(read)
        self.running = step
        try:
            step.run()
        finally:
            self.running = None
        for written in step.writes:
            del self._due[written]
