"""How long clients waited for resolvers that never answered."""

from collections.abc import Sequence
from typing import Any

import pytest

from conchart.analysis.lookups import LEAST_NS, MOST_NS, wait_for_names
from conchart.store.tables import Tables
from tests.by_hand import Row, connection, tables_of

S = 1_000_000_000
SILENT, OTHER = "10.0.0.53:53", "10.0.0.54:53"


def tables_of_queries(*queries: tuple[int, str, str, bool], client: Sequence[str] = ()) -> Tables:
    """Give tables of queries, each on a port of its own: when, of which type, for what, and whether it is answered.

    The first one goes to one resolver, the others to another one.
    """
    connections: list[Row] = []
    exchanges: list[dict[str, Any]] = []
    for stream, (at, kind, name, answered) in enumerate(queries):
        who = client[stream] if client else "10.0.0.1"
        connections.append(
            connection(
                stream,
                f"{who}:{50_000 + stream}",
                OTHER if stream else SILENT,
                transport="udp",
                opened_at=at,
                closed_at=at,
                state="complete" if answered else "unanswered",
                last_frame=stream + 1,
            )
        )
        exchanges.append(
            {
                "stream": stream,
                "number": 0,
                "dns_over": "udp",
                "dns_type": kind,
                "dns_name": name,
                "request_at": at,
                "request_frame": stream + 1,
                "response_at": at + 1 if answered else None,
            }
        )
    tables = tables_of(connections=connections, exchanges=exchanges)
    wait_for_names(tables)
    return tables


def waits(tables: Tables) -> list[tuple[Any, ...]]:
    return tables.fetch("SELECT stream, kind, start_at, end_at, start_frame, end_frame FROM phases ORDER BY stream")


def abandoned(tables: Tables) -> list[tuple[Any, ...]]:
    return tables.fetch("SELECT stream, closed_at FROM connections WHERE state = 'abandoned' ORDER BY stream")


def test_a_client_waits_until_it_asks_elsewhere() -> None:
    tables = tables_of_queries((3 * S, "A", "shop.example", False), (8 * S, "A", "shop.example", True))
    assert waits(tables) == [(0, "wait", 3 * S, 8 * S, 1, 2)]
    assert abandoned(tables) == [(0, 8 * S)]
    ((closed_by, *by),) = tables.fetch(
        "SELECT closed_by, start_by, end_by, exchange, inferred FROM phases JOIN connections USING (stream)"
    )
    assert (closed_by, *by) == ("client", "client", "client", 0, True)


def test_a_query_that_is_sent_twice_from_one_port_is_waited_for_until_the_last_one_is_sent_elsewhere() -> None:
    port = {"dns_over": "udp", "dns_type": "A", "dns_name": "shop.example"}
    tables = tables_of(
        connections=[
            connection(0, server=SILENT, transport="udp", state="unanswered", closed_at=2 * S),
            connection(1, server=OTHER, transport="udp"),
        ],
        exchanges=[
            {"stream": 0, "number": 0, "request_at": 0, "request_frame": 1, **port},
            {"stream": 0, "number": 1, "request_at": 2 * S, "request_frame": 2, **port},
            {"stream": 1, "number": 0, "request_at": 7 * S, "request_frame": 3, "response_at": 8 * S, **port},
        ],
    )
    wait_for_names(tables)
    assert abandoned(tables) == [(0, 7 * S)]


@pytest.mark.parametrize(("later", "waited"), [(LEAST_NS - 1, 0), (LEAST_NS, 1), (MOST_NS, 1), (MOST_NS + 1, 0)])
def test_who_asks_at_once_does_not_wait_and_who_asks_much_later_asks_anew(later: int, waited: int) -> None:
    began = 100 * S
    tables = tables_of_queries((began, "A", "shop.example", False), (began + later, "A", "shop.example", True))
    assert len(waits(tables)) == waited


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((0, "A", "shop.example", True), (5 * S, "A", "shop.example", True)),
        ((0, "A", "shop.example", False), (5 * S, "A", "mail.example", True)),
        ((0, "A", "shop.example", False), (5 * S, "AAAA", "shop.example", True)),
        ((0, "PTR", "1.0.0.10.in-addr.arpa", False), (5 * S, "PTR", "1.0.0.10.in-addr.arpa", True)),
    ],
    ids=["answered", "another name", "another type", "reverse"],
)
def test_what_was_answered_other_questions_and_reverse_lookups_are_no_wait(
    first: tuple[int, str, str, bool], second: tuple[int, str, str, bool]
) -> None:
    assert abandoned(tables_of_queries(first, second)) == []


def test_names_are_the_same_in_upper_and_lower_case() -> None:
    assert abandoned(tables_of_queries((0, "A", "Shop.Example", False), (5 * S, "A", "shop.example", True))) == [
        (0, 5 * S)
    ]


def test_another_clients_question_ends_nobodys_wait() -> None:
    queries = ((0, "A", "shop.example", False), (5 * S, "A", "shop.example", True))
    assert abandoned(tables_of_queries(*queries, client=("10.0.0.1", "10.0.0.2"))) == []


def test_questions_side_by_side_are_waited_for_once() -> None:
    """A and AAAA go out together, and both are asked again together."""
    side = S // 1000
    tables = tables_of_queries(
        (0, "A", "shop.example", False),
        (side, "AAAA", "shop.example", False),
        (5 * S, "A", "shop.example", True),
        (5 * S + side, "AAAA", "shop.example", True),
    )
    assert waits(tables) == [(0, "wait", 0, 5 * S, 1, 3)]


def test_waits_for_one_resolver_after_the_other_touch() -> None:
    tables = tables_of_queries(*((at * S, "A", "shop.example", at == 10) for at in (0, 5, 10)))
    assert waits(tables) == [(0, "wait", 0, 5 * S, 1, 2), (1, "wait", 5 * S, 10 * S, 2, 3)]
