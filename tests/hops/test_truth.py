"""The truth of the committed captures of ``examples/hops`` is in conchart's tables, whole."""

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.hops.truth import Truth, open_case, read_truth, rows

CAPTURES = ROOT / "captures" / "hops"
CASES = sorted(path.parent for path in CAPTURES.glob("*/truth.csv"))
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
Times = dict[tuple[int, int], tuple[int, int]]


@cache
def read(case: Path) -> tuple[Truth, Times]:
    """Read a case: its truth, and when each exchange began and ended."""
    with open_case(case) as trace:
        times = trace.sql(
            "SELECT stream, number, request_at, coalesce(response_done_at, request_at) FROM exchanges"
        ).fetchall()
        return read_truth(case, trace), {(stream, number): (began, ended) for stream, number, began, ended in times}


def test_there_are_captures() -> None:
    assert len(CASES) >= 12


@each_case
def test_every_link_has_both_its_exchanges(case: Path) -> None:
    truth, _ = read(case)
    assert not truth.unseen
    assert len(truth.links) == sum(1 for _ in rows(case / "truth.csv"))


@each_case
def test_a_back_exchange_lies_within_its_front_exchange(case: Path) -> None:
    truth, times = read(case)
    for front_stream, front_exchange, back_stream, back_exchange in truth.links:
        request_at, answered_at = times[front_stream, front_exchange]
        began_at, ended_at = times[back_stream, back_exchange]
        assert request_at <= began_at
        assert ended_at <= answered_at


def test_an_application_asks_once_twice_or_never() -> None:
    truth, _ = read(CAPTURES / "tiers-beside-16")
    counts = Counter(link[:2] for link in truth.links)
    assert set(counts.values()) == {1, 2}
