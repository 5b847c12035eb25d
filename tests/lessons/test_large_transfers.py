"""What TLS costs in a large transfer: the lesson's figures, its page, its captures and its lab agree with each other.

MB/s are those of the machine that made ``results.json``; what is held here is what is said to carry over.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import conchart
from tests.conftest import ROOT
from tests.lessons.running import conchart_commands, make_captures, run_conchart, skip_unless_root_with

LESSON = ROOT / "examples" / "large-transfers"
CAPTURES = ROOT / "captures" / "large-transfers"
RESULTS: dict[str, Any] = json.loads((LESSON / "results.json").read_text())
LIMITS: dict[str, set[str]] = {
    "congestion-window": {"slow-start"},
    "receive-window": {"window-limited"},
    "receive-window-upload": {"window-limited"},
    "slow-reader": {"receiver", "zero-window"},
    "sender-cpu": {"sender"},
    "congestion": {"fast-retransmit"},
    "line-rate": set(),
}
"""What was put in the way of each transfer, as stalls name it."""
FINDINGS = {
    "congestion-window": "slow-start-limited",
    "receive-window": "window-limited",
    "receive-window-upload": "window-limited",
    "slow-reader": "receiver-limited",
    "congestion": "mid-loss",
}
MEMORY = Path("/dev/shm")
DEFAULT = "TLS 1.3 AES256-GCM"

every_case = pytest.mark.parametrize("case", LIMITS)


@cache
def read(case: str) -> dict[str, list[tuple[Any, ...]]]:
    with conchart.read(CAPTURES / case / "input.pcap") as trace:
        return {
            "phases": trace.sql("SELECT kind, sum(end_at - start_at) FROM phases GROUP BY kind").fetchall(),
            "stalls": trace.sql("SELECT kind, side, sum(end_at - start_at) FROM stalls GROUP BY ALL").fetchall(),
            "handshakes": trace.sql("SELECT version, outcome FROM handshakes").fetchall(),
            "exchanges": trace.sql("SELECT request_bytes, response_bytes FROM exchanges").fetchall(),
            "findings": trace.sql("SELECT finding FROM findings WHERE critical_ns > 0 ORDER BY number").fetchall(),
            "captures": trace.sql("SELECT snapped > packets / 3, truncated FROM captures").fetchall(),
        }


def transfer_ns(case: str) -> int:
    phases: dict[str, int] = dict(read(case)["phases"])
    return phases["request" if case.endswith("upload") else "transfer"]


def cpu(client: str, direction: str, name: str, end: str = "client") -> float:
    (row,) = (
        row
        for row in RESULTS["transfers"]
        if (row["client"], row["direction"], row["name"]) == (client, direction, name)
    )
    return float(row[f"{end}_cpu"]["user"])


def test_every_capture_has_its_row_and_every_row_its_capture() -> None:
    cases = [row["case"] for row in RESULTS["captures"]]
    assert cases == list(LIMITS)
    assert set(cases) == {path.name for path in CAPTURES.iterdir()}


def test_page_is_what_the_results_give(tmp_path: Path) -> None:
    make_captures("large-transfers", "--tables", "--into", str(tmp_path / "out"), temporary=tmp_path / "temporary")
    assert (tmp_path / "out/README.md").read_text() == (LESSON / "README.md").read_text()


@pytest.mark.parametrize("command", conchart_commands(LESSON / "README.md"))
def test_commands_of_the_page_run(command: str, tmp_path: Path) -> None:
    assert run_conchart(command, tmp_path)


@every_case
def test_headers_are_enough_to_charge_the_whole_transfer(case: str) -> None:
    (row,) = (row for row in RESULTS["captures"] if row["case"] == case)
    found = read(case)
    assert found["captures"] == [(True, False)]
    assert found["handshakes"] == [("TLSv1.3", "complete")]
    ((request_bytes, response_bytes),) = found["exchanges"]
    # Heads and what records add.
    assert 0 < max(request_bytes, response_bytes) - row["bytes"] < 0.01 * row["bytes"]
    assert transfer_ns(case) == row["ns"]
    assert transfer_ns(case) > 0.5 * sum(ns for _, ns in found["phases"])


@every_case
def test_conchart_names_what_was_put_in_the_way(case: str) -> None:
    sender = "client" if case.endswith("upload") else "server"
    stalls = read(case)["stalls"]
    assert {side for _, side, _ in stalls} == {sender}
    named = sum(ns for kind, _, ns in stalls if kind in LIMITS[case])
    others = sum(ns for kind, _, ns in stalls if kind not in LIMITS[case])
    if LIMITS[case]:
        assert named > others
    else:
        assert others < transfer_ns(case) / 4, "the first round trips, and then nobody pauses"
    if case in FINDINGS:
        assert read(case)["findings"][0] == (FINDINGS[case],)


def test_instructions_for_aes_are_worth_several_times() -> None:
    for client, direction in (("wget", "down"), ("curl", "down"), ("curl", "up")):
        with_them, without = (cpu(client, direction, DEFAULT + how) for how in ("", ", no AES instructions"))
        assert without > 4 * with_them


def test_hashing_costs_more_than_encrypting_with_instructions() -> None:
    for client, direction in (("wget", "down"), ("curl", "down"), ("curl", "up")):
        assert cpu(client, direction, "TLS 1.2 AES128-SHA") > 1.5 * cpu(client, direction, DEFAULT)
        assert cpu(client, direction, "TLS 1.2 NULL-SHA") > cpu(client, direction, DEFAULT)


def test_the_library_still_matters() -> None:
    assert cpu("wget", "down", DEFAULT) < 2 * cpu("curl", "down", DEFAULT)
    name = "TLS 1.3 ChaCha20-Poly1305"
    assert cpu("wget", "down", name) > 4 * cpu("curl", "down", name)


def test_every_sender_fills_its_records() -> None:
    for row in RESULTS["transfers"]:
        if row["records"]:
            many, size, others = row["records"]
            assert 16_384 < size < 16_384 + 64
            assert many >= 16 > others


def test_a_kernel_without_ktls_is_said_to_have_none() -> None:
    measured = any("kTLS" in row["name"] for row in RESULTS["transfers"])
    assert measured == RESULTS["ktls"]
    assert RESULTS["ktls"] or "was built without kTLS" in (LESSON / "README.md").read_text()


@pytest.mark.timeout(300)
def test_a_quick_run_measures_and_leaves_nothing_behind(tmp_path: Path) -> None:
    skip_unless_the_lab_can_run()
    before = stored()
    out = tmp_path / "out"
    make_captures("large-transfers", "--quick", "--into", str(out), temporary=tmp_path / "temporary")
    results = json.loads((out / "results.json").read_text())
    assert len(results["transfers"]) == 9
    assert all(row["seconds"] > 0 for row in results["transfers"])
    for row in results["captures"]:
        assert (out / "captures" / row["case"] / "README.md").is_file()
        assert {limit["kind"] for limit in row["limits"]} & LIMITS[row["case"]]
    assert stored() <= before


@pytest.mark.timeout(300)
@pytest.mark.parametrize("step", ["transfers", "capture receive-window"])
def test_a_run_that_is_told_to_end_leaves_nothing_behind(step: str, tmp_path: Path) -> None:
    skip_unless_the_lab_can_run()
    before = stored()
    words = ["--quick", "--into", str(tmp_path / "out")]
    make_captures("large-transfers", *words, temporary=tmp_path / "temporary", end_after=step)
    assert stored() <= before


def skip_unless_the_lab_can_run() -> None:
    skip_unless_root_with(("ip", "tc", "sysctl", "tcpdump", "openssl", "nginx", "curl", "wget", "gnutls-cli"))


def stored() -> set[Path]:
    """What labs keep in memory: those of others may end meanwhile."""
    return set(MEMORY.glob("conchart-*"))
