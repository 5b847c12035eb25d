"""The reverse proxy: how many connections, how far, how long."""

from __future__ import annotations

import pytest

from tests.captures_are_real.seen import (
    ACK,
    CHANGE_CIPHER_SPEC,
    FIN,
    FLAWS,
    LAB_CASES,
    MS,
    PRE_SHARED_KEY,
    SUPPORTED_VERSIONS,
    SYN,
    TLS_CASES,
    answered_at,
    back,
    extensions,
    finished_at,
    front,
    handshake_share,
    hello,
    wireshark,
)


@pytest.mark.parametrize(
    ("case", "client_connections", "backend_connections"),
    [
        ("http", 1, 1),
        ("http-page", 1, 3),
        ("https", 1, 1),
        ("https-slow-client", 1, 1),
        ("https-no-keepalive", 3, 3),
        ("https-keepalive", 1, 3),
    ],
)
def test_each_leg_has_as_many_connections_as_its_story(
    case: str, client_connections: int, backend_connections: int
) -> None:
    assert (len(front(case)), len(back(case))) == (client_connections, backend_connections)


@pytest.mark.parametrize("case", LAB_CASES)
def test_every_connection_is_whole_and_nothing_was_sent_twice(case: str) -> None:
    for connection in front(case) + back(case):
        assert connection.segments[0].tcp.flags & (SYN | ACK) == SYN
        for end in (connection.client, connection.server):
            assert any(segment.tcp.flags & FIN for segment in connection.sent_by(end))
            assert len(connection.stream(end)[0]) == sum(len(each.data) for each in connection.sent_by(end))


@pytest.mark.parametrize("case", LAB_CASES)
def test_network_of_the_laboratory_is_flawless(case: str) -> None:
    frames = wireshark(f"reverse-proxy/{case}")
    assert [frames[f"tcp.analysis.{flaw}"] for flaw in FLAWS] == [[]] * len(FLAWS)


@pytest.mark.parametrize("case", LAB_CASES)
def test_backend_speaks_http_1_0_once_per_connection(case: str) -> None:
    for connection in back(case):
        request, response = (connection.stream(end)[0] for end in (connection.client, connection.server))
        assert request.startswith(b"GET /")
        assert request.count(b"GET /") == 1
        head, _, body = response.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.0 200 OK\r\n")
        assert f"Content-Length: {len(body)}".encode() in head


@pytest.mark.parametrize("case", LAB_CASES)
def test_client_is_10_ms_away_and_backend_is_not(case: str) -> None:
    for leg, least, most in ((front(case), 10 * MS, 13 * MS), (back(case), 0, MS)):
        for connection in leg:
            syn, syn_ack, ack = connection.segments[:3]
            assert least <= ack.at - syn.at < most
            assert syn_ack.at - syn.at < MS


@pytest.mark.parametrize("case", LAB_CASES)
def test_each_backend_connection_serves_within_one_client_connection(case: str) -> None:
    for behind in back(case):
        (around,) = (each for each in front(case) if each.opened_at < behind.opened_at < answered_at(each))
        assert answered_at(behind) < answered_at(around)


def test_http_page_keeps_one_client_connection_for_three_requests() -> None:
    (connection,) = front("http-page")
    assert connection.stream(connection.client)[0].count(b" HTTP/1.1\r\n") == 3
    assert connection.stream(connection.server)[0].count(b"HTTP/1.1 200 OK\r\n") == 3


@pytest.mark.parametrize("case", TLS_CASES)
def test_every_handshake_is_full_and_tls_1_3(case: str) -> None:
    for connection in front(case):
        offer, choice = (extensions(hello(connection, end)) for end in (connection.client, connection.server))
        assert choice[SUPPORTED_VERSIONS] == b"\x03\x04"
        assert PRE_SHARED_KEY not in offer
        assert PRE_SHARED_KEY not in choice


@pytest.mark.parametrize("case", TLS_CASES)
def test_backend_hears_nothing_before_the_handshake_ends(case: str) -> None:
    for connection in front(case):
        assert not [each for each in back(case) if connection.opened_at < each.opened_at <= finished_at(connection)]


def test_slow_client_spends_four_fifths_of_its_time_in_the_handshake() -> None:
    assert handshake_share("https-slow-client") >= 0.8


def test_fast_client_spends_half_of_its_time_in_the_handshake_at_most() -> None:
    assert handshake_share("https") <= 0.5


def test_one_line_of_configuration_saves_a_third_of_the_page() -> None:
    before, after = (
        max(map(answered_at, front(case))) - front(case)[0].opened_at
        for case in ("https-no-keepalive", "https-keepalive")
    )
    assert before - after > 100 * MS
    assert after < before * 2 / 3


@pytest.mark.parametrize("case", ["https-no-keepalive", "https-keepalive"])
def test_wget_waits_in_each_handshake_for_a_delayed_acknowledgement(case: str) -> None:
    for connection in front(case):
        change, finished = (
            segment
            for segment in connection.data_sent_by(connection.client)[1:3]  # after the ClientHello
        )
        assert change.data[0] == CHANGE_CIPHER_SPEC
        assert finished.at == finished_at(connection)
        heard = next(each for each in connection.sent_by(connection.server) if each.at > change.at)
        assert not heard.data
        assert heard.at - change.at > 35 * MS
        assert finished.at - heard.at > 10 * MS, "a round trip, as it had to wait for this acknowledgement"
