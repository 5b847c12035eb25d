"""The swimlanes as a picture for slides: SVG or PNG, by matplotlib, without a browser.

In: a report. Out: a file. It has the page's lanes, colours and words, as far as they fit: what does not is summed up
and told. The same trace gives the same picture, whatever matplotlib's settings are; no text is markup.

Coordinates are pixels of a picture that is 900 high or 1600 wide; a larger one is the same, sharper.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties

from conchart.labels.phases import PHASES, PhaseKind
from conchart.labels.stalls import COLOURS
from conchart.labels.units import count_of, format_count, format_ns, format_tick, tick_step
from conchart.outputs.options import DrawOptions
from conchart.outputs.page.page import title_of
from conchart.outputs.pictures.picture_rows import GAP, HEADING, LEAST_LABELLED, Row, lay_rows
from conchart.report.axis import TimeAxis
from conchart.report.findings import tally_findings
from conchart.report.report import Report
from conchart.report.servers import headline, shares
from conchart.report.swimlanes import LaneStall, Link, Swimlanes

Numbers = np.ndarray[Any, np.dtype[Any]]
Box = tuple[float, float, float, float]
"""Left, right, top, bottom."""

MARGIN = 26.0
MOST_BARS = 30_000
"""More phases than this are drawn by pixel: of what is narrower, the kind that fills most of it."""
MOST_LINKS = 80
"""More links than this would hide the lanes."""
PART = 3.0
"""Width of a step in a strip."""
Shown = set[tuple[int, bool]]
"""Kinds of phases, by place in ``PHASES``, and whether inferred."""

_TOP = 182.0
_PAPER, _TOP_OF_EMPTY, _ROOM_TO_DRAW, _MOST_EMPTY = 1000, 34.0, 56.0, 1000.0
"""Of lanes to draw on: their width, what is above and for each of them, their height at most."""
_FOOT = 34.0
_LEAST_LABEL, _MOST_LABEL, _BESIDE = 150.0, 330.0, 12.0
_LEAST_STEP = 0.05
_ABOVE = 1000
"""Where texts lie: above everything else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """Colours besides those of the phases: the page's (``page.css``)."""

    paper: str
    ink: str
    soft: str
    line: str


LIGHT = Theme(paper="#ffffff", ink="#1b1f24", soft="#57606a", line="#d5dae0")
DARK = Theme(paper="#14171b", ink="#e8eaed", soft="#a5adb8", line="#39414b")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Phases:
    """The phases of all lanes, as columns; of lane ``n`` those from ``first[n]`` to before ``first[n + 1]``."""

    first: Numbers
    kind: Numbers
    start: Numbers
    end: Numbers
    inferred: Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plot:
    """Where on a sheet the lanes are."""

    drawing: "_Drawing"
    rows: list[Row]
    axis: TimeAxis
    """The first instant, in nanoseconds since the epoch."""
    span: int
    left: float
    top: float

    @property
    def right(self) -> float:
        return self.drawing.width - MARGIN

    @property
    def bottom(self) -> float:
        return self.top + max(row.top + row.height for row in self.rows)

    def x(self, at: float) -> float:
        """Place an instant, in nanoseconds after the first."""
        return self.left + at * (self.right - self.left) / self.span

    @property
    def tracks(self) -> list[Row]:
        return [row for row in self.rows if row.kind == "track"]

    @property
    def strips(self) -> list[Row]:
        return [row for row in self.rows if row.kind == "strip"]

    @property
    def row_of(self) -> dict[int, Row]:
        """The row of each lane that is not folded."""
        return {lane: row for row in self.tracks for lane in row.lanes}


def draw_svg(report: Report, path: Path, options: DrawOptions) -> None:
    """Write the picture as SVG: no dates, and the same ids each time."""
    _write(report, path, options, form="svg", about={"Date": None, "Creator": "conchart"})


def draw_png(report: Report, path: Path, options: DrawOptions) -> None:
    """Write the picture as PNG."""
    _write(report, path, options, form="png", about={"Software": "conchart"})


