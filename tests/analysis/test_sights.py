"""Connections that were captured twice, before and behind a translation of their addresses."""

from typing import Any

import duckdb
import pytest

from conchart.analysis.sights import BESIDE_NS, MOST_SIGHTS, SKEW_NS, find_sights, first_sights, once
from conchart.store.tables import Tables
from tests.by_hand import Row, connection, tables_of

MS = 1_000_000


def sight(stream: int, opened_at: int = 0, **facts: Any) -> Row:  # noqa: ANN401
    """Give a sight of one connection; each one has a hop less to live than the one before it."""
    behind = {"client": f"10.{stream}.0.1:40000", "server": f"10.{stream}.0.9:80"}
    return connection(
        stream,
        **behind,
        **{
            "opened_at": opened_at,
            "closed_at": opened_at + 50 * MS,
            "identity": 7,
            "syn_at": opened_at,
            "syn_ack_at": 20 * MS - opened_at,
            "ttl_client": 64 - stream,
            "ttl_server": 60 + stream,
            **facts,
        },
    )


def second(*rows: Row) -> list[tuple[Any, ...]]:
    """Give the streams that are a second sight, and of which one."""
    tables = tables_of(connections=rows)
    find_sights(tables)
    return tables.fetch("SELECT stream, same_as FROM connections WHERE same_as IS NOT NULL ORDER BY stream")


def test_the_sight_on_the_clients_side_counts() -> None:
    assert second(sight(0), sight(1, MS)) == [(1, 0)]
    assert second(sight(0, MS), sight(1, 0, syn_ack_at=20 * MS)) == [(0, 1)]


def test_of_a_connection_that_the_server_opens_the_last_sight_is_on_the_clients_side() -> None:
    none: Row = {"syn_at": None, "syn_ack_at": None, "opened_by": "server"}
    assert second(sight(0, **none), sight(1, MS, **none)) == [(0, 1)]


@pytest.mark.parametrize(
    "other",
    [
        {"identity": 8},
        {"transport": "udp"},
        {"ttl_client": 64, "ttl_server": 60},
        {"closed_at": 51 * MS + BESIDE_NS},
        {"syn_ack_at": 20 * MS + SKEW_NS + 1},
        {"syn_at": -SKEW_NS - 1},
        {"packets_server": 0},
    ],
    ids=lambda facts: next(iter(facts)),
)
def test_what_no_translation_makes_is_another_connection(other: dict[str, Any]) -> None:
    assert second(sight(0), sight(1, MS, **other)) == []


@pytest.mark.parametrize(
    "other", [{"closed_at": 50 * MS + BESIDE_NS}, {"syn_ack_at": 20 * MS + SKEW_NS}, {"syn_at": -SKEW_NS}]
)
def test_clocks_of_two_interfaces_may_disagree_a_little(other: dict[str, Any]) -> None:
    assert second(sight(0), sight(1, MS, **other)) == [(1, 0)]


def test_an_attempt_that_nobody_answered_has_one_end_in_common() -> None:
    silent: Row = {"packets_server": 0, "syn_ack_at": None}
    assert second(sight(0, **silent), sight(1, MS, client_ip="10.0.0.1", **silent)) == [(1, 0)]
    assert second(sight(0, **silent), sight(1, MS, server_ip="10.0.0.9", **silent)) == [(1, 0)]


def test_what_is_said_again_much_later_is_another_connection() -> None:
    rows = [sight(number, number * BESIDE_NS, closed_at=BESIDE_NS, syn_ack_at=None) for number in (0, 1)]
    assert second(*rows) == [(1, 0)]
    late = [sight(number, number * (BESIDE_NS + 1), closed_at=BESIDE_NS, syn_ack_at=None) for number in (0, 1)]
    assert second(*late) == []


def test_instants_of_our_days_are_as_near_to_each_other() -> None:
    """Of nanoseconds since 1970, not of some around 0."""
    now = 1_800_000_000 * 10**9
    rows = [sight(number, now + number * MS, closed_at=now, syn_at=None, syn_ack_at=None) for number in (0, 1)]
    assert second(*rows) == [(1, 0)]


@pytest.mark.parametrize(("count", "sights"), [(MOST_SIGHTS, MOST_SIGHTS - 1), (MOST_SIGHTS + 1, 0)])
def test_what_many_say_alike_was_crafted(count: int, sights: int) -> None:
    assert len(second(*(sight(number, number * MS, syn_ack_at=None) for number in range(count)))) == sights


def translated() -> Tables:
    """Two sights of a connection, and another connection; each with an exchange."""
    tables = tables_of(
        connections=[sight(0), sight(1, MS), sight(2, identity=8)],
        exchanges=[{"stream": stream, "number": 0} for stream in range(3)],
    )
    find_sights(tables)
    return tables


def streams(tables: Tables) -> list[list[int]]:
    found = []
    for table in ("connections", "exchanges"):
        ((numbers,),) = tables.fetch(f"SELECT list(stream ORDER BY stream) FROM {table}")
        found.append(numbers)
    return found


def test_queries_find_each_connection_once_as_long_as_the_block_lasts() -> None:
    tables = translated()
    with first_sights(tables, ready=()):
        assert streams(tables) == [[0, 2], [0, 2]]
    assert streams(tables) == [[0, 1, 2], [0, 1, 2]]


def test_a_block_that_fails_leaves_the_tables_as_they_were() -> None:
    tables = translated()
    with pytest.raises(duckdb.CatalogException), first_sights(tables, ready=()):
        tables.fetch("FROM nowhere")
    assert streams(tables) == [[0, 1, 2], [0, 1, 2]]


def test_a_function_can_be_made_to_find_each_once() -> None:
    assert once(streams)(translated()) == [[0, 2], [0, 2]]
    assert once(streams).__name__ == "streams"
