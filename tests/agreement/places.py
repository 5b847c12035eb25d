"""Where the two disagree, place by place: what was found out about each.

``places.csv`` has a row per disagreement: capture, stream, frame, fact and both values, its class, and how it was found
to be of that class. The classes are the sections of ``docs/agreement.md``. A row explains the one disagreement that it
describes and no other: a disagreement without a row is *new*, a row without a disagreement is *gone*, and a row checked
by a rule that does not hold is *broken*. In: outcomes. Out: those.
"""

from __future__ import annotations

import csv
import hashlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from tests.agreement.facts import Outcome, Value, shown

FOLDER = Path(__file__).parent
LIVE, STORED = FOLDER / "places.csv", FOLDER / "places-stored.csv"
UNEXPLAINED = "unexplained"

Checked = Literal["hand", "rule", "no"]
"""Looked up in the packets, decided by the rule of its class, or neither: then its class is a guess."""


TEXTS = ("target", "host", "sni")
"""What people wrote in captures that others made: of that, no more than is needed is kept here."""
MOST_CHARACTERS = 16


def _digest(value: Value) -> str:
    text = shown(value)
    if len(text) <= MOST_CHARACTERS:
        return text
    digest = hashlib.sha256(str(value).encode()).hexdigest()[:8]
    return f"{text[: MOST_CHARACTERS // 2]}… {len(str(value))} characters, {digest}"


@dataclass(frozen=True, slots=True, order=True)
class Where:
    """What identifies a disagreement, as text."""

    capture: str
    stream: int
    frame: int
    fact: str
    sender: str
    tshark: str
    conchart: str

    @classmethod
    def of(cls, outcome: Outcome) -> Where:
        """The place of a disagreement."""
        sender = shown(outcome.sender) if outcome.sender else ""
        values = (shown(outcome.expected), shown(outcome.got))
        if outcome.fact in TEXTS:
            values = (_digest(outcome.expected), _digest(outcome.got))
        return cls(outcome.capture, outcome.stream, outcome.frame, outcome.fact, sender, *values)

    def __str__(self) -> str:
        """One line, as an outcome has it."""
        of = f" of {self.sender}" if self.sender else ""
        place = f"{self.capture} stream {self.stream} frame {self.frame}"
        return f"{place}: {self.fact}{of}: expected {self.tshark}, got {self.conchart}"


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A row of the file."""

    section: str
    where: Where
    checked: Checked = "no"


COLUMNS = ("class", "capture", "stream", "frame", "fact", "sender", "tshark", "conchart", "checked")


def load(path: Path = LIVE) -> list[Place]:
    """Every row."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [_place(row) for row in rows]


def _place(row: dict[str, str]) -> Place:
    where = Where(row["capture"], int(row["stream"]), int(row["frame"]), *(row[name] for name in COLUMNS[4:8]))
    match row["checked"]:
        case "hand" | "rule" | "no" as checked:
            return Place(row["class"], where, checked)
    raise ValueError(f"{where}: checked says {row['checked']!r}")


def save(places: Iterable[Place], path: Path = LIVE) -> None:
    """Write the file anew, in its one order."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for place in sorted(places):
            at = place.where
            row = (at.capture, at.stream, at.frame, at.fact, at.sender, at.tshark, at.conchart)
            writer.writerow((place.section, *row, place.checked))


@dataclass(slots=True)
class Matched:
    """Disagreements beside the places that are known."""

    matched: list[tuple[Place, Outcome]] = field(default_factory=list)
    new: list[Outcome] = field(default_factory=list)
    gone: list[Place] = field(default_factory=list)
    broken: list[Place] = field(default_factory=list)

    def problems(self) -> list[str]:
        """What has to be looked into: one line each."""
        lines = [f"new: {outcome}" for outcome in self.new]
        lines += [f"gone: {place.where} ({place.section})" for place in self.gone]
        return lines + [f"its rule does not hold: {place.where} ({place.section})" for place in self.broken]


def match(places: Iterable[Place], outcomes: Iterable[Outcome], captures: Collection[str]) -> Matched:
    """Match one to one; a place in a capture that was not compared is neither known nor gone."""
    waiting: defaultdict[Where, list[Place]] = defaultdict(list)
    for place in places:
        if place.where.capture in captures:
            waiting[place.where].append(place)
    found = Matched()
    for outcome in outcomes:
        if outcome.agrees:
            continue
        some = waiting[Where.of(outcome)]
        if not some:
            found.new.append(outcome)
            continue
        place = some.pop(0)
        found.matched.append((place, outcome))
        if place.checked == "rule" and place.section not in outcome.rules:
            found.broken.append(place)
    found.gone = sorted(place for some in waiting.values() for place in some)
    return found


def renewed(places: Iterable[Place], found: Matched) -> list[Place]:
    """The rows as they are now.

    What matched stays. What is new is of the first class whose rule holds; else, if only the values or the frame of a
    known place changed, of the class it had, not looked up; else it is unexplained.
    """
    gone, broken = Counter(found.gone), Counter(found.broken)
    rows = []
    for place in places:
        if gone[place]:
            gone[place] -= 1
        elif broken[place]:
            broken[place] -= 1
            rows.append(replace(place, checked="no"))
        else:
            rows.append(place)
    before = {_about(place.where): place.section for place in found.gone}
    for outcome in found.new:
        where = Where.of(outcome)
        if outcome.rules:
            rows.append(Place(outcome.rules[0], where, "rule"))
        else:
            rows.append(Place(before.get(_about(where), UNEXPLAINED), where))
    return rows


def _about(where: Where) -> tuple[str, int, str, str]:
    return where.capture, where.stream, where.fact, where.sender
