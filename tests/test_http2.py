"""HTTP/2 as tshark reads it: in the committed capture, and in those of the corpus."""

import csv
import gzip
import json
import os
from pathlib import Path

import pytest

import conchart
from tests.conftest import ROOT

CORPUS = Path(os.environ.get("CONCHART_CORPUS", "/nonexistent"))


def corpus_cases() -> list[str]:
    manifest = CORPUS / "manifest.csv"
    if not manifest.is_file():
        return []
    with manifest.open() as rows:
        return [row["file"] for row in csv.DictReader(rows) if int(row["http2_requests"] or 0) > 0]


def test_streams_of_the_committed_capture() -> None:
    with conchart.read(ROOT / "captures/h2c/parallel/input.pcap") as trace:
        found = trace.sql(
            "SELECT method, host, target, status, request_frame, response_frame, inferred FROM exchanges"
            " ORDER BY number"
        ).fetchall()
        wait = trace.sql("SELECT wait_ns / 1e6 FROM exchanges WHERE target = '/report'").fetchone()
    assert found == [
        ("GET", "127.0.0.1:8082", target, status, 4, frame, False)
        for target, status, frame in (
            ("/report", 200, 22),
            ("/style.css", 200, 6),
            ("/photo", 200, 10),
            ("/missing", 404, 16),
        )
    ]
    assert wait is not None
    assert 60 < wait[0] < 70


@pytest.mark.skipif(not corpus_cases(), reason="CONCHART_CORPUS is not set")
@pytest.mark.parametrize("name", corpus_cases())
@pytest.mark.thorough
def test_streams_of_the_corpus(name: str) -> None:
    oracle = json.loads(gzip.decompress((CORPUS / f"{name}.oracle.json.gz").read_bytes()))
    with conchart.read(CORPUS / name) as trace:
        rows = trace.sql(
            "SELECT transport_stream, protocol, method, target, status FROM exchanges JOIN connections USING (stream) "
            "WHERE protocol IN ('h2', 'grpc') AND transport = 'tcp' ORDER BY stream, number"
        ).fetchall()
    for number, stream in enumerate(oracle["streams"]):
        theirs = sorted(stream.get("http2") or [], key=lambda request: int(request["h2_stream"]))
        if not theirs:
            # tshark found no HTTP/2 where it was not told to look.
            continue
        ours = [row[1:] for row in rows if row[0] == stream.get("stream", number)]
        for (protocol, method, target, status), request in zip(ours, theirs, strict=True):
            # Of a gRPC call, our status is gRPC's own.
            assert protocol == "grpc" or status == request["status"]
            # An upgraded stream has its request in HTTP/1.1.
            assert request["method"] in (None, method)
            assert request["path"] in (None, target)
