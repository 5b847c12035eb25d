"""What a notebook shows: the answer of a trace as a table, the lanes as a figure of Plotly's.

In: a report. Out: HTML, a ``plotly.graph_objects.Figure``. The page has everything; this is for a look between two
queries, and for figures that somebody changes.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from conchart.errors import MissingToolError, UsageError
from conchart.labels.phases import PHASES
from conchart.labels.printable import endpoint, printable
from conchart.labels.units import SECOND, count_of, format_ns
from conchart.report.connections import Connection, Phase
from conchart.report.report import Report

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MS = SECOND // 1000
MOST_CONNECTIONS = 200
MOST_PHASES = 20_000
"""Bars of a figure: a browser draws more of them too slowly."""
_LANE_PX, _FRAME_PX = 18, 160


def as_html(report: Report) -> str:
    """Give the answer as a small table: waits, the worst findings, the time in each phase."""
    verdict = report.verdict
    phases: Counter[str] = Counter()
    for (phase, _, _), ns in report.times.items():
        phases[phase] += ns
    titles = {phase.name: phase.title for phase in PHASES}
    rows = [
        (
            entry.severity or (verdict.state if entry.kind == "state" else entry.kind),
            f"{entry.title} {entry.where}".strip(),
            entry.cost,
            entry.change or entry.detail,
        )
        for entry in verdict.entries
    ]
    rows += [
        ("phase", titles[kind], format_ns(ns), "")
        for kind, ns in sorted(phases.items(), key=lambda phase: (-phase[1], phase[0]))
    ]
    cells = "".join(f"<tr>{''.join(f'<td>{_safe(cell)}</td>' for cell in row)}</tr>" for row in rows)
    connections = count_of(report.overview.connections, "connection")
    caption = f"{connections}; users waited {format_ns(verdict.waited_ns)}; {verdict.quality}"
    return f"<table><caption>{_safe(caption)}</caption><tbody>{cells}</tbody></table>"


def _safe(text: str) -> str:
    return escape(printable(text))


def chart(report: Report, *, most: int = MOST_CONNECTIONS) -> "Figure":
    """Draw a lane per connection, coloured by phase, those whose users waited the longest.

    Raises:
        MissingToolError: Plotly is not installed.
        UsageError: ``most`` is less than one.
    """
    if most < 1:
        raise UsageError(f"chart: most is a number of connections from 1 on, not {most}")
    try:
        from plotly import graph_objects
    except ImportError:
        raise MissingToolError("a chart needs Plotly: pip install 'conchart[charts]'") from None
    lanes = {one.stream: _label(one) for one in report.connections(most)}
    origin_at = report.axis.origin
    phases = report.phases(list(lanes), MOST_PHASES)
    of_kind = {phase: [one for one in phases if one.kind == phase.name] for phase in PHASES}
    figure = graph_objects.Figure(
        [
            graph_objects.Bar(
                name=phase.title,
                orientation="h",
                marker=_marker(phase.colour, hatched=phase.hatched),
                hovertemplate="%{customdata}<extra></extra>",
                **_columns(lanes, bars, phase.title, origin_at),
            )
            for phase, bars in of_kind.items()
            if bars
        ]
    )
    figure.update_layout(
        barmode="overlay",
        bargap=0.25,
        title=_title(report.overview.connections, len(lanes), cut=len(phases) == MOST_PHASES),
        xaxis_title="ms after the first packet",
        yaxis={"autorange": "reversed", "categoryorder": "array", "categoryarray": list(lanes.values()), "title": None},
        height=_FRAME_PX + _LANE_PX * max(len(lanes), 4),
        template="plotly_white",
    )
    return figure


def _label(one: Connection) -> str:
    server = f"{one.name}:{one.server_port}" if one.name else endpoint(one.server_ip, one.server_port)
    return _safe(f"{one.stream} · {endpoint(one.client_ip, one.client_port)} → {server}")


def _columns(lanes: Mapping[int, str], bars: Sequence[Phase], title: str, origin_at: int) -> dict[str, list[Any]]:
    return {
        "y": [lanes[bar.stream] for bar in bars],
        "base": [(bar.start_at - origin_at) / MS for bar in bars],
        "x": [(bar.end_at - bar.start_at) / MS for bar in bars],
        "customdata": [
            f"{title}{' (inferred)' if bar.inferred else ''}: {format_ns(bar.end_at - bar.start_at)}, "
            f"frames {bar.start_frame} to {bar.end_frame}"
            for bar in bars
        ],
    }


def _marker(colour: str, *, hatched: bool) -> dict[str, Any]:
    return {"color": colour, "line": {"width": 0}} | ({"pattern": {"shape": "/"}} if hatched else {})


def _title(total: int, shown: int, *, cut: bool) -> str:
    connections = count_of(total, "connection")
    of_all = f"{shown} of {connections}, the longest waits" if shown < total else connections
    return f"{of_all}; only the first {MOST_PHASES:,} phases" if cut else of_all
