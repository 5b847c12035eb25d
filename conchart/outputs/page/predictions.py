"""The page of a prediction: two timelines on one scale, the totals, and the assumptions.

In: a :class:`~conchart.questions.predict.Prediction`, a report of the capture. Out: the text of one HTML file, which
runs no script and loads nothing. Text from the capture is escaped by Jinja2, as on the other page.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from conchart.labels.phases import PHASES
from conchart.labels.printable import endpoint
from conchart.labels.stalls import StallKind
from conchart.labels.units import count_of, format_ns, format_tick, tick_step
from conchart.outputs.page.document import page_style, resource
from conchart.outputs.page.page import title_of
from conchart.questions.predict import Bar, Prediction, Side
from conchart.questions.predict.sentences import assumptions, comparison, headline, question
from conchart.report.connections import Connection
from conchart.report.report import Report
from conchart.version import version

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
_EDGE = 4
"""Units of a lane's height that mark a stall."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rect:
    """A bar, as it is drawn."""

    x: str
    y: int
    width: str
    height: int
    look: str
    """Classes of the page's style."""
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


def render(prediction: Prediction, report: Report) -> str:
    """Return the page as text, to be encoded as UTF-8."""
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    template = environment.from_string(resource("templates", "whatif.html.j2"))
    span_ns = max(prediction.measured.total_ns, prediction.predicted.total_ns, 1)
    step = tick_step(span_ns, _MOST_TICKS)
    connections = {one.stream: one for one in report.connections()}
    titles = {stream: _title(one) for stream, one in connections.items()}
    stalled = list(_stalls(report, connections, prediction.measured, span_ns))
    drawn = {bar.phase for side in (prediction.measured, prediction.predicted) for bar in side.bars}
    page: str = template.render(
        question=question(prediction.change),
        headline=headline(prediction),
        comparison=list(comparison(prediction)),
        assumptions=list(assumptions(prediction)),
        timelines=[
            _timeline("Measured", prediction.measured, span_ns, titles, stalled),
            _timeline("Predicted", prediction.predicted, span_ns, titles, []),
        ],
        ticks=[(f"{WIDTH * at / span_ns:.2f}", format_tick(at, step)) for at in range(0, span_ns + 1, step)],
        phases=[phase for phase in PHASES if phase.name in drawn],
        width=WIDTH,
        gutter=GUTTER,
        lane=LANE,
        title=title_of([file.path for file in report.files]),
        stalls=report.stalls,
        words=sorted({stall.kind.word for stall in stalled}),
        version=version(),
        style=Markup(f"{page_style()}\n{resource('templates', 'whatif.css')}"),
    )
    return page


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stall:
    """Where the next byte did not come, on the measured timeline."""

    stream: int
    kind: StallKind
    idle: bool
    begins_ns: int
    took_ns: int
    words: str


def _stalls(report: Report, connections: Mapping[int, Connection], side: Side, span_ns: int) -> Iterator[_Stall]:
    """Give what was stalled, moved to the client's end as all of its connection is."""
    first: dict[int, int] = {}
    for bar in side.bars:
        first[bar.stream] = min(bar.start_at, first.get(bar.stream, bar.start_at))
    for one in report.stalled(MAX_BARS):
        if one.stream not in first or one.phase in ("close", "unseen"):
            continue
        connection = connections[one.stream]
        # What the client sends left it earlier than it was captured, and what the server sends arrives later.
        earlier_ns = connection.opened_at - first[one.stream]
        moved_ns = earlier_ns if one.side == "server" else -earlier_ns
        begins_ns = one.start_at + moved_ns - side.start_at
        took_ns = one.end_at - one.start_at
        where = f"from {format_ns(begins_ns)}: {one.kind.meaning}"
        yield _Stall(
            stream=one.stream,
            kind=one.kind,
            idle=one.phase == "idle",
            begins_ns=min(begins_ns, span_ns),
            took_ns=took_ns,
            words=f"{_title(connection)}: {one.kind.word} {format_ns(took_ns)}, {where}",
        )


def _timeline(title: str, side: Side, span_ns: int, titles: dict[int, str], stalled: list[_Stall]) -> Timeline:
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
    visible = {lane for lane, place in lanes.items() if place < MAX_LANES}
    labels = [(place * LANE, titles.get(lane, "")) for lane, place in lanes.items() if place < MAX_LANES]
    return Timeline(
        title=title,
        total=format_ns(side.total_ns),
        height=max(1, min(len(lanes), MAX_LANES)) * LANE,
        rects=[
            *(_rect(bar, lanes[bar.lane] * LANE, side.start_at, span_ns, titles) for bar in shown[:MAX_BARS]),
            *(_mark(stall, lanes[stall.stream] * LANE, span_ns) for stall in stalled if stall.stream in visible),
        ],
        labels=labels,
        more=", ".join(more),
    )


def _rect(bar: Bar, y: int, start_at: int, span_ns: int, titles: dict[int, str]) -> Rect:
    begins_ns, took_ns = bar.start_at - start_at, bar.end_at - bar.start_at
    of = f", request {bar.exchange}" if bar.exchange is not None else ""
    return Rect(
        x=f"{WIDTH * begins_ns / span_ns:.2f}",
        y=y + 1,
        width=f"{max(0.5, WIDTH * took_ns / span_ns):.2f}",
        height=LANE - 2,
        look=f"k-{bar.phase}",
        words=f"{titles.get(bar.stream, '')}{of}: {bar.phase} {format_ns(took_ns)}, from {format_ns(begins_ns)}",
    )


def _mark(stall: _Stall, y: int, span_ns: int) -> Rect:
    """Over the lower edge of a bar; where nothing else went on, over the whole height."""
    height = LANE - 2 if stall.idle else _EDGE
    return Rect(
        x=f"{WIDTH * stall.begins_ns / span_ns:.2f}",
        y=y + LANE - 1 - height,
        width=f"{max(0.5, WIDTH * stall.took_ns / span_ns):.2f}",
        height=height,
        look=f"stalled w-{stall.kind.word}",
        words=stall.words,
    )


def _title(one: Connection) -> str:
    """Say which connection it is."""
    return f"{one.stream}: {endpoint(one.server_ip, one.server_port)} {one.name}".rstrip()
