"""DNS over TLS, HTTPS and QUIC, held against what the clients were told and against tshark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import conchart
from conchart import Trace
from tests.conftest import ROOT
from tests.tshark import ask, needs_tshark

CAPTURES = ROOT / "captures/dns"
OVER = {
    "tls": ("tls", "dns"),
    "https": ("https", "h2"),
    "https-get": ("https", "h2"),
    "http1": ("https", "http/1.1"),
    "http1-chunked": ("https", "http/1.1"),
    "http3": ("https", "h3"),
    "quic": ("quic", "dns"),
}
"""What carries the questions, and the protocol of the exchange."""
WITHIN_MS = 5
"""Between the wait in the capture and by the client's clock, which has its own work in it."""
TYPES = {"1": "A", "28": "AAAA"}

every_case = pytest.mark.parametrize("case", OVER)


@contextmanager
def opened(case: str) -> Iterator[Trace]:
    folder = CAPTURES / case
    with conchart.read(folder / "input.pcap", keylog=folder / "keys.log") as trace:
        yield trace


def truth(case: str) -> list[dict[str, Any]]:
    lookups: list[dict[str, Any]] = json.loads((CAPTURES / case / "truth.json").read_text())
    return lookups


@every_case
def test_each_question_is_one_exchange_with_its_answer(case: str) -> None:
    with opened(case) as trace:
        found = trace.sql("""
            SELECT dns_over, protocol, dns_name, dns_type, dns_rcode FROM exchanges ORDER BY request_at""").fetchall()
    assert found == [(*OVER[case], lookup["name"], lookup["type"], lookup["rcode"]) for lookup in truth(case)]


@every_case
def test_answers_take_as_long_as_the_client_says(case: str) -> None:
    with opened(case) as trace:
        waits = trace.sql("SELECT wait_ns / 1e6 FROM exchanges ORDER BY request_at").fetchall()
    # Before the first question, the client connects.
    for (wait,), lookup in list(zip(waits, truth(case), strict=True))[1:]:
        assert lookup["ms"] - WITHIN_MS <= wait <= lookup["ms"]


@pytest.mark.parametrize("case", ["tls", "https", "https-get", "http1", "http1-chunked"])
@needs_tshark
def test_tshark_has_the_same_answers_in_the_same_frames(case: str) -> None:
    folder = CAPTURES / case
    fields = ("frame.number", "dns.qry.name", "dns.qry.type", "dns.flags.rcode")
    words: list[str | Path] = [
        "-r",
        folder / "input.pcap",
        "-o",
        f"tls.keylog_file:{folder / 'keys.log'}",
        "-Y",
        "dns.flags.response == 1",
    ]
    # Wireshark has the whole message in the frame of its last byte.
    text = ask([*words, "-T", "fields", *(word for field in fields for word in ("-e", field))])
    expected = [line.split("\t") for line in text.splitlines()]
    with conchart.read(folder / "input.pcap", keylog=folder / "keys.log", packets=True) as trace:
        found = trace.sql("""
            SELECT frame, dns_name, dns_type, dns_rcode
            FROM exchanges JOIN packets ON packets.stream = exchanges.stream AND packets.seen_at = response_done_at
            ORDER BY frame""").fetchall()
    assert found == [(int(frame), name, TYPES[kind], int(code)) for frame, name, kind, code in expected]


def test_a_slow_answer_over_https_is_found_and_counted_once() -> None:
    with opened("before-http") as trace:
        found = dict(trace.sql("SELECT finding, count FROM findings").fetchall())
    # A and AAAA of one name, each an exchange of HTTP/2: their server is not slow besides.
    assert found["dns-slow"] == 2
    assert "slow-server" not in found
