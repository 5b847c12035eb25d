"""conchart's tables of several places against the oracle, over clocks that are wrong at random."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest

import conchart
from conchart import Trace
from tests.places.distortions import CASES, distorted, restored, stretches
from tests.places.truth import Truth

pytestmark = pytest.mark.skipif(
    "places" not in inspect.signature(conchart.read).parameters, reason="conchart reads no places yet"
)
QUICK_SEEDS, SEEDS = 12, 120
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
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@dataclass(frozen=True, kw_only=True)
class Run:
    """Captures with wrong clocks, the same with right ones, and what conchart says of the wrong ones."""

    right: Truth
    wrong: Truth
    trace: Trace


def read(truth: Truth) -> Trace:
    return conchart.read(places={place: [str(path)] for place, path in truth.captures.items()})  # type: ignore[call-arg]


@pytest.fixture(scope="module")
def right_of(tmp_path_factory: pytest.TempPathFactory) -> Rights:
    """Write the captures of a case with right clocks, once."""
    folder = tmp_path_factory.mktemp("right")
    return cache(lambda case: restored(case, folder / case.name))


@pytest.fixture(scope="module", params=[*range(QUICK_SEEDS), *THOROUGH])
def run(request: pytest.FixtureRequest, right_of: Rights, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A case with the clocks of a seed."""
    right = right_of(CASES[request.param % len(CASES)])
    wrong = distorted(right, request.param, tmp_path_factory.mktemp("wrong"))
    with read(wrong) as trace:
        yield Run(right=right, wrong=wrong, trace=trace)


def test_the_true_offset_lies_inside_the_corridor_and_the_corridor_is_narrow(run: Run) -> None:
    rows = run.trace.sql(
        "SELECT place, reference, from_at, to_at, offset_ns, drift_ppb, uncertainty_ns FROM clocks"
    ).fetchall()
    told = {frozenset(row[:2]) for row in rows if row[0] != row[1]}
    assert len(told) >= len(run.right.captures) - 1, "each place's clock is told"
    for place, reference in {row[:2] for row in rows if row[0] != row[1]}:
        least_of = least_round_trips(run, place, reference)
        for at in instants(run, place, reference):
            reads = run.wrong.clocks[reference].reads(at)
            ahead_ns = run.wrong.ahead_ns(place, reference, at)
            holding = [row for row in rows if row[:2] == (place, reference) and row[2] <= reads <= row[3]]
            assert holding, f"{place} against {reference}: nothing is told at {reads}"
            misses = [
                abs(offset_ns + (reads - from_at) * drift_ppb / 10**9 - ahead_ns) - uncertainty_ns
                for _, _, from_at, _, offset_ns, drift_ppb, uncertainty_ns in holding
            ]
            assert min(misses) <= 1, f"{place} against {reference} at {reads}: outside by {min(misses):,.0f} ns"
            least = least_of(at)
            if least is not None:
                coarse = run.wrong.resolution_ns(place, reference)
                assert min(row[6] for row in holding) <= (least + coarse) / 2, f"{place} against {reference}"


def test_lost_packets_are_located_and_no_others(run: Run) -> None:
    assert losses(run.trace) == sorted(
        (loss.from_place, loss.to_place, loss.sender, loss.frame, loss.bytes) for loss in run.right.losses
    )


def test_every_packet_that_two_places_saw_is_a_sighting_at_both(run: Run) -> None:
    seen = set(run.trace.sql("SELECT place, frame FROM sightings").fetchall())
    for here, there in combinations(run.right.captures, 2):
        for pair in run.right.sightings(here, there):
            for place, packet in ((here, pair.here), (there, pair.there)):
                assert (place, packet.frame + run.right.first_frame(place) - 1) in seen


@each_case
def test_clocks_change_no_table_but_its_times(case: Path, tmp_path: Path, right_of: Rights) -> None:
    right = right_of(case)
    with read(right) as plain, read(distorted(right, 1, tmp_path)) as wrong:
        for table, columns in TIMELESS.items():
            query = f"SELECT {columns} FROM {table} ORDER BY ALL"
            assert plain.sql(query).fetchall() == wrong.sql(query).fetchall(), table


@each_case
def test_what_is_committed_is_told(case: Path) -> None:
    truth = Truth(case)
    with read(truth) as trace:
        places = trace.sql("SELECT place FROM places ORDER BY number").fetchall()
        assert [place for (place,) in places] == list(truth.captures)
        assert losses(trace) == sorted(
            (loss.from_place, loss.to_place, loss.sender, loss.frame, loss.bytes) for loss in truth.losses
        )


def losses(trace: Trace) -> list[tuple[object, ...]]:
    return sorted(trace.sql("SELECT from_place, to_place, sender, frame, bytes FROM losses").fetchall())


def instants(run: Run, place: str, reference: str) -> list[int]:
    """True instants at which a clock's offset can be known: of packets at both places, or at the reference.

    Between two packets, nobody can tell when a clock was set: an instant is left out if a clock was set since the
    packet before it, or before the packet after it.
    """
    pairs = run.right.sightings(place, reference)
    spans = sorted((min(pair.here.at, pair.there.at), max(pair.here.at, pair.there.at)) for pair in pairs)
    if not pairs:
        spans = sorted((packet.at, packet.at) for packet in run.right.packets[reference])
    clocks = [run.wrong.clocks[place], run.wrong.clocks[reference]]
    found = []
    for number in range(1, len(spans) - 1):
        around = spans[number - 1 : number + 2]
        since, until = min(first for first, _ in around), max(last for _, last in around)
        if not any(clock.jumps(since, until) for clock in clocks):
            found.append(spans[number][0])
    return found


def least_round_trips(run: Run, place: str, reference: str) -> Callable[[int], int | None]:
    """Give the least round trip of the stretch around an instant in which neither clock was set."""
    known = {
        stretch: run.right.least_round_trip_ns(place, reference, *stretch)
        for stretch in stretches(run.wrong.clocks[place], run.wrong.clocks[reference])
    }
    return lambda at: next(least for (since, until), least in known.items() if since <= at < until)
