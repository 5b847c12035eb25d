"""``conchart findings``, and findings in what other commands are given."""

import json
import re
from pathlib import Path

import pytest

import conchart
from tests.cli.test_cli import Run, run
from tests.conftest import ROOT

__all__ = ["run"]  # a fixture

RULES = str(ROOT / "tests/findings/rules")
CAPTURE = str(ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap")
CLEAN = str(ROOT / "captures/reverse-proxy/http/input.pcap")
RACE = str(ROOT / "captures/udp/ip-race-lost/input.pcap")
EMPTY = f"{CLEAN}|-f|port 9"
SYN = f"{CLEAN}|-c|1"


def test_the_rules_are_listed(run: Run) -> None:
    code, out, err = run("findings", "--findings", RULES)
    assert (code, err) == (0, "")
    heading, *lines = out.splitlines()
    assert heading.split() == ["ID", "severity", "what", "is", "wrong"]
    names = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert names == sorted(names)
    assert "slow-opening" in names
    assert [line for line in lines if re.search(r" by its cost +Opening a connection takes time$", line)]


def test_a_page_is_plain_markdown_where_there_is_no_terminal(run: Run) -> None:
    code, out, _ = run("findings", "slow-opening", "--findings", RULES)
    assert code == 0
    text = Path(RULES, "slow-opening.md").read_text()
    assert out.startswith(text.split("---\n", 2)[2])
    assert "- at the server, nginx: keepalive_timeout 75s;\n- at the client: keep connections\n" in out
    assert out.endswith(
        "- `reuse_least` = 3: requests from which on connections that are not used again are a finding\n"
    )


def test_a_duration_is_told_in_words_too(run: Run) -> None:
    assert "`again_ns` = 60000000000 (1 min): " in run("findings", "backend-no-keepalive")[1]


def test_a_page_is_set_on_a_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    _, out, _ = run("findings", "slow-opening", "--findings", RULES)
    assert "\x1b[" in out
    assert "# Opening" not in out
    assert "Opening a connection takes time" in out


def test_there_is_no_such_finding(run: Run) -> None:
    message = "conchart: 'slowness' is neither a rule nor a capture; 'conchart findings' lists the rules\n"
    assert run("findings", "slowness") == (2, "", message)
    assert run("findings", "slow.pcap")[0] == 3, "a capture that is not there"


def test_all_of_what_is_wrong_in_a_capture_is_told(run: Run) -> None:
    code, out, err = run("findings", CAPTURE)
    assert (code, err) == (0, "")
    with conchart.read(CAPTURE) as trace:
        rows = trace.sql("SELECT severity, title FROM findings WHERE root IS NULL ORDER BY number").fetchall()
    places = [out.index(f"{severity}: {title}") for severity, title in rows]
    assert places == sorted(places)
    assert out.count("why: ") == len(rows) > 1
    assert "Where the time went" not in out
    assert "Findings    none\n" in run("findings", CLEAN)[1]
    assert "Findings    none\n" in run("findings", CAPTURE, "--filter", "port 9")[1]


def test_a_broken_file_is_told_with_its_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("---\ntitel: x\n---\n\n```sql\nSELECT 1\n```\n")
    for command in (["findings"], [CAPTURE], ["query", CAPTURE, "FROM findings"]):
        code, _, err = run(*command, "--findings", str(tmp_path))
        assert (code, err) == (2, f"conchart: {tmp_path}/mine.md:2: nothing is called titel\n")


@pytest.mark.parametrize(
    ("least", "capture", "code"),
    [("serious", CAPTURE, 1), ("note", CAPTURE, 1), ("serious", CLEAN, 0)],
)
def test_findings_may_fail_a_build(
    run: Run, least: str, capture: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended, out, err = run(capture, "-w", "out.json", "--fail-on", least)
    assert ended == code
    assert bool(json.loads(Path("out.json").read_text())["findings"]) == bool(code), "everything is written"
    assert out.startswith("Wrote out.json: ")
    assert err.startswith(f"conchart: --fail-on {least}: server-closes-each-response") if code else err == ""


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        ((CAPTURE, "serious", "unjudged"), 1, "serious --fail-on unjudged: server-closes-each-response, "),
        ((CLEAN, "note", "unjudged"), 0, ""),
        ((RACE, "warning"), 0, "warning: nothing found, but not judged: what 1 connection said (encrypted, no keys)"),
        ((RACE, "unjudged"), 1, "unjudged: not judged: what 1 connection said (encrypted, no keys)"),
        ((EMPTY, "serious"), 0, "serious: nothing found, but not judged: nothing could be judged"),
        ((EMPTY, "unjudged"), 1, "unjudged: not judged: nothing could be judged"),
        ((SYN, "serious"), 1, "serious: nobody was served"),
    ],
)
def test_what_was_not_judged_does_not_pass_as_healthy(
    run: Run, args: tuple[str, ...], code: int, message: str, tmp_path: Path
) -> None:
    capture, *wanted = args
    ended, _, err = run(*capture.split("|"), *(text for one in wanted for text in ("--fail-on", one)))
    assert ended == code
    assert err.startswith(f"conchart: --fail-on {message}") if message else err == ""


def test_without_being_asked_findings_fail_nothing(run: Run) -> None:
    assert run(CAPTURE, "--findings", RULES)[0] == 0


def test_thresholds_can_be_changed(run: Run) -> None:
    words = (
        "query",
        CAPTURE,
        "SELECT DISTINCT finding FROM findings WHERE finding IN ('slow-opening', 'slow-tls')",
        "--format",
        "csv",
    )
    assert run(*words, "--findings", RULES)[1] == "finding\nslow-opening\nslow-tls\n"
    assert run(*words, "--findings", RULES, "--threshold", "reuse_least=4")[1] == "finding\nslow-tls\n"
    grave = ("query", CAPTURE, "SELECT max(severity) FROM findings", "--findings", RULES, "--format", "csv")
    assert "serious" not in run(*grave, "--threshold", "serious_share=1", "--threshold", "warning_share=1.0")[1]


@pytest.mark.parametrize("given", ["reuse_least", "reuse_least=many", "reuse_least=nan", "reuse_least=inf", "=x"])
def test_a_threshold_is_a_name_and_a_number(run: Run, given: str) -> None:
    code, _, err = run(CAPTURE, "--threshold", given)
    assert (code, err.startswith(f"conchart: cannot read the threshold {given!r}")) == (2, True)


def test_there_is_no_such_threshold(run: Run) -> None:
    code, _, err = run(CAPTURE, "--threshold", "reuse_leats=3")
    assert (code, err.startswith("conchart: no threshold reuse_leats; there are abort_ns, ")) == (2, True)


def test_a_saved_trace_keeps_the_findings_it_has(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(CAPTURE, "--findings", RULES, "-w", "saved.duckdb")[0] == 0
    assert run("saved.duckdb", "--fail-on", "serious")[0] == 1
    code, _, err = run("saved.duckdb", "--findings", RULES, "--threshold", "reuse_least=3")
    assert (code, err) == (
        2,
        "conchart: saved.duckdb is a saved trace: --findings, --threshold can be used only when a capture is read\n",
    )
