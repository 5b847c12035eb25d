"""Where the time of phases was spent: laws of all our captures at several places, and what their labs were made of."""

import re

import pytest

import conchart
from conchart import Trace
from conchart.report.report import Report
from conchart.report.splits import splits
from tests.conftest import ROOT, places_of

MS = 1_000_000


def test_parts_lie_in_their_phase_one_after_the_other(placed_trace: Trace) -> None:
    overlaps = placed_trace.sql("""
        SELECT stream, start_at FROM phase_places
        QUALIFY start_at < lag(end_at) OVER (PARTITION BY stream ORDER BY start_at, end_at)
    """).fetchall()
    assert overlaps == []
    outside = placed_trace.sql("""
        SELECT * FROM phase_places parts WHERE end_at <= start_at OR NOT EXISTS (
            FROM phases WHERE phases.stream = parts.stream AND phases.kind = parts.phase
                AND phases.start_at <= parts.start_at AND parts.end_at <= phases.end_at)
    """).fetchall()
    assert outside == []


@pytest.mark.parametrize(
    "case", ["plain", "asymmetric", "loss", "nat", "offload", "queue", "http3", "whose-fault-1", "whose-fault-2"]
)
def test_waits_are_divided_to_the_nanosecond(case: str) -> None:
    with conchart.read(places=places_of(ROOT / "captures/places" / case)) as trace:
        waits = trace.sql("""
            SELECT end_at - start_at, (
                SELECT sum(parts.end_at - parts.start_at) FROM phase_places parts
                WHERE parts.stream = phases.stream
                    AND parts.start_at >= phases.start_at AND parts.end_at <= phases.end_at)
            FROM phases WHERE kind = 'wait' AND stream IN (SELECT stream FROM paths WHERE position = 1)
        """).fetchall()
        assert len(waits) > 5
        assert all(whole == parts for whole, parts in waits)


@pytest.mark.parametrize("keys", [True, False])
def test_what_quic_acknowledges_does_not_hide_the_application(keys: bool) -> None:  # noqa: FBT001
    """It thinks for 0, 5, 10, 15, 20 and 25 ms, twice; acknowledgements pass meanwhile."""
    folder = ROOT / "captures/places/http3"
    with conchart.read(places=places_of(folder), keylog=[folder / "keys.log"] if keys else []) as trace:
        ((at_app, on_path),) = trace.sql("""
            SELECT sum(end_at - start_at) FILTER (place = 'app' AND kind = 'host'),
                sum(end_at - start_at) FILTER ('client' IN (place, to_place) AND kind = 'path')
            FROM phase_places WHERE phase = 'wait' AND stream IN (SELECT stream FROM paths WHERE place = 'client')
        """).fetchall()
        assert 150 * MS <= at_app < 162 * MS
        assert on_path <= 12 * 21 * MS


@pytest.mark.parametrize(("case", "path_ms", "behind_ms", "app_ms"), [
    ("whose-fault-1", 20, 68, 8),
    ("whose-fault-2", 20, 2, 70),
])  # fmt: skip
def test_each_part_of_a_wait_is_what_the_lab_made_it(case: str, path_ms: int, behind_ms: int, app_ms: int) -> None:
    """Lines of 10 ms each way to the load balancer; 28 and 40 ms, or 1 ms each way, behind it."""
    with conchart.read(places=places_of(ROOT / "captures/places" / case)) as trace:
        found = trace.sql("""
            SELECT kind, least(place, to_place), median(ns) FROM (
                SELECT stream, exchange, kind, place, to_place, sum(end_at - start_at) AS ns
                FROM (SELECT * REPLACE (if(place < to_place, place, coalesce(to_place, place)) AS place,
                        if(to_place IS NULL, place, greatest(place, to_place)) AS to_place) FROM phase_places)
                WHERE phase = 'wait' AND exchange > 0
                    AND stream IN (SELECT stream FROM paths WHERE place = 'client')
                GROUP BY ALL) GROUP BY ALL
        """).fetchall()
        parts = {(kind, place): ns for kind, place, ns in found}
        assert parts["path", "app"] == pytest.approx(behind_ms * MS, abs=2 * MS)
        assert parts["host", "app"] == pytest.approx(app_ms * MS, abs=5 * MS)
        assert parts["host", "lb"] < 3 * MS
        assert parts["path", "client"] == pytest.approx(path_ms * MS, abs=2 * MS)


@pytest.mark.parametrize(("case", "hosts_ms"), [("loss", {"client": 1, "lb": 30}), ("nat", {"client": 1, "lb": 10})])
def test_a_host_that_waits_for_its_timer_is_not_at_fault(case: str, hosts_ms: dict[str, int]) -> None:
    """Each wait for a lost packet is told by where it got lost; client and load balancer answer within milliseconds."""
    with conchart.read(places=places_of(ROOT / "captures/places" / case)) as trace:
        (held,) = trace.sql("""
            SELECT sum(end_at - start_at) FROM phase_stalls WHERE kind IN ('rto', 'fast-retransmit')
                AND phase IN ('wait', 'transfer') AND stream IN (SELECT stream FROM paths WHERE place = 'client')
        """).fetchone() or (0,)
        lost = dict(
            trace.sql("""
            SELECT concat(place, '-', to_place), sum(end_at - start_at) FROM phase_places
            WHERE kind = 'loss' AND phase IN ('wait', 'transfer') GROUP BY ALL
        """).fetchall()
        )
        assert set(lost) == {"client-lb", "lb-client"}
        assert sum(lost.values()) == pytest.approx(held, abs=MS)
        hosts = dict(
            trace.sql("""
            SELECT place, sum(end_at - start_at) FROM phase_places
            WHERE kind = 'host' AND phase = 'wait' AND place <> 'app' GROUP BY ALL
        """).fetchall()
        )
        assert all(hosts.get(place, 0) < most * MS for place, most in hosts_ms.items()), hosts


