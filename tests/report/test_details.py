"""The facts of each connection, for ``-v``."""

from typing import Any

from conchart.report.axis import time_axis
from conchart.report.details import Details, details
from tests.by_hand import Row, connection, tables_of

MS = 1_000_000


def details_of(*connections: Row, names: bool = True, **more: list[Row]) -> list[Details]:
    rows: dict[str, Any] = {"connections": connections, **more}
    tables = tables_of(**rows)
    return list(details(tables, time_axis(tables), names=names))


def one(**facts: Any) -> Row:  # noqa: ANN401
    defaults = {"opened_at": 5 * MS, "closed_at": 105 * MS, "first_frame": 3, "last_frame": 17}
    return connection(0, **defaults | {"bytes_client": 100, "bytes_server": 2_500} | facts)


EXCHANGE: Row = {
    "stream": 0, "number": 0, "protocol": "http/1.1", "method": "GET", "host": "shop.example", "target": "/a",
    "request_bytes": 70, "status": 200, "status_text": "200", "request_ns": MS, "wait_ns": 40 * MS,
    "response_bytes": 900, "inferred": False,
}  # fmt: skip


def test_a_connection_that_carries_nothing_has_a_title_and_a_line() -> None:
    assert details_of(one()) == [
        Details(
            title="tcp.stream eq 0  10.0.0.1:40000 → 10.0.0.9:80  complete, open for 100 ms, 100 B up, 2.50 kB down",
            lines=("frames 3 to 17; opened 0 ns after the start; packets 5 up, 5 down",),
        )
    ]


def test_what_went_wrong_with_packets_is_counted() -> None:
    facts = {
        "rtt_server_ns": 20 * MS, "syn_retransmits": 1, "retransmits_client": 1, "retransmits_server": 3,
        "out_of_order_client": 0, "out_of_order_server": 1, "zero_windows_client": 2, "zero_windows_server": 1,
        "missing_client": 40, "missing_server": 60,
    }  # fmt: skip
    ((line,),) = (found.lines for found in details_of(one(**facts)))
    assert line.split("; ")[3:] == [
        "retransmitted 1 up, 3 down, 1 SYN",
        "out of order 0 up, 1 down",
        "zero windows 2 up, 1 down",
        "missing bytes 40 up, 60 down",
        "round trip 20.0 ms to the server",
    ]


def test_connections_are_in_the_order_of_their_numbers_with_the_time_after_the_first() -> None:
    found = details_of(connection(1, opened_at=9 * MS, closed_at=9 * MS), one())
    assert [found[0].title[:15], found[1].title[:15]] == ["tcp.stream eq 0", "tcp.stream eq 1"]
    assert "opened 4.000000 ms after the start" in found[1].lines[0]


def test_owners_are_told_where_names_are_wanted() -> None:
    owned = one(client_process="curl", client_pid=7)
    assert "10.0.0.1:40000, curl (pid 7) →" in details_of(owned)[0].title
    assert "curl" not in details_of(owned, names=False)[0].title


def test_handshakes_and_exchanges_say_what_is_known_of_them() -> None:
    handshakes: list[Row] = [
        {"stream": 0, "number": 0, "version": "TLSv1.3", "kind": "full", "outcome": "complete", "sni": "shop.example",
         "hello_at": 0, "ready_at": 20 * MS, "inferred": False},
        {"stream": 0, "number": 1, "outcome": "incomplete", "hello_at": 50 * MS, "inferred": True},
    ]  # fmt: skip
    (found,) = details_of(one(), handshakes=handshakes, exchanges=[EXCHANGE])
    assert found.lines[1:] == (
        "TLS 20.0 ms: TLSv1.3, full handshake, SNI shop.example",
        "TLS ~not finished: incomplete renegotiation handshake",
        "GET shop.example/a → 200: request 1.00 ms, wait 40.0 ms; request 70 B, response 900 B",
    )
    (without,) = details_of(one(), names=False, handshakes=handshakes, exchanges=[EXCHANGE])
    assert without.lines[1] == "TLS 20.0 ms: TLSv1.3, full handshake"
    assert without.lines[3].startswith("GET /a → 200")


def test_what_is_not_known_of_an_exchange_is_said_so() -> None:
    hidden: Row = {"stream": 0, "number": 0, "protocol": "tls", "inferred": True}
    answered = {**hidden, "number": 1, "request_bytes": 9, "response_bytes": 5, "transfer_ns": MS, "confidence": 0.9}
    (found,) = details_of(one(), exchanges=[hidden, answered])
    assert found.lines[1:] == (
        "~tls turn 0",
        "~tls turn 1: transfer 1.00 ms; request 9 B, response 5 B, read from the direction of bytes, confidence 0.90",
    )


def test_each_end_of_a_link_names_the_other_and_the_parts_of_the_wait() -> None:
    link: Row = {
        "front_stream": 0, "front_exchange": 0, "back_stream": 1, "back_exchange": 0, "method": "id",
        "confidence": 0.95, "proxy_in_ns": 2 * MS, "connect_ns": 0, "wait_ns": 30 * MS,
    }  # fmt: skip
    front, back = details_of(one(), connection(1), exchanges=[EXCHANGE, {**EXCHANGE, "stream": 1}], links=[link])
    assert front.lines[2] == "  caused tcp.stream eq 1 #0: proxy 2.00 ms, backend 30.0 ms (by id, confidence 0.95)"
    assert back.lines[2] == "  caused by tcp.stream eq 0 #0 (by id, confidence 0.95)"


def test_a_connection_that_is_handed_on_as_a_whole_says_so_above_its_exchanges() -> None:
    link: Row = {"front_stream": 0, "back_stream": 1, "method": "client-hello", "confidence": 0.99}
    front, back = details_of(one(), connection(1), exchanges=[EXCHANGE], links=[link])
    assert front.lines[1] == "handed on as tcp.stream eq 1 (by client-hello, confidence 0.99)"
    assert back.lines[1] == "handed on from tcp.stream eq 0 (by client-hello, confidence 0.99)"


def test_what_belongs_to_an_exchange_stands_under_it() -> None:
    tunnel = {"tunnel": "websocket", "request_at": 0}
    log: Row = {"log": 0, "path": "access.log"}
    line: Row = {"log": 0, "line": 4, "text": "", "stream": 0, "exchange": 0, "confidence": 1.0}
    (found,) = details_of(one(), exchanges=[EXCHANGE | tunnel | {"from_log": True}], logs=[log], log_lines=[line])
    assert found.lines[1:] == (
        "GET shop.example/a (from the log) → 200: request 1.00 ms, wait 40.0 ms; request 70 B, response 900 B",
        "  tunnel websocket, not opened",
        "  access.log:4 (confidence 1.00): no duration in the log",
    )


def test_stalls_come_last_with_their_frames() -> None:
    stall: Row = {
        "stream": 0, "kind": "rto", "detail": "tail", "side": "server", "start_at": 7 * MS, "end_at": 207 * MS,
        "start_frame": 5, "end_frame": 9, "confidence": 0.9,
    }  # fmt: skip
    (found,) = details_of(
        one(), exchanges=[EXCHANGE], stalls=[stall, {**stall, "start_at": 8 * MS, "released_frame": 7}]
    )
    assert len(found.lines) == 4
    assert "200 ms (rto, tail), frames 5 → 9: " in found.lines[2]
    assert "frames 5 → 7 → 9: " in found.lines[3]
