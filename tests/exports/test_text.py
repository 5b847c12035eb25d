"""The summary that the terminal shows."""

import io
import re
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

import conchart
from conchart import DrawOptions, Trace
from conchart.outputs.terminal import print_summary
from conchart.outputs.terminal.screen import LINES
from conchart.outputs.terminal.strip import Axis, draw_strip
from conchart.outputs.terminal.words import clipped
from conchart.report.axis import TimeAxis
from conchart.report.lanes import Lane, Stretch, stretches
from conchart.report.report import Report, report_of
from tests.charts.story import Story
from tests.conftest import MS, ROOT, T0, TellTrace, analysed, empty_trace

GOLDENS = {False: Path(__file__).with_name("story-brief.txt"), True: Path(__file__).with_name("story.txt")}
"""The first screen, and all there is to tell."""
LANE = re.compile(r" +\d+ 10\.0\.0\.1:")
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def shown(trace: Trace, *, width: int = 100, colours: bool = False, names: bool = True, verbose: bool = False) -> str:
    sink = io.StringIO()
    console = Console(
        file=sink, width=width, force_terminal=colours, color_system="truecolor" if colours else None, highlight=False
    )
    with report_of(trace, names=names) as report:
        print_summary(report, console, DrawOptions(verbose=verbose))
    return sink.getvalue()


@pytest.mark.parametrize("verbose", [False, True])
def test_story_reads_as_it_did(story: Trace, verbose: bool, pytestconfig: pytest.Config) -> None:
    text = shown(story, verbose=verbose)
    if pytestconfig.getoption("--update-golden"):
        GOLDENS[verbose].write_text(text, encoding="utf-8")
    assert text == GOLDENS[verbose].read_text(encoding="utf-8")


