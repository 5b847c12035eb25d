"""Which machines are proxies, and which exchange behind a proxy one in front of it caused."""

from typing import Any

import duckdb
import pytest

from conchart.analysis.hops import _TURN, FORGET, link_hops
from conchart.store.tables import Tables
from tests.by_hand import Row, connection, tables_of

MS = 1_000_000
CLIENT, FRONT, INSIDE, BACK = "10.0.0.1:40000", "10.0.0.2:80", "10.0.0.2:50000", "10.0.0.3:8080"


def exchange(stream: int, number: int, start: int, end: int, **facts: Any) -> Row:  # noqa: ANN401
    """Give a request for a page of its own, from ``start`` to ``end`` in ms; its answer comes a tenth before."""
    span = (end - start) * MS
    return {
        "stream": stream,
        "number": number,
        "protocol": "http/1.1",
        "method": "GET",
        "target": f"/page-{number}",
        "request_at": start * MS,
        "request_done_at": start * MS + span // 10,
        "response_at": end * MS - span // 10,
        "response_done_at": end * MS,
        "status": 200,
        "request_bytes": 200,
        "response_bytes": 1_000 + number,
        "outcome": "answered",
        "confidence": 1.0,
        **facts,
    }


def proxied(requests: int = 4, proxies: tuple[tuple[str, ...], ...] = (), **facts: Any) -> Tables:  # noqa: ANN401
    """Requests to a proxy, each of which it hands on in the middle of the wait, 100 ms apart."""
    life: Row = {"opened_at": 0, "ack_at": MS, "closed_at": 1_000 * MS}
    tables = tables_of(
        connections=[
            connection(0, CLIENT, FRONT, **life),
            connection(1, facts.pop("inside", INSIDE), BACK, **life),
        ],
        exchanges=[
            exchange(stream, number, 10 + 100 * number + shift, 60 + 100 * number - shift, **facts)
            for stream, shift in ((0, 0), (1, 10))
            for number in range(requests)
        ],
    )
    link_hops(tables, proxies)
    return tables


def links(tables: Tables) -> list[tuple[Any, ...]]:
    return tables.fetch("SELECT front_stream, front_exchange, back_stream, back_exchange FROM links ORDER BY ALL")


def roles(tables: Tables) -> dict[tuple[str, int | None], tuple[int, str]]:
    rows = tables.fetch("SELECT address, port, node, role FROM nodes")
    return {(address, port): (node, role) for address, port, node, role in rows}


def test_each_request_is_linked_to_the_one_that_it_caused() -> None:
    assert links(proxied()) == [(0, number, 1, number) for number in range(4)]


def test_the_parts_of_a_linked_wait_are_the_proxys_and_the_backends() -> None:
    """Of a wait of 40 ms at the front, 5 to 45 ms after the request: the backend's request goes out after 10."""
    tables = proxied()
    columns = "proxy_in_ns, connect_ns, tls_ns, request_ns, wait_ns, proxy_out_ns"
    parts = tables.fetch(f"SELECT DISTINCT {columns} FROM links")
    assert parts == [(5 * MS, 0, 0, 3 * MS, 24 * MS, 8 * MS)]
    assert sum(parts[0]) == 40 * MS


def test_the_front_and_the_address_that_asks_behind_it_are_the_proxys() -> None:
    found = roles(proxied())
    assert found == {
        ("10.0.0.1", None): (0, "client"),
        ("10.0.0.2", None): (1, "proxy"),
        ("10.0.0.2", 80): (1, "proxy"),
        ("10.0.0.3", 8080): (2, "server"),
    }


def test_an_address_on_the_other_side_is_the_same_machine_if_somebody_knows_it() -> None:
    tables = proxied(proxies=(("10.0.0.2", "10.9.0.2"),), inside="10.9.0.2:50000")
    assert len(links(tables)) == 4
    found = roles(tables)
    assert found["10.9.0.2", None] == found["10.0.0.2", 80] == (1, "proxy")
    ((method,),) = tables.fetch("SELECT DISTINCT method FROM nodes WHERE method IS NOT NULL")
    assert method == "given"


