"""The page of a prediction: two timelines on one scale, what they come to, and what was assumed.

In: a :class:`~conchart.predicting.Prediction`, the tables that it was made of. Out: the text of one HTML file, which
runs no script and loads nothing. Text from the capture is escaped by Jinja2, as on the other page.
"""

from dataclasses import dataclass
from importlib import resources

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from conchart.phases import PHASES
from conchart.predicting import Bar, Prediction, Side
from conchart.printable import endpoint
from conchart.tables import Tables
from conchart.telling.predictions import assumptions, comparison, headline, question
from conchart.telling.rows import rows
from conchart.units import count_of, format_ns, format_tick, tick_step

MAX_LANES = 120
"""Connections in a timeline; the page says how many more there are."""
MAX_BARS = 20_000
"""In each timeline."""
WIDTH = 1000
"""Units of a timeline's width."""
GUTTER = 190
"""Units left of it, for what a lane is."""
LANE = 14
"""Units of a lane's height."""
_MOST_TICKS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Rect:
    """A bar, as it is drawn."""

    x: str
    y: int
    width: str
    phase: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """One of the two."""

    title: str
    total: str
    height: int
    rects: list[Rect]
    labels: list[tuple[int, str]]
    more: str
    """What is left out; empty where everything is drawn."""


def render(prediction: Prediction, tables: Tables) -> str:
    """Return the page as text, to be encoded as UTF-8."""
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    template = environment.from_string(_resource("whatif.html.j2"))
    span_ns = max(prediction.measured.total_ns, prediction.predicted.total_ns, 1)
    step = tick_step(span_ns, _MOST_TICKS)
    titles = _titles(tables)
    drawn = {phase for side in (prediction.measured, prediction.predicted) for phase in side.phases}
    page: str = template.render(
        question=question(prediction.change),
        headline=headline(prediction),
        comparison=list(comparison(prediction)),
        assumptions=list(assumptions(prediction)),
        timelines=[
            _timeline("Measured", prediction.measured, span_ns, titles),
            _timeline("Predicted", prediction.predicted, span_ns, titles),
        ],
        ticks=[(f"{WIDTH * at / span_ns:.2f}", format_tick(at, step)) for at in range(0, span_ns + 1, step)],
        phases=[phase for phase in PHASES if phase.name in drawn],
        width=WIDTH,
        gutter=GUTTER,
        lane=LANE,
        style=Markup(_style()),
    )
    return page


def _timeline(title: str, side: Side, span_ns: int, titles: dict[int, str]) -> Timeline:
    lanes: dict[int, int] = {}
    bars = [bar for bar in side.bars if bar.end_at > bar.start_at]
    for bar in bars:
        lanes.setdefault(bar.lane, len(lanes))
    shown = [bar for bar in bars if lanes[bar.lane] < MAX_LANES]
    more = []
    if len(lanes) > MAX_LANES:
        more.append(f"the first {MAX_LANES} of {count_of(len(lanes), 'connection')}")
    if len(shown) > MAX_BARS:
        more.append(f"their first {count_of(MAX_BARS, 'bar')}")
    labels = [(place * LANE, titles.get(lane, "")) for lane, place in lanes.items() if place < MAX_LANES]
    return Timeline(
        title=title,
        total=format_ns(side.total_ns),
        height=max(1, min(len(lanes), MAX_LANES)) * LANE,
        rects=[_rect(bar, lanes[bar.lane] * LANE, side.start_at, span_ns, titles) for bar in shown[:MAX_BARS]],
        labels=labels,
        more=", ".join(more),
    )


def _rect(bar: Bar, y: int, start_at: int, span_ns: int, titles: dict[int, str]) -> Rect:
    begins_ns, took_ns = bar.start_at - start_at, bar.end_at - bar.start_at
    of = f", request {bar.exchange}" if bar.exchange is not None else ""
    return Rect(
        x=f"{WIDTH * begins_ns / span_ns:.2f}",
        y=y,
        width=f"{max(0.5, WIDTH * took_ns / span_ns):.2f}",
        phase=bar.phase,
        words=f"{titles.get(bar.stream, '')}{of}: {bar.phase} {format_ns(took_ns)}, from {format_ns(begins_ns)}",
    )


def _titles(tables: Tables) -> dict[int, str]:
    """Say of each connection which it is."""
    query = "SELECT stream, server_ip, server_port, coalesce(server_name, '') AS name FROM connections"
    return {
        row["stream"]: f"{row['stream']}: {endpoint(row['server_ip'], row['server_port'])} {row['name']}".rstrip()
        for row in rows(tables, query)
    }


def _style() -> str:
    fills = "".join(f".k-{phase.name} {{ fill: {phase.colour}; background: {phase.colour}; }}\n" for phase in PHASES)
    return _resource("whatif.css") + fills


def _resource(name: str) -> str:
    return resources.files("conchart.charts").joinpath("templates", name).read_text(encoding="utf-8")
