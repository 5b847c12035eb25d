"""The lesson on a page of 25 queries: its page, its figures, its captures and its lab agree with each other.

PHP's own clock is the truth: what it measured of each page, and of its waits for the store.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

import pytest

import conchart
from tests.captures_are_real.seen import CAPTURES
from tests.conftest import ROOT
from tests.lessons.running import conchart_commands, make_captures, program, run_conchart, skip_unless_root_with

LESSON = ROOT / "examples/one-page"
RESULTS: dict[str, Any] = json.loads((LESSON / "results.json").read_text())
CASES = sorted(set(RESULTS) - {"php", "machine"})
NEEDED = ("ip", "sysctl", "tcpdump", "curl", "nginx", "php-fpm8.2", "mariadbd", "mariadb-install-db", "mariadb")
MS = 1_000_000
OPENING, PING = 3, 1
"""Round trips: TCP handshake, greeting, login; and what PDO asks on a connection that it kept."""
TRIPS = {
    "n-plus-one": [OPENING + 25] * 4,
    "join": [OPENING + 1] * 4,
    "n-plus-one-kept": [OPENING + 25, *[PING + 25] * 3],
    "join-kept": [OPENING + 1, *[PING + 1] * 3],
    "prepared": [OPENING + 2 * 25] * 4,
    "pool-of": [OPENING + 25] * 16,
}
RTTS_MS = {"0.1ms": 0.1, "1ms": 1, "20ms": 20, "one": 1, "four": 1}
FINDINGS = {
    "n-plus-one-1ms": {"repeated-queries", "store-connection-per-query"},
    "n-plus-one-20ms": {"repeated-queries", "store-connection-per-query", "store-far-away"},
    "join-20ms": {"store-connection-per-query", "store-far-away"},
    "join-kept-20ms": {"store-far-away"},
    "prepared-1ms": {"statement-not-prepared", "repeated-queries"},
}
"""What the page says that conchart calls these."""

every_case = pytest.mark.parametrize("case", CASES)


def found(case: str, sql: str) -> list[tuple[Any, ...]]:
    with conchart.read(CAPTURES / "one-page" / case / "input.pcap") as trace:
        return trace.sql(sql).fetchall()


def typical(case: str, figure: str) -> float:
    """The median of all pages but the first, for which a connection that is kept is opened."""
    return float(median(row[figure] for row in RESULTS[case][1:])) / MS


@pytest.fixture
def measure(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(LESSON.parent)
    return program(LESSON / "measure.py")


def test_every_case_has_its_capture() -> None:
    assert {path.name for path in (CAPTURES / "one-page").iterdir()} == set(CASES)


def test_the_page_is_what_the_results_give(tmp_path: Path) -> None:
    make_captures("one-page", "--tables", "--into", str(tmp_path / "out"), temporary=tmp_path / "temporary")
    assert (tmp_path / "out/README.md").read_text() == (LESSON / "README.md").read_text()


@pytest.mark.parametrize("command", conchart_commands(LESSON / "README.md"))
def test_commands_of_the_page_run(command: str, tmp_path: Path) -> None:
    assert run_conchart(command, tmp_path)


@every_case
def test_the_results_are_what_the_captures_hold(case: str, measure: ModuleType) -> None:
    assert measure.measure(CAPTURES / "one-page" / case / "input.pcap") == RESULTS[case]


@every_case
def test_round_trips_are_those_of_driver_and_program(case: str) -> None:
    page, _, _ = case.rpartition("-")
    assert [row["round_trips"] for row in RESULTS[case]] == TRIPS[page]


@every_case
def test_waits_for_the_store_are_those_that_php_measured(case: str) -> None:
    """Within 0.5 ms, or 2 %: PHP's clock runs while the kernel wakes it, and while it works on what it got."""
    rows, pages = RESULTS[case], RESULTS["php"][case]
    stored = sorted(row["store_ns"] / MS for row in rows)
    for ours, php in zip(stored, sorted(page["store_ms"] for page in pages), strict=True):
        assert ours < php
    for row in rows:
        assert row["web_ns"] > row["fastcgi_ns"] == row["queue_ns"] + row["store_ns"] + row["own_ns"]
    page_ms = sum(row["fastcgi_ns"] - row["queue_ns"] for row in rows) / MS / len(rows)
    assert page_ms == pytest.approx(sum(page["page_ms"] for page in pages) / len(pages), abs=0.5, rel=0.02)