def test_two_that_ask_each_other_are_peers() -> None:
    tables = tables_of(connections=[connection(0, CLIENT, FRONT), connection(1, "10.0.0.2:5", "10.0.0.1:80")])
    link_hops(tables)
    assert links(tables) == []
    assert {role for _, role in roles(tables).values()} == {"peer"}


def test_an_attempt_that_was_refused_makes_no_server() -> None:
    refused = connection(1, "10.0.0.2:5", "10.0.0.1:80", state="refused")
    tables = tables_of(connections=[connection(0, CLIENT, FRONT), refused])
    link_hops(tables)
    found = roles(tables)
    assert found["10.0.0.1", None][1] == "client", "nobody serves there"
    assert found["10.0.0.1", 80][1] == "server"
    assert found["10.0.0.2", None][1] == "peer", "it serves, and asks"


def test_a_machine_that_asks_the_same_server_as_its_clients_causes_nothing() -> None:
    """It is the only server: nobody stands behind it."""
    exchanges = [exchange(0, 0, 10, 60), exchange(1, 0, 20, 50)]
    rows = [connection(0, CLIENT, FRONT), connection(1, INSIDE, FRONT)]
    tables = tables_of(connections=rows, exchanges=exchanges)
    link_hops(tables)
    assert links(tables) == []


def test_connections_that_are_handed_through_are_linked_though_their_content_is_sealed() -> None:
    hellos = [{"stream": stream, "number": 0, "client_random": "r", "hello_at": stream} for stream in (0, 1)]
    rows = [connection(0, CLIENT, "10.0.0.2:443"), connection(1, INSIDE, "10.0.0.3:443")]
    tables = tables_of(connections=rows, handshakes=hellos)
    link_hops(tables)
    assert tables.fetch(
        "SELECT front_stream, front_exchange, back_stream, back_exchange, method, confidence FROM links"
    ) == [(0, None, 1, None, "client-hello", 0.99)]


@pytest.mark.parametrize(
    ("statement", "turn"),
    [
        ("SELECT ?", 0),
        ("begin", 1),
        ("START TRANSACTION ISOLATION LEVEL SERIALIZABLE", 1),
        ("COMMIT", -1),
        ("BEGIN; UPDATE t SET a = ?; COMMIT", -1),
        ("COMMIT; BEGIN", 1),
        ("ROLLBACK", -1),
        ("BEGIN; ROLLBACK TO SAVEPOINT a", 1),
        ("BEGINNING", 0),
        ("SELECT begin", 0),
    ],
)
def test_statements_say_whether_what_follows_is_part_of_a_transaction(statement: str, turn: int) -> None:
    query = f"SELECT {_TURN} FROM (SELECT $protocol AS protocol, $target AS target) e"
    assert duckdb.execute(query, {"protocol": "postgresql", "target": statement}).fetchall() == [(turn,)]
    assert duckdb.execute(query, {"protocol": "http/1.1", "target": statement}).fetchall() == [(None,)]


@pytest.mark.parametrize("protocol", ["proxy", "unknown"])
def test_what_asks_for_nothing_causes_nothing(protocol: str) -> None:
    """A PROXY header, and messages of a protocol that is not read."""
    assert links(proxied(protocol=protocol, target=None)) == []


def test_a_tunnel_is_linked_to_the_connection_that_was_opened_for_it() -> None:
    life: Row = {"opened_at": 0, "ack_at": MS, "closed_at": 1_000 * MS}
    opened: Row = {"opened_at": 20 * MS, "ack_at": 40 * MS, "closed_at": 900 * MS}
    tables = tables_of(
        connections=[connection(0, CLIENT, FRONT, **life), connection(1, INSIDE, BACK, **opened)],
        exchanges=[exchange(0, 0, 10, 60, method="CONNECT", target="10.0.0.3:8080", host="10.0.0.3:8080")],
    )
    link_hops(tables)
    assert links(tables) == [(0, 0, 1, None)]


def test_what_it_leaves_can_be_dropped() -> None:
    tables = proxied()
    assert tables.fetch("SELECT count(*) FROM machines") == [(1,)]
    tables.execute(FORGET)
    assert tables.fetch("SELECT table_name FROM duckdb_tables() WHERE temporary") == []
