"""The page's section about several places: bars, and the packets of one exchange from place to place.

In: a trace. Out: plain values for the template; None where nobody named places.
"""

from itertools import pairwise
from typing import Any

from conchart.store.tables import Tables
from conchart.telling.places import Arrow, Journey, clocks, journey, losses, spent
from conchart.words.units import format_bytes, format_count, format_ns

_WIDTH = 1000
_MARGIN = 150
_HEIGHT = 460
_TOP = 34
_LETTERS = {"S": "SYN", "F": "FIN", "R": "RST"}


def between(tables: Tables) -> dict[str, Any] | None:
    """Give what the template shows."""
    if not tables.have_places:
        return None
    told = journey(tables)
    return {
        "spent": spent(tables),
        "losses": list(losses(tables)),
        "clocks": clocks(tables),
        "journey": told and _drawn(told),
    }


def _drawn(told: Journey) -> dict[str, Any]:
    """Place the columns, and draw each packet as lines from place to place."""
    last_ns = max((at for arrow in told.arrows for _, at in arrow.seen), default=0) or 1
    gaps = max(1, len(told.places) - 1)
    xs = {place: round(_MARGIN + n * (_WIDTH - 2 * _MARGIN) / gaps) for n, place in enumerate(told.places)}
    lines, labels, lowest = list[dict[str, Any]](), list[dict[str, Any]](), {"start": 0.0, "end": 0.0}

    def y(ns: int) -> float:
        return round(_TOP + ns * (_HEIGHT - _TOP - 10) / last_ns, 1)

    for arrow in told.arrows:
        for (place, at), (other, arrived) in pairwise(arrow.seen):
            lines.append(
                {"x1": xs[place], "y1": y(at), "x2": xs[other], "y2": y(arrived), "by": arrow.sender, "lost": False}
            )
        place, at = arrow.seen[-1]
        if arrow.lost:
            ahead = 1 if arrow.sender == "client" else -1
            end = xs[place] + ahead * (_WIDTH - 2 * _MARGIN) / gaps / 3
            lines.append({"x1": xs[place], "y1": y(at), "x2": end, "y2": y(at), "by": arrow.sender, "lost": True})
        first, left_at = arrow.seen[0]
        anchor = "end" if arrow.sender == "client" else "start"
        if y(left_at) - lowest[anchor] >= 13:
            lowest[anchor] = y(left_at)
            x = min(xs.values()) - 8 if anchor == "end" else max(xs.values()) + 8
            labels.append({"x": x, "y": y(left_at), "anchor": anchor, "text": f"{format_ns(left_at)}  {_said(arrow)}"})
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "top": _TOP,
        "columns": [{"x": x, "place": place} for place, x in xs.items()],
        "lines": lines,
        "labels": labels,
        "more": format_count(told.more) if told.more else "",
        "wait": format_ns(told.wait_ns),
        "stream": told.stream,
        "whereabouts": told.whereabouts,
    }


def _said(arrow: Arrow) -> str:
    """Say what a packet is: ``SYN``, ``1.4 kB``."""
    words = [word for letter, word in _LETTERS.items() if letter in arrow.flags]
    return " ".join([*words, *([format_bytes(arrow.bytes)] if arrow.bytes else [])])