def draw_empty(report: Report, path: Path) -> None:
    """Write lanes to draw on, as SVG for paper: axis, labels, where connections opened; no other phase, no answer."""
    drawn = report.swimlanes
    with _settings():
        servers = len({lane.group for lane in drawn.lanes})
        wanted = servers * (HEADING + GAP) + len(drawn.lanes) * _ROOM_TO_DRAW
        options = DrawOptions(size=(_PAPER, round(_TOP_OF_EMPTY + min(wanted, _MOST_EMPTY) + _FOOT)))
        drawing = _Drawing(options, scale=1)
        if plot := _plot(drawing, report, top=_TOP_OF_EMPTY):
            _axis(plot)
            _labels(plot)
            floors = [plot.top + row.top + row.height for row in plot.rows if row.kind != "heading"]
            drawing.lines("lanes", [[(plot.left, y), (plot.right, y)] for y in floors], drawing.theme.soft, 1)
            _bars(plot, _phases(drawn), only="syn")
        _save(drawing, path, form="svg", about={"Date": None, "Creator": "conchart"})


def _write(report: Report, path: Path, options: DrawOptions, *, form: str, about: dict[str, str | None]) -> None:
    with _settings():
        drawing = _Drawing(options)
        _draw(drawing, report)
        _save(drawing, path, form=form, about=about)


def _save(drawing: "_Drawing", path: Path, *, form: str, about: dict[str, str | None]) -> None:
    drawing.figure.savefig(path, format=form, dpi=72, metadata=about)


@contextmanager
def _settings() -> Iterator[None]:
    """Draw as matplotlib does for everybody, and without its warnings of characters that its font lacks."""
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        # Glyphs are paths: a picture looks the same where the font is missing, and nothing overlaps.
        mpl.rcParams.update({"svg.hashsalt": "conchart", "svg.fonttype": "path", "text.parse_math": False})
        mpl.rcParams["hatch.linewidth"] = 1.6
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


class _Drawing:
    """A sheet to draw on, from the upper left corner."""

    def __init__(self, options: DrawOptions, *, scale: float | None = None) -> None:
        across, down = options.size
        self.scale = scale or min(across / 1600, down / 900)
        self.width, self.height = across / self.scale, down / self.scale
        self.theme = DARK if options.dark else LIGHT
        self.figure = Figure(figsize=(across / 72, down / 72), dpi=72, facecolor=self.theme.paper)
        self._renderer: RendererAgg = FigureCanvasAgg(self.figure).get_renderer()  # type: ignore[no-untyped-call]
        self.axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set_axis_off()
        self.axes.set_xlim(0, self.width)
        self.axes.set_ylim(self.height, 0)

    def width_of(self, text: str, size: float, *, bold: bool = False) -> float:
        """Measure a text."""
        font = FontProperties(size=size * self.scale, weight="bold" if bold else "normal")
        across, _, _ = self._renderer.get_text_width_height_descent(text, font, False)  # type: ignore[no-untyped-call]
        return float(across) / self.scale

    def fit(self, text: str, room: float, size: float, *, bold: bool = False) -> str:
        """Cut a text so that it fits, with ``…``."""
        if self.width_of(text, size, bold=bold) <= room:
            return text
        least, most = 0, len(text)
        while least < most:
            middle = (least + most + 1) // 2
            fits = self.width_of(f"{text[:middle].rstrip()}…", size, bold=bold) <= room
            least, most = (middle, most) if fits else (least, middle - 1)
        return f"{text[:least].rstrip()}…"

    def text(
        self, x: float, y: float, text: str, size: float, *, bold: bool = False, soft: bool = False, align: str = "left"
    ) -> None:
        """Write a text whose middle is at ``y``."""
        written = self.axes.text(x, y, text, fontsize=size * self.scale, ha=align, va="center_baseline", zorder=_ABOVE)
        written.set(weight="bold" if bold else "normal", color=self.theme.soft if soft else self.theme.ink)
        if bold:  # Lines may pass behind a heading.
            written.set_bbox({"facecolor": self.theme.paper, "edgecolor": "none", "pad": self.scale})

    def boxes(self, name: str, boxes: Sequence[Box], colour: str, *, stripes: str | None = None) -> None:
        """Fill boxes, all alike; in SVG they are a group of this name."""
        if not boxes:
            return
        left, right, top, bottom = np.array(boxes).T
        corners = np.stack(
            [np.column_stack(pair) for pair in ((left, top), (right, top), (right, bottom), (left, bottom))], axis=1
        )
        self.shapes(name, corners, colour, stripes=stripes)

    def shapes(self, name: str, corners: Numbers, colour: str, *, stripes: str | None = None) -> None:
        """Fill shapes with as many corners each, all alike."""
        drawn = PolyCollection(list(corners), facecolors=colour, linewidths=0)
        if stripes:
            drawn.set(hatch="////", edgecolor=stripes)
        self._add(name, drawn)

    def lines(self, name: str, lines: Sequence[Sequence[tuple[float, float]]], colour: str, width: float) -> None:
        """Draw lines, all alike."""
        self._add(name, LineCollection(lines, colors=colour, linewidths=width * self.scale))

    def _add(self, name: str, drawn: PolyCollection | LineCollection) -> None:
        """Draw over what is there already; matplotlib would have lines over shapes."""
        drawn.set(gid=name, zorder=len(self.axes.collections))
        self.axes.add_collection(drawn, autolim=False)


