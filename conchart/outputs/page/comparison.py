"""The page of a comparison: two captures side by side, on one scale.

In: a comparison. Out: the text of the file. What is hostile in it, ``document`` makes harmless.
"""

from collections.abc import Sequence
from typing import Any

from conchart.labels.phases import PHASES
from conchart.labels.stalls import COLOURS, STALLS
from conchart.labels.units import format_share
from conchart.outputs.limits import PAGE
from conchart.outputs.page.document import render_document
from conchart.outputs.page.swimlanes import kinds_of_stalls
from conchart.questions.compare.lanes import Lanes
from conchart.questions.compare.model import Comparison, Hop
from conchart.questions.compare.noise import CHANCE, Verdict
from conchart.report.servers import Server

SCRIPTS = ("decode", "format", "axis", "detail", "drawn", "tree", "chart", "comparison")
"""In the order in which they build on each other."""

_KINDS = {kind.name: number for number, kind in enumerate(PHASES)}


def render_comparison(comparison: Comparison) -> str:
    """Return the page as text, to be encoded as UTF-8."""
    sides = (comparison.before, comparison.after)
    hops = comparison.hops[: PAGE.servers]
    return render_document(
        "comparison.html.j2",
        SCRIPTS,
        {
            "span_ns": comparison.span_ns,
            "kinds": [
                {"name": kind.name, "title": kind.title, "colour": kind.colour, "hatched": kind.hatched}
                for kind in PHASES
            ],
            "stall_kinds": kinds_of_stalls(),
            "sides": [
                {"plot": f"plot-{name}", "groups": _groups(comparison, name), "lanes": _lanes(side.lanes)}
                for name, side in zip(("before", "after"), sides, strict=True)
            ],
        },
        title=f"{comparison.before.name} against {comparison.after.name}",
        comparison=comparison,
        hops=[(hop, _bars(hop, comparison.waited_ns)) for hop in hops],
        more_hops=max(0, len(comparison.hops) - PAGE.servers),
        alone=[(words, side.only) for words, side in zip(("before", "after"), sides, strict=True) if side.only],
        chance=round(1 / CHANCE),
        too_few=Verdict.TOO_FEW if Verdict.TOO_FEW in _verdicts(hops) else None,
        words=_words(comparison),
        kinds=PHASES,
    )


def _verdicts(hops: Sequence[Hop]) -> set[Verdict]:
    return {one.verdict for hop in hops for one in hop.differences}


def _words(comparison: Comparison) -> list[str]:
    """Name the stalls that are drawn in a colour of their own."""
    lanes = (*comparison.before.lanes.drawn, *comparison.after.lanes.drawn)
    waited = (part.word for hop in comparison.hops for part in (*hop.before.waited, *hop.after.waited))
    stalled = (kind.word for lane in lanes for kind, _, _ in lane.stalls)
    return sorted({*COLOURS} & {*waited, *stalled})


def _groups(comparison: Comparison, end: str) -> list[dict[str, Any]]:
    """Name the servers that lanes belong to: those of both captures, then those of this one alone."""
    shared: list[Server] = [getattr(hop, end) for hop in comparison.hops]
    return [
        {"endpoint": server.endpoint, "title": server.title, "role": server.role, "size": server.connections}
        for server in (*shared, *getattr(comparison, end).only)
    ]


def _lanes(lanes: Lanes) -> list[dict[str, Any]]:
    return [
        {
            "group": lane.server,
            "stream": lane.stream,
            "client": lane.client,
            "phases": [
                [_KINDS[piece.kind], piece.start_ns, piece.end_ns, int(piece.inferred)] for piece in lane.pieces
            ],
            "stalls": [[STALLS.index(kind), start_ns, end_ns] for kind, start_ns, end_ns in lane.stalls],
        }
        for lane in lanes.drawn
    ]


def _bars(hop: Hop, longest_ns: int) -> list[dict[str, Any]]:
    """Give what the template needs of both bars, which are on the scale of all."""
    return [
        {
            "when": when,
            "server": side,
            "width": f"{100 * side.waited_ns / longest_ns if longest_ns else 0:.3f}",
            "shares": [(part, format_share(part.total_ns, side.waited_ns)) for part in side.waited],
        }
        for when, side in (("before", hop.before), ("after", hop.after))
    ]
