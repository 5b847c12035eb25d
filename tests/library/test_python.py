"""The library: stable names, types for a user's mypy, what a notebook shows, data frames."""

import html
import re
import subprocess
import sys
from pathlib import Path

import pytest

import conchart
from conchart import MissingToolError, Trace, UsageError
from conchart.labels.phases import PHASES
from tests.conftest import ROOT

CAPTURE = ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap"
SCRIPT = Path(__file__).with_name("script.py.txt")
T0 = 1_700_000_000_123_456_789


def checked(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Have mypy check a script as a user's: from a folder of its own, with settings of its own."""
    pytest.importorskip("mypy")
    (folder / "script.py").write_text(script)
    (folder / "mypy.ini").write_text("[mypy]\nstrict = True\n")
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--no-incremental", "script.py"]
    return subprocess.run(
        command, cwd=folder, env={"MYPYPATH": str(ROOT), "PATH": ""}, capture_output=True, text=True, check=False
    )


@pytest.mark.thorough
@pytest.mark.timeout(180)
def test_a_users_mypy_understands_a_script(tmp_path: Path) -> None:
    ended = checked(SCRIPT.read_text(), tmp_path)
    # Plotly has no types of its own: what a user sees of a figure is Any.
    lines = [line for line in ended.stdout.splitlines() if line.startswith("script.py")]
    assert lines == []


@pytest.mark.thorough
@pytest.mark.timeout(180)
def test_a_users_mypy_finds_a_wrong_argument(tmp_path: Path) -> None:
    wrong = SCRIPT.read_text().replace("count=1000", 'count="many"').replace("most=3", 'most="all"')
    found = set(re.findall(r"^script\.py:\d+: error: .*\[([\w-]+)\]$", checked(wrong, tmp_path).stdout, re.M))
    assert found == {"arg-type"}


def test_the_stable_names_are_the_documented_ones() -> None:
    text = (ROOT / "docs/python.md").read_text(encoding="utf-8")
    assert (ROOT / "conchart/py.typed").exists()
    for name in conchart.__all__:
        assert re.search(rf"\b{name}\b", text), name
        assert getattr(conchart, name).__doc__
    for name in ("load", "sql", "write", "chart", "close"):
        assert f"Trace.{name}" in text
        assert getattr(Trace, name).__doc__


@pytest.fixture
def trace() -> Trace:
    return conchart.read(CAPTURE)


def test_a_notebook_shows_the_answer(trace: Trace) -> None:
    with trace:
        shown = trace._repr_html_()
    assert shown.count("<tr>") > 5
    assert "users waited 304 ms" in shown
    assert "No keepalive: the server closes the connection after every response" in shown
    assert trace._repr_html_() == "<p>This trace is closed.</p>"


def test_text_from_a_capture_is_no_markup_in_a_notebook(story: Trace) -> None:
    hostile = "<img src=x onerror=alert(1)>\x1b[2J"
    story.execute("UPDATE connections SET server_name = ?", [hostile])
    story.execute("UPDATE servers SET names = [?]", [hostile])
    figure = pytest.importorskip("plotly") and story.chart()
    for text in (story._repr_html_(), *figure.layout.yaxis.categoryarray):
        assert "<img" not in text
        assert "\x1b" not in text
    assert any(html.escape("<img src=x onerror=alert(1)>") in lane for lane in figure.layout.yaxis.categoryarray)


def test_a_chart_has_every_phase_of_every_connection_to_the_nanosecond(story: Trace) -> None:
    pytest.importorskip("plotly")
    figure = story.chart()
    drawn = {
        (bar.name, round(base * 1e6), round(length * 1e6))
        for bar in figure.data
        for base, length in zip(bar.base, bar.x, strict=True)
    }
    titles = {phase.name: phase.title for phase in PHASES}
    phases = story.fetch("SELECT kind, start_at, end_at - start_at FROM phases WHERE end_at > start_at")
    assert drawn == {(titles[kind], start - T0, ns) for kind, start, ns in phases}
    assert {bar.marker.color for bar in figure.data} <= {phase.colour for phase in PHASES}
    assert figure.layout.title.text == "3 connections"
    assert "Plotly.newPlot" in figure._repr_html_()


def test_a_chart_says_how_many_connections_it_leaves_out(trace: Trace) -> None:
    pytest.importorskip("plotly")
    with trace:
        figure = trace.chart(most=2)
        worst = trace.fetch("SELECT stream FROM connections ORDER BY waited_ns DESC NULLS LAST, stream LIMIT 2")
        assert figure.layout.title.text == "2 of 6 connections, the longest waits"
        assert [lane.split(" ")[0] for lane in figure.layout.yaxis.categoryarray] == [
            str(stream) for (stream,) in worst
        ]
        with pytest.raises(UsageError, match="from 1 on, not 0"):
            trace.chart(most=0)


def test_a_chart_without_plotly_names_the_extra(story: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "plotly"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(MissingToolError, match=r"conchart\[charts\]"):
        story.chart()


QUERY = "SELECT stream, number, request_at, wait_ns, protocol FROM exchanges ORDER BY stream, number"


@pytest.mark.filterwarnings("default::DeprecationWarning")
def test_relations_become_data_frames_with_exact_instants(story: Trace) -> None:
    pandas, polars, arrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    rows = story.sql(QUERY).fetchall()
    assert rows[0][2] > 1 << 53, "a float anywhere would show"
    table = story.sql(QUERY).to_arrow_table()
    assert isinstance(table, arrow.Table)
    assert [tuple(row.values()) for row in table.to_pylist()] == rows
    frame = story.sql(QUERY).pl()
    assert isinstance(frame, polars.DataFrame)
    assert frame.rows() == rows
    data = story.sql(QUERY).df()
    assert isinstance(data, pandas.DataFrame)
    assert list(data.itertuples(index=False, name=None)) == rows
    assert polars.DataFrame(story.sql(QUERY)).rows() == rows, "by Arrow's C stream alone"
