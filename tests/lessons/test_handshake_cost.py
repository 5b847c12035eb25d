"""What a handshake costs: the lesson's figures, its page, its chart and its lab agree with each other.

Milliseconds are those of the machine that made ``results.json``; what is held here is what is said to carry over.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import conchart
from tests.conftest import ROOT
from tests.lessons.running import conchart_commands, make_captures, run_conchart, skip_unless_root_with

LESSON = ROOT / "examples" / "handshake-cost"
CAPTURES = ROOT / "captures" / "handshake-cost"
RESULTS: dict[str, Any] = json.loads((LESSON / "results.json").read_text())
COUNTED = [row for row in RESULTS["over_a_wire"] if "cpu" in row]
ENDS = ("client", "server")
ERROR_NS = 25_000
"""What the page states: a computing time of conchart's is the CPU and at most this much more, however long it is."""
SIZES = (1, 1_024, 10_240, 102_400)

every_case = pytest.mark.parametrize("row", RESULTS["over_a_wire"], ids=lambda row: row["case"])
every_counted = pytest.mark.parametrize("row", COUNTED, ids=lambda row: row["case"])


def cpu(version: str, how: str, *, cipher: str = "AES128-GCM", key: str = "RSA-2048", size: int = 1) -> int:
    (row,) = rows(version=version, how=how, cipher=cipher, key=key, bytes=size)
    return int(row["cpu_ns"])


def rows(place: str = "in_process", **of: object) -> list[dict[str, Any]]:
    return [row for row in RESULTS[place] if all(row[name] == value for name, value in of.items())]


def handshakes(case: str) -> list[tuple[Any, ...]]:
    with conchart.read(CAPTURES / case / "input.pcap") as trace:
        return trace.sql(
            """
            SELECT version, kind, named_group, client_compute_ns, server_compute_ns
            FROM handshakes WHERE stream > 0 ORDER BY stream
            """
        ).fetchall()


def test_every_combination_was_measured() -> None:
    combinations = {(row["version"], row["cipher"], row["key"], row["how"], row["bytes"]) for row in rows()}
    keys, aead = ("RSA-2048", "RSA-4096", "ECDSA P-256"), ("AES128-GCM", "AES256-GCM", "ChaCha20-Poly1305")
    assert combinations == {
        (version, cipher, key, how, size)
        for version, ciphers, hows in (
            ("1.2", (*aead, "NULL-SHA"), ("full", "session-id", "ticket")),
            ("1.3", aead, ("full", "psk", "0rtt")),
        )
        for cipher in ciphers
        for key in keys
        for how in hows
        for size in SIZES
    }
    assert len(rows()) == len(combinations)
    assert len(rows("in_go")) == 2 * len(keys) * 2 * len(SIZES)


def test_every_capture_has_its_row_and_every_row_its_capture() -> None:
    assert {row["case"] for row in RESULTS["over_a_wire"]} == {path.name for path in CAPTURES.iterdir()}


