"""Seen from an end: what must be true of every capture, and how near it comes to what that end saw itself."""

import json
import os
import statistics
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import conchart
from conchart.analysis.seen_from import SENDERS
from conchart.reading.options import SeenFrom
from conchart.store.schema import TABLES
from tests.conftest import ROOT

CAPTURES = ROOT / "captures"
CORPUS = Path(os.environ.get("CONCHART_CORPUS", "/nonexistent"))
MAP = CORPUS / "vantage_map.json"
SHARE = 0.05
LEAST_NS = 200_000
ENDS: tuple[SeenFrom, ...] = ("client", "server")

EVERY_KIND = [
    "round-trips/tls12-middle",
    "round-trips/tls13-server",
    "stalls/rto-spurious-data-client",
    "stalls/window-limited-far-client",
    "multiplexed/java-apache-goaway",
    "hops/nginx-close-http-https-16",
    "udp/dns-before-http",
]
every_end = pytest.mark.parametrize("end", ENDS)
every_kind = pytest.mark.parametrize("name", EVERY_KIND)


def capture(name: str) -> Path:
    (path,) = (CAPTURES / name).glob("input.pcap*")
    return path


def rows(path: Path, query: str, viewpoint: SeenFrom = "capture") -> list[tuple[Any, ...]]:
    with conchart.read(path, seen_from=viewpoint, packets=True) as trace:
        return trace.sql(query).fetchall()


def test_of_every_instant_of_the_core_a_sender_is_known() -> None:
    """Whoever adds an instant says who sent its packet."""
    instants = {
        table.name: {name for name in table.from_core if name.endswith("_at")}
        for table in TABLES
        if table.name != "captures"
    }
    assert {name: set(senders) for name, senders in SENDERS.items()} == {
        name: columns for name, columns in instants.items() if columns
    }


@every_end
@every_kind
def test_phases_touch_and_add_up_and_what_lies_in_them_stays_there(name: str, end: SeenFrom) -> None:
    with conchart.read(capture(name), seen_from=end) as trace:
        wrong = trace.sql(
            """
            WITH with_previous AS (
                SELECT *, lag(end_at, 1, start_at) OVER (PARTITION BY stream ORDER BY start_at, end_at) AS before_at
                FROM phases)
            SELECT stream, sum(end_at - start_at) AS ns, min(start_at), max(end_at), opened_at, closed_at
            FROM with_previous JOIN connections USING (stream) GROUP BY ALL
            HAVING ns <> closed_at - opened_at OR min(start_at) <> opened_at OR max(end_at) <> closed_at
                OR bool_or(start_at <> before_at OR end_at <= start_at)
            """
        ).fetchall()
        outside = trace.sql(
            """
            SELECT * FROM (
                SELECT stream, unnest([request_at, request_done_at, response_at, response_done_at]) AS instant
                FROM exchanges
                UNION ALL SELECT stream, unnest([hello_at, ready_at, complete_at]) FROM handshakes
                UNION ALL SELECT stream, unnest([start_at, end_at]) FROM stalls)
            JOIN connections USING (stream) WHERE instant NOT BETWEEN opened_at AND closed_at
            """
        ).fetchall()
        negative = trace.sql("FROM exchanges WHERE least(request_ns, wait_ns, transfer_ns) < 0").fetchall()
    assert (wrong, outside, negative) == ([], [], [])


@every_kind
def test_seen_from_the_capture_point_is_as_captured(name: str) -> None:
    tables = [table for table in TABLES if table.name not in ("captures", "remarks")]
    with conchart.read(capture(name)) as plain, conchart.read(capture(name), seen_from="capture") as as_captured:
        for table in tables:
            query = f"FROM {table.name} ORDER BY {table.key}"
            assert plain.sql(query).fetchall() == as_captured.sql(query).fetchall()
        assert as_captured.sql("SELECT any_value(seen_from) FROM captures").fetchall() == [(None,)]


def test_a_capture_taken_at_the_client_is_what_the_client_saw() -> None:
    query = "SELECT stream, kind, exchange, end_at - start_at FROM phases ORDER BY stream, start_at"
    path = capture("round-trips/tls13-client")
    own, seen = rows(path, query), rows(path, query, "client")
    assert [row[:-1] for row in own] == [row[:-1] for row in seen]
    assert max(abs(one[-1] - other[-1]) for one, other in zip(own, seen, strict=True)) < 100_000


@every_end
def test_durations_are_those_between_the_new_instants_and_service_stays(end: SeenFrom) -> None:
    query = "SELECT request_ns, wait_ns, service_ns, request_at, request_done_at, response_at FROM exchanges"
    path = capture("round-trips/tls12-middle")
    ((far,), *_) = rows(path, f"SELECT least_rtt_{end}_ns FROM connections ORDER BY stream")
    for was, now in zip(rows(path, query), rows(path, query, end), strict=True):
        assert now[2] == was[2]
        assert now[1] == now[5] - now[4]
        assert now[0] == now[4] - now[3] == was[0]
        further = now[1] - was[1]
        assert abs(abs(further) - far) < LEAST_NS
        assert (further > 0) == (end == "client")


def test_packets_of_one_side_keep_their_distances_and_those_of_two_change_by_the_round_trip() -> None:
    path = capture("round-trips/tls12-middle")
    query = "SELECT sender, seen_at FROM packets WHERE stream = 0 ORDER BY frame"
    ((far,),) = rows(path, "SELECT least_rtt_client_ns FROM connections WHERE stream = 0")
    moved = [
        (sender, now - was)
        for (sender, was), (_, now) in zip(rows(path, query), rows(path, query, "client"), strict=True)
    ]
    by = dict(moved)
    assert set(moved) == set(by.items())
    assert by["server"] - by["client"] == far
    assert by["client"] < 0 < by["server"]


