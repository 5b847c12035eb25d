"""Who won where a client tried several ways to a server: QUIC and TCP, IPv6 and IPv4.

In: captures/udp, by real clients; for what must not count, connections as rows.
"""

from __future__ import annotations

import pytest

import conchart
from conchart.analysis import races
from conchart.store.sql import SERVED
from tests.conftest import ROOT

UDP = ROOT / "captures" / "udp"
QUESTION = """
    SELECT kind, loser.transport::VARCHAR, loser.server_ip, winner.transport::VARCHAR, winner.server_ip, name,
        delay_ns, decided_at - loser_began_at, loser_answered_at - loser_began_at, packets, confidence
    FROM races JOIN connections loser ON loser.stream = loser_stream
    JOIN connections winner ON winner.stream = winner_stream
"""
WWW, DUAL = "www.shop.example", "dual.shop.example"
FOUR, SIX = "10.81.0.20", "fd00:81::20"
MS = 1_000_000


@pytest.mark.parametrize("keys", [True, False])
def test_quic_wins_where_tcp_is_late(keys: bool) -> None:
    folder = UDP / "http3-race-won"
    with conchart.read(folder / "input.pcap", keylog=[folder / "keys.log"] if keys else []) as trace:
        ((kind, *ends, name, delay, decided, answered, packets, confidence),) = trace.sql(QUESTION).fetchall()
    assert (kind, *ends, name, confidence) == ("transport", "tcp", FOUR, "udp", FOUR, WWW, 0.9)
    assert delay == 0
    assert decided < 60 * MS
    assert answered < 60 * MS
    assert packets == 20


def test_tcp_wins_where_quic_is_late_and_that_is_no_blocked_port() -> None:
    with conchart.read(UDP / "http3-race-lost" / "input.pcap") as trace:
        ((kind, *ends, name, delay, decided, _, _, _),) = trace.sql(QUESTION).fetchall()
        found = trace.sql("SELECT finding FROM findings").fetchall()
    assert (kind, *ends, name) == ("transport", "udp", FOUR, "tcp", FOUR, WWW)
    assert 0 < delay < decided < 600 * MS
    assert ("udp-blocked-fallback",) not in found


def test_a_blocked_port_is_a_race_that_nobody_answered() -> None:
    with conchart.read(UDP / "http3-blocked" / "input.pcap") as trace:
        ((kind, loser, _, winner, _, _, delay, _, answered, packets, _),) = trace.sql(QUESTION).fetchall()
        ((cost,),) = trace.sql("SELECT cost_ns FROM findings WHERE finding = 'udp-blocked-fallback'").fetchall()
    assert (kind, loser, winner, answered, packets) == ("transport", "udp", "tcp", None, 4)
    assert delay == cost > 200 * MS


def test_curl_waits_200_ms_for_ipv6_before_it_tries_ipv4() -> None:
    with conchart.read(UDP / "ip-race-lost" / "input.pcap") as trace:
        ((kind, *ends, name, delay, decided, answered, packets, confidence),) = trace.sql(QUESTION).fetchall()
    assert (kind, *ends, name, confidence) == ("address", "tcp", SIX, "tcp", FOUR, DUAL, 0.6)
    assert (answered, packets) == (None, 1)
    assert delay == pytest.approx(200 * MS, abs=20 * MS)
    # One round trip of 10 ms later.
    assert decided - delay == pytest.approx(10 * MS, abs=5 * MS)


def test_ipv6_wins_though_ipv4_is_nearer() -> None:
    with conchart.read(UDP / "ip-race-won" / "input.pcap") as trace:
        ((kind, *ends, name, delay, decided, answered, _, _),) = trace.sql(QUESTION).fetchall()
    assert (kind, *ends, name, delay) == ("address", "tcp", FOUR, "tcp", SIX, DUAL, 0)
    # IPv6 needs 120 ms and began 100 ms earlier; IPv4 needs 60 ms.
    assert decided == pytest.approx(20 * MS, abs=8 * MS)
    assert answered == pytest.approx(60 * MS, abs=5 * MS)


@pytest.mark.parametrize(
    "name", ["http3/visits", "udp/http3", "udp/http3-offered", "versions/h1-80ms", "hops/caddy-16"]
)
def test_connections_side_by_side_are_no_race(name: str) -> None:
    folder = ROOT / "captures" / name
    captures = sorted(folder.glob("*.pcap*"))
    if not captures:
        pytest.skip("no such capture")
    with conchart.read(*captures) as trace:
        assert trace.count("races") == 0


def test_nobody_waits_for_an_attempt_that_lost_and_carried_nothing() -> None:
    with conchart.read(UDP / "http3-race-won" / "input.pcap") as trace:
        lost, won = trace.sql("SELECT loser_stream, winner_stream FROM races").fetchall()[0]
        waited = dict(trace.sql("SELECT stream, waited_ns FROM connections").fetchall())
        spent = dict(trace.sql("SELECT stream, sum(end_at - start_at) FROM phases GROUP BY stream").fetchall())
        assert waited[lost] == 0 < spent[lost]
        of_server = (
            "SELECT servers.waited_ns, sum(times.waited_ns) FROM servers JOIN times USING (server_ip, server_port)"
        )
        assert trace.sql(f"{of_server} WHERE server_port = 443 GROUP BY ALL").fetchall() == [(waited[won], waited[won])]
        # One that carries requests, too, is waited for.
        trace.execute("UPDATE races SET packets = NULL")
        assert trace.sql(f"SELECT count(*) FROM connections WHERE {SERVED} AND stream = {lost}").fetchall() == [(1,)]