def test_page_and_chart_are_what_the_results_give(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the chart needs the extra 'pictures'")
    make_captures("handshake-cost", "--tables", "--into", str(tmp_path / "out"), temporary=tmp_path / "temporary")
    assert (tmp_path / "out/README.md").read_text() == (LESSON / "README.md").read_text()
    ours, drawn = (chart(folder) for folder in (LESSON, tmp_path / "out"))
    assert ours == drawn
    assert len(ours) == 8
    assert ours["TLS 1.2 AES128-GCM, RSA-2048, full"][0] == cpu("1.2", "full") / 1e6


@pytest.mark.parametrize("command", conchart_commands(LESSON / "README.md"))
def test_commands_of_the_page_run(command: str, tmp_path: Path) -> None:
    assert run_conchart(command, tmp_path)


def chart(folder: Path) -> dict[str, list[float]]:
    """What a chart says that it shows."""
    text = (folder / "cpu-by-bytes.svg").read_text()
    (description,) = re.findall(r"<dc:description>(.*?)</dc:description>", text, re.DOTALL)
    found: dict[str, list[float]] = json.loads(description.replace("&quot;", '"'))
    return found


@every_case
def test_conchart_reads_of_a_capture_what_the_results_say(row: dict[str, Any]) -> None:
    found = handshakes(row["case"])
    for kind, figures in row["conchart"].items():
        for place, end in enumerate(ENDS, start=3):
            times = sorted(handshake[place] for handshake in found if handshake[1] == kind)
            assert len(times) == figures["handshakes"]
            assert abs(figures[end] - (times[(len(times) - 1) // 2] + times[len(times) // 2]) / 2) <= 1


@every_case
def test_handshakes_of_a_capture_are_of_its_kind(row: dict[str, Any]) -> None:
    kinds = {"0rtt": {"psk-0rtt"}, "psk": {"psk"}}.get(row["how"], {row["how"]})
    found = handshakes(row["case"])
    assert {kind for _, kind, *_ in found} == kinds | ({"full"} if row["program"] == "nginx" else set())
    assert {version for version, *_ in found} == {f"TLSv{row['version']}"}
    if row["version"] == "1.3":
        assert {named.lower() for _, _, named, *_ in found} == {row["group"].lower()}


@every_counted
@pytest.mark.parametrize("end", ENDS)
def test_computing_time_is_the_cpu_that_the_program_counted(row: dict[str, Any], end: str) -> None:
    (read,) = row["conchart"].values()
    assert 0 <= read[end] - row["cpu"][end]["answers"] <= ERROR_NS


@every_counted
@pytest.mark.parametrize("end", ENDS)
def test_nobody_computes_less_over_a_wire_than_a_thousand_times_in_a_row(row: dict[str, Any], end: str) -> None:
    (read,) = row["conchart"].values()
    (same,) = rows(version=row["version"], cipher="AES128-GCM", key=row["key"], how=row["how"], bytes=1)
    assert read[end] > same[end]["answers"]


def test_resuming_costs_more_in_tls_1_3_than_in_1_2_and_early_data_spares_no_cpu() -> None:
    assert cpu("1.3", "psk") > 3 * cpu("1.2", "session-id")
    assert cpu("1.3", "psk") < cpu("1.3", "full") / 2
    assert abs(cpu("1.3", "0rtt") / cpu("1.3", "psk") - 1) < 0.15


def test_an_ecdsa_key_spares_the_server_and_not_the_client() -> None:
    (rsa,), (ecdsa,) = (
        rows(version="1.3", cipher="AES128-GCM", key=key, how="full", bytes=1) for key in ("RSA-2048", "ECDSA P-256")
    )
    assert ecdsa["server"]["answers"] < rsa["server"]["answers"] / 2
    assert ecdsa["client"]["answers"] > ecdsa["server"]["answers"]


def test_the_longer_key_costs_the_server_several_times_as_much() -> None:
    assert cpu("1.3", "full", key="RSA-4096") > 4 * cpu("1.3", "full")
    assert abs(cpu("1.3", "psk", key="RSA-4096") / cpu("1.3", "psk") - 1) < 0.15


def test_no_encryption_is_dearer_than_aes() -> None:
    for how in ("full", "session-id"):
        assert cpu("1.2", how, cipher="NULL-SHA", size=102_400) > cpu("1.2", how, size=102_400)


def test_a_post_quantum_group_costs_something_and_less_than_a_signature() -> None:
    for key in ("RSA-2048", "RSA-4096", "ECDSA P-256"):
        for how in ("full", "psk"):
            old, new = (
                rows("in_go", group=group, key=key, how=how, bytes=1)[0]["cpu_ns"]
                for group in ("X25519", "X25519MLKEM768")
            )
            assert 50_000 < new - old < 500_000


def skip_unless_the_lab_can_run() -> None:
    skip_unless_root_with(("ip", "tcpdump", "openssl", "cc", "go", "nginx", "curl"))
    pytest.importorskip("matplotlib", reason="the chart needs the extra 'pictures'")
    if subprocess.run(["cc", "-fsyntax-only", LESSON / "cost.c"], capture_output=True).returncode:
        pytest.skip("cost.c does not compile here: OpenSSL's headers are missing")


@pytest.mark.timeout(300)
def test_a_quick_run_measures_and_leaves_nothing_behind(tmp_path: Path) -> None:
    skip_unless_the_lab_can_run()
    out = tmp_path / "out"
    make_captures("handshake-cost", "--quick", "--into", str(out), temporary=tmp_path / "temporary")
    results = json.loads((out / "results.json").read_text())
    assert [len(results[name]) for name in ("in_process", "in_go")] == [len(rows()), len(rows("in_go"))]
    for row in results["over_a_wire"]:
        (read,) = row["conchart"].values()
        for end in ENDS:
            assert read[end] >= 0.9 * row["cpu"][end]["answers"]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("step", ["captures", "cells in one process"])
def test_a_run_that_is_told_to_end_leaves_nothing_behind(step: str, tmp_path: Path) -> None:
    skip_unless_the_lab_can_run()
    words = ("--quick", "--into", str(tmp_path / "out"))
    make_captures("handshake-cost", *words, temporary=tmp_path / "temporary", end_after=step)
