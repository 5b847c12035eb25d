"""The page's section about several places: bars, losses, clocks; the packets of some exchanges for its scripts.

In: a trace. Out: plain values for the template and for ``places.js``; nothing where nobody named places.
"""

from typing import Any

from conchart.store.tables import Tables
from conchart.telling.places import Arrow, Journey, clocks, journeys, losses, spent
from conchart.words.units import format_bytes, format_count, format_ns

MAX_JOURNEYS = 8
"""Exchanges of which the page has the packets: those that users waited for longest."""
_LETTERS = {"S": "SYN", "F": "FIN", "R": "RST"}


def between(tables: Tables) -> dict[str, Any] | None:
    """Give what the template shows."""
    if not tables.have_places:
        return None
    return {"spent": spent(tables), "losses": list(losses(tables)), "clocks": clocks(tables)}


def drawn_journeys(tables: Tables) -> dict[str, Any]:
    """Give what the script draws: of each exchange its packets, with the places by number."""
    if not tables.have_places:
        return {}
    return {"journeys": [_told(one) for one in journeys(tables, MAX_JOURNEYS)]}


def _told(one: Journey) -> dict[str, Any]:
    number = {place: n for n, place in enumerate(one.places)}
    more = f" {format_count(one.more)} more packets are not drawn." if one.more else ""
    return {
        "title": f"connection {one.stream}, request {one.exchange}: waited {format_ns(one.wait_ns)}",
        "says": f"A wait of {format_ns(one.wait_ns)}: {one.whereabouts}.{more}",
        "places": one.places,
        "arrows": [
            {
                "frame": arrow.frame,
                "up": arrow.sender == "client",
                "bytes": arrow.bytes,
                "flags": arrow.flags,
                "label": _said(arrow),
                "way": [[number[place], at] for place, at in arrow.seen],
                "lost": arrow.lost,
            }
            for arrow in one.arrows
        ],
    }


def _said(arrow: Arrow) -> str:
    """Say what a packet is: ``SYN``, ``1.4 kB``."""
    words = [word for letter, word in _LETTERS.items() if letter in arrow.flags]
    return " ".join([*words, *([format_bytes(arrow.bytes)] if arrow.bytes else [])])
