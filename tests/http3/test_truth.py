"""HTTP/3 with keys, held against what the ends of each connection logged (qlog, netlog) and against tshark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import conchart
from conchart import Trace
from tests.conftest import ROOT
from tests.tshark import ask, needs_tshark

CAPTURES = ROOT / "captures/http3"
CASES = sorted(path.parent.name for path in CAPTURES.glob("*/truth.json"))
WITHIN = 1
"""Packets between the first byte of an answer in the capture and in the log."""
MOVES = {"rebind", "moved", "moved-limited", "rebind-caddy", "rebind-idle"}
"""Datagrams that still come to the port which the client has left are in the capture, and not in its log."""
AFTER_RETRY = {"retry", "negotiated"}
"""tshark 4.0 opens no 1-RTT packets after a Retry, nor after Version Negotiation."""
STALLS = {
    "first-lost": {("pto", "client")},
    "flight-lost": {("pto", "client")},
    "tail-lost": {("pto", "server"), ("loss", "server")},
    "chromium": {("pto", "client")},
    "chromium-far": {("pto", "client")},
    "lossy": {("loss", "client"), ("loss", "server"), ("pto", "client"), ("pto", "server")},
    "steps-lossy": {("loss", "server"), ("pto", "client"), ("pto", "server")},
    "rebind-idle": {("loss", "server")},
}
"""What may be said of them; of the others, nothing got lost. Chromium takes one packet for lost."""
SPACES = {"initial": "initial", "handshake": "handshake", "1RTT": "data"}
"""Packet number spaces: the log's name, and ours. Chromium loses Initial packets alone, and does not say so."""
ASTRAY = {("rebind-caddy", "/wait-5/bytes-30000"): 200}
"""Statuses of answers that pass the capture point on their way to a port that the client has left."""
SKIPS = {"chromium", "chromium-far", "rounds"}
UNLOGGED = {("chromium-far", 0, "client", "initial", 3)}
"""Chromium sent its ClientHello again, and says so of one packet of two."""
UNCOMPARED = {
    ("early-refused", "client", "0RTT"),
    ("flight-lost", "client", "initial"),
    ("flight-lost", "server", "initial"),
    ("flight-lost", "server", "handshake"),
    ("flight-lost", "server", "1RTT"),
    ("restarted", "client", "1RTT"),
    ("rebind-caddy", "client", "1RTT"),
}
"""Early data that was refused was not lost. At a probe timeout, aioquic calls all of a flight lost; RFC 9002 does not.
Of the server's flight, no packet before the lost ones is in the capture. A server that has forgotten a connection
acknowledges nothing, and Caddy does not where its client is."""

every_case = pytest.mark.parametrize("case", CASES)


@cache
def truth(case: str) -> list[dict[str, Any]]:
    """Give what the ends said of each connection, in the order of time."""
    connections: list[dict[str, Any]] = json.loads((CAPTURES / case / "truth.json").read_text())["connections"]
    return connections


@contextmanager
def opened(case: str) -> Iterator[Trace]:
    folder = CAPTURES / case
    with conchart.read(folder / "input.pcap", keylog=folder / "keys.log") as trace:
        yield trace


@every_case
def test_each_connection_is_one_row_wherever_its_client_is(case: str) -> None:
    with opened(case) as trace:
        rows = trace.sql("SELECT app FROM connections ORDER BY opened_at").fetchall()
    assert len(rows) == len(truth(case))


@every_case
def test_requests_are_those_of_the_log(case: str) -> None:
    question = "SELECT stream, protocol, target, status FROM exchanges ORDER BY ALL"
    with opened(case) as trace:
        found = trace.sql(question).fetchall()
    assert found == sorted(
        (stream, "h3", request["path"], ASTRAY.get((case, request["path"]), request["status"]))
        for stream, connection in enumerate(truth(case))
        for request in connection["requests"]
    )


