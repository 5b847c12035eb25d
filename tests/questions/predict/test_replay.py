"""The replay of a few connections, instant by instant. Times are milliseconds; a round trip takes 20."""

from typing import Any

import pytest

from conchart.questions.predict.change import Change
from conchart.questions.predict.model import Connection, Exchange, Talk
from conchart.questions.predict.replay import (
    KEEPALIVE_NS,
    OWN_GAPS,
    PRECONNECT_NS,
    THINKING_NS,
    Asking,
    Opening,
    Replay,
    Timeline,
    as_captured,
)

MS = 1_000_000
RTT = 20
KEEPALIVE, PRECONNECT, THINKING = (ns // MS for ns in (KEEPALIVE_NS, PRECONNECT_NS, THINKING_NS))
NEAR = Change(rtt_ns=0)
"""Every round trip that users wait for falls away."""
Times = tuple[int, int, int, int]
"""When a request begins and ends, and its response."""


def connection(stream: int, syn: int | None, *times: Times, tls: int | None = None, **facts: Any) -> Connection:  # noqa: ANN401
    """A connection that can be used after a round trip, with these exchanges; ``tls``: after a handshake so long."""
    ready = None if syn is None else syn + RTT + (tls or 0)
    accepted = None if syn is None else (syn + RTT) * MS
    sizes = facts.pop("request_bytes", 100), facts.pop("response_bytes", 100)
    timed = facts.pop("is_timed", True)
    defaults: dict[str, Any] = {
        "stream": stream, "client": "a", "server": ("10.0.0.9", 80), "name": "", "users": True, "rtt_ns": RTT * MS,
        "mss": 1460, "syn_at": None if syn is None else syn * MS, "accepted_at": accepted,
        "hello_at": None if tls is None else accepted, "ready_at": None if ready is None else ready * MS,
        "version": "TLSv1.2", "kind": "" if tls is None else "full", "round_trips": 2, "compute_ns": 0,
        "server_compute_ns": 0, "complete": tls is not None,
    }  # fmt: skip
    one = Connection(**defaults | facts)
    for number, instants in enumerate(times):
        requested, sent, answered, done = (at * MS for at in instants)
        exchange = Exchange(
            connection=one, number=number, place=number, requested_at=requested, sent_at=sent, answered_at=answered,
            done_at=done, request_bytes=sizes[0], response_bytes=sizes[1], is_timed=timed,
        )  # fmt: skip
        one.exchanges.append(exchange)
    return one


def cause(front: Exchange, *backs: Connection) -> None:
    """Let an exchange be the cause of all on these connections."""
    for back in (exchange for one in backs for exchange in one.exchanges):
        back.front = front
        front.backs.append(back)
    front.backs.sort(key=lambda back: back.done_at)


def replay(change: Change, *connections: Connection) -> Timeline:
    return Replay(Talk(connections=[*connections], unread=0), change).run()


def predicted(change: Change, *connections: Connection) -> dict[tuple[int, int], Times]:
    """Give the predicted instants of each exchange, by captured connection and number."""
    return {
        (one.connection.stream, one.number): (
            asking.requested_at // MS, asking.sent_at // MS, asking.answered_at // MS, asking.done_at // MS
        )
        for one, asking in replay(change, *connections).exchanges.items()
    }  # fmt: skip


def test_of_nothing_nothing_is_predicted() -> None:
    assert replay(NEAR) == Timeline() == as_captured(Talk(connections=[], unread=3))


def test_what_was_captured_has_its_own_instants_in_order() -> None:
    middle = connection(4, None, (5, 6, 7, 8))
    early = connection(5, 10, (40, 40, 60, 59), tls=10, kind="ticket", accepted_at=3 * MS)
    failed = connection(6, 10, tls=10, ready_at=None)
    timeline = as_captured(Talk(connections=[middle, early, failed], unread=0))
    assert timeline.openings == {
        5: Opening(
            stream=5, syn_at=10 * MS, accepted_at=10 * MS, hello_at=30 * MS, ready_at=40 * MS, resumed=True
        ),
        6: Opening(stream=6, syn_at=10 * MS, accepted_at=30 * MS, hello_at=30 * MS, ready_at=30 * MS),
    }  # fmt: skip
    assert timeline.exchanges == {
        middle.exchanges[0]: Asking(4, 5 * MS, 6 * MS, 7 * MS, 8 * MS),
        early.exchanges[0]: Asking(5, 40 * MS, 40 * MS, 60 * MS, 60 * MS),
    }


def test_without_a_change_everything_happens_when_it_did() -> None:
    front = connection(0, 0, (60, 61, 200, 210), (215, 215, 300, 310), tls=40)
    inner = connection(1, 70, (90, 95, 130, 140), client="p", users=False)
    outer = connection(2, None, (80, 80, 190, 205), client="p", users=False, multiplexed=True)
    cause(front.exchanges[0], inner, outer)
    others = connection(3, 220, (500, 530, 510, 540)), connection(4, 5), connection(5, 230, (250, 250, 250, 250))
    talk = Talk(connections=[front, inner, outer, *others], unread=0)
    assert Replay(talk, Change()).run() == as_captured(talk)


def test_what_follows_comes_as_much_sooner_as_what_it_followed() -> None:
    """Two round trips until the response, then three milliseconds on the connection, then seven until the next one."""
    first, second = connection(0, 0, (20, 20, 50, 50), (53, 53, 80, 80)), connection(1, 87, (107, 107, 140, 140))
    assert predicted(NEAR, first, second) == {
        (0, 0): (0, 0, 10, 10),
        (0, 1): (13, 13, 20, 20),
        (1, 0): (27, 27, 40, 40),
    }
    assert replay(NEAR, first, second).openings[1].syn_at == 27 * MS


def test_only_users_have_another_round_trip_and_only_where_one_was_measured() -> None:
    proxy = connection(0, 0, (20, 20, 50, 50), users=False)
    assert predicted(NEAR, proxy) == {(0, 0): (20, 20, 50, 50)}
    unmeasured = connection(0, 0, (20, 20, 50, 50), rtt_ns=None)
    assert predicted(NEAR, unmeasured) == {(0, 0): (20, 20, 50, 50)}
    assert predicted(Change(rtt_ns=50 * MS), connection(0, 0, (20, 20, 50, 50))) == {(0, 0): (50, 50, 110, 110)}


def test_an_end_that_is_not_in_the_capture_moves_no_more_than_the_request() -> None:
    unanswered = connection(0, 0, (20, 20, 30, 30), is_timed=False)
    assert predicted(NEAR, unanswered) == {(0, 0): (0, 0, 10, 10)}


@pytest.mark.parametrize(("gap", "begins"), [(OWN_GAPS * 5, 10 + OWN_GAPS * 5), (OWN_GAPS * 5 + 1, 51 + OWN_GAPS * 5)])
def test_a_client_goes_on_where_it_was_unless_another_response_came_much_closer(gap: int, begins: int) -> None:
    """Its own response ends 40 ms sooner; the other one, five before the next request, as late as it did."""
    at = 50 + gap
    own = connection(0, 0, (20, 20, 50, 50), (at, at, at + 30, at + 30))
    other = connection(1, None, (2, 2, at - 5, at - 5), rtt_ns=None)
    assert predicted(NEAR, own, other)[0, 1][0] == begins


@pytest.mark.parametrize(
    ("thinking", "busy", "sooner"),
    [(THINKING, True, 40), (THINKING + 1, False, 40), (THINKING + 1, True, 20)],
)
def test_a_client_that_does_something_else_meanwhile_does_not_think_for_long(
    thinking: int, *, busy: bool, sooner: int
) -> None:
    """Else what it does next follows what happened last: the beginning of a response that still comes."""
    at = 50 + thinking
    first, other = connection(0, 0, (20, 20, 50, 50)), connection(1, None, (30, 30, 500, 9000), rtt_ns=None)
    timeline = replay(NEAR, first, *[other] * busy, connection(2, at))
    assert timeline.openings[2].syn_at == (at - sooner) * MS


@pytest.mark.parametrize(("later", "begins"), [(0, 20), (PRECONNECT + RTT, 140), (PRECONNECT + RTT + 1, 201)])
def test_a_first_request_begins_as_long_after_its_opening_unless_it_was_opened_ahead(later: int, begins: int) -> None:
    """Without TLS the opening is over 60 ms sooner; who was not waiting for it does not send sooner either."""
    at = 80 + later
    opened = connection(0, 0, (at, at, at + 30, at + 30), tls=60)
    assert predicted(Change(tls_off=True), opened) == {(0, 0): (begins, begins, begins + 30, begins + 30)}


def test_a_handshake_of_which_too_little_is_seen_stays_as_it_is_and_is_counted() -> None:
    change = Change(rtt_ns=0, resume=True)
    unseen, failed = connection(0, 0, tls=60, round_trips=None), connection(1, 200, tls=60, ready_at=None)
    timeline = replay(change, unseen, failed, connection(2, 400, tls=60))
    lasted = {stream: (one.ready_at - one.accepted_at) // MS for stream, one in timeline.openings.items()}
    assert lasted == {0: 60, 1: 0, 2: 20}, "the last one has two round trips, one of them to resume a session"
    assert timeline.unknown_handshakes == 2
    assert replay(Change(tls_off=True), unseen).unknown_handshakes == 0


def test_a_session_is_there_when_an_earlier_handshake_is_over_of_the_same_client_and_name() -> None:
    one = connection(0, 0, tls=60)  # until 80
    others = [
        connection(1, 59, tls=60),
        connection(2, 60, tls=60),
        connection(3, 61, tls=60, client="b"),
        connection(4, 61, tls=60, name="other.example"),
        connection(5, 61, tls=60, server=("10.0.0.8", 80)),
    ]
    openings = replay(Change(resume=True), one, *others).openings
    assert [stream for stream, opening in openings.items() if opening.resumed] == [2]
    assert (openings[1].ready_at, openings[2].ready_at) == (139 * MS, 120 * MS), "a round trip less"
    incomplete = connection(0, 0, tls=60, complete=False)
    assert not replay(Change(resume=True), incomplete, others[1]).openings[2].resumed


def visit(stream: int, syn: int, **facts: Any) -> Connection:  # noqa: ANN401
    """A connection whose one response is over 50 ms after its SYN."""
    return connection(stream, syn, (syn + 20, syn + 20, syn + 50, syn + 50), **facts)


def carriers(*connections: Connection) -> dict[int, int]:
    """Give what carries each connection where all are kept open."""
    openings = replay(Change(keepalive=True), *connections).openings
    assert all(one.reused == (one.stream != stream) for stream, one in openings.items())
    return {stream: one.stream for stream, one in openings.items()}


def test_a_connection_carries_the_next_one_of_the_same_client_server_and_name() -> None:
    assert carriers(visit(0, 0), visit(1, 100), visit(2, 200)) == {0: 0, 1: 0, 2: 0}
    assert carriers(visit(0, 0), visit(1, 100, client="b")) == {0: 0, 1: 1}
    assert carriers(visit(0, 0), visit(1, 100, name="b.example")) == {0: 0, 1: 1}
    assert carriers(visit(0, 0), visit(1, 100, server=("10.0.0.9", 81))) == {0: 0, 1: 1}
    assert carriers(visit(0, 0, multiplexed=True), visit(1, 100)) == {0: 0, 1: 1}
    assert carriers(visit(0, 0), connection(1, 100)) == {0: 0, 1: 1}, "it carries no request"
    assert predicted(Change(keepalive=True), visit(0, 0), visit(1, 100)) == {
        (0, 0): (20, 20, 50, 50),
        (1, 0): (100, 100, 130, 130),
    }


def test_a_connection_is_used_again_from_the_end_of_its_response_for_as_long_as_it_is_kept() -> None:
    assert carriers(visit(0, 0), visit(1, 49)) == {0: 0, 1: 1}
    assert carriers(visit(0, 0), visit(1, 50)) == {0: 0, 1: 0}
    assert carriers(visit(0, 0), visit(1, 50 + KEEPALIVE)) == {0: 0, 1: 0}
    assert carriers(visit(0, 0), visit(1, 51 + KEEPALIVE)) == {0: 0, 1: 1}
    assert carriers(visit(0, 0), visit(1, 10), visit(2, 100)) == {0: 0, 1: 1, 2: 1}, "the one that was used last"
    assert carriers(visit(0, 0), visit(1, 10), visit(2, 100), visit(3, 101)) == {0: 0, 1: 1, 2: 1, 3: 0}


def proxied(*backs: Connection) -> Connection:
    """A front whose client asks at 20, is answered from 200 to 210, and whose proxy asks others meanwhile."""
    front = connection(9, 0, (20, 20, 200, 210))
    cause(front.exchanges[0], *backs)
    return front


def test_a_front_is_answered_as_long_after_what_it_waited_for_as_it_was() -> None:
    """The backend's connection is kept, which saves the second one's opening and 20 ms of the front's wait."""
    first = connection(0, 30, (50, 50, 90, 100), client="p", users=False)
    second = connection(1, 110, (130, 130, 170, 190), client="p", users=False)
    assert predicted(Change(keepalive=True), proxied(first, second), first, second) == {
        (9, 0): (20, 20, 180, 190),
        (0, 0): (50, 50, 90, 100),
        (1, 0): (110, 110, 150, 170),
    }


def test_what_a_front_caused_begins_as_long_after_its_request_as_it_did() -> None:
    back = connection(0, 30, (50, 50, 90, 100), client="p", users=False)
    timeline = replay(NEAR, proxied(back), back)
    assert timeline.openings[0].syn_at == 10 * MS
    assert timeline.exchanges[back.exchanges[0]] == Asking(0, 30 * MS, 30 * MS, 70 * MS, 80 * MS)


def test_a_front_that_hands_on_what_it_gets_ends_as_long_after_it_and_waits_for_its_beginning() -> None:
    """What ends after the front's last byte is not waited for to the end."""
    before = connection(0, 30, (50, 50, 90, 100), client="p", users=False)
    streamed = connection(1, 110, (130, 130, 190, 205), client="p", users=False)
    assert predicted(Change(keepalive=True), proxied(before, streamed), before, streamed)[9, 0] == (
        20, 20, 180, 190,
    )  # fmt: skip
    late = connection(1, 110, (130, 130, 205, 400), client="p", users=False)
    assert predicted(Change(keepalive=True), proxied(before, late), before, late)[9, 0] == (20, 20, 200, 210)


def test_a_server_that_answers_before_it_has_the_request_still_does() -> None:
    """Also where the rest of the request comes sooner, because nothing of it is held back."""
    early = connection(0, 0, (20, 100, 60, 120), held=[(30 * MS, 60 * MS, True)])
    assert predicted(Change(), early) == {(0, 0): (20, 100, 60, 120)}
    assert predicted(Change(nodelay=True), early) == {(0, 0): (20, 70, 60, 120)}


@pytest.mark.parametrize(
    ("size", "took", "takes"),
    [(14_480, 20, 20), (14_481, 20, 50), (14_481, 9, 9), (14_481, 10, 40), (50_000, 40, 100)],
)
def test_a_response_takes_as_many_round_trips_as_its_window_makes_it(size: int, took: int, takes: int) -> None:
    """Ten segments are sent at once; what took less than half a round trip did not wait for one."""
    large = connection(0, 0, (20, 20, 50, 50 + took), response_bytes=size)
    _, _, answered, done = predicted(Change(rtt_ns=50 * MS), large)[0, 0]
    assert (answered, done - answered) == (110, takes)


def test_what_is_held_back_falls_away_or_waits_for_the_new_round_trip() -> None:
    def done(change: Change) -> list[int]:
        held = [(30 * MS, 60 * MS, True)]
        ((times),) = predicted(change, connection(0, 0, (20, 70, 100, 100), held=held)).values()
        return [*times]

    assert done(Change(nodelay=True)) == [20, 40, 70, 70]
    assert done(Change(nodelay=True, server="10.0.0.8")) == [20, 70, 100, 100]
    assert done(Change(rtt_ns=0)) == [0, 30, 40, 40], "opening, what was held, and the answer: a round trip each"