def test_a_sender_that_waits_for_acknowledgements_goes_at_the_pace_of_the_path() -> None:
    """300,000 bytes over 2 Mbit/s: nginx has them at once. What the line drops is told apart."""
    with conchart.read(places=places_of(ROOT / "captures/places/queue")) as trace:
        spent = dict(
            trace.sql("""
            SELECT kind, sum(end_at - start_at) FROM phase_places
            WHERE phase = 'transfer' AND stream = 0 AND place = 'lb' GROUP BY ALL
        """).fetchall()
        )
        assert spent["pace"] > 350 * MS
        assert spent["loss"] > 340 * MS
        assert spent["host"] < 520 * MS


def test_segments_that_offloading_joined_are_known_by_their_bytes() -> None:
    """The client's capture has what two segments carried in one; it does not answer for them."""
    with conchart.read(places=places_of(ROOT / "captures/places/offload")) as trace:
        (host,) = trace.sql("""
            SELECT sum(end_at - start_at) FROM phase_places WHERE kind = 'host' AND place = 'client'
        """).fetchone() or (0,)
        assert host < 40 * MS


def test_the_largest_wait_says_where_it_was_spent() -> None:
    with conchart.read(places=places_of(ROOT / "captures/places/whose-fault-1")) as trace:
        largest, *others = Report(trace).unexplained
        assert re.search(r"of 2\.32 s waited there, 1\.57 s \(68 %\) went by on the path lb–app", largest.detail)
        assert [(one.part, one.ns // MS) for one in (largest, *others)] == [
            ("path lb–app", 1567),
            ("path client–lb", 565),
            ("at app", 170),
            ("", 14),
        ]
        # Between a front and its backend lies a line: nothing of it is called the proxy's own time.
        assert splits(trace) == {}
    with conchart.read(places=places_of(ROOT / "captures/places/loss")) as trace:
        # Findings have a part of the time at each place: of the rest, the phase is known.
        parts = [one.part for one in Report(trace).unexplained]
        assert parts[0] == "wait for the server"
        assert not any("lb" in part for part in parts)


TOTALS = """
    SELECT kind, place, to_place, sum(end_at - start_at)::BIGINT FROM (
        SELECT * REPLACE (least(place, coalesce(to_place, place)) AS place,
            if(to_place IS NULL, NULL, greatest(place, to_place)) AS to_place)
        FROM phase_places)
    WHERE stream IN (SELECT stream FROM connections WHERE server_port = 443) AND phase = 'wait' GROUP BY ALL
"""


@pytest.mark.parametrize("case", ["plain", "whose-fault-1", "whose-fault-2", "whose-fault-3"])
@pytest.mark.parametrize("names", [("lb", "app"), ("client", "lb")], ids="-".join)
def test_what_one_place_alone_saw_is_divided_as_far_as_it_saw(case: str, names: tuple[str, ...]) -> None:
    files = {place: str(ROOT / "captures/places" / case / f"{place}.pcap") for place in (*names, "client", "lb", "app")}
    with conchart.read(places={place: files[place] for place in names}) as trace:
        phases = trace.sql("""
            SELECT phases.kind, end_at - start_at, (
                SELECT sum(parts.end_at - parts.start_at) FROM phase_places parts
                WHERE parts.stream = phases.stream
                    AND parts.start_at >= phases.start_at AND parts.end_at <= phases.end_at)
            FROM phases JOIN connections USING (stream)
            WHERE server_port = 443 AND kind IN ('syn', 'tls', 'request', 'wait', 'transfer') AND end_at > start_at
        """).fetchall()
        assert {kind for kind, *_ in phases} >= {"syn", "tls", "wait"}
        assert [row for row in phases if row[1] != row[2]] == [], "no phase of a front is left undivided"
        totals = {row[:3]: row[3] for row in trace.sql(TOTALS).fetchall()}
        ((linked, fronts),) = trace.sql("""
            SELECT count(*) FILTER ((stream, number) IN (SELECT (front_stream, front_exchange) FROM links)), count(*)
            FROM exchanges JOIN connections USING (stream) WHERE server_port = 443 AND wait_ns IS NOT NULL
        """).fetchall()
    with conchart.read(places={place: files[place] for place in ("client", "lb", "app")}) as trace:
        whole = {row[:3]: row[3] for row in trace.sql(TOTALS).fetchall()}
    if names == ("client", "lb"):
        # The load balancer's own part is the same to the nanosecond, whoever else looked.
        assert totals["host", "lb", None] == whole["host", "lb", None]
        beyond = sum(ns for (_, place, to_place), ns in whole.items() if "app" in (place, to_place))
        assert totals["behind", "lb", None] == beyond
        assert sum(totals.values()) == sum(whole.values())
    else:
        assert linked >= fronts - 1
        if linked == fronts:
            assert totals["host", "app", None] == pytest.approx(whole["host", "app", None], abs=MS)
        assert ("before", "lb", None) not in totals, "a wait is the server's turn"
