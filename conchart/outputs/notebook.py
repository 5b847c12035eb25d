"""What a notebook shows: the answer of a trace as a table, the lanes as a figure of Plotly's.

In: a trace. Out: HTML, a ``plotly.graph_objects.Figure``. The page has everything; this is for a look between two
queries, and for figures that somebody changes.
"""

from html import escape
from typing import TYPE_CHECKING, Any

from conchart.errors import MissingToolError, UsageError
from conchart.report.axis import first_instant
from conchart.report.report import report_of
from conchart.store.tables import Tables
from conchart.words.phases import PHASES
from conchart.words.printable import printable
from conchart.words.units import SECOND, count_of, format_ns

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MS = SECOND // 1000
MOST_CONNECTIONS = 200
MOST_PHASES = 20_000
"""Bars of a figure: a browser draws more of them too slowly."""
_LANE_PX, _FRAME_PX = 18, 160

_LANES = """
    SELECT stream, client_ip || ':' || client_port AS client,
        coalesce(server_name, server_ip) || ':' || server_port AS server
    FROM connections ORDER BY waited_ns DESC NULLS LAST, stream LIMIT ?
"""
_BARS = """
    SELECT stream, kind, start_at - ?, end_at - start_at, start_frame, end_frame, inferred
    FROM phases WHERE list_contains(?, stream) AND end_at > start_at ORDER BY start_at, stream LIMIT ?
"""
_TIMES = """
    SELECT kind, sum(end_at - start_at)::BIGINT AS ns FROM phases GROUP BY kind ORDER BY ns DESC, kind
"""


def as_html(tables: Tables) -> str:
    """Give the answer as a small table: waits, the worst findings, the time in each phase."""
    with report_of(tables) as report:
        told = report.verdict
    connections = tables.count("connections")
    titles = {phase.name: phase.title for phase in PHASES}
    rows = [
        (
            entry.severity or (told.state if entry.kind == "state" else entry.kind),
            f"{entry.title} {entry.where}".strip(),
            entry.cost,
            entry.change or entry.detail,
        )
        for entry in told.entries
    ]
    rows += [("phase", titles[kind], format_ns(ns), "") for kind, ns in tables.fetch(_TIMES)]
    cells = "".join(f"<tr>{''.join(f'<td>{_safe(cell)}</td>' for cell in row)}</tr>" for row in rows)
    said = f"{count_of(connections, 'connection')}; users waited {format_ns(told.waited_ns)}; {told.quality}"
    return f"<table><caption>{_safe(said)}</caption><tbody>{cells}</tbody></table>"


def _safe(text: str) -> str:
    return escape(printable(text))


def chart(tables: Tables, *, most: int = MOST_CONNECTIONS) -> "Figure":
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
    lanes = {
        stream: _safe(f"{stream} · {client} → {server}") for stream, client, server in tables.fetch(_LANES, [most])
    }
    origin = first_instant(tables)
    bars = tables.fetch(_BARS, [origin, list(lanes), MOST_PHASES])
    figure = graph_objects.Figure(
        [
            graph_objects.Bar(
                name=phase.title,
                orientation="h",
                marker=_marker(phase.colour, hatched=phase.hatched),
                hovertemplate="%{customdata}<extra></extra>",
                **_columns(lanes, [bar for bar in bars if bar[1] == phase.name], phase.title),
            )
            for phase in PHASES
            if any(bar[1] == phase.name for bar in bars)
        ]
    )
    figure.update_layout(
        barmode="overlay",
        bargap=0.25,
        title=_title(tables, len(lanes), cut=len(bars) == MOST_PHASES),
        xaxis_title="ms after the first packet",
        yaxis={"autorange": "reversed", "categoryorder": "array", "categoryarray": list(lanes.values()), "title": None},
        height=_FRAME_PX + _LANE_PX * max(len(lanes), 4),
        template="plotly_white",
    )
    return figure


def _columns(lanes: dict[int, str], bars: list[tuple[Any, ...]], title: str) -> dict[str, list[Any]]:
    return {
        "y": [lanes[stream] for stream, *_ in bars],
        "base": [start / MS for _, _, start, *_ in bars],
        "x": [ns / MS for _, _, _, ns, *_ in bars],
        "customdata": [
            f"{title}{' (inferred)' if inferred else ''}: {format_ns(ns)}, frames {first} to {last}"
            for _, _, _, ns, first, last, inferred in bars
        ],
    }


def _marker(colour: str, *, hatched: bool) -> dict[str, Any]:
    return {"color": colour, "line": {"width": 0}} | ({"pattern": {"shape": "/"}} if hatched else {})


def _title(tables: Tables, shown: int, *, cut: bool) -> str:
    total = tables.count("connections")
    told = count_of(total, "connection")
    of_all = f"{shown} of {told}, the longest waits" if shown < total else told
    return f"{of_all}; only the first {MOST_PHASES:,} phases" if cut else of_all
