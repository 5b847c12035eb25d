"""Where the time of phases was spent: laws of all our captures at several places, and what their labs were made of."""

import pytest

import conchart
from conchart import Trace
from conchart.analysis.waits import EXPLAINED_PLACES
from conchart.report.report import Report
from conchart.report.splits import splits
from tests.conftest import ROOT, empty_trace, places_of

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


def test_findings_explain_no_more_of_a_place_than_of_the_waits_there(placed_trace: Trace) -> None:
    beyond = placed_trace.sql("""
        SELECT * FROM explained_places LEFT JOIN phase_places USING (stream, start_at)
        WHERE (explained_ns BETWEEN 1 AND end_at - start_at) IS NOT TRUE
    """).fetchall()
    assert beyond == []
    ((at_places, in_all),) = placed_trace.sql("""
        SELECT (SELECT coalesce(sum(explained_ns), 0) FROM explained_places),
            (SELECT coalesce(sum(explained_ns), 0) FROM explained_waits)
    """).fetchall()
    assert at_places <= in_all


def test_of_each_part_what_lies_in_delays_of_findings_is_explained() -> None:
    """Delays of 10 to 30, 20 to 50 and 70 to 80 ns: a part that none touches, one in two of them, one around a gap."""
    with empty_trace() as trace:
        trace.execute("""
            INSERT INTO phase_places BY NAME
            SELECT 0 AS stream, unnest([0, 8, 25, 45]) AS start_at, unnest([8, 25, 45, 90]) AS end_at;
            CREATE TEMP TABLE paid AS
            SELECT 0 AS stream, unnest([10, 20, 70]) AS start_at, unnest([30, 50, 80]) AS end_at
        """)
        trace.execute(EXPLAINED_PLACES)
        explained = trace.stored("SELECT start_at, explained_ns FROM explained_places ORDER BY start_at").fetchall()
    assert explained == [(8, 15), (25, 20), (45, 15)]


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
        assert largest.detail == "1.57 s of 2.32 s (68 %) went by on the path lb–app; the longest 34.5 ms at frame 72"
        assert [(one.part, one.ns // MS) for one in (largest, *others)] == [
            ("path lb–app", 1567),
            ("path client–lb", 565),
            ("at app", 170),
            ("", 14),
        ]
        # Between a front and its backend lies a line: nothing of it is called the proxy's own time.
        assert splits(trace) == {}
    with conchart.read(places=places_of(ROOT / "captures/places/loss")) as trace:
        # What findings explain of the time at a place is theirs.
        largest, *others = Report(trace).unexplained
        assert largest.detail.startswith(
            "317 ms ± 10.0 ms of 1.03 s (31 %) went by on the path client–lb; findings explain 4.03 ms of it"
        )
        assert [(one.part, one.ns // MS) for one in (largest, *others)] == [
            ("path client–lb", 312),
            ("at app", 75),
            ("at lb", 31),
            ("path lb–app", 24),
            ("losses lb → client", 18),
            ("", 6),
        ]


TOTALS = """
    SELECT kind, place, to_place, sum(end_at - start_at)::BIGINT FROM (
        SELECT * REPLACE (least(place, coalesce(to_place, place)) AS place,
            if(to_place IS NULL, NULL, greatest(place, to_place)) AS to_place)
        FROM phase_places)
    WHERE stream IN (SELECT stream FROM connections WHERE server_port = 443) AND phase = 'wait' GROUP BY ALL
"""


@pytest.mark.thorough
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
