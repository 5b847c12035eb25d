"""Texts with facts in them: a rule's sentences, its changes as lines, and the facts of connections, requests, stalls.

In: templates, values of a row. Out: text. ``format.js`` of the page reads the same templates.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from conchart.labels.printable import printable
from conchart.labels.units import count_of, format_bytes, format_count, format_exact, format_ns

_PLACE = re.compile(r"\{(\w+)(?::([^}]*))?\}")
_ASIDE = re.compile(r"(?:: | \()\{(\w+)\}\)?(?=[,;]|$)")
"""A fact at the end of a clause that says more of what stands before it: ``: {target}``, `` ({status})``."""
_CLAUSE = re.compile(r"([;,:] )(?![^(]*\))")
"""Between clauses, but not inside brackets."""
_UNITS: Mapping[str, Callable[[Any], str]] = {
    "ns": lambda duration: format_ns(int(duration)),
    "exact": format_exact,
    "size": format_bytes,
    "number": str,
    "ratio": "{:.2f}".format,
    "flag": lambda _: "",
}
"""What may stand behind the colon of a place; anything else is the noun of a count."""
_DURATIONS = ("ns", "exact")


class Fact(NamedTuple):
    """Something to say of a row, declared once for the page and the terminal."""

    label: str
    """Its name in a list of facts."""
    texts: tuple[str, ...]
    """Templates with places: ``{column}``, ``{column:unit}``, ``{column:noun}``. A text is left out where a column is
    NULL, where a ``flag`` is not set, and where all its values are 0 or empty; a duration of 0 is told."""
    between: str = ", "

    def of(self, row: Mapping[str, Any], limit: int = 200) -> str:
        """Write the texts that apply to a row; empty where none does.

        Args:
            row: Has every column of the texts.
            limit: So many characters of a text from the capture.
        """
        return self.between.join(filter(None, (_apply(text, row, limit) for text in self.texts)))


def _apply(template: str, row: Mapping[str, Any], limit: int) -> str:
    places = [(row[name], _unit(name, unit)) for name, unit in _PLACE.findall(template)]
    if any(value is None or (unit == "flag" and not value) for value, unit in places):
        return ""
    if not any(value or unit in _DURATIONS for value, unit in places):
        return ""
    return _PLACE.sub(lambda place: _write(row[place[1]], _unit(place[1], place[2]), limit), template)


def _unit(name: str, unit: str | None) -> str:
    return "ns" if name.endswith("_ns") else unit or ""


def _write(value: Any, unit: str, limit: int) -> str:  # noqa: ANN401  (a value of any column)
    if unit in _UNITS:
        return _UNITS[unit](value)
    if unit:
        return count_of(int(value), *unit.split("|"))
    return format_count(value) if isinstance(value, int) else printable(str(value), limit)


def fill(template: str, facts: Mapping[str, Any]) -> str:
    """Put the facts of a row into a rule's text: durations, counts and texts as people read them.

    What would need a fact that is not known is left out: the aside that it is, else the clause that it stands in.
    """

    def value(place: re.Match[str]) -> str:
        return _write(facts[place[1]], _unit(place[1], place[2]), 120)

    return _PLACE.sub(value, _knowable(template, facts))


def _knowable(template: str, facts: Mapping[str, Any]) -> str:
    def is_complete(text: str) -> bool:
        return all(facts.get(place[1]) is not None for place in _PLACE.finditer(text))

    if is_complete(template):
        return template
    without = _ASIDE.sub(lambda aside: aside[0] if is_complete(aside[0]) else "", template)
    parts = _CLAUSE.split(f"; {without}")
    clauses = zip(parts[1::2], parts[2::2], strict=True)
    return "".join(f"{mark}{clause}" for mark, clause in clauses if is_complete(clause))[2:]


def change_line(product: str | None, versions: str | None, line: str) -> str:
    """Say what to change, and in which product where it is that product's own: ``nginx >=1.9: keepalive 16;``."""
    named = " ".join(filter(None, (product, versions)))
    return f"{named}: {line}" if named else line