@pytest.mark.parametrize("case", sorted(set(CASES) - MOVES))
def test_the_first_byte_is_in_the_packet_of_the_log(case: str) -> None:
    received = """
        SELECT stream, number, count(*) FILTER (seen_at <= response_at)
        FROM exchanges JOIN packets USING (stream) WHERE sender = 'server' AND response_at IS NOT NULL
        GROUP BY stream, number ORDER BY stream, min(request_frame), number"""
    with opened(case) as trace:
        rows = trace.sql(received).fetchall()
    for stream, connection in enumerate(truth(case)):
        datagrams = sorted(count for each, _, count in rows if each == stream)
        logged = sorted(request["datagrams"] for request in connection["requests"] if request["datagrams"])
        assert len(datagrams) == len(logged)
        assert all(abs(ours - theirs) <= WITHIN for ours, theirs in zip(datagrams, logged, strict=True)), (
            datagrams, logged,
        )  # fmt: skip


@every_case
def test_stalls_are_told_where_the_ends_say_that_packets_were_lost_and_nowhere_else(case: str) -> None:
    question = "SELECT DISTINCT kind::VARCHAR, side::VARCHAR FROM stalls WHERE kind IN ('pto', 'loss')"
    with opened(case) as trace:
        found = set(trace.sql(question).fetchall())
    assert found <= STALLS.get(case, set())
    assert bool(found) == (case in STALLS)
    sides = {lost["by"] for connection in truth(case) for lost in connection["lost"]}
    assert {side for _, side in found} <= sides


@every_case
def test_lost_packets_are_exactly_those_that_each_end_took_for_lost(case: str) -> None:
    question = "SELECT stream, sender::VARCHAR, space::VARCHAR, number FROM lost_packets ORDER BY ALL"
    if case in SKIPS:
        # It skips numbers on purpose: at the client, what did not pass the capture point was never sent.
        question = question.replace("ORDER", "WHERE frame IS NOT NULL ORDER")
    with opened(case) as trace:
        found = trace.sql(question).fetchall()
        needless = trace.sql("SELECT count(*) FROM lost_packets WHERE arrived").fetchall()
    logged = sorted(
        (stream, lost["by"], SPACES[lost.get("space", "initial")], lost["number"])
        for stream, connection in enumerate(truth(case))
        for lost in connection["lost"]
        if (case, lost["by"], lost.get("space")) not in UNCOMPARED
    )
    assert [lost for lost in found if (case, *lost) not in UNLOGGED] == logged
    assert needless == [(0,)]


@needs_tshark
@pytest.mark.parametrize("case", sorted(set(CASES) - AFTER_RETRY))
def test_tshark_sees_requests_and_answers_begin_in_the_same_frames(case: str) -> None:
    folder = CAPTURES / case
    fields = ("frame.number", "udp.dstport", "quic.stream.stream_id", "quic.stream.offset")
    words: list[str | Path] = [
        "-r",
        folder / "input.pcap",
        "-o",
        f"tls.keylog_file:{folder / 'keys.log'}",
        "-Y",
        "quic.stream.stream_id",
    ]
    text = ask([*words, "-T", "fields", *(word for field in fields for word in ("-e", field))])
    begun: dict[str, list[int]] = {"request": [], "response": []}
    seen: set[tuple[str, str, int]] = set()
    connection = 0
    for line in text.splitlines():
        frame, port, ids, offsets = (cell.split(",") for cell in line.split("\t"))
        part = "request" if port[0] == "443" else "response"
        # A frame without an offset begins its stream; tshark lists the offsets of the others alone.
        listed = iter(offsets) if len(offsets) == len(ids) else None
        for stream in ids:
            offset = next(listed, "0") if listed else "0"
            key = (part, stream, connection)
            if int(stream) % 4 == 0 and offset in ("0", "") and key not in seen:
                seen.add(key)
                begun[part].append(int(frame[0]))
    with opened(case) as trace:
        ours = trace.sql("SELECT request_frame, response_frame FROM exchanges").fetchall()
    if len(truth(case)) > 1:
        return  # the streams of several connections have the same numbers
    assert sorted(row[0] for row in ours) == sorted(begun["request"])
    assert sorted(row[1] for row in ours if row[1]) == sorted(begun["response"])