def _draw(drawing: _Drawing, report: Report) -> None:
    _title(drawing, report)
    if not (plot := _plot(drawing, report, top=_TOP)):
        drawing.text(drawing.width / 2, drawing.height / 2, "no connections", 22, soft=True, align="center")
        return
    drawn = report.swimlanes
    phases = _phases(drawn)
    _axis(plot)
    _labels(plot)
    shown = _bars(plot, phases) | _strips(plot, phases)
    stalled = _stalls(plot, drawn.stalls)
    linked, unlinked = _links(plot, drawn.links)
    _legend(drawing, shown, stalled=stalled, linked=linked)
    _footnote(plot, report.overview.connections - len(drawn.lanes), unlinked)


def _plot(drawing: _Drawing, report: Report, *, top: float) -> _Plot | None:
    """Lay the lanes below ``top``; None where there are none."""
    drawn, axis = report.swimlanes, report.axis
    if not drawn.lanes:
        return None
    laid = lay_rows(drawn.lanes, drawn.servers, drawing.height - top - _FOOT)
    labels = [drawing.width_of(row.label, _label_size(row)) for row in laid if row.kind == "track" and row.label]
    left = MARGIN + min(_MOST_LABEL, max([_LEAST_LABEL, *labels])) + _BESIDE
    return _Plot(drawing=drawing, rows=laid, axis=axis, span=max(1, axis.span), left=left, top=top)


def _title(drawing: _Drawing, report: Report) -> None:
    """Write the names of the captures, what users waited for, and what is wrong."""
    room = drawing.width - 2 * MARGIN
    title = title_of([file.path for file in report.files])
    drawing.text(MARGIN, 36, drawing.fit(title, room, 27, bold=True), 27, bold=True)
    facts = [f"{count_of(report.overview.connections, 'connection')} in {format_ns(report.captured_ns)}"]
    for server in headline(report.servers(1))[:1]:
        parts = ", ".join(f"{part.words} {share}" for part, share in shares(server))
        called = f" ({server.title})" if server.title else ""
        facts.append(f"waited {format_ns(server.waited_ns)} for {server.endpoint}{called}: {parts}")
    drawing.text(MARGIN, 70, drawing.fit(" · ".join(facts), room, 17), 17, soft=True)
    drawing.text(MARGIN, 98, _findings(drawing, report, room), 17)


def _findings(drawing: _Drawing, report: Report, room: float) -> str:
    """As many findings as one line holds, worst first; the last words say how many there are besides."""
    titles = [
        f"{one.severity}: {one.title}" + (f" (×{one.count})" if one.count > 1 else "")
        for one in tally_findings(report.findings)
    ]
    if not titles:
        return "Findings: none"
    for shown in range(len(titles), 0, -1):
        left = len(titles) - shown
        more = f" · and {format_count(left)} more" if left else ""
        line = f"Findings: {' · '.join(titles[:shown])}"
        if drawing.width_of(line + more, 17) <= room:
            return line + more
    return drawing.fit(line, room - drawing.width_of(more, 17), 17) + more


