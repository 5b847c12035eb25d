"""conchart's tables of several places against the oracle, over clocks that are wrong at random."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path

import pytest

import conchart
from conchart import Trace
from tests.reading.places.distortions import APART, CASES, SECOND, distorted, restored, stretches
from tests.reading.places.truth import Truth

pytestmark = pytest.mark.skipif(
    "places" not in inspect.signature(conchart.read).parameters, reason="conchart reads no places yet"
)
QUICK_SEEDS, SEEDS = 4, 120
POSSIBLE_DRIFT_PPB = 500_000
"""Linux lets nobody slew a clock faster (adjtimex)."""
TIMELESS = {
    "connections": "client_ip, client_port, server_ip, server_port, state, packets_client, packets_server, "
    "bytes_client, bytes_server, app",
    "handshakes": "version, kind, outcome, sni",
    "exchanges": "protocol, method, target, status, request_bytes, response_bytes",
    "losses": "from_place, to_place, sender, frame, bytes",
}
"""What clocks have no part in."""
THOROUGH = [pytest.param(seed, marks=pytest.mark.thorough) for seed in range(QUICK_SEEDS, SEEDS)]
Rights = Callable[[Path], Truth]
Timeless = Callable[[Truth], dict[str, list[tuple[object, ...]]]]
ONE_CLOCK = [case for case in CASES if case.name == "one-host"]
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@dataclass(frozen=True, kw_only=True)
class Run:
    """Captures with wrong clocks, the same with right ones, and what conchart says of the wrong ones."""

    right: Truth
    wrong: Truth
    trace: Trace


def read(truth: Truth) -> Trace:
    return conchart.read(places={place: [str(path)] for place, path in truth.captures.items()})


@pytest.fixture(scope="module")
def right_of(tmp_path_factory: pytest.TempPathFactory) -> Rights:
    """Write the captures of a case with right clocks, once."""
    folder = tmp_path_factory.mktemp("right")
    return cache(lambda case: restored(case, folder / case.name))


@pytest.fixture(scope="module")
def timeless_of() -> Timeless:
    """Read the captures of a case with right clocks, once."""
    by_folder: dict[Path, dict[str, list[tuple[object, ...]]]] = {}

    def of(right: Truth) -> dict[str, list[tuple[object, ...]]]:
        if right.folder not in by_folder:
            with read(right) as plain:
                by_folder[right.folder] = timeless(plain)
        return by_folder[right.folder]

    return of


@pytest.fixture(scope="module", params=[*range(QUICK_SEEDS), *THOROUGH])
def run(request: pytest.FixtureRequest, right_of: Rights, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A case with the clocks of a seed."""
    right = right_of(APART[request.param % len(APART)])
    wrong = distorted(right, request.param, tmp_path_factory.mktemp("wrong"))
    with read(wrong) as trace:
        yield Run(right=right, wrong=wrong, trace=trace)


def test_the_true_offset_lies_inside_the_corridor_and_the_corridor_is_narrow(run: Run) -> None:
    rows = run.trace.sql(
        "SELECT place, reference, from_at, to_at, offset_ns, drift_ppb, uncertainty_ns FROM clocks "
        "WHERE uncertainty_ns IS NOT NULL"
    ).fetchall()
    pairs = {tuple(row[:2]) for row in rows if row[0] != row[1]}
    if all(any(stretches_of(run, *pair)) for pair in pairwise(run.right.captures)):
        assert len(pairs) >= len(run.right.captures) - 1, "each place's clock is told"
    for place, reference in pairs:
        between = f"{place} against {reference}"
        for stretch in stretches_of(run, place, reference):
            for at in stretch.instants:
                reads, writes = (
                    each(at) for each in (run.wrong.clocks[reference].reads, run.wrong.clocks[reference].writes)
                )
                ahead_ns = run.wrong.ahead_ns(place, reference, at)
                holding = [row for row in rows if row[:2] == (place, reference) and row[2] <= writes <= row[3]]
                assert holding or stretch.most_ns is None, f"{between}: nothing is told at {writes}"
                misses = [
                    abs(offset_ns + (reads - from_at) * drift_ppb / SECOND - ahead_ns) - uncertainty_ns
                    for _, _, from_at, _, offset_ns, drift_ppb, uncertainty_ns in holding
                ]
                assert min(misses, default=0) <= 1, f"{between} at {writes}: outside by {min(misses):,.0f} ns"
                if stretch.most_ns is not None:
                    assert min(row[6] for row in holding) <= stretch.most_ns, f"{between} at {writes}"


def test_one_way_delays_are_right_within_what_is_told(run: Run) -> None:
    """On the reference's clock, of each place and the one through which it is aligned.

    A clock's own rate and resolution come on top of the doubt: the true delay is by another clock.
    """
    seen_at = {row[:2]: row[2] for row in run.trace.sql("SELECT place, frame, seen_at FROM place_packets").fetchall()}
    doubts = run.trace.sql(
        "SELECT place, through, max(through_ns) FROM clocks WHERE uncertainty_ns IS NOT NULL AND through IS NOT NULL "
        "GROUP BY ALL"
    ).fetchall()
    compared = 0
    for place, through, doubt_ns in doubts:
        coarse_ns = 2_000 + run.wrong.resolution_ns(place, through)
        for stretch in stretches_of(run, place, through):
            instants = set(stretch.instants)
            for pair in run.right.place_packets(place, through):
                if stretch.most_ns is None or pair.there.at not in instants:
                    continue
                here, there = (
                    seen_at[name, packet.frame + run.right.first_frame(name) - 1]
                    for name, packet in ((place, pair.here), (through, pair.there))
                )
                off_ns = abs(there - here - pair.way_ns) - abs(pair.way_ns) * POSSIBLE_DRIFT_PPB // SECOND
                assert off_ns <= doubt_ns + coarse_ns, f"{place} and {through} at {pair.there.at}"
                compared += 1
    assert compared or not doubts


