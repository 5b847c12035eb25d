"""Of the stalls that the lab made, conchart finds 95 of 100 of each kind; of those it finds, as many were made."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import dpkt
import pytest

from tests.conftest import ROOT
from tests.stalls.comparison import Outcome, Stall, Truth, cases, compare, read_truth

CAPTURES = ROOT / "captures" / "stalls"
CASES = tuple(cases(CAPTURES))
LEAST = 0.95
KINDS = (
    "fast-retransmit",
    "nagle",
    "pmtu",
    "receiver",
    "rto",
    "sender",
    "slow-start",
    "syn-rto",
    "window-limited",
    "zero-window",
)

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@cache
def outcome() -> Outcome:
    return compare(CAPTURES)


def test_each_run_was_captured_at_both_ends() -> None:
    names = [case.name for case in CASES]
    runs = {name.rpartition("-")[0] for name in names}
    assert len(runs) > 40
    assert names == sorted(f"{run}-{place}" for run in runs for place in ("client", "server"))


@pytest.mark.parametrize("kind", KINDS)
def test_stalls_that_were_made_are_found(kind: str) -> None:
    assert outcome().made[kind] >= 3
    assert outcome().recall(kind) >= LEAST, [each for each in outcome().missed if f": {kind}" in each]


@pytest.mark.parametrize("kind", KINDS)
def test_stalls_that_are_found_were_made(kind: str) -> None:
    assert outcome().found[kind] >= 3
    assert outcome().precision(kind) >= LEAST, [each for each in outcome().wrong if f": {kind}" in each]


# The comparison itself


def stall(kind: str, start_ms: int, end_ms: int, frames: tuple[int, int] = (1, 9), side: str = "client") -> Stall:
    return Stall(
        stream=0, kind=kind, detail=None, side=side, start_at=start_ms * 1_000_000, end_at=end_ms * 1_000_000,
        start_frame=frames[0], end_frame=frames[1],
    )  # fmt: skip


def compared(true: list[Stall], found: list[Stall], **more: list[dict[str, object]]) -> Outcome:
    truth = Truth(
        stalls=true, evident=[True] * len(true), sure_of={"rto", "nagle"}, unjudged=more.get("unjudged", [])
    )  # fmt: skip
    result = Outcome()
    result.compare("case", truth, found)
    return result


def test_half_in_common_is_the_same_stall() -> None:
    result = compared([stall("rto", 0, 200)], [stall("rto", 90, 210, frames=(4, 5))])
    assert (result.recall("rto"), result.precision("rto")) == (1, 1)


def test_less_than_half_in_common_is_one_missed_and_one_wrong() -> None:
    result = compared([stall("rto", 0, 200)], [stall("rto", 120, 210, frames=(4, 5))])
    assert (result.recall("rto"), result.precision("rto")) == (0, 0)


def test_near_frames_are_the_same_stall() -> None:
    assert compared([stall("rto", 0, 20)], [stall("rto", 15, 200, frames=(2, 8))]).recall("rto") == 1


def test_other_kind_or_side_is_another_stall() -> None:
    assert compared([stall("rto", 0, 20)], [stall("nagle", 0, 20)]).recall("rto") == 0
    assert compared([stall("rto", 0, 20)], [stall("rto", 0, 20, side="server")]).recall("rto") == 0


def test_short_ones_are_nobodys_fault() -> None:
    result = compared([stall("rto", 0, 4)], [stall("nagle", 0, 4)])
    assert not result.made
    assert not result.found


def test_what_nobody_knows_is_not_judged() -> None:
    unjudged: list[dict[str, object]] = [{"stream": 0, "kinds": ["nagle"], "start_at": 0, "end_at": 10**9}]
    assert not compared([], [stall("nagle", 0, 40)], unjudged=unjudged).found
    assert compared([], [stall("rto", 0, 40)], unjudged=unjudged).wrong == ["case: rto client 0: 1→9, 40.0 ms"]


# The truth


@every_case
def test_truth_is_about_frames_of_its_capture(case: Path) -> None:
    with (case / "input.pcap").open("rb") as file:
        seen_at = [int(at * 10**9) for at, _ in dpkt.pcap.Reader(file)]
    for each in read_truth(case / "truth.json").stalls:
        assert each.start_frame < each.end_frame
        assert seen_at[each.start_frame - 1] <= each.start_at < each.end_at == seen_at[each.end_frame - 1]


@every_case
def test_true_stalls_do_not_overlap(case: Path) -> None:
    truth = read_truth(case / "truth.json")
    pairs = zip(truth.stalls, truth.evident, strict=True)
    stalls = sorted((each.stream, each.start_at, each.end_at) for each, evident in pairs if evident)
    for before, after in zip(stalls, stalls[1:], strict=False):
        assert before[0] < after[0] or before[2] <= after[1]