@every_case
def test_a_page_is_its_round_trips_and_what_programs_compute(case: str) -> None:
    rtt_ms = RTTS_MS[case.rpartition("-")[2]]
    for row in RESULTS[case]:
        beyond_ms = (row["fastcgi_ns"] - row["queue_ns"]) / MS - row["round_trips"] * rtt_ms
        assert 0 < beyond_ms < 0.6 * row["round_trips"] + 1


def test_the_gain_of_the_join_grows_with_the_distance_and_its_factor_does_not() -> None:
    gains = []
    for rtt in ("0.1ms", "1ms", "20ms"):
        before, after = (typical(f"{page}-{rtt}", "fastcgi_ns") for page in ("n-plus-one", "join"))
        gains.append(before - after)
        assert 4 < before / after < 8
    assert gains == sorted(gains)


def test_one_worker_makes_four_visitors_wait_four_times_and_php_does_not_know() -> None:
    alone, one, four = (
        median(row["web_ns"] for row in RESULTS[case]) for case in ("n-plus-one-1ms", "pool-of-one", "pool-of-four")
    )
    assert one == pytest.approx(4 * alone, rel=0.1)
    assert four == pytest.approx(alone, rel=0.1)
    alone_ms, one_ms = (
        median(page["page_ms"] for page in RESULTS["php"][case]) for case in ("n-plus-one-1ms", "pool-of-one")
    )
    assert one_ms == pytest.approx(alone_ms, rel=0.1)


@pytest.mark.parametrize(("case", "most"), [("pool-of-one", 1), ("pool-of-four", 4)])
def test_a_worker_has_one_connection_to_the_store_at_a_time(case: str, most: int) -> None:
    query = "SELECT min(request_at), max(request_at) FROM exchanges WHERE protocol = 'mysql' GROUP BY stream"
    waiting = "SELECT request_done_at, response_at FROM exchanges WHERE protocol = 'fastcgi'"
    assert at_once(found(case, query)) == most
    assert at_once(found(case, waiting)) == 4


def at_once(spans: list[tuple[Any, ...]]) -> int:
    """How many lie side by side, at the most."""
    steps = sorted([(begin, 1) for begin, _ in spans] + [(end, -1) for _, end in spans])
    return max(sum(step for _, step in steps[: place + 1]) for place in range(len(steps)))


@pytest.mark.parametrize("case", FINDINGS)
def test_findings_that_the_page_names_are_there(case: str) -> None:
    assert {finding for (finding,) in found(case, "SELECT finding FROM findings")} >= FINDINGS[case]


def test_the_repeated_queries_cost_what_the_join_saves() -> None:
    """Up to the loop's own time, and to the first of the queries, which a join needs, too."""
    ((cost,),) = found("n-plus-one-kept-1ms", "SELECT cost_ns FROM findings WHERE finding = 'repeated-queries'")
    saved = 4 * (typical("n-plus-one-1ms", "fastcgi_ns") - typical("join-1ms", "fastcgi_ns"))
    assert cost / MS == pytest.approx(saved, rel=0.15)


def test_queries_of_one_shape_are_counted_as_the_page_says() -> None:
    shapes = Counter(
        shape for (shape,) in found("n-plus-one-1ms", "SELECT target FROM exchanges WHERE method = 'Query'")
    )
    assert sorted(shapes.values()) == [4, 96]


@pytest.mark.timeout(300)
def test_a_quick_run_measures_and_leaves_nothing_behind(tmp_path: Path) -> None:
    skip_unless_root_with(NEEDED)
    out = tmp_path / "out"
    make_captures("one-page", "--quick", "--into", str(out), temporary=tmp_path / "temporary")
    results = json.loads((out / "results.json").read_text())
    for case in (case for case in CASES if RTTS_MS[case.rpartition("-")[2]] == 1):
        assert [row["round_trips"] for row in results[case]] == TRIPS[case.rpartition("-")[0]]
        assert (out / "captures" / case / "README.md").is_file()
    one, four = (median(row["queue_ns"] for row in results[case]) for case in ("pool-of-one", "pool-of-four"))
    assert one > 5 * four


@pytest.mark.timeout(300)
def test_a_run_that_is_told_to_end_leaves_nothing_behind(tmp_path: Path) -> None:
    skip_unless_root_with(NEEDED)
    words = ["--quick", "--into", str(tmp_path / "out")]
    make_captures("one-page", *words, temporary=tmp_path / "temporary", end_after="n-plus-one-1ms")
