"""The answer in JSON: what page and terminal say, with its numbers."""

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import conchart
from conchart import DrawOptions, Trace
from conchart.cli import main
from conchart.labels.commands import NONE, commands
from conchart.outputs.terminal.screen import first_screen
from conchart.report.report import report_of
from tests.conftest import CASES, ROOT, capture_of, is_sample, keys_of, name_of

SAMPLE = [case for case in CASES if is_sample(name_of(case), 15)]

CAPTURES = "captures"
H3 = f"{CAPTURES}/http3/caddy"
MODEM = f"{CAPTURES}/far-away/modem-tls12/input.pcap"
REFUSED = f"{CAPTURES}/findings/nat-answer-bypass/input.pcap"
FAULT = f"{CAPTURES}/places/whose-fault-1"
INPUTS: dict[str, tuple[tuple[str, ...], Mapping[str, Any]]] = {
    "plain": ((MODEM,), {}),
    "keys, filter": ((f"{H3}/input.pcap",), {"keylog": f"{H3}/keys.log", "filter": "udp port 443"}),
    "two captures": ((REFUSED, MODEM), {"proxies": [["10.99.2.20"]], "thresholds": {"reuse_least": 2}}),
    "seen from the client": ((MODEM,), {"seen_from": "client", "statements": "off"}),
    "places": (
        (),
        {"places": {name: f"{FAULT}/{name}.pcap" for name in ("client", "lb", "app")}, "trusted_clocks": ("lb",)},
    ),
}


def answer_of(trace: Trace, folder: Path) -> dict[str, Any]:
    trace.write(folder / "out.json")
    answer = json.loads((folder / "out.json").read_text(encoding="utf-8"))["answer"]
    assert isinstance(answer, dict)
    return answer


@pytest.mark.parametrize("case", SAMPLE, ids=name_of)
def test_rows_add_up_and_the_state_is_that_of_the_screen(case: Path, tmp_path: Path) -> None:
    with conchart.read(capture_of(case), keylog=keys_of(case)) as trace:
        answer = answer_of(trace, tmp_path)
        with report_of(trace) as report:
            verdict, waited_ns = report.verdict, report.totals.waited_ns
            screen = "\n".join(line.plain for line in first_screen(report, 300, colours=False, options=DrawOptions()))
    assert (answer["state"], answer["waited_ns"]) == (verdict.state, waited_ns)
    assert sum(row["waited_ns"] for row in answer["rows"]) == answer["waited_ns"]
    titles = [row["title"] for row in answer["rows"]]
    assert all(entry.title in titles for entry in verdict.entries if entry.kind != "state")
    assert (answer["sentence"] in screen) == (verdict.state != "faults")


def run(line: str, capfd: pytest.CaptureFixture[str]) -> tuple[int, str]:
    with pytest.raises(SystemExit) as left:
        main(shlex.split(line)[1:])
    return int(left.value.code or 0), capfd.readouterr().out


@pytest.mark.parametrize("label", INPUTS)
def test_commands_run_as_they_stand_and_show_the_same(
    label: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    paths, options = INPUTS[label]
    with conchart.read(*paths, **options) as trace:
        answer = answer_of(trace, tmp_path)
        titles = [title for (title,) in trace.fetch("SELECT title FROM findings WHERE root IS NULL")]
    row = next(row for row in answer["rows"] if row["command"])
    code, out = run(row["command"], capfd)
    assert code == 0
    assert out.startswith(f"Connection {row['stream']} ")
    assert bool(answer["command"]) == bool(titles)
    if answer["command"]:
        code, out = run(answer["command"], capfd)
        shown = " ".join(out.split())
        assert code == 0
        assert all(title in shown for title in titles)


def test_a_saved_trace_is_named_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with conchart.read(ROOT / MODEM) as trace:
        trace.write(tmp_path / "saved.duckdb")
    monkeypatch.chdir(tmp_path)
    with Trace.load("saved.duckdb") as trace:
        answer = answer_of(trace, tmp_path)
    assert answer["command"] == "conchart findings saved.duckdb"
    assert run(answer["rows"][0]["command"], capfd)[0] == 0


@pytest.mark.parametrize("paths", [["-"], ["a.pcap", "-"], ["two\nlines.pcap"], ["long.pcap"] * 120])
def test_what_nobody_can_type_is_not_printed(paths: list[str]) -> None:
    assert commands(paths, "") == NONE


def test_names_and_values_are_quoted() -> None:
    quoted = commands(["-a b.pcap"], "-f 'port 1'", keylog=["my keys"], only_findings={"seen-from": "server"})
    assert quoted.explain(3) == "conchart explain -f 'port 1' --keylog 'my keys' './-a b.pcap' 3"
    assert quoted.findings == "conchart findings -f 'port 1' --keylog 'my keys' --seen-from server './-a b.pcap'"
