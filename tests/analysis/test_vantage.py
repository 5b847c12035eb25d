"""Where a capture was taken, from round trips, hop limits, network cards, and what cooked captures say."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import conchart
from conchart.analysis.vantage import locate
from conchart.report.report import Report
from tests.conftest import ROOT, empty_trace

CORPUS = Path(os.environ.get("CONCHART_CORPUS", "/nonexistent"))

MS = 1_000_000
Connection = tuple[int, int, int, int]
"""Round trips to client and server in ns, hop limits of client and server."""


def seen(*connections: Connection, override: str | None = None) -> tuple[str | None, list[str | None]]:
    """The vantage of the capture, and of each connection."""
    with empty_trace() as trace:
        trace.execute("INSERT INTO captures (capture) VALUES (0)")
        for stream, (client_ns, server_ns, ttl_client, ttl_server) in enumerate(connections):
            trace.execute(
                "INSERT INTO connections (stream, capture, client_ip, server_ip, syn_at, syn_ack_at, ack_at, "
                "rtt_client_ns, rtt_server_ns, ttl_client, ttl_server) VALUES "
                f"({stream}, 0, '10.0.0.1', '10.0.0.{stream % 100 // 10 + 2}', 1, 2, 3, "
                f"{client_ns}, {server_ns}, {ttl_client}, {ttl_server})"
            )
        locate(trace, override)  # type: ignore[arg-type]
        whole = trace.sql("SELECT vantage FROM captures").fetchall()[0][0]
        return whole, [row[0] for row in trace.sql("SELECT vantage FROM connections ORDER BY stream").fetchall()]


@pytest.mark.parametrize(
    ("connection", "expected"),
    [
        pytest.param((60_000, 30 * MS, 64, 57), "client", id="the client answers at once"),
        pytest.param((30 * MS, 60_000, 49, 64), "server", id="the server answers at once"),
        pytest.param((10 * MS, 30 * MS, 63, 63), "middle", id="both are far"),
        pytest.param((5 * MS, 80 * MS, 63, 50), "middle", id="a client that is near is not here"),
        pytest.param((400_000, 20 * MS, 63, 50), "middle", id="a router stands before the client"),
        pytest.param((400_000, 20 * MS, 64, 50), "client", id="a slow client without a router"),
        pytest.param((2 * MS, 20 * MS, 64, 50), None, id="a busy client, or one in the same wireless network"),
        pytest.param((6 * MS, 20 * MS, 64, 50), "middle", id="no client is so busy"),
        pytest.param((0, 10 * MS, 64, 50), None, id="a clock that ticks too seldom"),
        pytest.param((30_000, 20 * MS, 63, 50), "client", id="a container behind the host's bridge"),
        pytest.param((20_000, 40_000, 128, 63), "client", id="all is near, a router tells"),
        pytest.param((20_000, 40_000, 64, 64), None, id="loopback tells nothing"),
    ],
)
def test_one_connection(connection: Connection, expected: str | None) -> None:
    assert seen(connection) == (expected, [expected])


def test_the_least_of_a_pairs_connections_counts() -> None:
    slow, quick = (25 * MS, 30 * MS, 64, 60), (50_000, 30 * MS, 64, 60)
    assert seen(slow, quick, slow) == ("client", ["client"] * 3)


def test_a_proxy_is_both() -> None:
    front, back = (30 * MS, 40_000, 60, 64), (40_000, 10 * MS, 64, 61)
    assert seen(*[front] * 10, back) == ("mixed", ["server"] * 10 + ["client"])


def test_who_knows_better_is_believed() -> None:
    assert seen((60_000, 30 * MS, 64, 57), override="middle") == ("middle", ["middle"])


OWN, GATEWAY = "02:00:00:00:00:01", "02:00:00:00:00:fe"
HERE, FAR = "10.0.0.1", "192.0.2.9"
LOCAL = {"client_ip": HERE, "server_ip": FAR, "ttl_client": 64, "ttl_server": 55}
"""A connection of the capturing machine."""
TIMED = LOCAL | {"rtt_client_ns": 50_000, "rtt_server_ns": 9 * MS, "mac_client": OWN, "mac_server": GATEWAY}
"""The same with round trips, which tell."""
SHAKEN = {"syn_at": 1, "syn_ack_at": 2, "ack_at": 3}


def places(*connections: dict[str, object]) -> list[str | None]:
    """The vantage of connections of which more or less is known."""
    with empty_trace() as trace:
        trace.execute("INSERT INTO captures (capture) VALUES (0)")
        for stream, columns in enumerate(connections):
            columns = {"stream": stream, "capture": 0} | columns
            if "rtt_client_ns" in columns:
                columns = SHAKEN | columns
            trace.execute(
                f"INSERT INTO connections ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
                list(columns.values()),
            )
        locate(trace)
        return [row[0] for row in trace.sql("SELECT vantage FROM connections ORDER BY stream").fetchall()]


def test_what_has_no_round_trip_is_told_by_a_host_that_has() -> None:
    refused = {"client_ip": FAR, "server_ip": HERE, "ttl_client": 55, "ttl_server": 64}
    unanswered = {"client_ip": FAR, "server_ip": HERE, "ttl_client": 55}
    strangers = {"client_ip": FAR, "server_ip": "192.0.2.7", "ttl_client": 55, "ttl_server": 50}
    assert places(TIMED, LOCAL, refused, unanswered, strangers) == ["client", "client", "server", "server", None]
    assert places(LOCAL, refused, unanswered, strangers) == [None] * 4


def test_another_address_of_the_same_card_is_the_same_machine() -> None:
    public = {"client_ip": FAR, "server_ip": "203.0.113.5", "ttl_client": 55, "ttl_server": 64}
    assert places(TIMED, public | {"mac_client": GATEWAY, "mac_server": OWN}) == ["client", "server"]
    assert places(TIMED, public | {"mac_client": GATEWAY, "mac_server": "02:00:00:00:00:02"}) == ["client", None]


def test_a_busy_hosts_slow_connection_is_told_by_its_others() -> None:
    busy = TIMED | {"server_ip": "192.0.2.8", "rtt_client_ns": 4 * MS, "rtt_server_ns": 5 * MS}
    assert places(TIMED, busy) == ["client", "client"]


def test_who_hides_behind_an_address_is_not_its_machine() -> None:
    hidden = TIMED | {"ttl_client": 63, "rtt_client_ns": 6 * MS}
    assert places(TIMED, hidden) == ["client", "middle"]
    unanswered = {"client_ip": FAR, "server_ip": HERE, "ttl_client": 55}
    assert places(TIMED, hidden, unanswered) == ["client", "middle", None]


def test_both_sides_of_a_translation_are_seen_in_the_middle() -> None:
    private = LOCAL | {"client_ip": "192.168.1.100", "rtt_client_ns": 3 * MS, "rtt_server_ns": 9 * MS}
    public = private | {"client_ip": HERE, "ttl_client": 63}
    same = {"isn_client": 17, "isn_server": 4711}
    assert places(private | same, public | same) == ["middle", "middle"]
    assert places(private) == [None]


def test_a_wireless_client_is_not_the_machine_that_captures() -> None:
    near = LOCAL | {"rtt_client_ns": 800_000, "rtt_server_ns": 30 * MS}
    assert places(*[near] * 8) == ["middle"] * 8


def test_a_cooked_capture_says_which_end_it_is() -> None:
    slow = LOCAL | {"rtt_client_ns": 7 * MS, "rtt_server_ns": 9 * MS}
    assert places(slow | {"local_end": "client"}) == ["client"]
    assert places({"client_ip": HERE, "server_ip": HERE, "local_end": "both"}) == [None]


def test_what_only_came_in_may_go_on_to_somebody_else() -> None:
    came_in = {"client_ip": FAR, "server_ip": HERE, "ttl_client": 55, "local_end": "server"}
    assert places(came_in) == [None]
    handed_on = {"client_ip": FAR, "server_ip": "10.0.0.2", "ttl_client": 55, "ttl_server": 63}
    own = LOCAL | {"local_end": "client"}
    assert places(own, came_in) == ["client", "server"]
    assert places(own, came_in, handed_on) == [None] * 3


CAPTURING = {
    "client": {"10.0.2.15", "10.64.0.15", "192.168.1.100"},
    "relay": {"10.19.0.5", "10.19.0.6", "10.19.0.7"},
    "server": {
        *("10.19.0.5", "10.19.0.6", "10.19.0.7"),
        *("209.38.236.238", "134.122.89.253", "104.248.32.60"),
    },
}
"""The addresses of the machine at each place of the experiments, in one or the other of them."""
UNTOLD = {("proxydet__stowaway-socks5_updown_http_nopass-socks5_wss-data_capture_relay.pcap", "10.19.0.6:50834")}
"""One connection alone, whose client answered after 3.8 ms: a busy host, or one next door."""


def true_place(file: str, connection: dict[str, Any]) -> str:
    """Where a connection was seen, by the capture's name; a relay's translated packets have passed a router."""
    own = CAPTURING[file.removesuffix(".pcap").rsplit("-", 1)[1].removeprefix("data_capture_")]
    if connection["client_ip"] in own and connection["ttl_client"] == 64:
        return "client"
    return "server" if connection["server_ip"] in own else "middle"


@pytest.mark.skipif(not CORPUS.exists(), reason="CONCHART_CORPUS is not set")
@pytest.mark.timeout(600)
@pytest.mark.thorough
def test_the_same_exchange_at_client_relay_and_server() -> None:
    named: dict[str, set[tuple[str, str]]] = {}
    for experiment in json.loads((CORPUS / "vantage_map.json").read_text()):
        for place_packets in experiment["exchanges"].values():
            for seen_at in place_packets:
                named.setdefault(seen_at["file"], set()).add((seen_at["client"], seen_at["server"]))
    found: Counter[str] = Counter()
    for file, connections in named.items():
        with conchart.read(CORPUS / file) as trace:
            rows = trace.sql(
                "SELECT *, concat(client_ip, ':', client_port) AS client, concat(server_ip, ':', server_port) AS server"
                " FROM connections"
            )
            for values in rows.fetchall():
                row = dict(zip(rows.columns, values, strict=True))
                if (row["client"], row["server"]) in connections:
                    place = None if (file, row["client"]) in UNTOLD else true_place(file, row)
                    assert row["vantage"] == place, (file, row["client"], row["server"])
                    found[str(place)] += 1
    assert found == {"client": 136, "server": 157, "middle": 23, "None": 1}


def test_a_vantage_that_somebody_knows_leaves_the_tables_as_they_are() -> None:
    """What tells the vantage has a table of its own, which nobody needs then: it is not dropped for another one."""
    with conchart.read(ROOT / "captures/findings/keepalive-race/input.pcap", vantage="client") as trace:
        assert trace.fetch("SELECT vantage FROM captures") == [("client",)]
        assert trace.fetch("SELECT count(*) FROM places") == [(0,)]
        assert Report(trace).verdict.state == "faults"