def test_without_a_round_trip_times_stay_as_captured_and_a_remark_says_so() -> None:
    path = capture("udp/dns-before-http")
    query = "SELECT stream, opened_at, closed_at FROM connections WHERE transport = 'udp' ORDER BY stream"
    assert rows(path, query) == rows(path, query, "client") != []
    ((title, effect),) = rows(path, "SELECT title, effect FROM remarks WHERE kind = 'seen-from'", "client")
    assert title.startswith("Times as the client of each connection saw them, worked out from ")
    assert "No round trip is known of " in effect


def test_what_a_round_trip_stretches_is_inferred_and_what_has_packets_of_one_side_is_not() -> None:
    query = (
        "SELECT start_by = end_by, bool_and(inferred) FROM phases WHERE kind IN ('syn', 'tls') GROUP BY ALL ORDER BY 1"
    )
    assert rows(capture("round-trips/tls12-server"), query) == [(False, False), (True, False)]
    assert rows(capture("round-trips/tls12-server"), query, "client") == [(False, True), (True, False)]


Phases = dict[tuple[Any, ...], int]


@cache
def phases(path: Path, viewpoint: SeenFrom) -> dict[tuple[int, int], Phases]:
    """Give the phases of each connection, which both its initial sequence numbers name at every place."""
    found: dict[tuple[int, int], Phases] = {}
    for *isns, kind, exchange, handshake, nth, ns in rows(
        path,
        """
        SELECT isn_client, isn_server, kind, exchange, handshake,
            row_number() OVER (PARTITION BY stream, kind, exchange, handshake ORDER BY start_at), end_at - start_at
        FROM phases JOIN connections USING (stream) WHERE isn_client IS NOT NULL AND isn_server IS NOT NULL
        """,
        viewpoint,
    ):
        found.setdefault((isns[0], isns[1]), {})[kind, exchange, handshake, nth] = ns
    return found


def off(own: Phases, worked_out: Phases) -> dict[tuple[Any, ...], tuple[int, int]]:
    """Give the phases that differ by more than 5 % and 200 µs: what that end saw, and what was worked out."""
    pairs = {key: (own.get(key, 0), worked_out.get(key, 0)) for key in own | worked_out}
    return {key: (a, b) for key, (a, b) in pairs.items() if abs(a - b) > max(LEAST_NS, SHARE * a)}


RUNS = sorted({path.parent.name.rpartition("-")[0] for path in CAPTURES.glob("round-trips/*-middle/input.pcap")})


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("place", ["client", "middle", "server"])
@every_end
def test_phases_are_as_that_end_saw_them(run: str, place: str, end: SeenFrom) -> None:
    """Every phase of every connection.

    But for one: a server that sends a RST when the client's close_notify comes after it closed sees that before the
    client's FIN, which the client had sent before. Its own bound of closing is another packet.
    """
    own = phases(capture(f"round-trips/{run}-{end}"), "capture")
    worked_out = phases(capture(f"round-trips/{run}-{place}"), end)
    assert own.keys() == worked_out.keys()
    wrong = {(isns, key) for isns in own for key in off(own[isns], worked_out[isns])}
    crossed = (place, end) == ("server", "client") and run in ("tls12", "tls13")
    assert sorted(key[0] for _, key in wrong) == (["close", "idle"] if crossed else [])


@pytest.mark.parametrize("run", ["clean-far", "clean-idle", "clean-near"])
@every_end
def test_phases_of_other_labs_are_as_that_end_saw_them(run: str, end: SeenFrom) -> None:
    place = "server" if end == "client" else "client"
    own = phases(capture(f"stalls/{run}-{end}"), "capture")
    worked_out = phases(capture(f"stalls/{run}-{place}"), end)
    assert own.keys() == worked_out.keys()
    assert {isns: found for isns in own if (found := off(own[isns], worked_out[isns]))} == {}


@pytest.mark.skipif(not MAP.exists(), reason="CONCHART_CORPUS names no folder with vantage_map.json")
@pytest.mark.timeout(300)
@pytest.mark.thorough
def test_waits_at_servers_on_the_internet_come_nearer_to_what_the_server_saw() -> None:
    """Their round trips are so short that they vary by as much: half of the waits are right, a fifth as captured."""
    waits: list[tuple[int, int, int]] = []
    pairs = {
        (CORPUS / here["file"], CORPUS / there["file"])
        for experiment in json.loads(MAP.read_text())[:20]
        for legs in experiment["exchanges"].values()
        for here in legs
        for there in legs
        if here["file"].endswith("-server.pcap") and there["file"].endswith("-relay.pcap")
    }
    for at_server, at_proxy in sorted(pairs):
        own, captured = phases(at_server, "capture"), phases(at_proxy, "capture")
        worked_out = phases(at_proxy, "server")
        for isns in own.keys() & captured.keys():
            for key, ns in own[isns].items():
                if key[0] == "wait" and key in captured[isns]:
                    waits.append((ns, captured[isns][key], worked_out[isns].get(key, 0)))
    right = [
        sum(abs(times[0] - times[which]) <= max(LEAST_NS, SHARE * times[0]) for times in waits) for which in (1, 2)
    ]
    median = [statistics.median(abs(times[0] - times[which]) for times in waits) for which in (1, 2)]
    assert len(waits) >= 20
    assert right[1] >= 1.5 * right[0]
    assert median[1] <= 0.75 * median[0]
