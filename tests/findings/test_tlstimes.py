"""Costs of slow handshakes and of pauses around them, worked out by hand from the captures."""

import pytest

import conchart

CAPTURES = "captures"


def found(capture: str, finding: str) -> tuple[int, int, int]:
    """Give how often, what it costs, and what users waited for it."""
    trace = conchart.read(f"{CAPTURES}/{capture}/input.pcap")
    rows = trace.sql("SELECT count, cost_ns, critical_ns FROM findings WHERE finding = $finding", {"finding": finding})
    (row,) = rows.fetchall()
    return row


def test_a_proxy_pays_for_its_pause_less_two_milliseconds() -> None:
    # ACK to request: 0.1 ms and 30 ms, four times; 2 ms of each are allowed.
    assert found("findings/gap-before-first-request", "gap-before-first-request") == (4, 112_400_000, 112_400_000)


def test_a_second_handshake_costs_from_its_request_by_the_server_to_its_end() -> None:
    # Frame 16 (ClientHello) at .232339180, complete at .286936742; the client answers 31.6 µs after it is asked.
    count, cost, critical = found("handshakes/curl-apache-1.2-certificate-later", "renegotiation")
    assert (count, critical) == (1, cost)
    assert cost == pytest.approx(54_600_000, abs=50_000)


def test_a_failed_handshake_costs_the_whole_attempt() -> None:
    # Frame 1 (SYN) at .591539533, frame 9 (the client's RST behind its alert) at .639451785; users waited for the TCP
    # handshake of it (10,223,962 ns), and for TLS up to the alert (34,272,512 ns).
    assert found("findings/handshake-failure", "handshake-failure") == (1, 47_912_252, 44_496_474)


def test_mail_pays_for_two_turns_in_clear() -> None:
    # EHLO and STARTTLS at 10 ms of round trip each, on three connections; the greeting comes in any case.
    count, cost, critical = found("findings/pre-tls-turns", "pre-tls-turns")
    assert (count, critical) == (6, cost)
    assert cost == pytest.approx(60_000_000, rel=0.05)
