"""How far the clock of a log is ahead of the capture's."""

from collections.abc import Sequence
from typing import Any

import pytest

from conchart.logs.clocks import FINE_NS, QUARTER, LogClock, better_estimate, first_estimate
from conchart.store.tables import Tables
from tests.by_hand import Row, tables_of

MS, S = 1_000_000, 1_000_000_000
BEGAN = 1_700_000_000 * S
_REQUESTS = {"stream": "INTEGER", "number": "INTEGER", "target": "VARCHAR", "request_at": "BIGINT"}
_PAIRS = {"log": "INTEGER", "line": "BIGINT", "stream": "INTEGER", "exchange": "INTEGER", "rivals": "INTEGER"}


def logged(ahead: Sequence[int], targets: Sequence[str] = (), *, rivals: Sequence[int] = ()) -> Tables:
    """Give a log, each line of which is so far ahead of its request; requests are ten seconds apart."""
    names = targets or [f"/{number}" for number in range(len(ahead))]
    lines: list[Row] = [
        {"log": 0, "line": number, "target": names[number], "logged_at": BEGAN + 10 * number * S + ns}
        for number, ns in enumerate(ahead)
    ]
    tables = tables_of(log_lines=lines)
    requests = [(0, number, name, BEGAN + 10 * number * S) for number, name in enumerate(names)]
    tables.lend("log_requests", _REQUESTS, requests)
    sure = rivals or [0] * len(ahead)
    tables.lend("log_pairs", _PAIRS, [(0, number, 0, number, sure[number]) for number in range(len(ahead))])
    return tables


def first(tables: Tables, *, zoned: bool = True, span: tuple[int, int] = (BEGAN, BEGAN + 100 * S)) -> LogClock:
    keys = [("requests", "target", "target", "log_requests")]
    return first_estimate(tables, 0, keys=keys, reference="request_at", zoned=zoned, span=span)


def test_requests_that_are_rare_tell_the_clock_to_half_a_second() -> None:
    found = first(logged([7_250 * MS] * 4))
    assert found == LogClock(ahead_ns=7_250 * MS, uncertainty_ns=S // 2, method="requests")


def test_what_lies_on_both_sides_of_a_second_agrees() -> None:
    assert first(logged([1_900 * MS, 2_100 * MS, 1_950 * MS])).ahead_ns == 1_950 * MS


@pytest.mark.parametrize(("agreeing", "found"), [(4, True), (3, False)])
def test_two_fifths_of_the_rare_ones_have_to_agree(agreeing: int, found: bool) -> None:  # noqa: FBT001
    others = [(100 + 50 * number) * S for number in range(10 - agreeing)]
    assert (first(logged([3 * S] * agreeing + others)).method == "requests") == found


def test_fewer_than_three_may_be_others_of_the_same_name_unless_the_clocks_agree_anyway() -> None:
    assert first(logged([300 * S] * 2)).method == "requests"
    assert first(logged([301 * S] * 2), span=(0, 1)).method == "zone"
    assert first(logged([301 * S] * 3)).method == "requests"


def test_what_is_asked_often_is_not_recognised() -> None:
    assert first(logged([3 * S] * 8, ["/"] * 8)).method == "requests", "eight times eight"
    assert first(logged([3 * S] * 9, ["/"] * 9)).method == "zone"


@pytest.mark.parametrize(
    ("hours", "zoned", "ahead"), [(2, False, 8 * QUARTER), (-5, False, -20 * QUARTER), (2, True, 0)]
)
def test_a_clock_without_a_zone_may_be_quarters_of_an_hour_off(hours: int, zoned: bool, ahead: int) -> None:  # noqa: FBT001
    tables = logged([hours * 3_600 * S] * 9, ["/"] * 9)
    assert first(tables, zoned=zoned) == LogClock(ahead_ns=ahead, uncertainty_ns=S // 2, method="zone")


FIRST_ESTIMATE = LogClock(ahead_ns=1, uncertainty_ns=2, method="zone")


def better(tables: Tables, *, grain: int, latest: str = "request_at") -> LogClock:
    return better_estimate(
        tables, 0, logged="logged_at", reference="request_at", latest=latest, grain_ns=grain, current=FIRST_ESTIMATE
    )


def test_pairs_tell_a_fine_clock_by_their_median_and_how_far_they_are_spread() -> None:
    """Of 100, the middle half is 4 ms wide: 2 ms by the root of their number."""
    found = better(logged([(10 + number % 9) * MS for number in range(100)]), grain=2)
    assert found.method == "pairs"
    assert found.ahead_ns == 14 * MS + 1
    assert found.uncertainty_ns == round(2 * MS / 10 + 1_000)
    assert better(logged([5 * MS]), grain=2 * MS) == LogClock(ahead_ns=6 * MS, uncertainty_ns=MS, method="pairs")


def test_a_coarse_clock_is_bounded_by_what_it_cuts_off() -> None:
    """Lines of whole seconds seem late by up to one: the latest and the earliest bound what the clock is ahead."""
    found = better(logged([-900 * MS] * 25 + [-100 * MS] * 25), grain=S)
    low, high = -100 * MS, -900 * MS + S
    assert found.ahead_ns == round((low + high) / 2)
    assert found.uncertainty_ns == 100 * MS + 2 * MS
    assert FINE_NS < S


def test_pairs_that_are_not_sure_are_left_out_where_enough_are() -> None:
    rivals = [0] * 10 + [1] * 30
    assert better(logged([5 * MS] * 10 + [900 * MS] * 30, rivals=rivals), grain=2).ahead_ns == 5 * MS + 1
    few = [0] * 9 + [1] * 30
    assert better(logged([5 * MS] * 9 + [900 * MS] * 30, rivals=few), grain=2).ahead_ns == 900 * MS + 1


def test_without_pairs_nothing_better_is_known() -> None:
    none: list[Any] = []
    assert better(logged(none), grain=1) is FIRST_ESTIMATE
