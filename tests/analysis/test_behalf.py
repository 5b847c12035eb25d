"""Who waits for a request: whoever sent it, unless it was made for another request."""

from typing import Any

import pytest

from conchart.analysis.behalf import SURE, find_behalf
from conchart.store.sql import OPENING
from conchart.store.tables import Tables
from tests.by_hand import Row, connection, tables_of

CLIENT, PROXY, BACK = "10.0.0.1", "10.0.0.2", "10.0.0.3"
NODES = (
    {"address": CLIENT, "node": 0},
    {"address": PROXY, "node": 1},
    {"address": PROXY, "port": 80, "node": 1},
    {"address": BACK, "port": 8080, "node": 2},
)


def talk(stream: int, *times: tuple[int, int], front: bool = False, **facts: Any) -> tuple[Row, list[Row]]:  # noqa: ANN401
    """Give a connection to the proxy (``front``) or from it, and its requests: when each begins, and is over."""
    ends = (f"{CLIENT}:{40_000 + stream}", f"{PROXY}:80") if front else (f"{PROXY}:{50_000 + stream}", f"{BACK}:8080")
    opened_at, closed_at = min(start for start, _ in times), max(end for _, end in times)
    exchanges = [
        {
            "stream": stream,
            "number": number,
            "protocol": "http/1.1",
            "request_at": start,
            "response_done_at": end,
            "confidence": 1.0,
            **facts,
        }
        for number, (start, end) in enumerate(times)
    ]
    return connection(stream, *ends, opened_at=opened_at, closed_at=closed_at), exchanges


def analysed(*talks: tuple[Row, list[Row]], links: tuple[Row, ...] = (), nodes: tuple[Row, ...] = NODES) -> Tables:
    tables = tables_of(
        connections=[row for row, _ in talks],
        exchanges=[row for _, rows in talks for row in rows],
        nodes=nodes,
        links=links,
    )
    find_behalf(tables)
    return tables


def made(tables: Tables) -> list[tuple[Any, ...]]:
    return tables.fetch("SELECT stream, exchange, front_stream, front_exchange, method FROM on_behalf ORDER BY ALL")


def link(exchange: int, confidence: float, *, stream: int = 1, front: int = 0) -> Row:
    ends = {"front_stream": 0, "front_exchange": front, "back_stream": stream, "back_exchange": exchange}
    return {**ends, "method": "order", "confidence": confidence}


FRONT = talk(0, (100, 200), front=True)
APART = talk(1, (300, 350), (400, 450), (500, 550))
"""Requests behind the proxy at times when nobody waits at it."""


def test_a_request_is_made_for_another_one_if_a_sure_link_says_so() -> None:
    assert made(analysed(FRONT, APART, links=(link(1, SURE),))) == [(1, 1, 0, 0, "link")]


def test_the_opening_is_made_for_what_the_first_request_was_made_for() -> None:
    assert made(analysed(FRONT, APART, links=(link(0, 1.0),))) == [(1, OPENING, 0, 0, "link"), (1, 0, 0, 0, "link")]


def test_a_link_that_is_not_sure_counts_where_half_of_the_requests_are_made_for_others() -> None:
    unsure = SURE - 0.01
    assert made(analysed(FRONT, APART, links=(link(1, unsure),))) == []
    linked = made(analysed(FRONT, APART, links=(link(1, unsure), link(2, unsure))))
    assert linked == [(1, 1, 0, 0, "link"), (1, 2, 0, 0, "link")]


def test_what_lies_inside_a_wait_at_the_same_machine_is_made_for_it() -> None:
    inside = talk(1, (110, 190))
    assert made(analysed(FRONT, inside)) == [(1, OPENING, 0, 0, "time"), (1, 0, 0, 0, "time")]


@pytest.mark.parametrize(("start", "end", "is_inside"), [(100, 200, True), (99, 150, False), (150, 201, False)])
def test_it_has_to_lie_inside(start: int, end: int, is_inside: bool) -> None:  # noqa: FBT001
    assert bool(made(analysed(FRONT, talk(1, (start, end))))) == is_inside


def test_time_alone_says_nothing_where_most_requests_lie_outside_of_waits() -> None:
    assert made(analysed(FRONT, talk(1, (110, 190), (300, 350), (400, 450)))) == []
    assert [row[:2] for row in made(analysed(FRONT, talk(1, (110, 190), (300, 350))))] == [(1, OPENING), (1, 0)]


def test_of_waits_side_by_side_the_one_that_began_last_and_holds_it_counts() -> None:
    fronts = (talk(0, (100, 500), front=True), talk(2, (200, 300), front=True))
    assert made(analysed(*fronts, talk(1, (210, 290))))[1] == (1, 0, 2, 0, "time")
    assert made(analysed(*fronts, talk(1, (210, 310))))[1] == (1, 0, 0, 0, "time")


@pytest.mark.parametrize("facts", [{"protocol": "dns"}, {"protocol": "unknown"}])
def test_nothing_is_made_for_what_no_program_works_on(facts: dict[str, Any]) -> None:
    assert made(analysed(talk(0, (100, 200), front=True, **facts), talk(1, (110, 190)))) == []


def test_who_only_asks_or_is_only_asked_asks_for_itself() -> None:
    apart = ({"address": PROXY, "node": 3}, *(row for row in NODES if row != NODES[1]))
    assert made(analysed(FRONT, talk(1, (110, 190)), nodes=apart)) == []


def test_a_connection_without_requests_is_made_for_others_where_most_are() -> None:
    refused = connection(3, f"{PROXY}:5", f"{BACK}:8080", state="refused", opened_at=600, closed_at=600)
    attempt: tuple[Row, list[Row]] = (refused, [])
    assert (3, OPENING, None, None, "time") in made(analysed(FRONT, talk(1, (110, 190)), attempt))


def test_under_encryption_a_response_may_be_of_any_request_on_the_connection() -> None:
    """Two requests are open at once: the first may last as long as the second."""
    times = ((100, 200), (150, 400))
    guessed = talk(0, *times, front=True, confidence=0.5)
    # The second had not begun when the request behind the proxy was sent.
    assert made(analysed(guessed, talk(1, (120, 350))))[1] == (1, 0, 0, 0, "time")
    assert made(analysed(talk(0, *times, front=True), talk(1, (120, 350)))) == []
    apart = talk(0, (100, 200), (201, 400), front=True, confidence=0.5)
    assert made(analysed(apart, talk(1, (120, 350)))) == []


def test_without_links_and_machines_of_two_sides_nothing_is_asked() -> None:
    assert analysed(FRONT, APART, nodes=()).count("on_behalf") == 0
