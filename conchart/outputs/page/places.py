"""The page's section about several places: bars, losses, clocks; what its own scripts draw.

In: a report. Out: plain values for the template, and for ``arrows.js`` and ``delays.js``; nothing where nobody named
places.
"""

from collections import Counter
from typing import Any

from markupsafe import Markup

from conchart.labels.phases import PHASES
from conchart.labels.printable import printable
from conchart.labels.units import count_of, format_bytes, format_ns
from conchart.outputs.page.document import resource
from conchart.report.axis import TimeAxis
from conchart.report.delays import Delays
from conchart.report.places import Clock, words_of
from conchart.report.report import Report
from conchart.report.request_paths import Arrow, PlaceLane, RequestPath, Stay

SCRIPTS = ("arrows", "delays")
"""Of pages of several places alone."""
MAX_JOURNEYS = 20
"""Exchanges of which the page has the packets: those that users waited for longest."""
MAX_PATHS = 12
"""Charts of delays."""
_NAME = 60
_LETTERS = {"S": "SYN", "F": "FIN", "R": "RST"}


def between(report: Report) -> dict[str, Any] | None:
    """Give what the template shows."""
    if not report.have_places:
        return None
    return {
        "spent": report.spent,
        "losses": report.losses,
        "clocks": report.clocks,
        "delays": report.delays[:MAX_PATHS],
        "more_delays": max(0, len(report.delays) - MAX_PATHS),
        "style": Markup(resource("templates", "places.css")),
    }


def drawn(report: Report) -> dict[str, Any]:
    """Give what the scripts draw."""
    axis = report.axis
    clock_of: dict[str, Clock] = {}
    for clock in report.clocks:
        clock_of.setdefault(clock.place, clock)
    return {
        "span_ns": axis.span,
        "kinds": {kind.name: kind.title for kind in PHASES},
        "journeys": [_journey(one, axis, clock_of) for one in report.request_paths(MAX_JOURNEYS)],
        "delays": [_delays(one) for one in report.delays[:MAX_PATHS]],
    }


def _journey(one: RequestPath, axis: TimeAxis, clock_of: dict[str, Clock]) -> dict[str, Any]:
    number = {(lane.stream, lane.place): n for n, lane in enumerate(one.lanes)}
    name = f" {one.name}" if one.name else ""
    name = name if len(name) <= _NAME else f"{name[:_NAME]}…"
    more = f" {count_of(one.more, 'packet')} in the middle are not drawn." if one.more else ""
    consists = f"{one.wait}." if one.wait else ""
    lost = Counter((arrow.seen[-1][0], arrow.lost_to) for arrow in one.arrows if arrow.lost_to)
    missed = "".join(
        f" Lost between {printable(here)} and {printable(there)}: {count_of(count, 'packet')}."
        for (here, there), count in lost.items()
    )
    return {
        "title": f"#{one.stream}, request {one.exchange}{name}: waited {format_ns(one.wait_ns)}",
        "stream": one.stream,
        "says": f"{consists[:1].upper()}{consists[1:]}{missed}{more}",
        "start": axis.at(one.start_at),
        "end": axis.at(one.end_at),
        "stays": [_stay(stay, axis) for stay in one.stays],
        "lanes": [_lane(lane, axis, clock_of) for lane in one.lanes],
        "arrows": [_arrow(arrow, axis, number) for arrow in one.arrows if arrow.seen],
    }


def _stay(stay: Stay, axis: TimeAxis) -> dict[str, Any]:
    here = printable(stay.place)
    words = f"{here} → {printable(stay.to_place)}" if stay.to_place else here
    if stay.kind not in ("host", "path"):
        words = words_of(stay.kind, stay.place, stay.to_place)
    doubt = "" if not stay.uncertainty_ns else f" ± {format_ns(stay.uncertainty_ns)}"
    if stay.uncertainty_ns is None and stay.kind == "path":
        doubt = " (clocks unknown)"
    return {
        "kind": stay.kind,
        "words": words,
        "length": f"{format_ns(stay.end_at - stay.start_at)}{doubt}",
        "start": axis.at(stay.start_at),
        "end": axis.at(stay.end_at),
    }


def _lane(lane: PlaceLane, axis: TimeAxis, clock_of: dict[str, Clock]) -> dict[str, Any]:
    clock = clock_of.get(lane.place)
    return {
        "place": printable(lane.place),
        "clock": "" if clock is None else str(clock) if clock.method == "reference" else f"clock {clock}",
        "stream": lane.stream,
        "server": lane.server,
        "chosen": lane.chosen,
        "bars": [[bar.kind, axis.at(bar.start_at), axis.at(bar.end_at)] for bar in lane.bars],
    }


def _arrow(arrow: Arrow, axis: TimeAxis, number: dict[tuple[int, str], int]) -> dict[str, Any]:
    return {
        "frame": arrow.frame,
        "up": arrow.sender == "client",
        "label": _label(arrow),
        "way": [[number[arrow.stream, place], axis.at(at)] for place, at in arrow.seen],
        "lost": number.get((arrow.stream, arrow.lost_to)) if arrow.lost_to else None,
        "marks": arrow.marks,
    }


def _label(arrow: Arrow) -> str:
    """Say what a packet is: ``SYN``, ``request, 1.4 kB``."""
    words = [word for letter, word in _LETTERS.items() if letter in arrow.flags]
    words += [f"{arrow.marks} begins"] if arrow.marks else []
    return ", ".join([*words, *([format_bytes(arrow.bytes)] if arrow.bytes else [])])


def _delays(one: Delays) -> dict[str, Any]:
    return {
        "name": one.name,
        "says": str(one),
        "bucket": one.bucket_ns,
        "points": [[p.start_ns, p.packets, p.median_ns, p.most_ns, p.lost] for p in one.points],
    }
