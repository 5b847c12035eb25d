"""Addresses that are one machine, and connections that a machine hands through."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conchart.analysis.machines import MOST_ADDRESSES, SKEW_NS, _Union, find_machines
from conchart.store.tables import Tables
from tests.by_hand import Row, connection, tables_of

PAIRS = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef"), st.sampled_from((0.5, 0.7, 0.9))), max_size=8
)


def joined(pairs: Iterable[tuple[str, str, float]]) -> _Union:
    union = _Union()
    for one, other, confidence in pairs:
        union.join(one, other, str(confidence), confidence)
    return union


@given(PAIRS)
def test_sets_are_those_that_pairs_connect_whatever_their_order(pairs: list[tuple[str, str, float]]) -> None:
    union = joined(pairs)
    together = {machine.addresses for machine in union.machines()}
    assert together == {machine.addresses for machine in joined(reversed(pairs)).machines()}
    assert sorted(address for machine in together for address in machine) == sorted(union.addresses())
    for one, other, _ in pairs:
        assert union.machine_of(one) is union.machine_of(other)
    for machine in union.machines():
        inside = [confidence for one, other, confidence in pairs if one in machine.addresses and one != other]
        assert machine.confidence >= min(inside, default=1.0)
        assert len(machine.addresses) == 1 or machine.confidence < 1


def test_the_weakest_reason_stays() -> None:
    (machine,) = joined([("a", "b", 0.9), ("c", "d", 0.5), ("b", "c", 0.7)]).machines()
    assert (machine.addresses, machine.method, machine.confidence) == (("a", "b", "c", "d"), "0.5", 0.5)


def test_an_address_alone_is_a_machine_without_a_reason() -> None:
    union = _Union()
    union.join("a", "a", None, 1.0)
    assert [(machine.addresses, machine.method) for machine in union.machines()] == [(("a",), None)]
    assert union.machine_of("b") == {"b"}
    assert union.has("a")
    assert not union.has("b")


def found(tables: Tables, proxies: Iterable[Collection[str]] = ()) -> set[tuple[tuple[str, ...], str | None]]:
    """Give the addresses of each machine, and what says that they are one."""
    find_machines(tables, proxies)
    rows = tables.fetch("SELECT list(address ORDER BY address), any_value(method) FROM machines GROUP BY machine")
    return {(tuple(addresses), method) for addresses, method in rows}


FRONT = connection(0, "10.0.0.1:40000", "10.0.0.2:80", closed_at=1_000)
BACK = connection(1, "10.1.0.2:50000", "10.1.0.9:8080", closed_at=1_000)
"""Behind a proxy with an address in each of two networks."""
ONE = ("10.0.0.2", "10.1.0.2")


def test_nothing_says_that_two_addresses_are_one_machine() -> None:
    assert found(tables_of(connections=[FRONT, BACK])) == set()


def test_an_address_that_asks_and_is_asked_is_a_machine() -> None:
    assert found(tables_of(connections=[FRONT, {**BACK, "client_ip": "10.0.0.2"}])) == {(("10.0.0.2",), None)}


def test_the_user_knows_better() -> None:
    tables = tables_of(connections=[FRONT, BACK])
    assert found(tables, [["10.1.0.2", "10.0.0.2"]]) == {(ONE, "given")}
    forwarding: list[Row] = [{"stream": 1, "number": 0, "request_at": 5, "forwarded_for": "10.0.0.1"}]
    asking: list[Row] = [{"stream": 0, "number": 0, "request_at": 5}]
    tables = tables_of(connections=[FRONT, BACK], exchanges=[*asking, *forwarding])
    assert found(tables, [["10.0.0.2", "10.7.0.2"]]) == {(("10.0.0.2", "10.7.0.2"), "given")}


@pytest.mark.parametrize(
    ("header", "at", "is_one"),
    [
        ("10.0.0.1", 50, True),
        ("198.51.100.7, 10.0.0.1", 50, True),
        ('"[10.0.0.1]"', 50, True),
        ("10.0.0.1, 198.51.100.7", 50, False),
        ("10.0.0.1", 100 - SKEW_NS, True),
        ("10.0.0.1", 99 - SKEW_NS, False),
        ("10.0.0.1", 900, True),
        ("10.0.0.1", 901, False),
    ],
)
def test_a_request_names_the_client_for_which_it_is_made(header: str, at: int, is_one: bool) -> None:  # noqa: FBT001
    """The client's own request has begun before (but for the skew of clocks), and has no answer yet."""
    exchanges: list[Row] = [
        {"stream": 0, "number": 0, "request_at": 100 if at != 50 else 40, "response_at": 900},
        {"stream": 1, "number": 0, "request_at": at, "forwarded_for": header},
    ]
    tables = tables_of(connections=[FRONT, BACK], exchanges=exchanges)
    assert ((ONE, "forwarded-for") in found(tables)) == is_one


def carded(ttl: int = 64, others: int = 0) -> list[Row]:
    """The proxy's two addresses have one network card, as so many other clients have."""
    behind = [
        connection(2 + number, f"10.2.0.{number}:1", "10.1.0.9:8080", mac_client="m", ttl_client=ttl)
        for number in range(others)
    ]
    front, back = {"mac_server": "m", "ttl_server": ttl}, {"mac_client": "m", "ttl_client": ttl}
    return [{**FRONT, **front}, {**BACK, **back}, *behind]


def test_addresses_of_one_network_card_are_one_machine() -> None:
    assert found(tables_of(connections=carded())) == {(ONE, "network-card")}
    assert found(tables_of(connections=carded(ttl=63))) == set(), "a router is between it and the capture"


