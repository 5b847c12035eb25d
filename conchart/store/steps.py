"""Tables that are worked out only when somebody asks for them.

In: steps, each with the facts that it reads and those that it writes. Out: nothing of its own; a step runs before the
first query that needs what it writes, after the steps that write what it reads. The order follows from that. Where
threads help, steps that do not need each other run side by side.

A fact is a table (``links``), or a column that is worked out of a table that the core fills
(``connections.vantage``).
"""

import re
import threading
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager
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


Help = Callable[[Callable[[], None]], AbstractContextManager[None]]
"""Lets further threads do the same work while the block lasts, and waits for them at its end."""


class Steps:
    """The steps that have not run yet."""

    def __init__(self, steps: Iterable[Step] = (), *, helped: Help | None = None) -> None:
        """Owe these steps.

        Args:
            steps: In any order.
            helped: Gives threads in which they can run, too.

        Raises:
            ValueError: Two steps write the same fact.
        """
        self._due: dict[str, Step] = {}
        self._helped = helped
        self._of_thread = threading.local()
        for step in steps:
            if twice := step.writes & self._due.keys():
                raise ValueError(f"{step.name} and another step write {', '.join(sorted(twice))}")
            self._due |= dict.fromkeys(step.writes, step)

    @property
    def running(self) -> Step | None:
        """The step that is at work in this thread; its own statements provide nothing."""
        return getattr(self._of_thread, "step", None)

    def provide(self, facts: Collection[str]) -> None:
        """Run the steps that write these facts, unless they have run.

        A step that fails is owed still: the next one who asks gets the same error.
        """
        if self.running is not None:
            return
        due: dict[Step, None] = {}
        for fact in sorted(self._due.keys() & set(facts)):
            self._collect(self._due[fact], due)
        if self._helped is not None and len(due) > 1:
            shared = _Shared(due, self._run)
            with self._helped(shared.work):
                shared.work()
        # Where one failed, it runs once more, by itself: if it fails again, it is its own fault.
        for step in due:
            if step.writes & self._due.keys():
                self._run(step)

    def provide_named(self, query: str) -> None:
        """Run what a query needs: all facts of every table whose name stands somewhere in its text.

        The text is not parsed: a word that only looks like a table costs time, a table that is overlooked would be
        empty.
        """
        if self._due and self.running is None:
            words = None if _ANY_TABLE.search(query) else {word.lower() for word in _WORD.findall(query)}
            self.provide([fact for fact in self._due if words is None or fact.partition(".")[0] in words])

    def _collect(self, step: Step, due: dict[Step, None]) -> None:
        """Add a step behind those that it needs."""
        if step not in due:
            for read in sorted(step.reads & self._due.keys() - step.writes):
                self._collect(self._due[read], due)
            due[step] = None

    def _run(self, step: Step) -> None:
        self._of_thread.step = step
        try:
            step.run()
        finally:
            self._of_thread.step = None
        for written in step.writes:
            del self._due[written]


class _Shared:
    """Steps that several threads share: each takes the next one that needs none of those that have not run."""

    def __init__(self, due: Iterable[Step], run: Callable[[Step], None]) -> None:
        """Take steps, each behind those that it needs."""
        self._waiting = [*due]
        self._running: list[Step] = []
        self._run = run
        self._changed = threading.Condition()
        self._has_failed = False

    def work(self) -> None:
        """Run steps until none is left, or until one has failed."""
        while (step := self._next()) is not None:
            has_failed = True
            try:
                self._run(step)
                has_failed = False
            except Exception:  # noqa: BLE001  # it will run again, alone
                pass
            finally:
                with self._changed:
                    self._running.remove(step)
                    self._has_failed |= has_failed
                    self._changed.notify_all()

    def _next(self) -> Step | None:
        with self._changed:
            while self._waiting and not self._has_failed:
                unfinished: set[str] = set().union(*(step.writes for step in self._running))
                for step in self._waiting:
                    if not step.reads & unfinished:
                        self._waiting.remove(step)
                        self._running.append(step)
                        return step
                    unfinished |= step.writes
                self._changed.wait()
            return None
