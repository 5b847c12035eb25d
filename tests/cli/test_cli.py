"""The command line: what is printed, what is written, and how it ends."""

import hashlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

import conchart
from conchart import Trace, _native
from conchart.cli import main
from conchart.cli.command import COMMANDS
from conchart.files.unfinished import undo_all
from tests.children import running
from tests.conftest import ROOT, Batch, Core

CAPTURE = ROOT / "captures/handshakes/curl-nginx-1.3-small/input.pcap"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run ``conchart`` in this process; gives exit code, standard output, standard error."""
    for variable in ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(variable, raising=False)

    def conchart_(*args: str) -> tuple[int, str, str]:
        before = digests(args)
        with pytest.raises(SystemExit) as left:
            main(list(args))
        out, err = capfd.readouterr()
        assert digests(args) == before, "an input was changed"
        return int(left.value.code or 0), out, err

    return conchart_


def digests(args: Sequence[str]) -> dict[str, str]:
    """Give the MD5 of each file that the arguments name and do not write."""
    read = [word for option, word in zip(("", *args), args, strict=False) if option not in ("-w", "--write", "--keep")]
    names = [name for word in read for name in re.split("[=,]", word) if 0 < len(name) < 256 and "\0" not in name]
    return {name: hashlib.md5(Path(name).read_bytes()).hexdigest() for name in names if Path(name).is_file()}


@pytest.fixture
def capture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("story.pcap").write_bytes(b"whatever: the core is faked")
    return "story.pcap"


pytestmark = pytest.mark.usefixtures("capture")


def brief_story() -> str:
    """Give the golden text of the first screen."""
    return (Path(__file__).parent.parent / "exports/story-brief.txt").read_text(encoding="utf-8")


def test_bare_command_prints_the_summary_plainly(run: Run, story_core: list[dict[str, Any]]) -> None:
    code, out, err = run("story.pcap")
    assert (code, err) == (0, "")
    assert out == brief_story(), "100 columns wide and without colours when piped"
    assert story_core[0]["paths"] == ["story.pcap"]


def test_columns_sets_the_width(run: Run, story_core: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    _, out, _ = run("story.pcap", "-v")
    bar = next(line for line in out.splitlines() if line.startswith("ST"))
    assert len(bar) == 70


def test_options_reach_the_core(run: Run, story_core: list[dict[str, Any]]) -> None:
    code, *_ = run("a", "b", "-f", "tcp port 443", "-s", "250ms", "-e", "@1700000000.5", "-c", "9", "-a")
    assert code == 0
    call = story_core[0]
    assert call["paths"] == ["a", "b"]
    assert (call["start"], call["start_relative"]) == (250_000_000, True)
    assert (call["end"], call["end_relative"]) == (1_700_000_000_500_000_000, False)
    assert (call["count"], call["detailed"]) == (9, None)
    assert call["compile_filter"](1)


def test_more_packets_than_any_capture_has_are_all_of_them(run: Run, story_core: list[dict[str, Any]]) -> None:
    assert run("a", "-c", str(1 << 70))[0] == 0
    assert story_core[0]["count"] == (1 << 64) - 1


def test_options_may_come_first(run: Run, story_core: list[dict[str, Any]]) -> None:
    code, out, _ = run("-w", "out.json", "story.pcap")
    assert code == 0
    assert out == "Wrote out.json: 3 connections, 2.00 s\n"
    assert json.loads(Path("out.json").read_text())["conchart"] == 3


def test_several_files_are_written_from_one_reading(run: Run, story_core: list[dict[str, Any]]) -> None:
    assert run("story.pcap", "-w", "a.csv", "-w", "b.parquet", "-w", "c.duckdb", "-w", "d.txt")[0] == 0
    assert len(story_core) == 1
    assert sorted(path.name for path in Path().iterdir()) == ["a.csv", "b.parquet", "c.duckdb", "d.txt", "story.pcap"]


def test_table_is_chosen_for_the_files_that_hold_one(run: Run, story_core: list[dict[str, Any]]) -> None:
    assert run("story.pcap", "-w", "a.csv", "--table", "phases")[0] == 0
    assert Path("a.csv").read_text().startswith("stream,exchange,handshake,kind,")


def test_dash_writes_json_to_standard_output(run: Run, story_core: list[dict[str, Any]]) -> None:
    code, out, _ = run("story.pcap", "-w", "-", "-w", "a.csv")
    assert code == 0
    assert len(json.loads(out)["connections"]) == 3


def test_verbose_adds_connections_and_no_names_removes_names(run: Run, story_core: list[dict[str, Any]]) -> None:
    assert "tcp.stream eq 0" in run("story.pcap", "-v")[1]
    assert "tcp.stream eq 0" not in run("story.pcap")[1]
    assert "shop.example" not in run("story.pcap", "-v", "-n")[1]


def test_page_gets_the_options(run: Run, story_core: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[conchart.DrawOptions] = []

    def draw(trace: Trace, path: Path, options: conchart.DrawOptions) -> None:
        drawn.append(options)
        path.write_text("<html>")

    monkeypatch.setitem(conchart.outputs.DRAWN, ".html", draw)
    assert run("story.pcap", "-w", "out.html", "-a", "-R", "-n")[0] == 0
    assert run("story.pcap", "-w", "out.html", "--size", "1920x1080", "--dark")[0] == 0
    assert drawn == [
        conchart.DrawOptions(packets=True, retransmits=False, names=False),
        conchart.DrawOptions(size=(1920, 1080), dark=True),
    ]


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (
            ["story.pcap", "-w", "out.gif"],
            r"conchart: cannot write out\.gif: the suffix '\.gif'; conchart writes \.html",
        ),
        (["-", "-w", "out.pcapng"], "standard input can be read only once\n  Write them to a file first"),
        (["story.pcap", "-w", "out.png", "--size", "huge"], "'huge' is no size: give width and height"),
        (["story.pcap", "-w", "out.png", "--size", "1600x20"], "each side has 300 to 16000 pixels"),
        (["story.pcap", "-w", "out.json", "--table", "phases"], "--table applies to"),
        (["story.pcap", "-s", "soon"], "cannot read the time 'soon'"),
        (["story.pcap", "-c", "0"], "x>=1"),
        (["story.pcap", "--frobnicate"], "--frobnicate.*\nTry 'conchart --help'"),
        (["story.pcap", "-o", "out.html"], "^conchart: no option -o: write with -w out.html\nTry"),
        (["story.pcap", "--output=out.html"], "^conchart: no option --output: write with -w out.html\n"),
        (["-r", "story.pcap"], "^conchart: no option -r: captures need no option: conchart in.pcap -w out.html\n"),
        (["diff", "-i", "story.pcap"], "^conchart: no option -i: captures need no option"),
        (["diff", "a.pcap", "b.pcap", "out.html"], "^conchart: one argument too many: to write out.html, use -w"),
        (["query", "story.pcap", "SELECT 1", "-o", "out.csv"], "^conchart: No such option"),
        (["-w", "out.json"], "Missing argument"),
        (["query", "story.pcap", "SELEC 1"], "query: Parser Error"),
        (["story.pcap", "-w", "\udcff"], "no suffix"),
        (["story.pcap", "-s", "\udcff"], "cannot read the time"),
    ],
)
def test_wrong_usage_is_2_and_touches_nothing(
    run: Run, story_core: list[dict[str, Any]], args: list[str], complaint: str
) -> None:
    code, out, err = run(*args)
    assert (code, out) == (2, "")
    assert err.startswith("conchart: ")
    assert re.search(complaint, err)
    assert [path.name for path in Path().iterdir()] == ["story.pcap"]


@pytest.mark.parametrize("before", [None, "<!doctype html>"], ids=["new", "written before"])
@pytest.mark.parametrize("output", ["out.html", "out.JSON", "out.duckdb"])
def test_an_output_among_the_captures_is_told_from_them(run: Run, output: str, before: str | None) -> None:
    if before:
        Path(output).write_text(before)
    code, out, err = run(str(CAPTURE), output)
    assert (code, out, err) == (2, "", f"conchart: {output} is not a capture: to write it, use -w {output}\n")
    assert not before or Path(output).read_text() == before


def test_a_capture_may_be_named_like_an_output(run: Run) -> None:
    shutil.copy(CAPTURE, "capture.txt")
    assert run(str(CAPTURE), "capture.txt")[0] == 0


def test_a_lone_name_that_is_no_capture_is_3_whatever_its_suffix(run: Run) -> None:
    assert run("out.html")[0] == 3


def test_filter_that_does_not_compile_is_2_and_pointed_at(run: Run, fake_core: Callable[[Core], None]) -> None:
    def core(*_: object, compile_filter: Callable[[int], object], **__: object) -> None:
        compile_filter(1)

    fake_core(core)
    code, _, err = run("story.pcap", "-f", "tcp port 443 adn host 10.0.0.1")
    assert code == 2
    assert err.splitlines()[1:] == ["  tcp port 443 adn host 10.0.0.1", "               ^"]


def test_unreadable_capture_is_3_without_a_traceback(run: Run, fake_core: Callable[[Core], None]) -> None:
    def core(*_: object, **__: object) -> None:
        raise _native.CaptureError("story.pcap: no capture file: it starts with 77 68 61 74")

    fake_core(core)
    assert run("story.pcap") == (3, "", "conchart: story.pcap: no capture file: it starts with 77 68 61 74\n")


def test_unwritable_output_is_4(run: Run, story_core: list[dict[str, Any]]) -> None:
    code, _, err = run("story.pcap", "-w", "no/out.json")
    assert code == 4
    assert err == "conchart: cannot write no/out.json: there is no folder no\n"


def test_damaged_capture_warns_and_is_0(run: Run, story: Trace, story_core: list[dict[str, Any]]) -> None:
    story.execute("UPDATE captures SET truncated = true, notes = ['packet 8: \x1b[2J\n  Kept 7.']")
    code, out, err = run("story.pcap", "-w", "out.json")
    assert code == 0
    assert err == "conchart: warning: story.pcap: packet 8: \ufffd[2J\n  Kept 7.\n"


def test_interrupt_is_130_and_leaves_no_file(run: Run, fake_core: Callable[[Core], None]) -> None:
    def core(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    fake_core(core)
    assert run("story.pcap", "-w", "out.json")[0] == 130
    assert [path.name for path in Path().iterdir()] == ["story.pcap"]


@pytest.mark.parametrize("args", [["--help"], ["-h"], ["story.pcap", "--help"]])
def test_help_is_the_manual(run: Run, args: list[str]) -> None:
    code, out, _ = run(*args)
    assert code == 0
    assert out.startswith("Usage: conchart")
    for part in ("-f, --filter BPF", "-R, --no-retransmits", "tcpdump -i any", "Exit codes"):
        assert part in out


def test_help_names_the_other_commands(run: Run) -> None:
    assert re.search(r"Commands:\n(  .*\n)*  query ", run("--help")[1])


def test_examples_in_the_help_parse(run: Run, story_core: list[dict[str, Any]]) -> None:
    """Every line of the manual that begins with conchart, or pipes into it, is accepted."""
    import shlex

    for command in ("", "diff", "query"):
        _, manual, _ = run(*command.split(), "--help")
        examples = re.findall(r"^ +(?:.*\| )?conchart ((?!\[).+)$", manual.split("Examples:")[1], re.MULTILINE)
        assert len(examples) >= 3
        for example in examples:
            if "html" not in example:
                assert run(*shlex.split(example))[0] == 0, example


def test_version(run: Run) -> None:
    assert run("--version") == (0, f"conchart {conchart.__version__}\n", "")


def test_a_file_named_like_a_command_needs_a_path(run: Run, story_core: list[dict[str, Any]]) -> None:
    assert run("./query")[0] == 0
    assert story_core[0]["paths"] == ["./query"]
    assert "query" in COMMANDS


def test_a_saved_trace_is_opened_whatever_its_name(run: Run, story: Trace) -> None:
    story.write("saved.duckdb")
    Path("saved.duckdb").rename("any name")
    code, out, err = run("any name")
    assert (code, err) == (0, "")
    assert out.replace("'any name'", "story.pcap") == brief_story(), "what is to be typed names the file itself"
    assert run("any name", "-w", "again.json")[0] == 0
    assert len(json.loads(Path("again.json").read_text())["connections"]) == 3


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (["-f", "tcp", "-c", "3"], "saved.duckdb is a saved trace: --filter, --count can be used only when"),
        (["--proxy", "10.0.0.9"], "saved.duckdb is a saved trace: --proxy can be used only when"),
        (["--keylog", "keys.log"], "saved.duckdb is a saved trace: --keylog can be used only when"),
        (["story.pcap"], "saved.duckdb is a saved trace: it cannot be joined with other files"),
    ],
)
def test_nothing_can_be_chosen_of_a_saved_trace(run: Run, story: Trace, args: list[str], complaint: str) -> None:
    story.write("saved.duckdb")
    code, out, err = run("saved.duckdb", *args)
    assert (code, out) == (2, "")
    assert err.startswith(f"conchart: {complaint}")


def test_a_saved_trace_of_another_kind_is_3(run: Run) -> None:
    duckdb.connect("other.duckdb").close()
    code, _, err = run("other.duckdb")
    assert (code, err) == (3, "conchart: other.duckdb: not a trace that conchart saved: it has no table captures\n")


@pytest.mark.parametrize("name", ["loop", "a" * 300, "\udcff", "", "folder"])
def test_what_cannot_be_opened_is_3(run: Run, name: str) -> None:
    Path("loop").symlink_to("loop")
    Path("folder").mkdir()
    assert run(name)[0] == 3
    assert run(str(CAPTURE), "--keylog", name)[0] == 3


QUERY = "SELECT kind, sum(end_at - start_at) AS ns FROM phases WHERE stream = 0 GROUP BY kind ORDER BY ns DESC LIMIT 2"


def test_query_prints_a_table(run: Run, story_core: list[dict[str, Any]]) -> None:
    code, out, _ = run("query", "story.pcap", QUERY)
    assert code == 0
    assert re.search(r"│ tls +│ 800000000 │\n│ wait +│ 100000000 │", out)


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("csv", "kind,ns\ntls,800000000\nwait,100000000\n"),
        ("json", [{"kind": "tls", "ns": 800000000}, {"kind": "wait", "ns": 100000000}]),
    ],
)
def test_query_prints_for_machines(run: Run, story_core: list[dict[str, Any]], form: str, text: object) -> None:
    _, out, _ = run("query", "story.pcap", QUERY, "--format", form)
    assert (json.loads(out) if form == "json" else out) == text


def test_query_disarms_hostile_text(run: Run, story_core: list[dict[str, Any]]) -> None:
    assert "\x1b" not in run("query", "story.pcap", "SELECT chr(27) || '[2J[bold]x' AS a")[1]


def test_progress_is_shown_for_large_files_on_a_terminal_only(
    story_core: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from conchart.cli.reading import Reading, read_captures

    with Path("big.pcap").open("wb") as big:
        big.truncate(60_000_000)
    for terminal in (False, True):
        monkeypatch.setenv("TTY_COMPATIBLE", str(int(terminal)))
        monkeypatch.setattr(sys, "stderr", io.StringIO())
        read_captures(("big.pcap",), Reading()).close()
        read_captures(("story.pcap",), Reading()).close()
    assert [bool(call["progress"]) for call in story_core] == [False, False, True, False]


def test_a_signal_takes_the_progress_bar_away_and_shows_the_cursor(
    fake_core: Callable[[Core], None], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from conchart.cli.reading import Reading, read_captures

    shown = []

    def core(*_: object, **__: object) -> None:
        capfd.readouterr()
        undo_all()
        shown.append(capfd.readouterr().err)

    fake_core(core)
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    with Path("big.pcap").open("wb") as big:
        big.truncate(60_000_000)
    read_captures(("big.pcap",), Reading()).close()
    assert shown[0].endswith("\x1b[K\x1b[?25h")


PIPED = """
import sys
from conchart import _native
from conchart.store.schema import TABLE_BY_NAME
def core(paths, sink, **options):
    import duckdb
    class Batch:
        def __init__(self, query): self.relation = duckdb.sql(query)
        def __arrow_c_stream__(self, schema=None): return self.relation.__arrow_c_stream__(schema)
    owed = TABLE_BY_NAME["phases"].from_core
    empty = ", ".join(f"NULL AS {name}" for name in owed if name != "stream")
    sink("phases", Batch(f"SELECT i::INTEGER AS stream, {empty} FROM range(200000) r(i)"))
