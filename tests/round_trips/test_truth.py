"""At client, middle and server, conchart finds the round trips and computing times that the lab set up and measured.

``truth.json`` beside each capture says what is true and how it is known.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import conchart
from tests.conftest import ROOT

CASES = sorted(path.parent for path in (ROOT / "captures" / "round-trips").glob("*/truth.json"))
SHARE = 0.05
LEAST_NS = 200_000
"""Two packets of a delay line, late by what a busy machine makes of it."""
COMPUTE = ("client_compute_ns", "server_compute_ns")

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@cache
def truth(case: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((case / "truth.json").read_text())
    return document


def rows(case: Path, table: str) -> list[dict[str, Any]]:
    with conchart.read(case / "input.pcap") as trace:
        found = trace.sql(f"FROM {table} ORDER BY stream")
        return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


def near(ns: int | None, true_ns: int) -> bool:
    return ns is not None and abs(ns - true_ns) <= max(LEAST_NS, true_ns * SHARE)


def test_each_run_was_captured_at_three_places() -> None:
    runs = {case.name.rpartition("-")[0] for case in CASES}
    assert runs >= {"tls12", "tls13", "hello-retry", "slow-client", "slow-server"}
    assert [case.name for case in CASES] == sorted(
        f"{run}-{place}" for run in runs for place in ("client", "middle", "server")
    )


@every_case
def test_place_of_the_capture_is_told(case: Path) -> None:
    assert {row["vantage"] for row in rows(case, "connections")} == {truth(case)["vantage"]}


@every_case
@pytest.mark.parametrize("column", ["rtt_client_ns", "rtt_server_ns"])
def test_distance_to_either_end(case: Path, column: str) -> None:
    for row in rows(case, "connections"):
        assert near(row[column], truth(case)[column]), (row[column], truth(case)[column])


@every_case
def test_handshakes_are_of_their_kind_and_take_their_round_trips(case: Path) -> None:
    columns = ("version", "kind", "round_trips")
    found = [tuple(row[column] for column in columns) for row in rows(case, "handshakes")]
    assert found == [tuple(row[column] for column in columns) for row in truth(case)["handshakes"]]


@every_case
@pytest.mark.parametrize("column", COMPUTE)
def test_time_that_an_end_computes(case: Path, column: str) -> None:
    for row, true in zip(rows(case, "handshakes"), truth(case)["handshakes"], strict=True):
        assert near(row[column], true[column]), (row[column], true[column])


@every_case
def test_the_slow_end_is_the_one_that_computes_longer(case: Path) -> None:
    if not case.name.startswith("slow-"):
        pytest.skip("nobody is slow here")
    slow, fast = COMPUTE if case.name.startswith("slow-client") else reversed(COMPUTE)
    (row,) = rows(case, "handshakes")
    assert row[slow] is not None
    assert row[slow] > 5 * row[fast]
