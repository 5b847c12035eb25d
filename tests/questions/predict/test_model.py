"""The captured connections and exchanges, carried to the client's end of each connection."""

from typing import Any

import pytest

from conchart.questions.predict.model import DEFAULT_MSS, NEAR_NS, Connection, Talk, read_talk
from tests.by_hand import Row, connection, tables_of

MS = 1_000_000
AWAY = 10 * MS
"""Half a round trip from the capture point to the client."""


def row(stream: int = 0, **facts: Any) -> Row:  # noqa: ANN401
    defaults = {"rtt_client_ns": 2 * AWAY, "rtt_server_ns": 4 * MS, "syn_at": 0, "mss_client": 1400, "mss_server": 1460}
    return connection(stream, **defaults | facts)


SYN: Row = {"stream": 0, "kind": "syn", "start_at": 0, "end_at": 30 * MS}
HANDSHAKE: Row = {
    "stream": 0, "number": 0, "hello_at": 40 * MS, "ready_at": 90 * MS, "version": "TLSv1.3", "kind": "full",
    "outcome": "complete", "round_trips": 1, "client_compute_ns": 2, "server_compute_ns": 3,
}  # fmt: skip
EXCHANGE: Row = {
    "stream": 0, "number": 0, "protocol": "http/1.1", "kind": "web",
    "request_at": 100 * MS, "request_done_at": 101 * MS, "response_at": 140 * MS, "response_done_at": 150 * MS,
    "request_bytes": 10, "response_bytes": 20,
}  # fmt: skip


def talk(*connections: Row, **more: list[Row]) -> Talk:
    rows: dict[str, Any] = {"connections": connections or (row(),), "phases": [SYN], **more}
    return read_talk(tables_of(**rows))


def only(*connections: Row, **more: list[Row]) -> Connection:
    (found,) = talk(*connections, **more).connections
    return found


def test_what_the_client_sent_left_it_earlier_and_what_it_got_arrived_later() -> None:
    found = only(handshakes=[HANDSHAKE], exchanges=[EXCHANGE])
    assert (found.carried_ns, found.rtt_ns, found.mss) == (AWAY, 24 * MS, 1400)
    assert (found.syn_at, found.accepted_at, found.hello_at, found.ready_at) == (-AWAY, 20 * MS, 30 * MS, 80 * MS)
    (exchange,) = found.exchanges
    assert (exchange.requested_at, exchange.sent_at) == (90 * MS, 91 * MS)
    assert (exchange.answered_at, exchange.done_at) == (150 * MS, 160 * MS)
    assert (exchange.request_bytes, exchange.response_bytes, exchange.is_timed) == (10, 20, True)
    assert (found.compute_ns, found.server_compute_ns, found.resumed) == (5, 3, False)