def test_who_won_is_the_same_from_every_viewpoint() -> None:
    found = []
    for viewpoint in ("capture", "client", "server"):
        with conchart.read(UDP / "http3-race-lost" / "input.pcap", seen_from=viewpoint) as trace:
            found.append(trace.sql("FROM races").fetchall())
            assert trace.sql("SELECT waited_ns FROM connections JOIN races ON stream = loser_stream").fetchall() == [
                (0,)
            ]
    assert len(found[0]) == 1
    assert found == [found[0]] * 3


def attempts(*rows: str) -> list[tuple[int, int]]:
    """Find races among attempts: rows of SQL values for stream, transport, address, name, and instants."""
    with conchart.read(UDP / "http3-blocked" / "input.pcap") as trace:
        columns = "stream, transport, client_ip, server_ip, server_name, began, answered, requested, closed"
        values = f"(SELECT * FROM (VALUES {', '.join(rows)}) rows({columns}))"
        trace.execute("DELETE FROM connections; DELETE FROM handshakes; DELETE FROM exchanges; DELETE FROM races")
        trace.execute(f"""
            INSERT INTO connections BY NAME
            SELECT stream, 0 AS capture, transport, stream AS transport_stream, client_ip, 1000 AS client_port,
                server_ip, 443 AS server_port, began AS opened_at, closed AS closed_at, 'client' AS opened_by,
                'client' AS closed_by,
                if(transport = 'tcp', began, NULL) AS syn_at, if(transport = 'tcp', answered, NULL) AS syn_ack_at,
                'open' AS state, server_name, 0 AS waited_ns, if(server_name IS NULL, 0, 500) AS bytes_client
            FROM {values};
            INSERT INTO handshakes BY NAME
            SELECT stream, 0 AS number, began AS hello_at, answered AS server_hello_at, answered AS ready_at,
                if(transport = 'udp', 'v1', NULL) AS quic_version, 'complete' AS outcome, false AS inferred
            FROM {values} WHERE server_name IS NOT NULL;
            INSERT INTO exchanges BY NAME
            SELECT stream, 0 AS number, requested AS request_at, 'h2' AS protocol, 'web' AS kind, false AS inferred,
                1.0 AS confidence
            FROM {values} WHERE requested IS NOT NULL""")
        trace.execute("DELETE FROM races")
        races.find_races(trace)
        return trace.sql("SELECT loser_stream, winner_stream FROM races ORDER BY ALL").fetchall()


QUIC = "(0, 'udp', '10.0.0.1', '10.0.0.9', 'a.example', 0, 50, NULL::INTEGER, 90)"


def test_a_race_ends_when_one_stands() -> None:
    assert attempts(QUIC, "(1, 'tcp', '10.0.0.1', '10.0.0.9', 'a.example', 40, 70, 75, 99)") == [(0, 1)]
    # The first stood already.
    assert attempts(QUIC, "(1, 'tcp', '10.0.0.1', '10.0.0.9', 'a.example', 60, 70, 75, 99)") == []


def test_another_client_another_name_and_the_same_way_are_no_race() -> None:
    assert attempts(QUIC, "(1, 'tcp', '10.0.0.2', '10.0.0.9', 'a.example', 40, 70, 75, 99)") == []
    assert attempts(QUIC, "(1, 'tcp', '10.0.0.1', '10.0.0.9', 'b.example', 40, 70, 75, 99)") == []
    assert attempts(QUIC, "(1, 'udp', '10.0.0.1', '10.0.0.9', 'a.example', 40, 70, 75, 99)") == []


def test_a_loser_that_carries_requests_later_has_lost_to_the_other_transport_only() -> None:
    later = QUIC.replace("NULL::INTEGER", "80")
    assert attempts(later, "(1, 'tcp', '10.0.0.1', '10.0.0.9', 'a.example', 40, 70, 75, 99)") == [(0, 1)]
    # Two addresses of the same transport, both used: none lost.
    assert attempts(later, "(1, 'udp', '10.0.0.1', '10.0.0.8', 'a.example', 40, 70, 75, 99)") == []


def test_a_syn_without_a_name_counts_beside_quic_to_the_same_server() -> None:
    syn = "(0, 'tcp', '10.0.0.1', '10.0.0.9', NULL, 0, NULL, NULL::INTEGER, 9)"
    assert attempts(syn, "(1, 'udp', '10.0.0.1', '10.0.0.9', 'a.example', 4, 7, 8, 99)") == [(0, 1)]
    assert attempts(syn, "(1, 'udp', '10.0.0.1', '10.0.0.8', 'a.example', 4, 7, 8, 99)") == []
