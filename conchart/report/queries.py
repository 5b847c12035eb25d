"""Which questions stores were asked, by shape: how often, and what was waited for each.

In: connections, exchanges, links. Out: :class:`Query`, the costliest first. A capture without stores asks for no links.
"""

from dataclasses import dataclass

from conchart.labels.printable import endpoint
from conchart.labels.units import count_of, format_count, format_ns
from conchart.report.rows import rows
from conchart.store.sql import ASKING, STARTING
from conchart.store.tables import Tables

IS_QUERY = f"""kind = 'store' AND {ASKING} AND NOT ({STARTING}) AND request_at IS NOT NULL
    AND 'off' NOT IN (SELECT coalesce(statements, 'shape') FROM captures)"""
"""Condition on ``exchanges``: a question to a store, neither the opening of a connection nor a notification. Where
neither statements nor keys were kept, nobody knows which questions are the same."""
BY_SHAPE = f"""
    WITH queried AS (
        SELECT server_ip, server_port, protocol, shape, stream, number, request_frame, wait_ns, status
        FROM exchanges JOIN connections USING (stream) WHERE {IS_QUERY}),
    fronts AS (
        SELECT server_ip, server_port, protocol, shape, count(DISTINCT (front_stream, front_exchange)) AS fronts,
            count(DISTINCT (stream, number)) AS linked
        FROM queried JOIN links ON back_stream = stream AND back_exchange = number
        WHERE front_exchange IS NOT NULL GROUP BY ALL),
    shapes AS (
        SELECT server_ip, server_port, protocol, shape, count(*) AS count, count(wait_ns) AS waits,
            coalesce(sum(wait_ns), 0)::BIGINT AS total_ns, quantile_disc(wait_ns, 0.5) AS p50_ns,
            quantile_disc(wait_ns, 0.95) AS p95_ns, max(wait_ns) AS worst_ns,
            count(*) FILTER (status > 0) AS errors,
            min({{'less': coalesce(-wait_ns, 1), 'stream': stream, 'number': number, 'frame': request_frame}}) AS worst
        FROM queried GROUP BY ALL)
    SELECT server_ip, server_port, protocol, shape, count, waits, total_ns, p50_ns, p95_ns, worst_ns,
        worst.stream AS stream, worst.number AS exchange, worst.frame AS frame, errors,
        coalesce(fronts, 0) AS fronts, coalesce(linked, 0) AS linked,
        row_number() OVER (ORDER BY total_ns DESC, count DESC, server_ip, server_port, protocol, shape) - 1 AS place,
        count(*) OVER () AS shapes
    FROM shapes LEFT JOIN fronts USING (server_ip, server_port, protocol, shape)
"""
"""SQL: a row for each server and shape, with its ``place``; the columns of :class:`Query`."""
ALL = "SELECT shape, count(*), sum(wait_ns) FROM exchanges WHERE shape IS NOT NULL GROUP BY ALL ORDER BY 3 DESC"
"""SQL for users, which gives nearly as much of all shapes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """The queries of one shape that one server was asked."""

    server_ip: str
    server_port: int
    protocol: str
    shape: str
    count: int
    waits: int
    """Those of them with a known wait. Nobody waits for a store in a command that blocks until something happens."""
    total_ns: int
    p50_ns: int | None
    p95_ns: int | None
    worst_ns: int | None
    stream: int
    exchange: int
    frame: int | None
    """Where the longest wait is: connection, number on it, first frame of the request."""
    errors: int
    fronts: int
    """Requests in front of the store that asked it; 0 where links tell none."""
    linked: int
    """Queries that these requests caused."""
    place: int
    """Among all shapes of the capture, the longest total first."""
    shapes: int
    """How many shapes the capture has."""

    @property
    def endpoint(self) -> str:
        """Address and port of the store."""
        return endpoint(self.server_ip, self.server_port)

    @property
    def askers(self) -> str:
        """``3 requests, 25 each``; empty where links tell none."""
        if not self.fronts:
            return ""
        each = self.linked / self.fronts
        times = format_count(self.linked // self.fronts) if each == self.linked // self.fronts else f"{each:.1f}"
        return f"{count_of(self.fronts, 'request')}, {times} each"

    @property
    def brief(self) -> str:
        """``72 times, 51.3 ms in all, worst 5.35 ms``; of what is not known, nothing."""
        parts = [count_of(self.count, "time")]
        if self.worst_ns is not None:
            parts += [format_ns(self.total_ns)] if self.count == 1 else self._sums(())
        return ", ".join(parts)

    @property
    def facts(self) -> str:
        """All of it, but for the shape."""
        text = self.brief
        if self.count > 1 and self.p50_ns is not None and self.p95_ns is not None:
            sums = self._sums((("p50", self.p50_ns), ("p95", self.p95_ns)))
            text = ", ".join((count_of(self.count, "time"), *sums))
        if self.worst_ns is not None and self.frame is not None:
            text += f" (frame {self.frame})"
        if self.worst_ns is None:
            text += ", nothing to wait for"
        if self.errors:
            text += f", {count_of(self.errors, 'error')}"
        return f"{text}; asked by {self.askers}" if self.askers else text

    def _sums(self, between: tuple[tuple[str, int], ...]) -> list[str]:
        waits = (*between, ("worst", self.worst_ns or 0))
        return [f"{format_ns(self.total_ns)} in all", *(f"{name} {format_ns(ns)}" for name, ns in waits)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """One server that was asked, its costliest shapes first."""

    endpoint: str
    protocol: str
    shapes: int
    """All of the server's."""
    count: int
    total_ns: int
    queries: tuple[Query, ...]

    @property
    def rest(self) -> str:
        """``and 3 more shapes``; empty where all are told."""
        left = self.shapes - len(self.queries)
        return f"and {count_of(left, 'more shape')}" if left else ""


