"""What a reader should know of the quality of a capture. In: the table ``remarks``. Out: :class:`Remark`."""

from dataclasses import dataclass

from conchart.report.rows import rows
from conchart.store.tables import Tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """One thing a reader should know before trusting the numbers."""

    warning: bool
    """True when numbers may be wrong or missing because of it; False when it is only good to know."""
    kind: str
    """What it is about, e.g. ``dropped``; ``docs/tables.md`` lists them."""
    title: str
    effect: str
    """What it means for the numbers; may be empty."""
    advice: str
    """What to do about it; empty when there is nothing to do."""


def remarks(tables: Tables) -> list[Remark]:
    """Give what was found, warnings first."""
    query = """
        SELECT warning, kind, title, coalesce(effect, '') AS effect, coalesce(advice, '') AS advice
        FROM remarks ORDER BY number"""
    return [Remark(**row) for row in rows(tables, query)]
