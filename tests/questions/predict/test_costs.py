"""What the parts of a connection cost under a change, worked out by hand."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conchart.questions.predict.change import Change
from conchart.questions.predict.costs import (
    INITIAL_WINDOW,
    MINIMUM_RTO_NS,
    TIMESTAMPS,
    Handshake,
    Window,
    handshake,
    held_within,
    learn_compute,
)
from conchart.questions.predict.model import Connection

MS = 1_000_000
RTT = 20 * MS
SERVER = ("10.0.0.9", 443)


def connection(**facts: Any) -> Connection:  # noqa: ANN401
    """A full handshake of TLS 1.2: two round trips of 20 ms, 10 ms of computing (6 by the server), 3 ms unknown."""
    defaults: dict[str, Any] = {
        "stream": 0, "client": "10.0.0.1", "server": SERVER, "name": "", "users": True, "rtt_ns": RTT, "mss": 1460,
        "syn_at": 0, "accepted_at": RTT, "hello_at": 100 * MS, "ready_at": 153 * MS, "version": "TLSv1.2",
        "kind": "full", "round_trips": 2, "compute_ns": 10 * MS, "server_compute_ns": 6 * MS, "complete": True,
    }  # fmt: skip
    return Connection(**defaults | facts)


def priced(change: Change, *, rtt: int = RTT, has_session: bool = True, seen: Any = None, **facts: Any) -> Handshake:  # noqa: ANN401
    return handshake(connection(**facts), change, rtt, has_session=has_session, resumed_compute=seen or {})


MODERN: dict[str, Any] = {"version": "TLSv1.3", "round_trips": 1, "ready_at": 133 * MS}


@pytest.mark.parametrize(
    ("change", "facts", "ms"),
    [
        (Change(), {}, 53),
        (Change(tls13=True), {}, 33),
        (Change(tls13=True), MODERN, 33),
        # 3 ms that nobody can say, a fifth of 10 ms, and one round trip.
        (Change(resume=True), {}, 3 + 2 + 20),
        # Two fifths in TLS 1.3, which takes one round trip in any case.
        (Change(resume=True), MODERN, 3 + 4 + 20),
        (Change(resume=True, tls13=True), {}, 3 + 4 + 20),
        (Change(resume=True), {"kind": "ticket"}, 53),
    ],
)
def test_a_handshake_is_made_of_round_trips_computing_and_the_rest(change: Change, facts: Any, ms: int) -> None:  # noqa: ANN401
    assert priced(change, **facts).tls_ns == ms * MS


def test_round_trips_are_as_long_as_they_will_be() -> None:
    assert priced(Change(), rtt=RTT + 5 * MS).tls_ns == 63 * MS
    assert priced(Change(), rtt=0).tls_ns == 13 * MS


def test_without_a_session_nothing_is_resumed() -> None:
    assert priced(Change(resume=True), has_session=False) == Handshake(53 * MS, 0, resumed=False)
    assert priced(Change(resume=True)).resumed


def test_what_resumed_handshakes_computed_in_the_capture_others_would() -> None:
    assert priced(Change(resume=True), seen={(SERVER, False): 7 * MS}).tls_ns == (3 + 7 + 20) * MS
    assert priced(Change(resume=True), seen={(SERVER, True): 7 * MS}).tls_ns == (3 + 2 + 20) * MS
    assert priced(Change(resume=True), seen={(SERVER, False): 90 * MS}).tls_ns == (3 + 10 + 20) * MS, (
        "no more than it did"
    )


def test_with_0_rtt_the_first_request_waits_for_nothing_but_the_servers_computing() -> None:
    change = Change(zero_rtt=True, resume=True)
    assert priced(change, **MODERN) == Handshake(0, 4 * MS, resumed=True)
    assert priced(change, **MODERN, has_session=False) == Handshake(33 * MS, 0, resumed=False)
    assert priced(change) == Handshake(25 * MS, 0, resumed=True), "TLS 1.2 has none"
    assert priced(change, **MODERN, kind="psk-0rtt").tls_ns == 33 * MS, "it did so already"


HELD = [(110 * MS, 130 * MS, True)]
"""A segment of the handshake waits for a delayed acknowledgement for a round trip."""


def test_what_is_held_back_is_sent_at_once_or_waits_for_the_new_round_trip() -> None:
    facts: dict[str, Any] = {"held": HELD, "ready_at": 173 * MS}
    assert priced(Change(), **facts).tls_ns == 73 * MS
    assert priced(Change(nodelay=True), **facts).tls_ns == 53 * MS
    assert priced(Change(), rtt=RTT + 5 * MS, **facts).tls_ns == (73 + 2 * 5 + 5) * MS


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 200, (20, 1)),
        (115, 200, (15, 1)),
        (121, 200, (9, 0)),
        (120, 200, (10, 0)),
        (0, 110, (0, 0)),
        (130, 200, (0, 0)),
        (112, 124, (12, 1)),
    ],
)
def test_a_segment_counts_as_held_where_more_than_half_of_it_is(
    start: int, end: int, expected: tuple[int, int]
) -> None:
    held_ns, times = held_within(connection(held=HELD), start * MS, end * MS)
    assert (held_ns // MS, times) == expected


def test_stretches_are_those_of_the_capture_point_and_instants_the_clients() -> None:
    away = connection(held=HELD, carried_ns=10 * MS)
    assert held_within(away, 90 * MS, 118 * MS) == (18 * MS, 1)


def test_where_the_window_holds_segments_back_too_only_late_acknowledgements_count() -> None:
    held = [*HELD, (140 * MS, 150 * MS, False)]
    assert held_within(connection(held=held), 0, 200 * MS) == (30 * MS, 2)
    assert held_within(connection(held=held), 0, 200 * MS, windowed=True) == (20 * MS, 1)


def test_what_a_server_computes_in_resumed_handshakes_is_their_median() -> None:
    seen = [connection(kind="ticket", compute_ns=ns) for ns in (1, 5, 9)]
    seen += [
        connection(kind="psk", version="TLSv1.3", compute_ns=3),
        connection(kind="ticket", compute_ns=0),
        connection(kind="ticket", compute_ns=999, complete=False),
        connection(compute_ns=999),
        connection(kind="ticket", compute_ns=40, server=("10.0.0.8", 443)),
    ]
    assert learn_compute(seen) == {(SERVER, False): 5, (SERVER, True): 3, (("10.0.0.8", 443), False): 40}


MSS = 1460
SEGMENT = MSS - TIMESTAMPS


@pytest.mark.parametrize(("segments", "rounds"), [(0, 0), (1, 0), (10, 0), (11, 1), (30, 1), (31, 2), (70, 2), (71, 3)])
def test_a_window_doubles_with_each_round_trip(segments: int, rounds: int) -> None:
    assert Window().send(segments * SEGMENT, 0, 0, MSS, RTT) == rounds
    assert Window().send(segments * SEGMENT + 1, 0, 0, MSS, RTT) == rounds + (segments in (10, 30, 70))


def test_a_window_that_idles_for_a_timeout_halves_down_to_the_first_one() -> None:
    timeout = RTT + MINIMUM_RTO_NS
    for silent, segments in ((0, 40), (timeout, 40), (timeout + 1, 20), (2 * timeout + 1, 10), (99 * timeout, 10)):
        window = Window(segments=40, used_at=0)
        window.send(0, silent, silent, MSS, RTT)
        assert window.segments == segments
    assert INITIAL_WINDOW == 10


@given(st.lists(st.integers(0, 10**7), max_size=6))
def test_more_is_sent_at_once_on_a_connection_that_was_used(sizes: list[int]) -> None:
    window = Window()
    for size in sizes:
        fresh, before = Window().send(size, 0, 0, MSS, RTT), window.segments
        assert window.send(size, 0, 0, MSS, RTT) <= fresh
        assert window.segments >= before