def test_wrong_clocks_change_no_table_but_its_times(run: Run, timeless_of: Timeless) -> None:
    assert timeless(run.trace) == timeless_of(run.right)


def test_lost_packets_are_located_and_no_others(run: Run) -> None:
    assert losses(run.trace) == sorted(
        (loss.from_place, loss.to_place, loss.sender, loss.frame, loss.bytes) for loss in run.right.losses
    )


def test_every_packet_that_two_places_saw_is_a_sighting_at_both(run: Run) -> None:
    seen = set(run.trace.sql("SELECT place, frame FROM place_packets").fetchall())
    for here, there in combinations(run.right.captures, 2):
        for pair in run.right.place_packets(here, there):
            for place, packet in ((here, pair.here), (there, pair.there)):
                assert (place, packet.frame + run.right.first_frame(place) - 1) in seen


@pytest.mark.parametrize("case", ONE_CLOCK, ids=lambda case: case.name)
def test_clocks_change_no_table_but_its_times(case: Path, tmp_path: Path, right_of: Rights) -> None:
    right = right_of(case)
    with read(right) as plain, read(distorted(right, 1, tmp_path)) as wrong:
        assert timeless(plain) == timeless(wrong)


@each_case
def test_what_is_committed_is_told(case: Path) -> None:
    truth = Truth(case)
    with read(truth) as trace:
        places = trace.sql("SELECT place FROM places ORDER BY number").fetchall()
        assert [place for (place,) in places] == list(truth.captures)
        assert losses(trace) == sorted(
            (loss.from_place, loss.to_place, loss.sender, loss.frame, loss.bytes) for loss in truth.losses
        )


def timeless(trace: Trace) -> dict[str, list[tuple[object, ...]]]:
    """Give what clocks have no part in."""
    return {
        table: trace.sql(f"SELECT {columns} FROM {table} ORDER BY ALL").fetchall()
        for table, columns in TIMELESS.items()
    }


def losses(trace: Trace) -> list[tuple[object, ...]]:
    return sorted(trace.sql("SELECT from_place, to_place, sender, frame, bytes FROM losses").fetchall())


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """A stretch of the true time in which neither of two clocks was set."""

    instants: list[int]
    """True instants at which the reference saw packets of both; otherwise, at which the place saw packets of others."""
    most_ns: int | None
    """How wide half the corridor may be. None if the two places have no packet in common.

    No corridor that is right is narrower than the least round trip. What drift cannot be excluded makes it wider.
    """


def stretches_of(run: Run, place: str, reference: str) -> list[Stretch]:
    """Cut the time where a clock was set; leave out stretches in which packets went one way only."""
    pairs = run.right.place_packets(place, reference)
    coarse_ns = run.wrong.resolution_ns(place, reference)
    others = [other for other in run.right.captures if other != place]
    clocks = [run.wrong.clocks[each] for each in ((place, reference) if pairs else run.right.captures)]
    shared = pairs or [pair for other in others for pair in run.right.place_packets(place, other)]
    seen_at = sorted(pair.there.at if pairs else pair.here.at for pair in shared)
    blurred = [
        span for each in ((place, reference) if pairs else run.right.captures) for span in settings(run, each, seen_at)
    ]
    found = []
    for since, until in stretches(clocks):
        least_ns = run.right.least_round_trip_ns(place, reference, since, until)
        within = [
            at for at in seen_at if since < at < until and not any(first <= at <= last for first, last in blurred)
        ]
        if not within or (pairs and least_ns is None):
            continue
        lasts_ns = min(until, seen_at[-1]) - max(since, seen_at[0])
        most_ns = None if least_ns is None else (least_ns + coarse_ns) // 2 + lasts_ns * POSSIBLE_DRIFT_PPB // SECOND
        found.append(Stretch(instants=within, most_ns=most_ns))
    return found


def settings(run: Run, place: str, seen_at: list[int]) -> list[tuple[int, int]]:
    """Give the spans of true time in which a place's clock was set as far as packets tell.

    From the packet before to the packet after, both of its own and of those at ``seen_at``, and as long as packets of
    before and after may be on their way.
    """
    pairs = [pair for other in run.right.captures if other != place for pair in run.right.place_packets(place, other)]
    times = sorted(pair.here.at for pair in pairs)
    way_ns = max(
        abs(pair.way_ns) for both in combinations(run.right.captures, 2) for pair in run.right.place_packets(*both)
    )
    found = []
    for set_at, _ in stretches([run.wrong.clocks[place]])[1:]:
        before = min(max((at for at in each if at < set_at), default=set_at) for each in (times, seen_at))
        after = max(min((at for at in each if at >= set_at), default=set_at) for each in (times, seen_at))
        found.append((before - way_ns, after + way_ns))
    return found
