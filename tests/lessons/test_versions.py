"""The lesson on three versions of HTTP: its page, its figures, its captures and its lab agree with each other.

The browser's own clock is the truth: what the page measured of itself, and which protocol it spoke.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

import pytest

import conchart
from tests.captures_are_real.seen import CAPTURES
from tests.conftest import ROOT
from tests.lessons.running import conchart_commands, make_captures, program, run_conchart, skip_unless_root_with

LESSON = ROOT / "examples/versions"
VISITS: list[dict[str, Any]] = json.loads((LESSON / "results.json").read_text())["visits"]
CASES = sorted(path.name for path in (CAPTURES / "versions").iterdir())
NEEDED = ("ip", "tcpdump", "openssl", "caddy", "chromium")
MS = 1_000_000
PICTURES = 24

every_case = pytest.mark.parametrize("case", CASES)


def found(case: str, sql: str) -> list[tuple[Any, ...]]:
    folder = CAPTURES / "versions" / case
    with conchart.read(folder / "input.pcap", keylog=[folder / "keys.log"]) as trace:
        return trace.sql(sql).fetchall()


def typical(version: str, rtt_ms: float, loss: float, figure: str = "wire_ns") -> float:
    return float(median(row[figure] for row in visits(version, rtt_ms, loss)))


def visits(version: str, rtt_ms: float, loss: float) -> list[dict[str, Any]]:
    return [row for row in VISITS if (row["version"], row["rtt_ms"], row["loss"]) == (version, rtt_ms, loss)]


@pytest.fixture
def measure(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(LESSON.parent)
    return program(LESSON / "measure.py")


def test_the_page_is_what_the_results_give(tmp_path: Path) -> None:
    make_captures("versions", "--tables", "--into", str(tmp_path / "out"), temporary=tmp_path / "temporary")
    assert (tmp_path / "out/README.md").read_text() == (LESSON / "README.md").read_text()


@pytest.mark.parametrize("command", conchart_commands(LESSON / "README.md"))
def test_commands_of_the_page_run(command: str, tmp_path: Path) -> None:
    assert run_conchart(command, tmp_path)


def test_each_visit_had_the_page_and_all_pictures() -> None:
    assert {row["exchanges"] for row in VISITS} == {PICTURES + 1}
    assert len({(row["version"], row["rtt_ms"], row["loss"]) for row in VISITS}) == 27


def test_the_browser_took_what_the_wire_took_and_its_own_time() -> None:
    for row in VISITS:
        assert 0 < row["browser_ms"] - row["wire_ns"] / MS < 600, row


@every_case
def test_the_capture_has_what_the_browser_says(case: str, measure: ModuleType) -> None:
    folder = CAPTURES / "versions" / case
    record = json.loads((folder / "truth.json").read_text())
    (row,) = measure.measure(folder / "input.pcap", folder / "keys.log", [record])
    assert record["protocols"] == [{"h1": "http/1.1", "h2": "h2", "h3": "h3"}[case.partition("-")[0]]]
    assert row["exchanges"] == record["pictures"] + 1 == PICTURES + 1
    assert row["wire_ns"] / MS < record["took_ms"]


def test_near_there_is_nothing_to_win_and_far_each_version_is_faster_than_the_one_before() -> None:
    near = [typical(version, 0, 0) / MS for version in ("h1", "h2", "h3")]
    assert max(near) - min(near) < 30
    for rtt_ms in (20, 80):
        h1, h2, h3 = (typical(version, rtt_ms, 0) for version in ("h1", "h2", "h3"))
        assert h1 > 1.15 * h2 > 1.15 * 1.15 * h3


@pytest.mark.parametrize(("version", "round_trips", "connections"), [("h1", 2, 6), ("h2", 2, 1), ("h3", 1, 1)])
def test_what_passes_before_the_first_request(version: str, round_trips: int, connections: int) -> None:
    ready_ms = typical(version, 80, 0, "ready_ns") / MS
    assert ready_ms == pytest.approx(round_trips * 80, abs=6)
    assert {row["connections"] for row in visits(version, 80, 0)} == {connections}


def test_pictures_share_six_connections_as_the_page_says() -> None:
    shares = sorted(
        n for (n,) in found("h1-80ms", "SELECT count(*) FROM exchanges WHERE target <> '/' GROUP BY stream")
    )
    assert shares[0] in (3, 4)
    assert shares[-1] in (5, 6)
    assert sum(shares) == PICTURES


def test_the_first_window_of_http_2_holds_headers_alone() -> None:
    sent = found(
        "h2-80ms", "SELECT frame, bytes, seen_at FROM packets WHERE sender = 'server' AND bytes > 0 ORDER BY 1"
    )
    small, large = ([row for row in sent if row[0] in frames] for frames in (range(40, 62), range(62, 70)))
    assert [bytes_ for _, bytes_, _ in small] == [70, *[58] * 16]
    assert large[0][1] == 1448
    gap = large[0][2] - small[-1][2]
    assert gap / MS == pytest.approx(80, abs=20)
    ((over_quic,),) = found("h3-80ms", "SELECT sum(bytes) FROM packets, (SELECT request_at AS begun_at FROM exchanges "
                            "WHERE target = '/0.png') WHERE sender = 'server' AND seen_at BETWEEN begun_at "
                            "AND begun_at + 140_000_000")  # fmt: skip
    assert over_quic > 25_000


def test_loss_costs_http_3_about_what_it_costs_http_2_and_half_of_the_pictures_come_earlier() -> None:
    h2, h3 = (typical(version, 80, 0.03) - typical(version, 80, 0) for version in ("h2", "h3"))
    assert 0.5 < h3 / h2 < 2
    for loss in (0, 0.01, 0.03):
        assert typical("h3", 80, loss, "half_ns") < 0.9 * typical("h2", 80, loss, "half_ns")
    slowest = max(row["wire_ns"] for row in visits("h3", 80, 0.03))
    assert slowest > 2.5 * min(row["wire_ns"] for row in visits("h3", 80, 0.03))


def test_timers_repair_what_http_1_loses() -> None:
    kinds = dict(found("h1-80ms-3", "SELECT kind, count(*) FROM stalls GROUP BY ALL"))
    assert kinds["rto"] >= 1
    assert ("tail-loss-rto",) in found("h1-80ms-3", "SELECT finding FROM findings")
    for case in ("h2-80ms-3", "h3-80ms-3"):
        assert not {"rto", "pto"} & {kind for (kind,) in found(case, "SELECT DISTINCT kind FROM stalls")}


@pytest.mark.timeout(300)
def test_a_quick_run_visits_and_leaves_nothing_behind(tmp_path: Path) -> None:
    skip_unless_root_with(NEEDED)
    out = tmp_path / "out"
    make_captures("versions", "--quick", "--into", str(out), temporary=tmp_path / "temporary")
    rows = json.loads((out / "results.json").read_text())["visits"]
    assert {(row["version"], row["exchanges"]) for row in rows} == {(version, 25) for version in ("h1", "h2", "h3")}
    assert {row["connections"] for row in rows if row["version"] == "h1"} == {6}


@pytest.mark.timeout(300)
def test_a_run_that_is_told_to_end_leaves_nothing_behind(tmp_path: Path) -> None:
    skip_unless_root_with(NEEDED)
    words = ["--quick", "--into", str(tmp_path / "out")]
    make_captures("versions", *words, temporary=tmp_path / "temporary", end_after="h1-20ms")