_native.read_capture = core
from conchart.cli import main
main(["x.pcap", "-w", "-"])
"""


def test_a_reader_that_leaves_ends_it_quietly() -> None:
    with running(
        [sys.executable, "-c", PIPED],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(conchart.__file__).parent.parent)},
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


def test_empty_capture_is_a_result(run: Run, fake_core: Callable[[Core], None]) -> None:
    fake_core(
        lambda paths, sink, **_: sink(
            "captures", Batch("captures", "SELECT 0::INTEGER AS capture, 'story.pcap' AS path")
        )
    )
    code, out, _ = run("story.pcap")
    assert code == 0
    assert "no connection" in out


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("a capture.pcap", ()),
        ("-dash.pcap", ()),
        ("it's.pcap", ("-s", "0.1")),
        ("plain.pcap", ("-f", "port 443 or port 8080")),
        (f"{'long' * 60}.pcap", ()),
    ],
)
def test_commands_that_are_printed_can_be_pasted(run: Run, name: str, options: tuple[str, ...]) -> None:
    shutil.copy(ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap", name)
    code, out, err = run(*options, "--", name)
    assert (code, err) == (0, "")
    printed = re.findall(r"conchart ((?:explain|findings) .+)$", out, re.MULTILINE)
    # Of a command that takes several lines, there is room for the one of a connection.
    assert {words.partition(" ")[0] for words in printed} == {"explain", *(["findings"] if len(name) < 80 else [])}
    for words in printed:
        code, out, err = run(*shlex.split(words))
        assert (code, err) == (0, "")
        assert out


def test_what_cannot_be_pasted_is_not_printed(run: Run) -> None:
    name = "evil\x1b[2J.pcap"
    shutil.copy(ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap", name)
    code, out, _ = run(name)
    assert code == 0
    assert "\x1b" not in out
    assert "conchart explain" not in out
