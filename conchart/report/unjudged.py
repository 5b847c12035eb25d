"""What could not be judged. In: the table ``unjudged``. Out: :class:`Unjudged`."""

from dataclasses import dataclass

from conchart.labels.unjudged import unjudged_words
from conchart.report.rows import rows
from conchart.store.tables import Tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Unjudged:
    """One row of the table, with words."""

    what: str
    why: str
    connections: int | None
    waited_ns: int | None
    """What users waited on these; None where that is not known."""

    @property
    def words(self) -> str:
        """``what 3 connections said (encrypted, no keys), 60.3 ms of waits``."""
        return unjudged_words(self.what, self.why, self.connections, self.waited_ns)

    @property
    def timeless(self) -> bool:
        """No rule judges the waits of these either."""
        return self.what == "waits"


def unjudged(tables: Tables) -> list[Unjudged]:
    """List what could not be judged; empty where all was."""
    query = "SELECT what, why, connections, waited_ns FROM unjudged ORDER BY number"
    return [Unjudged(**row) for row in rows(tables, query)]
