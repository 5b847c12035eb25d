"""Captures of one direction only: asymmetric routing, or a mirror port that copies one side.

The same conversations seen whole are the reference: what the captured side sent has to come out the same, and
acknowledgements tell when the other side's bytes had arrived.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, Literal

import pytest

import conchart
from conchart.outputs.terminal.facts import facts
from conchart.report.remarks import remarks
from conchart.report.report import Report
from tests.conftest import MS

Side = Literal["client", "server"]
CAPTURES = Path(__file__).parent.parent / "captures"
ENCRYPTED = [
    "reverse-proxy/https", "reverse-proxy/https-keepalive", "handshakes/curl-nginx-1.2-full",
    "handshakes/curl-nginx-1.3-full", "handshakes/gnutls-nginx-1.2-ticket", "handshakes/java-apache-1.2-session-id",
    "handshakes/openssl-nginx-1.2-ticket", "handshakes/rustls-nginx-1.3-full",
]  # fmt: skip
PLAIN = ["reverse-proxy/http", "reverse-proxy/http-page", "reverse-proxy/https-keepalive"]


def rows(path: Path, query: str) -> list[Any]:
    with conchart.read(path, packets=True) as trace:
        return list(trace.sql(query).fetchall())


def one_side(case: str, side: Side, folder: Path, condition: str = "true") -> Path:
    """The packets that the clients, or the servers, of a capture sent, and for which the condition (SQL) holds."""
    source = CAPTURES / case / "input.pcap"
    frames = {frame for (frame,) in rows(source, f"SELECT frame FROM packets WHERE sender = '{side}' AND {condition}")}
    whole = source.read_bytes()
    half = [whole[:24]]
    position, frame = 24, 0
    while position < len(whole):
        frame += 1
        end = position + 16 + struct.unpack_from("<I", whole, position + 8)[0]
        if frame in frames:
            half.append(whole[position:end])
        position = end
    path = folder / f"{side}.pcap"
    path.write_bytes(b"".join(half))
    return path


@pytest.mark.parametrize("case", PLAIN)
def test_requests_are_read_and_answers_timed_by_their_acknowledgement(case: str, tmp_path: Path) -> None:
    query = """
        SELECT method, target, request_at, response_bytes, wait_ns, coalesce(rtt_client_ns, 0)
        FROM exchanges JOIN connections USING (stream) WHERE protocol LIKE 'http/%' ORDER BY request_at
    """
    seen = rows(one_side(case, "client", tmp_path), query)
    expected = rows(CAPTURES / case / "input.pcap", query)
    assert [row[:3] for row in seen] == [row[:3] for row in expected]
    for (*_, size, wait, _), (*_, true_size, true_wait, rtt) in zip(seen, expected, strict=True):
        assert size - true_size in (0, 1), "the FIN takes a sequence number"
        assert 0 <= wait - true_wait < rtt + 500_000, "the ACK follows the response"


@pytest.mark.parametrize("case", PLAIN)
def test_responses_are_read_and_requests_timed_by_their_acknowledgement(case: str, tmp_path: Path) -> None:
    query = """
        SELECT status, response_at, response_done_at, request_bytes, wait_ns FROM exchanges
        WHERE protocol LIKE 'http/%' ORDER BY response_at
    """
    seen = rows(one_side(case, "server", tmp_path), query)
    expected = rows(CAPTURES / case / "input.pcap", query)
    assert [row[:3] for row in seen] == [row[:3] for row in expected]
    for (*_, size, wait), (*_, true_size, true_wait) in zip(seen, expected, strict=True):
        assert (size, wait) == (None, None) or size == true_size, "unknown, where it came with the response"
        assert wait is None or 0 <= true_wait - wait < 500_000, "the ACK follows the request"


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize("case", ENCRYPTED)
def test_encrypted_turns_are_counted(case: str, side: Side, tmp_path: Path) -> None:
    query = """
        SELECT c.opened_at < h.ready_at, h.outcome <> 'failed',
            (SELECT count(*) FROM exchanges AS e WHERE e.stream = c.stream AND e.protocol = 'tls')
        FROM connections AS c JOIN handshakes AS h USING (stream) ORDER BY c.opened_at
    """
    seen = rows(one_side(case, side, tmp_path), query)
    assert all(row[:2] == (True, True) for row in seen)
    expected = rows(CAPTURES / case / "input.pcap", query)
    assert [row[2] for row in seen] == [row[2] for row in expected]


@pytest.mark.parametrize("case", ENCRYPTED)
def test_handshake_lasts_until_the_client_goes_on(case: str, tmp_path: Path) -> None:
    query = """
        SELECT hello_at, ready_at, (SELECT min(request_at) FROM exchanges AS e WHERE e.stream = h.stream)
        FROM handshakes AS h ORDER BY hello_at
    """
    seen = rows(one_side(case, "client", tmp_path), query)
    expected = rows(CAPTURES / case / "input.pcap", query)
    for (hello, ready, request), (true_hello, true_ready, true_request) in zip(seen, expected, strict=True):
        assert (hello, request) == (true_hello, true_request)
        assert true_ready <= ready <= (request or ready)


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize("case", ENCRYPTED)
def test_time_of_an_unseen_request_is_unseen(case: str, side: Side, tmp_path: Path) -> None:
    """No wait, idle or request is invented: where the server's own data is all that tells of a request."""
    found = rows(one_side(case, side, tmp_path), "SELECT request_at, request_ns, wait_ns FROM exchanges")
    assert all((request is None) == (wait is None) or side == "client" for request, _, wait in found)
    assert all(length is not None or side == "server" for _, length, _ in found)


