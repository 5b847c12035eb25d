"""Client and application alone: the proxy between them sends requests of its own, and nobody captured there."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

import conchart
from conchart import Trace
from conchart.report.places import clocks as reported_clocks
from tests.reading.places.distortions import CAPTURES, clocks, drift, restored, signed
from tests.reading.places.truth import Truth, records

PAIRED = ("asymmetric", "midstream", "nat", "plain")
"""Cases of which requests and answers have sizes and times that one difference of the clocks alone explains."""
ENDS = ("client", "app")
HOURS_NS = 12 * 3_600 * 10**9
INSTANTS = 11
SEEDS = [pytest.param(seed, marks=() if seed < 6 else pytest.mark.thorough) for seed in range(24)]


def read(client: Path, app: Path) -> Trace:
    return conchart.read(places={"client": str(client), "app": str(app)})


def wrong(case: str, seed: int, to: Path) -> Truth:
    """Write both captures with clocks that are hours off, run too fast or too slow, and cut off digits."""
    right = restored(CAPTURES / case, to / "right")
    (to / "wrong").mkdir()
    written_clocks = {}
    for place in ENDS:
        chance = Random(f"{seed} {place}")
        times = sorted(at for _, at, _ in records(right.captures[place]))
        clock = clocks().make_clock(
            zero_at=times[0],
            offset_ns=signed(chance, 10**6, HOURS_NS),
            drift_ppb=drift(chance),
            resolution_ns=chance.choice((1, 1, 1_000)),
        )
        written_clocks[place] = clocks().distort(right.captures[place], to / "wrong" / f"{place}.pcap", clock)
    return Truth(right.folder, {place: to / "wrong" / f"{place}.pcap" for place in ENDS}, written_clocks)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_true_difference_lies_in_the_corridor(seed: int, tmp_path: Path) -> None:
    truth = wrong(PAIRED[seed % len(PAIRED)], seed, tmp_path)
    client, app = (truth.clocks[place] for place in ENDS)
    with read(*(truth.captures[place] for place in ENDS)) as trace:
        ((from_at, to_at, offset_ns, drift_ppb, half_ns, method),) = trace.sql(
            "SELECT from_at, to_at, offset_ns, drift_ppb, uncertainty_ns, method FROM clocks WHERE place = 'app'"
        ).fetchall()
        assert method == "likeness"
        for number in range(INSTANTS):
            shown = from_at + (to_at - from_at) * number // (INSTANTS - 1)
            differs = app.reads(client.pieces[0].true(shown)) - shown
            estimate = offset_ns + (shown - from_at) * drift_ppb // 10**9
            assert abs(differs - estimate) <= half_ns
        # The way there and back together bounds it: no narrower corridor can be proven.
        ((least_ns,),) = trace.sql("""
            SELECT min(front.wait_ns + coalesce(front.transfer_ns, 0) - back.wait_ns - coalesce(back.transfer_ns, 0))
            FROM links JOIN exchanges front ON front.stream = front_stream AND front.number = front_exchange
            JOIN exchanges back ON back.stream = back_stream AND back.number = back_exchange
        """).fetchall()
        assert half_ns > least_ns / 3


@pytest.mark.parametrize("case", PAIRED)
def test_links_are_those_that_the_proxy_shows(case: str) -> None:
    linked = """
        SELECT front.client_port, front_exchange, back.client_port, back_exchange, links.method, confidence
        FROM links JOIN connections front ON front.stream = front_stream
        JOIN connections back ON back.stream = back_stream
        WHERE front.server_port = 443 ORDER BY ALL
    """
    folder = CAPTURES / case
    with conchart.read(places={place: str(folder / f"{place}.pcap") for place in ("client", "lb", "app")}) as trace:
        pairs = {row[:4] for row in trace.sql(linked).fetchall()}
    with read(folder / "client.pcap", folder / "app.pcap") as trace:
        rows = trace.sql(linked).fetchall()
        assert {row[4:] for row in rows} == {("likeness", 0.5)}
        (clock,) = [clock for clock in reported_clocks(trace) if clock.place == "app"]
    # An address translation gives the client's connections other ports at the proxy.
    assert {row[:4] for row in rows} <= pairs
    assert f"no packet in common: by {len(rows)} requests that look alike, with a wide ±" in str(clock)
    assert "capture at the proxy between them" in str(clock)


@pytest.mark.parametrize("case", PAIRED)
def test_what_lies_between_the_places_is_told_so_and_adds_up(case: str) -> None:
    with read(CAPTURES / case / "client.pcap", CAPTURES / case / "app.pcap") as trace:
        parts = trace.sql("""
            SELECT stream, exchange, sum(parts.end_at - parts.start_at), any_value(phases.end_at - phases.start_at),
                count(*) FILTER (parts.kind = 'between'),
                bool_and(uncertainty_ns = (SELECT max(uncertainty_ns) FROM clocks)) FILTER (parts.kind = 'between'),
                sum(parts.end_at - parts.start_at) FILTER (parts.kind = 'host' AND place = 'app')
            FROM phase_places parts JOIN phases USING (stream, exchange)
            WHERE phase = 'wait' AND phases.kind = 'wait' AND (stream, exchange) IN (
                SELECT (front_stream, front_exchange) FROM links WHERE method = 'likeness')
            GROUP BY ALL
        """).fetchall()
        assert parts
        for _, _, total_ns, wait_ns, between, is_doubted, app_ns in parts:
            assert total_ns == wait_ns
            assert between >= 2  # noqa: PLR2004 there and back; one more where a connection was opened
            assert is_doubted
            assert app_ns > 0


@pytest.mark.parametrize(
    ("client", "app"),
    [
        ("whose-fault-1", "whose-fault-1"),  # twenty requests that look the same
        ("plain", "whose-fault-1"),
        ("whose-fault-2", "plain"),
        ("queue", "nat"),
        ("plain", "udp"),
    ],
)
def test_nothing_is_claimed_of_what_looks_the_same_or_has_nothing_to_do_with_each_other(client: str, app: str) -> None:
    with read(CAPTURES / client / "client.pcap", CAPTURES / app / "app.pcap") as trace:
        assert trace.sql("SELECT method, uncertainty_ns FROM clocks WHERE place = 'app'").fetchall() == [
            ("unknown", None)
        ]
        assert trace.sql("SELECT count(*) FROM links WHERE method = 'likeness'").fetchone() == (0,)
        assert trace.sql("SELECT count(*) FROM phase_places WHERE kind = 'between'").fetchone() == (0,)
