"""What no inference may claim, whatever encryption hides: bounds that packets set, on every capture."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import conchart
from conchart import CaptureError, Trace

CORPUS = Path(os.environ.get("CONCHART_CORPUS", "/nonexistent"))
LARGEST = 30_000_000
"""Bytes of a foreign capture that is looked at."""

SHORTEST = 24
"""Bytes of a request of HTTP/2 whose fields the request before it has told. Clients put several into one record."""
OF_TLS = "inferred AND protocol IN ('h2', 'http/1.1', 'tls')"
CONTROL = 35
"""Bytes of a WINDOW_UPDATE inside TLS 1.3: it says that something was received, and answers nothing."""
WAITS = """
    SELECT stream, start_at, end_at FROM phases JOIN exchanges USING (stream)
    WHERE phases.kind = 'wait' AND number = exchange AND exchanges.inferred AND end_at - start_at > 5_000_000_000
"""
IDLE = f"""
    WITH waits AS ({WAITS}),
    spoken AS (
        SELECT stream, waits.start_at, waits.end_at, seen_at, sender
        FROM waits JOIN packets USING (stream)
        WHERE bytes > if(sender = 'server', {CONTROL}, 1) AND seen_at < waits.end_at
            AND coalesce(mark NOT IN ('retransmit', 'keepalive'), true)),
    silences AS (
        SELECT stream, start_at, sender, seen_at,
            coalesce(lead(seen_at) OVER (PARTITION BY stream, start_at ORDER BY seen_at), end_at) AS until_at
        FROM spoken)
    SELECT stream, seen_at, until_at FROM silences
    WHERE sender = 'server' AND until_at - greatest(seen_at, start_at) > 5_000_000_000
"""
"""Silences in inferred waits of more than 5 s that the server's data began: the connection was at rest."""


def test_no_inferred_response_comes_before_its_request(every_trace: Trace) -> None:
    ((early,),) = every_trace.fetch("SELECT count(*) FROM exchanges WHERE inferred AND response_at < request_at")
    assert early == 0


def test_a_connection_has_no_more_inferred_requests_than_packets(every_trace: Trace) -> None:
    crowded = every_trace.fetch(
        """
        SELECT stream, requests, packets_client + packets_server AS packets FROM connections JOIN (
            SELECT stream, count(*) AS requests FROM exchanges WHERE inferred AND request_at IS NOT NULL
            GROUP BY stream)
        USING (stream) WHERE requests > packets
        """
    )
    assert crowded == []


def test_records_have_room_for_the_requests_that_are_inferred(every_trace: Trace) -> None:
    if not every_trace.fetch(f"SELECT stream FROM exchanges WHERE {OF_TLS} LIMIT 1"):
        pytest.skip("nothing is inferred from records")
    crowded = every_trace.fetch(
        f"""
        SELECT stream, requests, sent FROM (
            SELECT stream, count(*) AS requests FROM exchanges WHERE {OF_TLS} AND request_at IS NOT NULL
            GROUP BY stream)
        JOIN (SELECT stream, sum(greatest(1, bytes // {SHORTEST})) AS sent FROM records
            WHERE sender = 'client' AND kind = 'ApplicationData' GROUP BY stream) USING (stream)
        WHERE requests > sent
        """
    )
    assert crowded == []


@pytest.mark.thorough
@pytest.mark.skipif(not CORPUS.is_dir(), reason="CONCHART_CORPUS is not set")
@pytest.mark.parametrize(
    "name",
    sorted(path.name for path in CORPUS.glob("*.pcap*") if ".json" not in path.name)[::8] if CORPUS.is_dir() else [],
)
def test_idle_is_no_wait(name: str) -> None:
    if (CORPUS / name).stat().st_size > LARGEST:
        pytest.skip("too large")
    try:
        trace = conchart.read(CORPUS / name)
    except CaptureError:
        pytest.skip("cannot be read")
    with trace:
        assert not trace.fetch(WAITS) or trace.fetch(IDLE) == []
