"""What the waits at a front consist of, in words and colours. In: the table ``splits``. Out: :class:`Split`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from conchart.labels.phases import PHASE_BY_NAME
from conchart.labels.printable import endpoint
from conchart.labels.units import count_of, format_count, format_ns
from conchart.report.rows import rows
from conchart.store.sql import OUTERMOST, PRODUCTS
from conchart.store.tables import Tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One part of a wait that a link explains."""

    name: str
    """Its column in ``links`` is this and ``_ns``."""
    word: str
    title: str
    """For legends."""
    colour: str
    """As the phase behind the proxy has it; the proxy's own time and the backend's stand out from the wait's colour."""
    meaning: str


STEPS: tuple[Step, ...] = (
    Step(
        name="proxy_in",
        word="proxy",
        title="proxy, before the backend",
        colour="#2E1A47",
        meaning="the proxy itself, until the backend has the request: it thinks, queues, looks for a connection",
    ),
    Step(
        name="connect",
        word="connecting",
        title="connecting",
        colour=PHASE_BY_NAME["syn"].colour,
        meaning="TCP handshake with the backend",
    ),
    Step(
        name="tls",
        word="TLS",
        title="TLS with the backend",
        colour=PHASE_BY_NAME["tls"].colour,
        meaning="TLS handshake with the backend",
    ),
    Step(
        name="request",
        word="request",
        title="request to the backend",
        colour=PHASE_BY_NAME["request"].colour,
        meaning="sending the request to the backend",
    ),
    Step(name="wait", word="backend", title="backend", colour="#E3CBF5", meaning="waiting for the backend"),
    Step(
        name="proxy_out",
        word="proxy",
        title="proxy, after the backend",
        colour="#5A3380",
        meaning="the proxy itself, after the backend's answer",
    ),
)
"""In the order in which they come about."""


POOL_WAIT = "waiting for a pooled connection"


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The waits for a front's responses; the columns of ``splits``.

    Those are sums over requests, which wait side by side for longer than there is waiting: see :meth:`within`.
    """

    requests: int
    wait_ns: int
    backend_ns: int
    connect_ns: int
    tls_ns: int
    pool_ns: int
    """At a pooler, until a connection of its pool was free."""
    proxy_ns: int
    unlinked: int
    unlinked_ns: int
    is_outermost: bool
    """The front stands behind no other one."""
    stores: tuple[tuple[str, int], ...] = ()
    """Of an application, each server that it asks and its part of ``backend_ns``; none of other proxies."""

    def within(self, waited_ns: int) -> "Split":
        """Give the same shares of a shorter wait: of what was waited while requests were side by side."""
        if waited_ns >= self.wait_ns:
            return self

        def share(ns: int) -> int:
            return ns * waited_ns // self.wait_ns

        names = ("backend_ns", "connect_ns", "tls_ns", "pool_ns", "proxy_ns", "unlinked_ns")
        shares: dict[str, Any] = {name: share(getattr(self, name)) for name in names}
        # What rounding loses belongs to the largest part.
        shares[max(shares, key=shares.__getitem__)] += waited_ns - sum(shares.values())
        stores = tuple((words, share(ns)) for words, ns in self.stores)
        return replace(self, wait_ns=waited_ns, stores=stores, **shares)

    def parts(self) -> Iterator[tuple[str, int, str]]:
        """Give what it is, how long, and what is to be added in brackets; nothing of what took no time."""
        backends = self.stores or (("backend", self.backend_ns),)
        for words, ns, note in (
            *((words, ns, "") for words, ns in backends),
            ("connecting", self.connect_ns, ""),
            ("TLS with the backend", self.tls_ns, ""),
            (POOL_WAIT, self.pool_ns, ""),
            (f"the {'application' if self.stores else 'proxy'} itself", self.proxy_ns, ""),
            ("not linked", self.unlinked_ns, f"{format_count(self.unlinked)} of {count_of(self.requests, 'request')}"),
        ):
            if ns:
                yield words, ns, note

    def __str__(self) -> str:
        """``of 6.38 ms wait: backend 3.51 ms, connecting 96 µs, the proxy itself 2.77 ms``."""
        parts = (f"{words} {format_ns(ns)}{f' ({note})' if note else ''}" for words, ns, note in self.parts())
        return f"of {format_ns(self.wait_ns)} wait: {', '.join(parts)}"


Splits = Mapping[tuple[str, int], Split]
"""By address and port of the front."""

_STORES = """
    WITH behind AS (
        SELECT f.server_ip AS front_ip, f.server_port AS front_port, b.server_ip, b.server_port,
            any_value(e.protocol) FILTER (e.kind = 'store') AS store,
            sum(l.request_ns + l.wait_ns)::BIGINT AS ns
        FROM links l JOIN connections f ON f.stream = front_stream JOIN connections b ON b.stream = back_stream
        JOIN exchanges e ON e.stream = back_stream AND e.number = back_exchange
        WHERE proxy_in_ns IS NOT NULL GROUP BY ALL)
    SELECT front_ip, front_port, store, server_ip, server_port, ns FROM behind
    SEMI JOIN (FROM behind WHERE store IS NOT NULL) asking USING (front_ip, front_port)
    ORDER BY front_ip, front_port, ns DESC, server_ip, server_port
"""
"""What applications ask, the costliest first: a front of which at least one backend is a store is an application."""


_FRONTS = f"""
    SELECT *, coalesce((
        SELECT sum(waited_ns) FROM times
        WHERE phase = 'wait' AND times.server_ip = splits.server_ip AND times.server_port = splits.server_port
    ), 0)::BIGINT AS waited_ns,
        (server_ip, server_port) IN (SELECT (server_ip, server_port) FROM servers WHERE {OUTERMOST}) AS is_outermost
    FROM splits ORDER BY server_ip, server_port
"""


def splits(tables: Tables) -> Splits:
    """Give what the wait at each front consists of.

    An instant counts once, however many requests of a connection wait in it, as everywhere where it is told. Where
    several places were captured, there is none: what lies between a front and its backend is not the front's own time,
    but that of lines and hosts (``places.spent``).
    """
    if tables.have_places:
        return {}
    fronts = list(rows(tables, _FRONTS))
    stores: dict[tuple[str, int], list[tuple[str, int]]] = {}
    for row in rows(tables, _STORES) if fronts else ():
        name = PRODUCTS.get(row["store"], "backend")
        place = endpoint(row["server_ip"], row["server_port"])
        stores.setdefault((row["front_ip"], row["front_port"]), []).append((f"{name} {place}", row["ns"]))
    found = {}
    for row in fronts:
        key, waited_ns = (row.pop("server_ip"), row.pop("server_port")), row.pop("waited_ns")
        if waited_ns:
            found[key] = Split(**row, stores=tuple(stores.get(key, ()))).within(waited_ns)
    return found
