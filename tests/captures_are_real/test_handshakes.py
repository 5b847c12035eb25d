"""Handshakes, round trips and HTTP/2: what stands beside the captures."""

from __future__ import annotations

import pytest

from tests.captures_are_real.seen import (
    CAPTURES,
    HANDSHAKE_CASES,
    MULTIPLEXED_CASES,
    ROUND_TRIP_CASES,
    tshark_fields,
)


@pytest.mark.parametrize("case", HANDSHAKE_CASES + MULTIPLEXED_CASES)
def test_secrets_are_beside_the_capture(case: str) -> None:
    assert (CAPTURES / case / "keys.log").is_file()


@pytest.mark.parametrize("case", ROUND_TRIP_CASES)
def test_truth_is_beside_the_capture(case: str) -> None:
    assert (CAPTURES / case / "truth.json").is_file()


def test_captures_of_handshakes_stay_small_together() -> None:
    cases = HANDSHAKE_CASES + ROUND_TRIP_CASES
    assert sum((CAPTURES / case / "input.pcap").stat().st_size for case in cases) < 4_000_000


def test_transum_takes_a_session_ticket_for_the_response() -> None:
    case = "handshakes/rustls-nginx-1.3-ticket-or-response"
    transum = ["--enable-protocol", "transum", "-o", "transum.tcp_port_ranges:443", "-Y", "transum.st"]
    times = {
        int(frame): float(s) for frame, s in tshark_fields(case, *transum, "-e", "frame.number", "-e", "transum.st")
    }
    rows = tshark_fields(case, "-Y", "http", "-e", "frame.number", "-e", "frame.time_epoch")
    (request, request_at), (_, response_at) = ((int(frame), float(at)) for frame, at in rows)
    assert times[request] < 0.0005
    assert response_at - request_at > 0.002


FRESH = [
    f"multiplexed/{name}"
    for name in (
        "chromium-apache-later",
        "chromium-haproxy-shop",
        "curl-haproxy-upload",
        "go-haproxy-walks",
        "h2load-haproxy-six",
        "java-haproxy-walk",
    )
]
"""Made when the reading of the others stood: they take part in no half."""
HALVED = [case for case in MULTIPLEXED_CASES if case not in FRESH]
HELD_OUT = HALVED[1::2]


def test_captures_of_http_2_stay_small_together() -> None:
    assert sum((CAPTURES / case / "input.pcap").stat().st_size for case in MULTIPLEXED_CASES) < 3_000_000


def test_each_client_meets_each_server_in_both_halves() -> None:
    halves = (HELD_OUT, [case for case in HALVED if case not in HELD_OUT])
    pairs = [{tuple(case.removeprefix("multiplexed/").split("-")[:2]) for case in half} for half in halves]
    assert pairs[0] == pairs[1]
    assert len(pairs[0]) == 5 * 3


@pytest.mark.parametrize("case", MULTIPLEXED_CASES)
def test_readme_says_whether_a_case_is_held_out_or_fresh(case: str) -> None:
    page = (CAPTURES / case / "README.md").read_text()
    assert ("\n**Held out**" in page, "\n**Fresh**" in page) == (case in HELD_OUT, case in FRESH)
