"""What the waits at each front consist of: the parts add up, and a place in a pool is the pooler's."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from conchart.analysis.splits import split_waits
from conchart.store.tables import Tables
from tests.by_hand import connection, tables_of

FRONT, BACK = "10.0.0.1:80", "10.0.0.2:8080"
PARTS = ("proxy_in_ns", "connect_ns", "tls_ns", "request_ns", "wait_ns", "proxy_out_ns")


def linked(*waits: tuple[int, ...], unlinked: int | None = None) -> Tables:
    """Give requests at a front, each with the parts of its wait, and one without a link."""
    exchanges: list[dict[str, Any]] = []
    links: list[dict[str, Any]] = []
    for number, parts in enumerate(waits):
        link = dict(zip(PARTS, parts, strict=True))
        exchanges.append({"stream": 0, "number": number, "protocol": "http/1.1", "wait_ns": sum(parts)})
        exchanges.append({"stream": 1, "number": number, "protocol": "http/1.1", "wait_ns": link["wait_ns"]})
        ends = {"front_stream": 0, "front_exchange": number, "back_stream": 1, "back_exchange": number}
        links.append(ends | link)
    if unlinked is not None:
        exchanges.append({"stream": 0, "number": len(waits), "protocol": "http/1.1", "wait_ns": unlinked})
    tables = tables_of(
        connections=[connection(0, server=FRONT), connection(1, server=BACK)], exchanges=exchanges, links=links
    )
    split_waits(tables)
    return tables


def test_a_wait_is_divided_into_proxy_way_and_backend() -> None:
    tables = linked((10, 5, 7, 3, 60, 15), unlinked=30)
    columns = "requests, wait_ns, backend_ns, connect_ns, tls_ns, pool_ns, proxy_ns, unlinked, unlinked_ns"
    assert tables.fetch(f"SELECT server_ip, server_port, {columns} FROM splits") == [
        ("10.0.0.1", 80, 2, 130, 63, 5, 7, 0, 25, 1, 30)
    ]


def test_a_server_with_nothing_behind_it_has_no_split() -> None:
    assert linked(unlinked=30).count("splits") == 0


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 10**12)] * 6), min_size=1, max_size=4), st.none() | st.integers(0, 10**12))
def test_the_parts_add_up_to_the_waits(waits: list[tuple[int, ...]], unlinked: int | None) -> None:
    tables = linked(*waits, unlinked=unlinked)
    ((wait_ns, parts_ns),) = tables.fetch(
        "SELECT wait_ns, backend_ns + connect_ns + tls_ns + pool_ns + proxy_ns + unlinked_ns FROM splits"
    )
    assert wait_ns == parts_ns == sum(map(sum, waits)) + (unlinked or 0)


def pooled(
    freed_at: int | None, *, proxy_in: int = 40, connect: int = 0, tls: int = 0, spoken: str = "postgresql"
) -> tuple[int, int]:
    """Give the time in the pool, and the pooler's, of a statement that was sent at 1,000 ns.

    The connection that takes it was busy with another one until ``freed_at``.
    """
    tables = tables_of(
        connections=[connection(0, server=FRONT), connection(1, server=BACK)],
        exchanges=[
            {"stream": 0, "number": 0, "protocol": "postgresql", "request_done_at": 1_000, "wait_ns": 100},
            {"stream": 1, "number": 0, "protocol": spoken, "response_done_at": freed_at},
            {"stream": 1, "number": 1, "protocol": spoken, "response_done_at": 5_000},
        ],
        links=[
            {
                "front_stream": 0,
                "front_exchange": 0,
                "back_stream": 1,
                "back_exchange": 1,
                "proxy_in_ns": proxy_in,
                "connect_ns": connect,
                "tls_ns": tls,
                "request_ns": 0,
                "wait_ns": 50,
                "proxy_out_ns": 2,
            }
        ],
    )
    split_waits(tables)
    ((pool_ns, proxy_ns),) = tables.fetch("SELECT pool_ns, proxy_ns FROM splits")
    return pool_ns, proxy_ns


def test_a_statement_waits_in_the_pool_until_a_connection_is_free() -> None:
    assert pooled(1_030) == (30, 12)
    assert pooled(1_030, connect=10, tls=5) == (15, 27), "what it was set up for is no wait for a free one"


def test_no_more_is_waited_in_the_pool_than_in_the_pooler() -> None:
    assert pooled(2_000) == (40, 2)


def test_a_connection_that_was_free_already_is_not_waited_for() -> None:
    assert pooled(990) == (0, 42)
    assert pooled(None) == (0, 42)


def test_what_speaks_another_protocol_behind_itself_is_no_pooler() -> None:
    assert pooled(1_030, spoken="mysql") == (0, 42)