@pytest.mark.parametrize("verbose", [False, True])
def test_without_findings_nothing_says_what_is_wrong(verbose: bool, tmp_path: Path) -> None:
    with conchart.read(ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap") as trace:
        titles = [title for (title,) in trace.sql("SELECT title FROM findings").fetchall()]
        for suffix in ("txt", "html"):
            for findings in (True, False):
                path = tmp_path / f"page.{suffix}"
                trace.write(path, options=DrawOptions(findings=findings, verbose=verbose))
                text = path.read_text(encoding="utf-8")
                # A saved text breaks its lines.
                assert any(title[:40] in text for title in titles) == findings
                assert ("\nthe rest " in text or "The rest: " in text) == findings
                assert "304 ms" in text


def test_a_file_holds_what_the_terminal_shows(story: Trace, tmp_path: Path) -> None:
    for verbose in (False, True):
        story.write(tmp_path / "out.txt", options=DrawOptions(verbose=verbose))
        assert (tmp_path / "out.txt").read_text(encoding="utf-8") == shown(story, verbose=verbose)


def test_each_end_of_a_link_names_the_other(trace_of: TellTrace, proxy_story: Story) -> None:
    trace = trace_of(proxy_story)
    trace.execute(
        "INSERT INTO links BY NAME "
        "SELECT 1 AS front_stream, 5 AS back_stream, 'client-hello' AS method, 0.99 AS confidence"
    )
    lines = [line.strip() for line in shown(trace, verbose=True).splitlines()]
    request, steps = lines[lines.index(next(line for line in lines if "opened 0 ns after" in line)) + 2 :][:2]
    assert request.startswith("~tls turn 0: request")
    assert steps == (
        "caused tcp.stream eq 3 #0: proxy 1.59 ms, connecting 80.0 µs, request 31.0 µs, backend 19.0 ms, proxy 297 µs "
        "(by size, confidence 1.00)"
    )
    assert "caused by tcp.stream eq 0 #0 (by size, confidence 1.00)" in lines
    assert "handed on as tcp.stream eq 5 (by client-hello, confidence 0.99)" in lines
    assert "handed on from tcp.stream eq 1 (by client-hello, confidence 0.99)" in lines


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("colours", [False, True])
def test_charts_stay_within_the_width(story: Trace, width: int, colours: bool) -> None:
    text = ESCAPES.sub("", shown(story, width=width, colours=colours))
    charts = text[text.index("Where the time went") :].splitlines()
    assert max(cell_len(line) for line in charts) <= width
    assert max(cell_len(line) for line in charts) > width * 3 // 4, "and use it"


def test_colours_are_the_phases_colours(story: Trace) -> None:
    text = shown(story, colours=True)
    assert "38;2;213;94;0" in text, "tls"
    assert "TTTT" not in text
    assert "\x1b" not in shown(story)


def test_sixteen_colours_cannot_tell_phases_apart_so_letters_do(story: Trace) -> None:
    sink = io.StringIO()
    console = Console(file=sink, width=80, force_terminal=True, color_system="standard")
    print_summary(Report(story), console, DrawOptions())
    assert "TTTT" in sink.getvalue()


def test_names_come_from_the_capture_or_not_at_all(story: Trace) -> None:
    analysed(story, "UPDATE connections SET server_name = 'alias.example' WHERE stream = 1")
    assert "10.0.0.9:443  alias.example +1" in shown(story)
    assert "example" not in shown(story, names=False, verbose=True)


def test_hostile_text_is_disarmed(story: Trace) -> None:
    story.execute("UPDATE connections SET server_name = '[red]\x1b[2J\x07\u202e' || repeat('A', 500)")
    analysed(story, "UPDATE captures SET path = 'a\x1b]0;x\x07.pcap', notes = ['frame 3: \x1b[31m']")
    text = shown(story, verbose=True)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\u202e" not in text
    assert "[red]\ufffd[2J" in text
    assert max(cell_len(line) for line in text.splitlines()) < 400


def test_empty_capture_says_so() -> None:
    with empty_trace() as trace:
        text = shown(trace)
    assert "Nobody waited" in text
    assert "0 packets" in text
    assert "no connection" in text
    assert "Where the time went" not in text


def test_every_flaw_of_the_capture_is_told(story: Trace) -> None:
    analysed(
        story,
        "UPDATE captures SET dropped = 3, undecodable = 1, snapped = 5, duplicates = 2, selected = 1000, "
        "notes = ['frame 12: cut short\n  Do better.'];"
        "UPDATE connections SET missing_client = 1500, packets_client = 9, packets_server = 9, state = 'midstream' "
        "WHERE stream = 1",
    )
    text = " ".join(shown(story, verbose=True).split())
    for flaw in (
        "1 000 of 1 240 packets selected",
        "frame 12: cut short",
        "3 packets lost by the capturing machine",
        "1 500 bytes acknowledged but not captured, on 1 connection",
        "1 connection already open when the capture began",
        "1 frame with unreadable headers",
        "5 packets cut by the snap length: Capture whole packets",
        "2 packets captured twice",
    ):
        assert flaw in text.replace("\u2009", " ")
    assert "Do better" not in text
    brief = " ".join(shown(story).split())
    assert brief.count("3 packets lost by the capturing machine") == 1, "each thing once"
    assert "is unseen" not in brief, "it follows from the others"


def test_beyond_forty_lanes_those_waited_for_longest_are_drawn_and_the_rest_counted() -> None:
    with empty_trace() as trace:
        trace.execute(
            f"""
            INSERT INTO connections BY NAME
            SELECT i::INTEGER AS stream, '10.0.0.1' AS client_ip, (1000 + i)::INTEGER AS client_port,
                '10.0.0.2' AS server_ip, 80 AS server_port, 'open' AS state,
                {T0} AS opened_at, {T0} + i * 1000 AS closed_at
            FROM range(1, 101) r(i);
            INSERT INTO phases BY NAME
            SELECT stream, 'wait' AS kind, opened_at AS start_at, closed_at AS end_at FROM connections
            """
        )
        analysed(trace)
        lanes = [line for line in shown(trace, verbose=True).split("\n\ntcp")[0].splitlines() if LANE.match(line)]
        assert len(lanes) == 40
        assert lanes[0].split()[0] == "61", "those that cost the most, in the order of time"
        assert "… and 60 more connections, with less to wait for" in shown(trace, verbose=True)
        brief = shown(trace)
    lanes = [line for line in brief.splitlines() if LANE.match(line)]
    assert len(brief.splitlines()) == LINES, "lanes take the room that is left"
    assert [int(line.split()[0]) for line in lanes] == [*range(101 - len(lanes), 101)]
    assert f"… and {100 - len(lanes)} more connections, with less to wait for" in brief


def test_lanes_have_the_costliest_server_first_and_in_it_the_order_of_time(trace_of: TellTrace) -> None:
    story = Story()
    for at, (port, wait) in enumerate(((80, 1), (80, 5), (81, 3), (81, 4))):
        phases = [("request", MS), ("wait", wait * MS), ("transfer", MS), ("idle", (9 - wait) * MS)]
        story.connect(("10.0.0.1", 1000 + wait), ("10.0.0.2", port), at * MS, phases)
    story.capture()
    lanes = re.findall(r"^ +\d+ 10\.0\.0\.1:100(\d)", shown(trace_of(story)), re.MULTILINE)
    assert lanes == ["3", "4", "1", "5"], "port 81 cost 7 ms of waiting, port 80 6 ms; all lived as long"


def test_beyond_twelve_servers_the_rest_is_counted(story: Trace) -> None:
    story.execute("DELETE FROM connections; DELETE FROM phases; DELETE FROM handshakes; DELETE FROM exchanges")
    story.execute(
        f"""
        INSERT INTO connections BY NAME
        SELECT i::INTEGER AS stream, '10.0.0.1' AS client_ip, 1 AS client_port, '10.1.0.' || i AS server_ip,
            80 AS server_port, {T0} AS opened_at, {T0 + 5} AS closed_at, 'open' AS state
        FROM range(1, 21) r(i)
        """
    )
    analysed(story)
    assert "… and 8 more servers" in shown(story, verbose=True)
    assert "and 19 more servers like it: 19 connections" in shown(story)


def test_servers_that_are_alike_are_told_once(trace_of: TellTrace) -> None:
    story = Story()
    for port, wait in ((80, 5), (81, 4), (82, 3)):
        story.connect(("10.0.0.1", 1), ("10.0.0.2", port), 0, [("wait", wait * MS), ("transfer", MS)])
    story.connect(("10.0.0.1", 1), ("10.0.0.3", 80), 0, [("wait", MS), ("transfer", 2 * MS)])
    story.connect(("10.0.0.1", 1), ("10.0.0.4", 80), 0, [("idle", MS)])
    story.capture()
    text = shown(trace_of(story))
    times = text[text.index("Where the time went") : text.index("When")]
    assert [line.split()[0] for line in times.splitlines() if " waited " in line and ":8" in line] == [
        "10.0.0.2:80",
        "10.0.0.3:80",
    ]
    assert "and 2 more ports like it: 2 connections, waited 9.00 ms" in times
    assert "… and 1 more server\n" in times, "nobody waited at it"


def test_a_handshake_that_encryption_hides_is_called_a_renegotiation() -> None:
    with conchart.read(ROOT / "captures/handshakes/curl-apache-1.2-certificate-later/input.pcap") as trace:
        assert re.search(r"^  TLS \S+ ms: renegotiation handshake$", shown(trace, verbose=True), re.MULTILINE)


def test_a_number_is_not_torn_from_its_unit(story: Trace) -> None:
    for width in range(60, 100):
        for line in shown(story, width=width).splitlines():
            assert not re.match(r" *(%|[nµm]?s)(\W|$)", line), width


@pytest.mark.parametrize("colours", [False, True])
def test_a_strip_of_many_phases_is_made_of_as_many_stretches_as_it_can_show(colours: bool) -> None:
    lived = 400_000
    with empty_trace() as trace:
        trace.execute(
            f"""
            INSERT INTO phases BY NAME
            SELECT 7 AS stream, CASE i * i % 7 % 3 WHEN 0 THEN 'request' WHEN 1 THEN 'wait' ELSE 'transfer' END AS kind,
                {T0} + 40 * i AS start_at, {T0} + 40 * i + if(i % 5 = 0, 0, 40) AS end_at
            FROM range({lived // 40}) AS t(i)
            """
        )
        whole = [
            Stretch(*row) for row in trace.sql(f"SELECT kind, start_at - {T0}, end_at - {T0} FROM phases").fetchall()
        ]
        life = Stretch("unseen", 0, lived)
        lane = Lane(stream=7, server="", names=(), owner="", client="", state="open", lasts_ns=lived, life=life)
        axis = Axis(0, lived, 30, colours)
        (found,) = stretches(trace, [lane], TimeAxis(origin=T0, span=lived, folds=()), axis.slots).values()
    assert len(whole) == lived // 40
    # Of each kind one in a slot, and those that lie in two.
    assert len(found) <= 4 * axis.slots
    assert draw_strip(found, axis) == draw_strip(whole, axis)


@pytest.mark.parametrize(
    ("text", "most", "lines"),
    [
        ("one two three", 1, ["one two three"]),
        ("a " * 30, 1, ["a " * 19 + "a…"]),
        ("GET " + "x" * 60 + " y", 1, ["GET " + "x" * 36 + "…"]),
        ("GET " + "x" * 60, None, ["GET", "x" * 40 + "…"]),
    ],
)
def test_a_text_too_long_is_cut_and_says_so(text: str, most: int | None, lines: list[str]) -> None:
    assert clipped(text, 41, most) == lines
