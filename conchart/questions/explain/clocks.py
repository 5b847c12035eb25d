"""The times that other programs print for an exchange, and the reason for each difference.

curl's ``-w`` and a browser's timings (HAR 1.2) are taken by the client, Wireshark's response times (its Transum plugin)
at the capture point. In: a connection. Out: a :class:`Clock` per figure, worked out for that program's place: what a
client measures between its own packet and an answer has the way between it and the capture point in it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from conchart.questions.explain.connection import Connection
from conchart.report.rows import Row

WHY = (
    "curl and browsers look from the client: between a packet of theirs and the answer lies the way to the capture "
    "point and back, which is added here.",
    "curl counts from the beginning of the transfer, each figure to the end of its step; a browser gives each step by "
    "itself, and its ssl is part of its connect (HAR 1.2).",
    "Wireshark's Transum looks from the capture point, and its service time ends with the first packet of the answer, "
    "its response time with the last. None of them knows of Nagle, a proxy or a lost segment.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """One figure."""

    exchange: int
    program: str
    name: str
    """As the program calls it."""
    took_ns: int | None
    """None where this capture does not tell, and where the program would print that there was nothing."""
    meaning: str


def clocks(connection: Connection, most: int | None = None) -> Iterator[Clock]:
    """Give the figures of each exchange whose request and response are known; ``most``: of the first so many."""
    for exchange in connection.exchanges[:most]:
        if _is_complete(exchange):
            yield from _of(connection, exchange)


def last_clocked(connection: Connection) -> int:
    """Give the number of the last exchange that has figures; -1 where none has."""
    return next((exchange["number"] for exchange in reversed(connection.exchanges) if _is_complete(exchange)), -1)


def _is_complete(exchange: Row) -> bool:
    return None not in (exchange["request_at"], exchange["response_at"], exchange["response_done_at"])


def _of(connection: Connection, exchange: Row) -> Iterator[Clock]:
    about = connection.about
    away = about["rtt_client_ns"] or 0
    number = exchange["number"]
    first = number == 0
    opened, accepted = (about["syn_at"], about["ack_at"]) if first else (None, None)
    handshake = connection.handshakes[0] if first and connection.handshakes else None
    start_at = opened if opened is not None else exchange["request_at"]
    connect = accepted - opened if opened is not None and accepted is not None else None
    ready = None
    over_quic = handshake is not None and handshake["quic_version"] is not None
    if handshake is not None and over_quic and handshake["hello_at"] is not None:
        # Its first packet is the ClientHello's: the connection is open when TLS is ready.
        start_at = accepted = handshake["hello_at"]
    if handshake is not None and handshake["ready_at"] is not None and handshake["hello_at"] is not None:
        # Where the server's Finished is what it waits for, that has yet to come to the client.
        to_come = away if handshake["version"] != "TLSv1.3" and handshake["kind"] == "full" else 0
        ready = handshake["ready_at"] + to_come
    ssl = ready - accepted if ready is not None and accepted is not None else None
    if over_quic:
        connect = ssl
    requested, heard, done = exchange["request_at"], exchange["response_at"], exchange["response_done_at"]
    sent = exchange["request_done_at"] if exchange["request_done_at"] is not None else requested

    def clock(program: str, name: str, took_ns: int | None, meaning: str) -> Clock:
        return Clock(exchange=number, program=program, name=name, took_ns=took_ns, meaning=meaning)

    yield clock(
        "curl",
        "time_connect",
        connect,
        "until the connection was open" if over_quic else "until the TCP connection was open",
    )
    yield clock("curl", "time_appconnect", ready and ready - start_at, "until TLS was ready")
    yield clock("curl", "time_pretransfer", requested - start_at, "until the request began")
    yield clock("curl", "time_starttransfer", heard + away - start_at, "until the first byte of the answer")
    yield clock("curl", "time_total", done + away - start_at, "until the last byte of the answer")
    both = None if connect is None else connect + (0 if over_quic else ssl or 0)
    yield clock("browser", "connect", both, "QUIC and its TLS" if over_quic else "TCP and TLS")
    yield clock("browser", "ssl", ssl, "TLS alone")
    yield clock("browser", "send", sent - requested, "sending the request")
    yield clock("browser", "wait", heard + away - sent, "waiting for the first byte")
    yield clock("browser", "receive", done - heard, "from the first byte to the last")
    yield clock("Wireshark", "transum.reqspread", sent - requested, "the request, first packet to last")
    yield clock("Wireshark", "transum.st", heard - sent, "service time")
    yield clock("Wireshark", "transum.rspspread", done - heard, "the answer, first packet to last")
    yield clock(
        "Wireshark", "transum.art", done - requested, "response time: first packet of the request to last of the answer"
    )