def are_there(tables: Tables) -> bool:
    """Whether the capture has a question to a store: only then anything is grouped."""
    return bool(tables.fetch(f"SELECT 1 FROM exchanges WHERE {IS_QUERY} LIMIT 1"))


def queries(tables: Tables, *, most: int | None = None) -> list[Query]:
    """List the queries by shape, the longest total first; of more than ``most``, the first ones."""
    limit = "" if most is None else f"LIMIT {most}"
    return [Query(**row) for row in rows(tables, f"FROM ({BY_SHAPE}) ORDER BY place {limit}")]


def stores(tables: Tables, *, most: int) -> list[Store]:
    """List the stores, the one that was waited for longest first, with the first ``most`` shapes of each."""
    by_store: dict[tuple[str, int, str], tuple[int, int, int, list[Query]]] = {}
    for row in rows(
        tables,
        f"""
        FROM (
            SELECT *, row_number() OVER (PARTITION BY server_ip, server_port, protocol ORDER BY place) AS "at",
                count(*) OVER of_store AS of_server, (sum(count) OVER of_store)::BIGINT AS total_count,
                (sum(total_ns) OVER of_store)::BIGINT AS waited_ns
            FROM ({BY_SHAPE}) WINDOW of_store AS (PARTITION BY server_ip, server_port, protocol))
        WHERE "at" <= {most} ORDER BY waited_ns DESC, server_ip, server_port, protocol, place
        """,
    ):
        _, *whole = (row.pop(name) for name in ("at", "of_server", "total_count", "waited_ns"))
        key = (row["server_ip"], row["server_port"], row["protocol"])
        by_store.setdefault(key, (*whole, []))[3].append(Query(**row))
    return [
        Store(
            endpoint=endpoint(ip, port),
            protocol=protocol,
            shapes=shapes,
            count=count,
            total_ns=waited_ns,
            queries=tuple(found),
        )
        for (ip, port, protocol), (shapes, count, waited_ns, found) in by_store.items()
    ]
