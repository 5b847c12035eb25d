"""The page of the classes, ``docs/agreement.md``: who is right in each, and the figures, written from the places.

In: places and counts of agreement. Out: the page with its figures anew; its words are a person's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.agreement.facts import HTTP_FACTS, TCP_FACTS, TLS_FACTS, Outcome
from tests.agreement.places import UNEXPLAINED, Place

PAGE = Path(__file__).parents[2] / "docs" / "agreement.md"
GROUPS = {"TCP": TCP_FACTS, "TLS": TLS_FACTS, "HTTP/1": HTTP_FACTS}
FIGURES = re.compile(r"(?<=<!-- figures -->\n).*?(?=<!-- end of figures -->)", re.DOTALL)
COUNT = re.compile(r"^[\d,]+ places?: .*\n(?:\n(?:- .*\n)+)?", re.MULTILINE)
EXAMPLES = 3
VERDICT = re.compile(r"^\*\*(Right: conchart|Right: tshark|Definition|Wrong: conchart)\.\*\*", re.MULTILINE)
HEADER = "| facts | compared | agree | explained | of these conchart is wrong | not looked up |\n"


def group_of(fact: str) -> str:
    """TCP, TLS or HTTP/1; a stream is TCP whatever carries it."""
    return next((name for name, facts in GROUPS.items() if fact in facts), "TCP")


@dataclass(frozen=True, slots=True)
class Section:
    """A class: its words."""

    title: str
    verdict: str
    text: str


def sections(page: str | None = None) -> dict[str, Section]:
    """The classes of the page, by title."""
    _, *parts = re.split(r"^## ", PAGE.read_text() if page is None else page, flags=re.MULTILINE)
    found: dict[str, Section] = {}
    for part in parts:
        title, _, text = part.partition("\n")
        if verdict := VERDICT.search(text):
            found[title] = Section(title, verdict[1], text)
    return found


def count(places: Iterable[Place]) -> str:
    """The line under a class: how many places, and how they were found to be of it."""
    ways = Counter(place.checked for place in places)
    total = ways.total()
    return (
        f"{total:,} place{'s'[: total != 1]}: {ways['rule']:,} checked by rule, {ways['hand']:,} looked up by hand, "
        f"{ways['no']:,} not looked up.\n"
    )


def examples(places: Iterable[Place]) -> str:
    """The first places, of as many captures as there are: those that somebody looked up first."""
    first: dict[str, Place] = {}
    for place in sorted(places, key=lambda place: (place.checked != "hand", place.where)):
        first.setdefault(place.where.capture, place)
    rows = []
    for place in [*first.values()][:EXAMPLES]:
        at = place.where
        of = f" of {at.sender}" if at.sender else ""
        rows.append(f"- `{at.capture}`, stream {at.stream}, frame {at.frame}: {at.fact}{of}: ")
        rows[-1] += f"tshark `{at.tshark}`, conchart `{at.conchart}`\n"
    return "\n" + "".join(rows) if rows else ""


def figures(outcomes: Counter[tuple[str, bool]], places: Iterable[Place], wrong: set[str]) -> str:
    """The table: facts compared, by group and whether they agree, beside what is known of the rest."""
    place_counts: Counter[tuple[str, str]] = Counter()
    for place in places:
        group = group_of(place.where.fact)
        checked = place.checked != "no" and place.section != UNEXPLAINED
        place_counts[group, "checked" if checked else "not"] += 1
        place_counts[group, "wrong"] += checked and place.section in wrong
    rows = [HEADER + "|---|---|---|---|---|---|\n"]
    for group in GROUPS:
        agree = sum(number for (fact, agrees), number in outcomes.items() if agrees and group_of(fact) == group)
        total = sum(number for (fact, _), number in outcomes.items() if group_of(fact) == group)
        share = f"{agree / total:.2%}" if total else "–"
        cells = (f"{agree:,} ({share})", *(f"{place_counts[group, what]:,}" for what in ("checked", "wrong", "not")))
        rows.append(f"| {group} | {total:,} | {' | '.join(cells)} |\n")
    return "".join(rows)


def counted(outcomes: Iterable[Outcome]) -> Counter[tuple[str, bool]]:
    """How often each fact was compared, and agreed or not."""
    return Counter((outcome.fact, outcome.agrees) for outcome in outcomes)


def rewritten(page: str, places: list[Place], table: str | None) -> str:
    """The page with every class's count, and the table where there is a new one."""
    if table is not None:
        page = FIGURES.sub(lambda _: table, page)
    start, *parts = re.split(r"^(?=## )", page, flags=re.MULTILINE)
    for index, part in enumerate(parts):
        title = part.removeprefix("## ").partition("\n")[0]
        some = [place for place in places if place.section == title]
        line = count(some) + examples(some)
        parts[index] = COUNT.sub(lambda _, line=line: line, part, count=1)
    return start + "".join(parts)
