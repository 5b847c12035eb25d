"""The findings in the summary and in files."""

import csv
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb
import pytest
from rich.cells import cell_len

import conchart
from conchart import CaptureError, Trace
from conchart.analysis.findings.rule import Rule, load_rules
from tests.conftest import ROOT
from tests.exports.test_text import shown

RULES = ROOT / "tests/findings/rules"
CAPTURE = ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap"


def only_mine(folders: Sequence[str]) -> tuple[Rule, ...]:
    """Of all rules, those of the folders: what is shown does not change with the others."""
    return tuple(rule for rule in load_rules(folders) if Path(rule.path).parent in map(Path, folders))


@pytest.fixture(scope="module")
def trace() -> Iterator[Trace]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("conchart.trace.load_rules", only_mine)
        with conchart.read(CAPTURE, findings=[RULES]) as read:
            yield read


def test_they_come_first_with_cost_change_and_where_to_look(trace: Trace) -> None:
    lines = shown(trace).splitlines()
    path = CAPTURE.as_posix()
    assert lines[:5] == [
        "Users waited 304 ms.",
        f"serious  Opening a connection takes time{'236 ms (77 %)':>60}",
        "         change: keep connections",
        "         front shop.example:443, client 10.77.1.10",
        f"         see: conchart explain --findings {RULES} {path} 0",
    ]
    assert lines[5].startswith("wait     Transfer · shop.example:443")
    (rest,) = (line for line in lines if line.startswith("the rest"))
    assert re.fullmatch(r"the rest [\d.]+ ms \(\d+ %\): .+", rest)
    (besides,) = (number for number, line in enumerate(lines) if line.startswith("besides"))
    assert lines[besides].startswith("besides  1 note: ")
    # Where there is no room for a command that takes several lines, it is left out.
    assert "\nin full  conchart findings " in shown(trace, width=300)


def test_all_of_them_are_told_to_who_wants_to_know(trace: Trace) -> None:
    text = shown(trace, verbose=True)
    for words in (
        "Findings    serious: Opening a connection takes time · front shop.example:443, client 10.77.1.10\n",
        "\n              seen: 3 connections opened; the client 10.77.1.10\n",
        "\n              brings with it: TLS handshakes take time (3 delays on 3 connections, 205 ms)\n",
        "\n              page: conchart findings slow-opening\n",
        "\n              why: Somebody waits for it.\n",
        "\n              fix: nginx: keepalive_timeout 75s;\n",
        "              fix: keep connections\n",
        "              look at frames 1, 3, 5\n",
        "\n            note: Opening a connection takes time · backend 10.77.2.20:8080, client 10.77.2.1\n",
    ):
        assert words in text


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("verbose", [False, True])
def test_they_stay_within_the_width(trace: Trace, width: int, verbose: bool) -> None:
    answer, _, rest = shown(trace, width=width, verbose=verbose).partition("\n\n")
    findings = rest.partition("\nFindings")[2].partition("\nWaited")[0]
    assert bool(findings) == verbose
    lines = f"{answer}\n{findings}".splitlines()
    # What is to be typed is whole: a terminal wraps it.
    typed = re.compile(r" +see: conchart explain --findings \S+ \S+ \d+|in full  conchart findings --findings \S+ \S+")
    assert any(typed.fullmatch(line) for line in lines)
    assert max(cell_len(line) for line in lines if not typed.fullmatch(line)) <= width


def test_a_terminal_shows_how_grave_they_are(trace: Trace) -> None:
    assert "\x1b[1;31mserious  \x1b[0mOpening" in shown(trace, colours=True)


def test_beyond_five_they_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conchart.trace.load_rules", only_mine)
    with conchart.read(CAPTURE, findings=[RULES]) as trace:
        trace.execute(
            "INSERT INTO findings SELECT findings.* REPLACE (10 + i AS number, 'warning' AS severity, 'W' AS title) "
            "FROM findings, range(7) r(i) WHERE number = 0"
        )
        text = shown(trace)
    assert text.count("\nwarning  W ") == 4
    assert "\nbesides  3 warnings, 1 note: Opening a connection takes time; W\n" in text


def test_nothing_found_is_said(story: Trace) -> None:
    story.execute("DELETE FROM findings")
    assert "\nNo known fault: 55 % of what users waited is one part: TLS handshake at shop.example:443\n" in shown(
        story
    )
    assert "\nFindings    none\n" in shown(story, verbose=True)


def test_csv_has_lists_in_brackets_and_parquet_as_lists(trace: Trace, tmp_path: Path) -> None:
    trace.write(tmp_path / "f.csv", table="findings")
    with (tmp_path / "f.csv").open(newline="") as file:
        first, *_ = csv.DictReader(file)
    assert (first["finding"], first["streams"], first["count"]) == ("slow-opening", "[0, 2, 4]", "3")
    assert first["advice"] == "keep connections\nnginx: keepalive_timeout 75s;"
    trace.write(tmp_path / "f.parquet", table="findings")
    rows = duckdb.connect().execute(f"FROM '{tmp_path / 'f.parquet'}' ORDER BY number").fetchall()
    assert rows == trace.sql("FROM findings ORDER BY number").fetchall()


def test_json_has_them_all(trace: Trace, tmp_path: Path) -> None:
    trace.write(tmp_path / "f.json")
    rows = json.loads((tmp_path / "f.json").read_text())["findings"]
    assert [(row["finding"], row["root"]) for row in rows[:2]] == [("slow-opening", None), ("slow-tls", 0)]
    assert rows[0]["streams"] == [0, 2, 4]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("severity = 'fatal'", "severity is none that conchart knows"),
        ("root = 9 WHERE number = 1", "root is no finding that is shown"),
        ("root = 1 WHERE number = 0", "root is no finding that is shown"),
        ("streams = [NULL]", "streams holds a NULL"),
        ("frames = [1, NULL]", "frames holds a NULL"),
        ("why = NULL", "why is NULL"),
        ("confidence = 2", "confidence is out of range"),
    ],
)
def test_a_saved_trace_has_findings_that_can_be(trace: Trace, tmp_path: Path, change: str, words: str) -> None:
    path = tmp_path / "saved.duckdb"
    trace.write(path)
    with duckdb.connect(str(path)) as saved:
        saved.execute(f"UPDATE findings SET {change}")
    with pytest.raises(CaptureError, match=f"findings.{words}"):
        Trace.load(path)
