"""Pictures: the bars of the tables at their places, nothing silently missing, text that is only text."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import matplotlib as mpl
import pytest
from PIL import Image, ImageColor

import conchart
from conchart import DrawOptions, Trace, UsageError
from conchart.labels.phases import PHASE_BY_NAME, PHASES
from conchart.outputs.pictures import write_svg
from conchart.outputs.pictures.picture import DARK, LIGHT
from conchart.outputs.pictures.picture_rows import LEAST_LANE, lay_rows
from conchart.report.axis import TimeAxis
from conchart.report.report import Report
from conchart.report.swimlanes import Lane, LaneStall, Link, Phases, Swimlanes
from tests.charts.crowd import crowd
from tests.conftest import ROOT, analysed, empty_trace

SVG = "{http://www.w3.org/2000/svg}"
SMALL = ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap"


def drawn(trace: Trace, folder: Path, **options: object) -> ElementTree.Element:
    trace.write(folder / "out.svg", options=DrawOptions(**options))  # type: ignore[arg-type]
    return ElementTree.fromstring((folder / "out.svg").read_text())


def shapes(image: ElementTree.Element, name: str) -> list[list[tuple[float, float]]]:
    """Give the corners of what is in the groups of this name."""
    groups = [group for group in image.iter(f"{SVG}g") if re.fullmatch(name, group.get("id", ""))]
    paths = [path.get("d", "") for group in groups for path in group.iter(f"{SVG}path")]
    return [[(float(x), float(y)) for x, y in re.findall(r"[ML] ([\d.-]+) ([\d.-]+)", path)] for path in paths]


def bars(image: ElementTree.Element, name: str) -> list[tuple[float, float]]:
    """Give left and right of each bar in the group of this name."""
    return sorted((min(x for x, _ in corners), max(x for x, _ in corners)) for corners in shapes(image, name))


def written(folder: Path) -> str:
    return "\n".join(re.findall(r"<!-- (.*?) -->", (folder / "out.svg").read_text(), re.DOTALL))


@pytest.mark.parametrize("size", [(1600, 900), (3200, 1800), (1000, 1000)])
def test_every_phase_is_a_bar_at_its_place(tmp_path: Path, size: tuple[int, int]) -> None:
    with conchart.read(SMALL) as trace:
        image = drawn(trace, tmp_path, size=size)
        phases = trace.sql("SELECT kind, inferred, start_at, end_at FROM phases").fetchall()
        ((start, end),) = trace.sql("SELECT min(opened_at), max(closed_at) FROM connections").fetchall()
    ends = [x for kind in PHASES for bar in bars(image, f"phase-{kind.name}(-inferred)?") for x in bar]
    left, right = min(ends), max(ends)
    wanted: dict[str, list[tuple[float, float]]] = {}
    for kind, inferred, start_at, end_at in phases:
        name = f"phase-{kind}{'-inferred' if inferred else ''}"
        x, until = (left + (at - start) * (right - left) / (end - start) for at in (start_at, end_at))
        wanted.setdefault(name, []).append((x, max(until, x + size[0] / 1600)))
    assert len(wanted) >= 6
    tolerance = 1.5 * size[0] / 1600  # the last bar may be a pixel wider than its time
    for name, places in wanted.items():
        found = bars(image, name)
        assert len(found) == len(places), name
        for (x, until), (a, b) in zip(found, sorted(places), strict=True):
            assert abs(x - a) < tolerance, name
            assert abs(until - b) < tolerance, name


def test_bars_have_the_colours_of_the_page(story: Trace, tmp_path: Path) -> None:
    drawn(story, tmp_path)
    text = (tmp_path / "out.svg").read_text()
    for (kind,) in story.sql("SELECT DISTINCT kind FROM phases").fetchall():
        assert PHASE_BY_NAME[kind].colour.lower() in text
        assert PHASE_BY_NAME[kind].title in written(tmp_path)


def test_the_other_colours_are_the_page_s() -> None:
    css = (ROOT / "conchart/outputs/page/templates/page.css").read_text()
    light, dark = (dict(re.findall(r"--(paper|ink|soft|line): (#\w+);", part)) for part in css.split("@media")[:2])
    for theme, colours in ((LIGHT, light), (DARK, dark)):
        assert {name: getattr(theme, name) for name in colours} == colours
        assert len(colours) == 4


def test_it_says_what_the_page_says_first(tmp_path: Path) -> None:
    with conchart.read(SMALL) as trace:
        image = drawn(trace, tmp_path)
        ((title, count),) = trace.sql(
            "SELECT title, count(*) OVER () FROM findings WHERE root IS NULL LIMIT 1"
        ).fetchall()
    texts = written(tmp_path)
    for text in ("https-no-keepalive/input.pcap", "6 connections in 337 ms", "waited 304 ms for 10.77.1.1:443"):
        assert text in texts
    assert title in texts
    assert count > 2
    assert "more" in texts
    assert "10.77.1.1:443  shop.example  (front)" in texts
    assert len(shapes(image, "link-ends")) == 3
    assert shapes(image, "stalls-held")
    assert shapes(image, "stalls-limited")


def test_links_lead_from_the_front_to_the_back(tmp_path: Path) -> None:
    with conchart.read(SMALL) as trace:
        image = drawn(trace, tmp_path)
        requests = trace.sql(
            "SELECT opened_at FROM links JOIN connections ON stream = back_stream ORDER BY opened_at"
        ).fetchall()
        ((start, end),) = trace.sql("SELECT min(opened_at), max(closed_at) FROM connections").fetchall()
    ends = [x for kind in PHASES for bar in bars(image, f"phase-{kind.name}(-inferred)?") for x in bar]
    left, right = min(ends), max(ends)
    places = sorted(corners[0][0] for corners in shapes(image, "links"))
    assert places == pytest.approx(
        [left + (at - start) * (right - left) / (end - start) for (at,) in requests], abs=1.5
    )


def test_names_stay_out_where_they_are_not_wanted(tmp_path: Path) -> None:
    with conchart.read(SMALL) as trace:
        drawn(trace, tmp_path, names=False)
    assert "shop.example" not in written(tmp_path)


def test_a_picture_is_drawn_without_a_database(tmp_path: Path) -> None:
    lanes = tuple(
        Lane(group=0, client="10.0.0.1", label=f"{stream}  10.0.0.1:500{stream}", opened=stream, closed=stream + 100)
        for stream in range(2)
    )
    wait, transfer = (PHASES.index(PHASE_BY_NAME[name]) for name in ("wait", "transfer"))
    phases = Phases(lane=[0, 0, 1], kind=[wait, transfer, wait], duration=[60, 40, 100], inferred=[False, False, True])
    held = LaneStall(lane=1, word="held", idle=False, start=20, duration=30)
    parts: dict[str, object] = {
        "files": (),
        "overview": SimpleNamespace(connections=5),
        "captured_ns": 101,
        "servers": lambda most: [],  # noqa: ARG005
        "findings": [],
        "axis": TimeAxis(origin=0, span=101, folds=()),
        "swimlanes": Swimlanes(
            servers=("10.0.0.9:80  shop.example  (server)",),
            lanes=lanes,
            phases=phases,
            stalls=(held,),
            links=(Link(lane=0, back_lane=1, at=1), Link(lane=0, back_lane=None, at=1)),
        ),
    }
    write_svg(Report.of(parts), tmp_path / "out.svg", DrawOptions())
    image = ElementTree.parse(tmp_path / "out.svg").getroot()
    ((waits_from, waits_until),) = bars(image, "phase-wait")
    ((transfers_from, _),) = bars(image, "phase-transfer")
    assert transfers_from == pytest.approx(waits_until)
    assert len(bars(image, "phase-wait-inferred")) == len(shapes(image, "link-ends")) == 1
    ((stalled_from, _),) = bars(image, "stalls-held")
    assert stalled_from > waits_from
    for text in ("10.0.0.9:80  shop.example  (server)", "1  10.0.0.1:5001", "Findings: none", "inferred"):
        assert text in written(tmp_path)
    left_out = "3 connections with less to wait for left out; 1 link between front and backend not drawn"
    assert left_out in written(tmp_path)


@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_same_tables_give_the_same_bytes(story: Trace, tmp_path: Path, suffix: str) -> None:
    story.write(tmp_path / f"one{suffix}")
    with mpl.rc_context({"font.size": 30, "svg.fonttype": "none", "text.parse_math": True, "axes.facecolor": "red"}):
        story.write(tmp_path / f"two{suffix}")
    assert (tmp_path / f"one{suffix}").read_bytes() == (tmp_path / f"two{suffix}").read_bytes()


@pytest.mark.parametrize(("size", "dark"), [((1600, 900), False), ((333, 301), True), ((1921, 1081), True)])
def test_png_has_its_size_and_its_paper(story: Trace, tmp_path: Path, size: tuple[int, int], *, dark: bool) -> None:
    story.write(tmp_path / "out.png", options=DrawOptions(size=size, dark=dark))
    with Image.open(tmp_path / "out.png") as image:
        assert image.size == size
        paper = (DARK if dark else LIGHT).paper
        assert image.convert("RGB").getpixel((size[0] - 1, size[1] - 1)) == ImageColor.getrgb(paper)
        colours = {colour for _, colour in image.convert("RGB").getcolors(1 << 24) or []}
    for (kind,) in story.sql("SELECT DISTINCT kind FROM phases WHERE kind IN ('wait', 'tls')").fetchall():
        assert ImageColor.getrgb(PHASE_BY_NAME[kind].colour) in colours


def test_the_format_may_be_named(story: Trace, tmp_path: Path) -> None:
    story.write(tmp_path / "one.png")
    story.write(tmp_path / "other.bin", format="png")
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "other.bin").read_bytes()


HOSTILE = "$\\frac{1}{0}$ <script>alert(1)</script> --> \x1b[2J\u202e & \U0001f600 %s {x}"


@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_hostile_text_is_only_text(story: Trace, tmp_path: Path, suffix: str) -> None:
    story.execute("UPDATE captures SET path = $1", [f"{HOSTILE}.pcap"])
    story.execute("UPDATE connections SET server_name = $1", [HOSTILE])
    story.execute("UPDATE findings SET title = $1", [HOSTILE])
    analysed(story)
    story.write(tmp_path / f"out{suffix}")
    if suffix == ".svg":
        text = (tmp_path / "out.svg").read_text()
        assert {element.tag for element in ElementTree.fromstring(text).iter()}.isdisjoint({f"{SVG}script", "script"})
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "$\\frac{1}{0}$" in text, "told as it is, not set as mathematics"


def test_an_empty_capture_is_a_picture_too(tmp_path: Path) -> None:
    with empty_trace() as trace:
        trace.write(tmp_path / "out.svg")
    assert "no connections" in written(tmp_path)


@pytest.fixture(scope="module")
def crowded() -> Iterator[Trace]:
    """Many connections to 24 servers, hundreds at once."""
    with empty_trace() as trace:
        crowd(trace, 2_000)
        yield analysed(trace)


def test_of_many_connections_it_is_counted_how_many_are_in_which_phase(crowded: Trace, tmp_path: Path) -> None:
    image = drawn(crowded, tmp_path)
    assert "of 2\u2009000 connections it is shown how many are in which phase" in written(tmp_path)
    assert re.search(r"\d+ more servers, [\d\u2009]+ connections", written(tmp_path))
    assert len(bars(image, "phase-tls")) > 100


def test_a_strip_has_the_shares_of_the_time(tmp_path: Path) -> None:
    with empty_trace() as trace:
        crowd(trace, 2_000)
        analysed(trace, "UPDATE connections SET server_ip = '10.9.0.1'")
        image = drawn(trace, tmp_path)
        times = dict(trace.sql("SELECT kind, sum(end_at - start_at) FROM phases GROUP BY kind").fetchall())

    def area(corners: list[tuple[float, float]]) -> float:
        across, down = ([corner[axis] for corner in corners] for axis in (0, 1))
        return (max(across) - min(across)) * (max(down) - min(down))

    areas = {kind: sum(map(area, shapes(image, f"phase-{kind}"))) for kind in times}
    for kind, time in times.items():
        assert areas[kind] / sum(areas.values()) == pytest.approx(time / sum(times.values()), abs=0.01), kind
    assert "10.9.0.1:443" in written(tmp_path)


def test_one_connection_with_very_many_phases_is_drawn_by_pixel(tmp_path: Path) -> None:
    with empty_trace() as trace:
        crowd(trace, 1)
        trace.execute(
            """
            CREATE TEMP TABLE opened AS SELECT opened_at FROM connections;
            DELETE FROM phases;
            INSERT INTO phases BY NAME SELECT 0 AS stream, CASE i % 2 WHEN 0 THEN 'wait' ELSE 'idle' END AS kind,
                opened_at + i * 1000 + (i > 30000)::INT * 1000000 AS start_at,
                start_at + CASE WHEN i = 30000 THEN 1001000 ELSE 1000 END AS end_at,
                i AS start_frame, i AS end_frame, false AS inferred
            FROM range(40000) AS t(i), opened ORDER BY i;
            UPDATE connections SET closed_at = (SELECT max(end_at) FROM phases)
            """
        )
        image = drawn(analysed(trace), tmp_path)
    waits, idles = bars(image, "phase-wait"), bars(image, "phase-idle")
    assert 0 < len(waits) + len(idles) < 3_000
    assert max(right - left for left, right in waits) > 20, "the wait of a millisecond is a bar of its own"


def lane(opened: int, closed: int, group: int = 0, client: str = "10.0.0.5") -> Lane:
    return Lane(group=group, client=client, label=f"{client}:{opened}", opened=opened, closed=closed)


@pytest.mark.parametrize("count", [1, 9, 40, 400, 4_000])
@pytest.mark.parametrize("servers", [1, 5, 60])
@pytest.mark.parametrize("length", [3, 300, 10**6])
def test_every_connection_is_in_one_row_and_all_rows_fit(count: int, servers: int, length: int) -> None:
    lanes = sorted(
        (lane(10 * n, 10 * n + length, n % servers, f"10.0.0.{n % 7}") for n in range(count)), key=lambda at: at.group
    )
    rows = lay_rows(lanes, [f"server {n}" for n in range(servers)], 690)
    drawn_in = [row for row in rows if row.kind != "heading"]
    assert sorted(place for row in drawn_in for place in row.lanes) == list(range(count))
    assert sorted(place for row in rows if row.kind == "heading" for place in row.lanes) == list(range(count))
    for above, below in zip(rows, rows[1:], strict=False):
        assert below.top >= above.top + above.height - 1e-6
    assert rows[-1].top + rows[-1].height <= 690 + 1e-6
    for row in drawn_in:
        assert row.height >= LEAST_LANE - 1e-6
        if row.kind == "track":
            spans = sorted((lanes[place].opened, lanes[place].closed) for place in row.lanes)
            assert all(one[1] <= other[0] for one, other in zip(spans, spans[1:], strict=False))


def test_without_matplotlib_it_is_said_how_to_get_it(
    story: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError, match=r"pip install 'conchart\[pictures\]'"):
        story.write(tmp_path / "out.png")
    assert not list(tmp_path.iterdir())