def test_behind_a_card_with_many_addresses_there_is_a_network() -> None:
    assert len(found(tables_of(connections=carded(others=MOST_ADDRESSES - 1)))) == 1
    assert found(tables_of(connections=carded(others=MOST_ADDRESSES))) == set()


def test_in_a_cooked_capture_the_machine_that_captures_is_known() -> None:
    local = [{**FRONT, "local_end": "server"}, {**BACK, "local_end": "client"}]
    assert found(tables_of(connections=local)) == {(ONE, "capturing")}
    assert found(tables_of(connections=[{**row, "capture": row["stream"]} for row in local])) == set()
    # Its address comes from elsewhere in another connection: then it is none of its own.
    elsewhere = connection(2, "10.1.0.2:1", "10.0.0.2:80", local_end="server")
    assert found(tables_of(connections=[*local, elsewhere])) != {(ONE, "capturing")}


def through(tables: Tables) -> list[tuple[Any, ...]]:
    find_machines(tables)
    return tables.fetch("SELECT front_stream, back_stream, method FROM through")


def test_a_client_hello_that_is_seen_twice_is_handed_through() -> None:
    hellos = [{"stream": stream, "number": 0, "client_random": "r", "hello_at": stream} for stream in (0, 1)]
    tables = tables_of(connections=[FRONT, BACK], handshakes=hellos)
    assert through(tables) == [(0, 1, "client-hello")]
    assert found(tables) == {(ONE, "client-hello")}
    late = {**BACK, "opened_at": 1_001 + SKEW_NS, "closed_at": 9 * SKEW_NS}
    assert through(tables_of(connections=[FRONT, late], handshakes=hellos)) == [], "it was replayed"


@pytest.mark.parametrize(
    ("facts", "is_handed"),
    [
        ({"opened_at": 10}, True),
        ({"opened_at": 10, "announced_port": 40_001}, False),
        ({"opened_at": 1_000}, True),
        ({"opened_at": 1_001}, False),
    ],
)
def test_a_proxy_protocol_header_names_the_connection_that_is_handed_through(
    facts: dict[str, Any],
    is_handed: bool,  # noqa: FBT001
) -> None:
    announced = {"announced_ip": "10.0.0.1", "announced_port": 40_000, "closed_at": 5_000}
    tables = tables_of(connections=[FRONT, {**BACK, **announced, **facts}])
    assert through(tables) == ([(0, 1, "proxy-protocol")] if is_handed else [])


def test_of_several_connections_from_the_announced_address_the_last_one_is_handed_through() -> None:
    again = {**FRONT, "stream": 2, "opened_at": 500}
    announcing = {**BACK, "announced_ip": "10.0.0.1", "announced_port": 40_000, "opened_at": 600}
    assert through(tables_of(connections=[FRONT, announcing, again])) == [(2, 1, "proxy-protocol")]


def test_in_a_reverse_tunnel_as_many_bytes_go_the_other_way_round() -> None:
    """The service had opened its connection to the port of the tunnel; clients come to another port."""
    client = connection(0, "10.0.0.1:1", "10.0.0.2:80", closed_at=1_000, bytes_client=100, bytes_server=900)
    service = connection(1, "10.1.0.9:2", "10.0.0.2:7000", closed_at=1_000, bytes_client=900, bytes_server=100)
    exchanges = [{"stream": stream, "number": 0, "request_at": 10 + stream} for stream in (0, 1)]
    assert through(tables_of(connections=[client, service], exchanges=exchanges)) == [(0, 1, "same-bytes")]
    few = [{**row, "bytes_client": row["bytes_client"] // 10, "bytes_server": row["bytes_server"] // 10}
           for row in (client, service)]  # fmt: skip
    assert through(tables_of(connections=few, exchanges=exchanges)) == []
    same = [client, {**service, "bytes_client": 100, "bytes_server": 900}]
    assert through(tables_of(connections=same, exchanges=exchanges)) == [], "not the other way round"
    assert through(tables_of(connections=[client, {**service, "server_port": 80}], exchanges=exchanges)) == []


def nested(inside: int, outside: int = 0, *, rivals: bool = False) -> Tables:
    """Requests of one address, so many of which lie within the waits for another one."""
    ms = 1_000_000
    exchanges: list[Row] = []
    for number in range(inside + outside):
        at = number * 1_000 * ms + (number * number) % 37 * ms
        exchanges.append({"stream": 0, "number": number, "request_at": at, "response_at": at + 20 * ms})
        late = 0 if number < inside else 300 * ms
        own = {"request_at": at + late + ms, "response_at": at + late + 15 * ms}
        exchanges.append({"stream": 1, "number": number, **own})
    last = {"closed_at": 1_000_000 * ms}
    return tables_of(connections=[{**FRONT, **last}, {**BACK, **last}], exchanges=[
        {**row, "protocol": "http/1.1", "outcome": "answered"} for row in exchanges])  # fmt: skip


def test_requests_that_lie_within_the_waits_for_another_address_are_of_one_machine() -> None:
    assert found(nested(10)) == {(ONE, "time")}
    ((confidence,),) = nested_confidence(10)
    assert confidence == 0.9
    ((confidence,),) = nested_confidence(7)
    assert confidence == 0.7, "few may be nested by chance"


def nested_confidence(inside: int) -> list[tuple[Any, ...]]:
    tables = nested(inside)
    find_machines(tables)
    return tables.fetch("SELECT DISTINCT confidence FROM machines")


def test_a_fifth_of_them_may_lie_elsewhere_and_no_more() -> None:
    assert found(nested(8, 2)) == {(ONE, "time")}
    assert found(nested(7, 3)) == set()