def _phases(drawn: Swimlanes) -> _Phases:
    """They touch: the durations say where each begins."""
    lane, duration = np.asarray(drawn.phases.lane), np.asarray(drawn.phases.duration, dtype=np.int64)
    first = np.searchsorted(lane, np.arange(len(drawn.lanes) + 1))
    opened = np.array([lane.opened for lane in drawn.lanes], dtype=np.int64)
    # In one sum over all lanes, what came before a lane is taken off again.
    before = np.concatenate([[0], np.cumsum(duration)])
    start = before[:-1] - before[first[lane]] + opened[lane]
    return _Phases(
        first=first,
        kind=np.asarray(drawn.phases.kind),
        start=start,
        end=start + duration,
        inferred=np.asarray(drawn.phases.inferred, dtype=bool),
    )


def _axis(plot: _Plot) -> None:
    drawing = plot.drawing
    step = tick_step(plot.span, max(2, int((plot.right - plot.left) // 110)))
    ticks = range(0, plot.span + 1, step)
    drawing.lines(
        "grid", [[(plot.x(at), plot.top - 6), (plot.x(at), plot.bottom)] for at in ticks], drawing.theme.line, 1
    )
    for at in ticks:
        text = format_tick(at, step)
        middle = min(plot.x(at), plot.right - drawing.width_of(text, 15) / 2)
        drawing.text(middle, plot.top - 18, text, 15, soft=True, align="center")
    drawing.text(plot.left - 24, plot.top - 18, "since the start", 13, soft=True, align="right")
    for fold in plot.axis.folds:
        place = plot.x(fold.at)
        drawing.lines("fold", [[(place, plot.top - 6), (place, plot.bottom)]], drawing.theme.soft, 2)
        drawing.text(place, plot.top - 4, f"≈ {fold.says}", 13, soft=True, align="center")


def _labels(plot: _Plot) -> None:
    drawing = plot.drawing
    for row in plot.rows:
        top = plot.top + row.top
        if row.kind == "heading":
            text = drawing.fit(row.label, plot.right - MARGIN, 17, bold=True)
            drawing.text(MARGIN, top + row.height / 2, text, 17, bold=True)
        elif row.kind == "track" and row.label:
            size = _label_size(row)
            text = drawing.fit(row.label, plot.left - _BESIDE - MARGIN, size)
            middle = top + max(row.height, LEAST_LABELLED) / 2
            drawing.text(plot.left - _BESIDE, middle, text, size, soft=True, align="right")


def _label_size(row: Row) -> float:
    """Higher lanes have larger labels, up to what a slide wants."""
    return min(18.0, max(13.0, 0.45 * row.height))


def _bars(plot: _Plot, phases: _Phases, *, only: str | None = None) -> Shown:
    """Draw the phases of all lanes, or those of one kind; return what there is."""
    tracks = [(row, _of_lanes(phases, row.lanes)) for row in plot.tracks]
    every = sum(len(places) for _, places in tracks) <= MOST_BARS
    boxes: dict[tuple[int, bool], list[Box]] = {}
    for row, places in tracks:
        top = plot.top + row.top
        for kind, inferred, left, right in (_exact if every else _by_pixel)(plot, phases, places):
            if only not in {None, PHASES[kind].name}:
                continue
            inset = row.height * (0.36 if PHASES[kind].name == "idle" else 0.06 if row.height < 12 else 0.14)
            boxes.setdefault((kind, inferred), []).append((left, right, top + inset, top + row.height - inset))
    for (kind, inferred), found in sorted(boxes.items()):
        _phase_boxes(plot.drawing, PHASES[kind], found, inferred=inferred)
    return set(boxes)


def _phase_boxes(drawing: _Drawing, phase: PhaseKind, boxes: Sequence[Box], *, inferred: bool) -> None:
    stripes = "#444444" if phase.hatched else "#ffffffd9" if inferred else None
    drawing.boxes(f"phase-{phase.name}{'-inferred' if inferred else ''}", boxes, phase.colour, stripes=stripes)


def _of_lanes(phases: _Phases, lanes: Sequence[int]) -> Numbers:
    """Where the phases of lanes are in the columns."""
    return np.concatenate([np.arange(phases.first[lane], phases.first[lane + 1]) for lane in lanes])


def _exact(plot: _Plot, phases: _Phases, places: Numbers) -> Iterator[tuple[int, bool, float, float]]:
    """Give each phase as it is, at least a pixel wide."""
    columns = (phases.kind, phases.inferred, phases.start, phases.end)
    for kind, inferred, start, end in zip(*(column[places].tolist() for column in columns), strict=True):
        yield kind, inferred, plot.x(start), max(plot.x(end), plot.x(start) + 1)


def _by_pixel(plot: _Plot, phases: _Phases, places: Numbers) -> Iterator[tuple[int, bool, float, float]]:
    """Give what is wide enough as it is; of the rest, for each pixel the kind that fills most of it."""
    duration = phases.end[places] - phases.start[places]
    pixel_ns = plot.span / (plot.right - plot.left)
    narrow = duration < 1.5 * pixel_ns
    yield from _exact(plot, phases, places[~narrow])
    pixel = ((phases.start[places] + duration / 2) / pixel_ns)[narrow].astype(np.int64)
    filled = np.zeros((int(pixel.max(initial=0)) + 2, len(PHASES)))
    np.add.at(filled, (pixel, phases.kind[places][narrow]), duration[narrow] + 1)
    most = np.where(filled.any(axis=1), filled.argmax(axis=1), -1)
    edges = np.flatnonzero(np.diff(most, prepend=-1)).tolist()
    for left, right in zip(edges, edges[1:], strict=False):
        if most[left] >= 0:
            yield int(most[left]), False, plot.left + left, plot.left + right


def _strips(plot: _Plot, phases: _Phases) -> Shown:
    """Of folded servers, draw how many connections are in which phase, those of interest at the bottom."""
    shown: Shown = set()
    edges = np.linspace(0, plot.span, max(2, int((plot.right - plot.left) / PART)) + 1)
    for row in plot.strips:
        places = _of_lanes(phases, row.lanes)
        counts = np.array([_density(phases, places[phases.kind[places] == kind], edges) for kind in range(len(PHASES))])
        most = max(1.0, float(counts.sum(axis=0).max()))
        bottom, high = plot.top + row.top + row.height - 2, (row.height - 4) / most
        below = np.zeros(len(edges) - 1)
        for kind, levels in enumerate(counts):
            steps = zip(edges.tolist(), edges[1:].tolist(), below.tolist(), levels.tolist(), strict=False)
            boxes = [
                (plot.x(start), plot.x(end), bottom - (low + level) * high, bottom - low * high)
                for start, end, low, level in steps
                if level * high > _LEAST_STEP
            ]
            if boxes:
                _phase_boxes(plot.drawing, PHASES[kind], boxes, inferred=False)
                shown.add((kind, False))
            below = below + levels
        text = f"up to {format_count(round(most))} open"
        plot.drawing.text(plot.left - _BESIDE, plot.top + row.top + 9, text, 13, soft=True, align="right")
    return shown


def _density(phases: _Phases, places: Numbers, edges: Numbers) -> Numbers:
    """Between each two of the edges: how many of these phases there are, by their time."""

    def passed(instants: Numbers) -> Numbers:
        """How long ago the instants before an edge were, added up."""
        ordered = np.sort(instants).astype(np.float64)
        before = np.searchsorted(ordered, edges)
        return np.asarray(before * edges - np.concatenate([[0.0], np.cumsum(ordered)])[before])

    spent = passed(phases.start[places]) - passed(phases.end[places])
    return np.asarray(np.diff(spent) / np.diff(edges))


def _stalls(plot: _Plot, stalls: Sequence[LaneStall]) -> list[str]:
    """Draw where lanes were stalled, over a bar's lower edge and all of an idle one; return the words there are."""
    row_of = plot.row_of
    boxes: dict[str, list[Box]] = {}
    for stall in stalls:
        if (row := row_of.get(stall.lane)) and (stall.word in COLOURS or not stall.idle):
            left, top = plot.x(stall.start), plot.top + row.top
            right = max(plot.x(stall.start + stall.duration), left + 1)
            above = 0.14 if stall.idle else 0.6 if row.height < 12 else 0.7
            boxes.setdefault(stall.word, []).append((left, right, top + above * row.height, top + 0.96 * row.height))
    for word, drawn in boxes.items():
        plot.drawing.boxes(f"stalls-{word}", drawn, COLOURS.get(word, plot.drawing.theme.ink))
    return sorted(boxes)


def _links(plot: _Plot, links: Sequence[Link]) -> tuple[bool, int]:
    """Draw a line from each front to the back that it caused, when that was asked; return how many are not drawn."""
    row_of, drawing = plot.row_of, plot.drawing
    ends = [
        (row_of[link.lane], row_of[link.back_lane], link.at)
        for link in links
        if link.lane in row_of and link.back_lane in row_of
    ]
    if len(ends) > MOST_LINKS:
        ends = []
    lines, tips = [], []
    for front, back, at in ends:
        x, down = plot.x(at), back.top > front.top
        start = plot.top + front.top + front.height * (0.86 if down else 0.14)
        end = plot.top + back.top + back.height * (0.14 if down else 0.86)
        lines.append([(x, start), (x, end)])
        tips.append([(x, end), (x - 3.5, end - (8 if down else -8)), (x + 3.5, end - (8 if down else -8))])
    if ends:
        drawing.lines("links", lines, drawing.theme.soft, 1)
        drawing.shapes("link-ends", np.array(tips), drawing.theme.ink)
    return bool(ends), len(links) - len(ends)


def _legend(drawing: _Drawing, shown: Shown, *, stalled: list[str], linked: bool) -> None:
    """Say what the colours and lines mean that there are."""
    x, y, side = MARGIN, 128.0, 15.0
    ink, soft = drawing.theme.ink, drawing.theme.soft
    for kind in sorted({kind for kind, _ in shown}):
        drawing.boxes(
            "legend",
            [(x, x + side, y - side / 2, y + side / 2)],
            PHASES[kind].colour,
            stripes="#444444" if PHASES[kind].hatched else None,
        )
        x = _named(drawing, x + side, y, PHASES[kind].title)
    if any(inferred for _, inferred in shown):
        drawing.boxes("legend", [(x, x + side, y - side / 2, y + side / 2)], soft, stripes="#ffffffd9")
        x = _named(drawing, x + side, y, "inferred")
    for word in stalled:
        drawing.boxes("legend", [(x, x + side, y + 1, y + 6)], COLOURS.get(word, ink))
        x = _named(drawing, x + side, y, word)
    if linked:
        drawing.lines("legend", [[(x + side / 2, y - side / 2), (x + side / 2, y + side / 2)]], ink, 1)
        _named(drawing, x + side, y, "caused behind the proxy")


def _named(drawing: _Drawing, x: float, y: float, title: str) -> float:
    drawing.text(x + 6, y, title, 15)
    return x + 6 + drawing.width_of(title, 15) + 22


def _footnote(plot: _Plot, left_out: int, unlinked: int) -> None:
    """Say what the picture sums up or lacks."""
    drawing = plot.drawing
    notes = []
    if folded := sum(len(row.lanes) for row in plot.strips):
        notes.append(f"of {count_of(folded, 'connection')} it is shown how many are in which phase")
    if left_out:
        notes.append(f"{count_of(left_out, 'connection')} with less to wait for left out")
    if unlinked:
        notes.append(f"{count_of(unlinked, 'link')} between front and backend not drawn")
    text = drawing.fit("; ".join(notes), drawing.width - 2 * MARGIN - 90, 13)
    drawing.text(MARGIN, drawing.height - 16, text, 13, soft=True)
    drawing.text(drawing.width - MARGIN, drawing.height - 16, "conchart", 13, soft=True, align="right")
