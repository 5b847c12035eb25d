"""Texts with facts in them: a rule's sentences, and its changes as lines.

In: templates of rules, facts of a row. Out: text.
"""

import re
from collections.abc import Mapping
from typing import Any

from conchart.labels.printable import printable
from conchart.labels.units import count_of, format_count, format_ns

_PLACE = re.compile(r"\{(\w+)(?::([^}]*))?\}")
_ASIDE = re.compile(r"(?:: | \()\{(\w+)\}\)?(?=[,;]|$)")
"""A fact at the end of a clause that says more of what stands before it: ``: {target}``, `` ({status})``."""
_CLAUSE = re.compile(r"([;,:] )(?![^(]*\))")
"""Between clauses, but not inside brackets."""


def fill(template: str, facts: Mapping[str, Any]) -> str:
    """Put the facts of a row into a rule's text: durations, counts and texts as people read them.

    What would need a fact that is not known is left out: the aside that it is, else the clause that it stands in.
    """

    def value(place: re.Match[str]) -> str:
        name, noun = place[1], place[2]
        fact = facts[name]
        if name.endswith("_ns"):
            return format_ns(int(fact))
        if noun:
            return count_of(int(fact), *noun.split("|"))
        return format_count(fact) if isinstance(fact, int) else printable(str(fact), 120)

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
