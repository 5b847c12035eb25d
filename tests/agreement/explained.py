"""Disagreements that were looked into: the tables of ``docs/agreement.md``.

Every class of disagreement has a section there that says who is right and why; the rows under it name the places. In:
an outcome. Out: the section that explains it.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from tests.agreement.facts import Outcome

PAGE = Path(__file__).parents[2] / "docs" / "agreement.md"
HEADER = ["capture", "stream", "frame", "facts"]


@dataclass(frozen=True, slots=True)
class Place:
    """A row: where, and about what, the two disagree for the reason that the section gives."""

    section: str
    capture: str
    """A file's name; ``*`` stands for any part of it."""
    streams: frozenset[int]
    """Empty for every stream."""
    facts: frozenset[str]

    def covers(self, outcome: Outcome) -> bool:
        """Whether the outcome is of this place."""
        return (
            outcome.fact in self.facts
            and (not self.streams or outcome.stream in self.streams)
            and fnmatchcase(outcome.capture, self.capture)
        )


@functools.cache
def places() -> tuple[Place, ...]:
    """Every row of the page.

    Raises:
        ValueError: A row is not of the form that the header promises.
    """
    found: list[Place] = []
    section, in_table = "", False
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip().strip("`") for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if line.startswith("## "):
            section = line.removeprefix("## ")
        elif cells == HEADER:
            in_table = True
        elif not cells:
            in_table = False
        elif in_table and not cells[0].startswith("-"):
            capture, streams, _frame, facts = cells
            numbers = frozenset() if streams == "all" else frozenset(int(one) for one in streams.split(", "))
            found.append(Place(section, capture, numbers, frozenset(facts.split(", "))))
    return tuple(found)


def explanation(outcome: Outcome) -> str | None:
    """The section of the page that explains a disagreement; None when nobody has looked into it."""
    return next((place.section for place in places() if place.covers(outcome)), None)