def test_requests_alone_tell_nothing_of_the_time_between_them(tmp_path: Path) -> None:
    """What a capture filter for requests leaves: the next request acknowledges the response, some time later."""
    requests = one_side("reverse-proxy/http-page", "client", tmp_path, "bytes > 0")
    query = "SELECT method, target, request_at FROM exchanges ORDER BY request_at"
    assert rows(requests, query) == rows(CAPTURES / "reverse-proxy/http-page/input.pcap", query)
    later = """
        SELECT count(*) FROM exchanges AS e
        JOIN exchanges AS next ON next.stream = e.stream AND next.number = e.number + 1
    """
    assert rows(requests, later) != [(0,)], "connections with several requests"
    assert rows(requests, "SELECT DISTINCT response_at, wait_ns FROM exchanges") == [(None, None)]
    assert rows(requests, "SELECT DISTINCT kind FROM phases WHERE end_at > start_at ORDER BY kind") == [("unseen",)]


def test_an_acknowledgement_after_missing_packets_tells_no_time(tmp_path: Path) -> None:
    """A request is missing, and the ACKs before it: the next one acknowledges two responses at once."""
    between = "stream = 0 AND frame > 4 AND frame < 88"
    holed = one_side("reverse-proxy/http-page", "client", tmp_path, f"NOT ({between})")
    first, last = rows(holed, "SELECT target, response_at, wait_ns FROM exchanges WHERE stream = 0 ORDER BY number")
    assert first == ("/", None, None)
    expected = rows(CAPTURES / "reverse-proxy/http-page/input.pcap", "SELECT wait_ns FROM exchanges WHERE number = 2")
    assert last[0] == "/shelf.png"
    assert last[1] is not None
    assert expected[0][0] <= last[2] < expected[0][0] + 30 * MS
    (unseen,) = rows(holed, "SELECT start_at, end_at FROM phases WHERE stream = 0 AND kind = 'unseen'")
    assert unseen == rows(holed, "SELECT min(request_at), max(request_at) FROM exchanges WHERE stream = 0")[0]


@pytest.mark.parametrize("side", ["client", "server"])
def test_the_capture_is_said_to_have_one_direction(side: Side, tmp_path: Path) -> None:
    with conchart.read(one_side("reverse-proxy/http", side, tmp_path)) as trace:
        assert dict(facts(Report(trace)))["Quality"].startswith("2 connections with one direction only: Capture both")
        titles = [remark.title for remark in remarks(trace)]
    assert "2 connections with one direction only" in titles
    assert not [title for title in titles if "acknowledged but not captured" in title], "that says nothing new"
