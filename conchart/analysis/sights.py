"""Connections that were captured twice: before and behind a translation of their addresses.

In: connections, as the core filled them. Out: ``connections.same_as``.

A machine that translates addresses (NAT, a load balancer of the fourth layer) and is captured on all its interfaces
shows each connection with two pairs of addresses. Nobody waits twice for it, so the second sight counts nowhere: it
is a row of its own in ``connections``, with its exchanges and phases, which names the one that counts.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

import duckdb

from conchart.store.sql import FIRST_SIGHT
from conchart.store.tables import Tables

BESIDE_NS = 100_000_000
"""A translated packet follows within this time, as a packet that was captured elsewhere does
(``docs/decisions/copies-are-not-retransmissions.md``)."""
SKEW_NS = 20_000
"""Clocks of two interfaces may disagree by so much."""
MOST_SIGHTS = 8
"""Of one connection; what more of them have alike was crafted or replayed."""

# The sight on the clients' side counts: what a client sends passes there first, what a server sends last.
#
# Behind the translation, a SYN is seen later and its answer earlier: a handshake that does not lie inside the other one
# is of another connection.
#
# An identity tells what the packets say, whatever their addresses. Crafted connections say the same, one after another
# or side by side: those of one network card, with equal hop limits, are as many connections. Datagrams say less, and a
# client that asks two servers the same at once is no translation: whoever translates is a router, which counts the hop
# limit down. An attempt that nobody answered has no number but the client's.
_SIGHTS = f"""
    UPDATE connections SET same_as = repeated.first_stream FROM (
        WITH alike AS (
            SELECT stream, transport, identity, opened_at, opened_by, closed_at, syn_at, syn_ack_at,
                client_ip, client_port, server_ip, server_port,
                packets_server, ttl_client, ttl_server, mac_client, mac_server, tunnel_client, tunnel_server,
                coalesce(opened_at - lag(opened_at) OVER same <= {BESIDE_NS}, false) AS goes_on
            FROM connections
            WINDOW same AS (PARTITION BY transport, identity ORDER BY opened_at, stream)
            QUALIFY count(*) OVER (PARTITION BY transport, identity) > 1),
        grouped AS (
            SELECT *, sum((NOT goes_on)::INTEGER) OVER (
                PARTITION BY transport, identity ORDER BY opened_at, stream) AS part
            FROM alike),
        sights AS (
            SELECT *, first_value(stream) OVER together AS first_stream, count(*) OVER together AS sights
            FROM grouped
            WINDOW together AS (
                PARTITION BY transport, identity, part
                ORDER BY if(opened_by = 'server', -opened_at, opened_at), stream
                ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING))
        SELECT other.stream, other.first_stream
        FROM sights other JOIN sights first ON first.stream = other.first_stream
        WHERE other.stream <> other.first_stream AND other.sights <= {MOST_SIGHTS}
            AND abs(other.closed_at - first.closed_at) <= {BESIDE_NS}
            AND coalesce(other.syn_at >= first.syn_at - {SKEW_NS} AND other.syn_ack_at <= first.syn_ack_at + {SKEW_NS},
                true)
            AND CASE WHEN other.transport = 'udp'
                THEN (other.ttl_client, other.ttl_server) IS DISTINCT FROM (first.ttl_client, first.ttl_server)
                ELSE (other.ttl_client, other.ttl_server, other.mac_client, other.mac_server, other.tunnel_client,
                    other.tunnel_server) IS DISTINCT FROM (first.ttl_client, first.ttl_server, first.mac_client,
                    first.mac_server, first.tunnel_client, first.tunnel_server) END
            AND (other.packets_server > 0
                OR (other.client_ip, other.client_port) = (first.client_ip, first.client_port)
                OR (other.server_ip, other.server_port) = (first.server_ip, first.server_port))) repeated
    WHERE connections.stream = repeated.stream
"""


def find_sights(tables: Tables) -> None:
    """Fill ``connections.same_as``."""
    tables.execute(_SIGHTS)


_OF_STREAMS = ("exchanges", "handshakes", "phases", "phase_stalls", "stalls")
"""Tables whose rows are of a connection, besides ``connections``."""
_OF_ALL_SIGHTS = ("changes", "crossings", "disorders", "losses", "remarks", "phase_places")
"""Tables that are worked out from second sights, too."""


@contextmanager
def first_sights(tables: Tables, ready: Iterable[str] = _OF_ALL_SIGHTS) -> Iterator[None]:
    """Let queries find each connection once, as long as the block lasts: by temporary views of the tables' names.

    So no rule, and no other query that counts or compares connections, has to know of second sights.

    Args:
        tables: The tables.
        ready: What is worked out from second sights, too, and so before they are hidden; a step says nothing, because
            what it reads is there.
    """
    if tables.hides_sights or not tables.has_rows("SELECT stream FROM connections WHERE same_as IS NOT NULL"):
        yield
        return
    tables.provide(*ready)
    for table in _OF_STREAMS:  # What is not worked out yet is, as long as the names are those of tables.
        tables.fetch(f"FROM {table} LIMIT 0")
    ((database,),) = tables.fetch("SELECT current_database()")
    stored = f'"{database}".main'
    seen = f"SELECT stream FROM {stored}.connections WHERE {FIRST_SIGHT}"
    tables.execute(f"CREATE TEMP VIEW connections AS FROM {stored}.connections WHERE {FIRST_SIGHT}")
    for table in _OF_STREAMS:
        tables.execute(f"CREATE TEMP VIEW {table} AS FROM {stored}.{table} WHERE stream IN ({seen})")
    tables.hides_sights = True
    try:
        yield
    finally:
        tables.hides_sights = False
        # Where a query failed inside a transaction, nothing can be dropped, and the transaction is rolled back.
        with suppress(duckdb.Error):
            for table in ("connections", *_OF_STREAMS):
                tables.execute(f"DROP VIEW temp.{table}")


_Others = ParamSpec("_Others")
_Result = TypeVar("_Result")


def once(tell: Callable[Concatenate[Tables, _Others], _Result]) -> Callable[Concatenate[Tables, _Others], _Result]:
    """Let a function find each connection of its tables once: see :func:`first_sights`."""

    @wraps(tell)
    def telling(tables: Tables, *args: _Others.args, **options: _Others.kwargs) -> _Result:
        with first_sights(tables):
            return tell(tables, *args, **options)

    return telling  # type: ignore[return-value]  # wraps() has a type of its own
