"""Which terminator bears the most: the lesson's figures, its page, its captures and its lab agree with each other.

Requests a second are those of the machine that made ``results.json``; what is held here is what is said to carry over.
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

LESSON = ROOT / "examples" / "terminators"
CAPTURES = ROOT / "captures" / "terminators"
RESULTS: dict[str, Any] = json.loads((LESSON / "results.json").read_text())
TERMINATORS = ("nginx", "HAProxy", "hitch", "stunnel", "Apache")
POOLING = ("nginx", "HAProxy", "Apache")
"""Those that read HTTP, and keep connections to the backend."""
USERS, REQUESTS = 10, 4
LOADS = {row["share"] for row in RESULTS["loads"]}
NEEDED = ("ip", "sysctl", "tcpdump", "openssl", "cc", "httperf", "nginx", "haproxy", "hitch", "stunnel", "apache2")

every_terminator = pytest.mark.parametrize("name", TERMINATORS)


def most(name: str, key: str, cores: int, kind: str) -> float:
    (row,) = (
        row
        for row in RESULTS["most"]
        if (row["terminator"], row["key"], row["cores"], row["kind"]) == (name, key, cores, kind)
    )
    return float(row["per_second"])


def load(name: str, share: float) -> dict[str, Any]:
    (row,) = (row for row in RESULTS["loads"] if (row["terminator"], row["share"]) == (name, share))
    return dict(row)


@cache
def read(name: str) -> dict[str, list[tuple[Any, ...]]]:
    folder = CAPTURES / name.lower()
    with conchart.read(folder / "input.pcap", keylog=folder / "keys.log") as trace:
        return {
            "handshakes": trace.sql(
                "SELECT kind = 'full', count(*) FROM handshakes WHERE outcome = 'complete' GROUP BY ALL ORDER BY ALL"
            ).fetchall(),
            "links": trace.sql(
                "SELECT f.target, b.target, links.method, links.confidence, proxy_in_ns + connect_ns + tls_ns"
                " + links.request_ns + links.wait_ns + proxy_out_ns = f.wait_ns FROM links"
                " JOIN exchanges AS f ON f.stream = front_stream AND f.number = front_exchange"
                " JOIN exchanges AS b ON b.stream = back_stream AND b.number = back_exchange"
            ).fetchall(),
            "backs": trace.sql("SELECT count(*) FROM connections WHERE server_port = 8080").fetchall(),
            "hops": trace.sql("SELECT role FROM servers ORDER BY server_port").fetchall(),
            "full": trace.sql(
                "SELECT ready_at - hello_at FROM handshakes WHERE kind = 'full' ORDER BY complete_at"
            ).fetchall(),
        }


def test_every_terminator_has_its_capture() -> None:
    assert {path.name for path in CAPTURES.iterdir()} == {name.lower() for name in TERMINATORS}


def test_page_is_what_the_results_give(tmp_path: Path) -> None:
    make_captures("terminators", "--tables", "--into", str(tmp_path / "out"), temporary=tmp_path / "temporary")
    assert (tmp_path / "out/README.md").read_text() == (LESSON / "README.md").read_text()


@pytest.mark.parametrize("command", conchart_commands(LESSON / "README.md"))
def test_commands_of_the_page_run(command: str, tmp_path: Path) -> None:
    assert run_conchart(command, tmp_path)


@every_terminator
def test_one_handshake_in_four_is_full(name: str) -> None:
    assert read(name)["handshakes"] == [(False, USERS * (REQUESTS - 1)), (True, USERS)]


@every_terminator
def test_every_request_is_linked_with_the_one_behind_it(name: str) -> None:
    links = read(name)["links"]
    assert len(links) == USERS * REQUESTS
    assert len({front for front, *_ in links}) == USERS * REQUESTS
    for front, back, _, confidence, adds_up in links:
        assert (front, adds_up) == (back, True)
        assert confidence > 0.9
    assert read(name)["hops"] == [("front",), ("backend",)]


@every_terminator
def test_only_who_reads_http_keeps_connections_to_the_backend(name: str) -> None:
    ((backs,),) = read(name)["backs"]
    assert backs < USERS * REQUESTS / 2 if name in POOLING else backs == USERS * REQUESTS


@every_terminator
def test_users_who_come_faster_than_they_are_served_queue_in_the_handshake(name: str) -> None:
    times = sorted(ns for (ns,) in read(name)["full"])
    assert times[len(times) // 2] > 2 * load(name, min(LOADS))["handshake_ns"]


@every_terminator
def test_a_kept_connection_bears_most_and_a_resumed_session_more_than_a_full_handshake(name: str) -> None:
    for key in ("RSA-2048", "ECDSA"):
        full, resumed, reused = (most(name, key, 1, kind) for kind in ("full", "resumed", "keepalive"))
        assert full < resumed < reused


@every_terminator
def test_handshakes_take_longer_beyond_the_most(name: str) -> None:
    assert load(name, max(LOADS))["handshake_ns"] > 5 * load(name, 0.5)["handshake_ns"]


@every_terminator
@pytest.mark.parametrize("share", sorted(LOADS))
def test_what_is_charged_is_every_request_and_nothing_twice(name: str, share: float) -> None:
    row = load(name, share)
    assert row["answered"] == row["handshakes"]
    assert row["wait_ns"] - row["proxy_ns"] - row["connect_ns"] - row["backend_ns"] >= 0
    assert row["server_ns"] <= row["tls_ns"]


@every_terminator
def test_the_opening_does_not_tell_that_a_terminator_is_overloaded(name: str) -> None:
    row = load(name, max(LOADS))
    assert row["syn_again"] == 0
    assert row["syn_ns"] < 1e-3 * row["tls_ns"]


@every_terminator
def test_the_backend_is_never_what_is_waited_for(name: str) -> None:
    row = load(name, max(LOADS))
    assert row["backend_ns"] < 0.1 * (row["server_ns"] + row["proxy_ns"])
    assert row["unlinked"] <= 0.01 * row["answered"]


@pytest.mark.timeout(300)
def test_a_quick_run_measures_and_leaves_nothing_behind(tmp_path: Path) -> None:
    skip_unless_root_with(NEEDED)
    out = tmp_path / "out"
    words = ["--quick", "--key", "ECDSA", "--cores", "1", "--into", str(out), "nginx"]
    make_captures("terminators", *words, temporary=tmp_path / "temporary")
    results = json.loads((out / "results.json").read_text())
    assert [row["kind"] for row in results["most"]] == ["full", "resumed", "keepalive"]
    assert all(row["per_second"] > 0 and row["mean_ms"] < 100 for row in results["most"])
    idle, busy = results["loads"]
    assert (idle["answered"] > 0, idle["resumed"]) == (True, 0)
    assert busy["handshake_ns"] > idle["handshake_ns"]


@pytest.mark.timeout(300)
def test_a_run_that_is_told_to_end_leaves_nothing_behind(tmp_path: Path) -> None:
    skip_unless_root_with(NEEDED)
    words = ["--quick", "--key", "ECDSA", "--cores", "1", "--into", str(tmp_path / "out"), "hitch"]
    make_captures("terminators", *words, temporary=tmp_path / "temporary", end_after="hitch")