@pytest.mark.parametrize(("rtt", "away"), [(NEAR_NS, 0), (NEAR_NS + 2, NEAR_NS // 2 + 1), (None, 0)])
def test_a_short_way_is_what_the_client_takes_to_react(rtt: int | None, away: int) -> None:
    assert only(row(rtt_client_ns=rtt)).carried_ns == away


@pytest.mark.parametrize(
    ("facts", "ready_ms"),
    [
        ({}, 80),
        ({"version": "TLSv1.2"}, 100),
        ({"version": "TLSv1.2", "false_start": True}, 80),
        ({"outcome": "failed"}, None),
        ({"ready_at": None}, None),
    ],
    ids=str,
)
def test_before_tls_1_3_the_servers_finished_has_to_arrive(facts: Row, ready_ms: int | None) -> None:
    assert only(handshakes=[{**HANDSHAKE, **facts}]).ready_at == (None if ready_ms is None else ready_ms * MS)


def test_without_tls_a_request_can_be_sent_when_the_connection_stands() -> None:
    assert only().ready_at == 20 * MS
    renegotiated = {**HANDSHAKE, "hello_at": 200 * MS}
    assert only(handshakes=[renegotiated], exchanges=[EXCHANGE]).hello_at is None, "it opened nothing"


def test_where_the_beginning_is_not_in_the_capture_nothing_is_known_of_the_opening() -> None:
    found = only(row(syn_at=None, mss_client=None, mss_server=None), handshakes=[HANDSHAKE])
    assert (found.syn_at, found.accepted_at, found.hello_at, found.mss) == (None, None, None, DEFAULT_MSS)
    assert only(row(rtt_server_ns=None)).rtt_ns is None


def test_quic_is_open_with_its_first_packet() -> None:
    found = only(row(transport="udp", syn_at=None), handshakes=[HANDSHAKE])
    assert (found.syn_at, found.accepted_at, found.hello_at) == (30 * MS,) * 3


def test_a_request_without_an_answer_ends_when_it_is_sent() -> None:
    silent = {**EXCHANGE, "response_at": None, "response_done_at": None}
    (exchange,) = only(exchanges=[silent]).exchanges
    assert not exchange.is_timed
    assert exchange.done_at == exchange.answered_at == 101 * MS + AWAY


def test_what_needs_no_answer_is_no_request_and_what_has_no_beginning_is_counted() -> None:
    rest = [
        {**EXCHANGE, "number": 1, "protocol": "mysql", "method": "Quit"},
        {**EXCHANGE, "number": 2, "request_at": None},
    ]
    found = talk(exchanges=[EXCHANGE, *rest])
    assert [len(one.exchanges) for one in found.connections] == [1]
    assert found.unread == 1


def test_exchanges_have_their_place_in_the_order_of_time() -> None:
    early = {**EXCHANGE, "number": 1, "request_at": 50 * MS, "protocol": "h2"}
    found = only(exchanges=[EXCHANGE, early])
    assert [(one.number, one.place) for one in found.exchanges] == [(1, 0), (0, 1)]
    assert found.multiplexed


def test_links_join_what_was_caused_with_its_cause() -> None:
    rows = [row(0), row(1, rtt_client_ns=0), row(2, rtt_client_ns=0)]
    backs = [
        {
            **EXCHANGE, "stream": stream, "request_at": at * MS, "response_at": at * MS, "response_done_at": done * MS,
        }
        for stream, at, done in ((1, 110, 139), (2, 105, 120))
    ]  # fmt: skip
    links = [{"front_stream": 0, "front_exchange": 0, "back_stream": stream, "back_exchange": 0} for stream in (1, 2)]
    front, first, second = talk(*rows, exchanges=[EXCHANGE, *backs], links=links).connections
    assert [back.connection.stream for back in front.exchanges[0].backs] == [2, 1], "in the order of their ends"
    assert first.exchanges[0].front is second.exchanges[0].front is front.exchanges[0]
    before = {**backs[0], "request_at": 80 * MS}
    front, *_ = talk(*rows, exchanges=[EXCHANGE, before], links=links[:1]).connections
    assert front.exchanges[0].backs == [], "it began before its cause"


def test_who_is_no_user_is_told_apart() -> None:
    behalf: Row = {"stream": 0, "exchange": -1, "front_stream": 7}
    assert only().users
    assert not only(on_behalf=[behalf]).users
    assert only(on_behalf=[{**behalf, "exchange": 0}]).users
    assert not only(servers=[{"server_ip": "10.0.0.9", "server_port": 80, "role": "closed"}]).users
    assert only(nodes=[{"address": "10.0.0.1", "node": 4}]).client == "4"
    assert only().client == "10.0.0.1"


def test_segments_that_were_held_back_say_whether_the_acknowledgement_was_late() -> None:
    stalls = [
        {"stream": 0, "kind": kind, "detail": detail, "start_at": at, "end_at": at + 5}
        for at, kind, detail in (
            (30, "nagle", "delayed-ack"), (20, "nagle", "round-trip"), (10, "delayed-ack", None), (5, "rto", None),
        )
    ]  # fmt: skip
    assert only(stalls=stalls).held == [(10, 15, True), (20, 25, False), (30, 35, True)]
