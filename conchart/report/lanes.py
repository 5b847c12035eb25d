"""Which connections a text draws, and what fills their lanes. In: tables. Out: :class:`Lane`, :class:`Stretch`."""

from collections.abc import Sequence
from dataclasses import dataclass

from conchart.labels.printable import endpoint, printable
from conchart.report.axis import TimeAxis
from conchart.report.owners import who
from conchart.store.sql import COSTLIEST
from conchart.store.tables import Tables

MOST_LANES = 40


@dataclass(frozen=True, slots=True)
class Stretch:
    """A piece of a strip."""

    kind: str
    """As ``phases.kind``."""
    start: int
    """In the axis' unit, nanoseconds say."""
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One connection that is drawn; every text is safe to print."""

    stream: int
    server: str
    """Address and port."""
    names: tuple[str, ...]
    """Of the server; empty when names are not wanted or not seen."""
    owner: str
    """Who owns the server's socket; empty where nobody knows."""
    client: str
    """Who asks: the owner of the client's socket, or its address and port."""
    state: str
    lasts_ns: int
    life: Stretch
    """What is drawn where it has no phases, on the time axis."""


_COSTLIEST = f"""
    SELECT stream, server_ip, server_port FROM connections JOIN (SELECT server_ip, server_port FROM servers)
        USING (server_ip, server_port) ORDER BY {COSTLIEST} LIMIT {MOST_LANES}
"""
_LANES = f"""
    SELECT server_ip, server_port, names, stream, client_ip, client_port, state, {{opened}}, closed_at - opened_at,
        {who("client", brief=True)}, max({who("server")}) OVER (PARTITION BY server_ip, server_port)
    FROM connections JOIN (SELECT server_ip, server_port, rank, names FROM servers) USING (server_ip, server_port)
    WHERE list_contains($streams, stream) ORDER BY rank, server_ip, server_port, opened_at, stream
"""
_PHASES = """
    SELECT stream, kind, min(start_ns) AS start_ns, (min(start_ns) + sum(end_ns - start_ns))::BIGINT
    FROM (SELECT stream, kind, {start} AS start_ns, {start} + end_at - start_at AS end_ns
        FROM phases WHERE list_contains($streams, stream))
    GROUP BY stream, kind, start_ns::HUGEINT * $slots // $span, (end_ns::HUGEINT * $slots - 1) // $span
    ORDER BY stream, start_ns
"""
"""Phases of one kind in one slot become one: of a connection they do not overlap, so the slot is filled as before."""


def costliest(tables: Tables, count: int, room: int) -> list[int]:
    """Choose the connections that are drawn, the longest wait first, until there is no room for another one.

    Args:
        tables: Of the trace.
        count: How many connections there are.
        room: Lines for connections, their servers, and the count of those that are left out.
    """
    chosen: list[int] = []
    servers: set[tuple[str, int]] = set()
    for stream, *server in tables.fetch(_COSTLIEST):
        with_it = servers | {(server[0], server[1])}
        has_more = len(chosen) + 1 < count
        if chosen and len(chosen) + 1 + len(with_it) + has_more > room:
            break
        chosen.append(stream)
        servers = with_it
    return chosen


def lanes(tables: Tables, streams: Sequence[int], time: TimeAxis, *, names: bool) -> list[Lane]:
    """Give the lanes of these connections, in the order of time at each server.

    Args:
        tables: Of the trace.
        streams: The connections.
        time: The axis on which they lie.
        names: With names found in the capture, and who owns the sockets.
    """
    rows = tables.fetch(_LANES.format(opened=time.place("opened_at")), {"streams": [*streams]})
    return [
        Lane(
            stream=stream,
            server=endpoint(server_ip, server_port),
            names=tuple(map(printable, called)) if names else (),
            owner=printable(owner, limit=60) if names and owner else "",
            client=printable(asks, limit=40) if names and asks else endpoint(client_ip, client_port),
            state=state,
            lasts_ns=lasts_ns,
            life=Stretch("unseen", opened, opened + lasts_ns),
        )
        for server_ip, server_port, called, stream, client_ip, client_port, state, opened, lasts_ns, asks, owner in rows
    ]


def stretches(tables: Tables, drawn: Sequence[Lane], time: TimeAxis, slots: int) -> dict[int, list[Stretch]]:
    """Give what fills the slots of each lane: no more than a strip can show, however many phases there are."""
    found: dict[int, list[Stretch]] = {lane.stream: [] for lane in drawn}
    parameters = {"streams": list(found), "span": max(1, time.span), "slots": slots}
    for stream, kind, start, end in tables.fetch(_PHASES.format(start=time.place("start_at")), parameters):
        found[stream].append(Stretch(kind, start, end))
    return {lane.stream: found[lane.stream] or [lane.life] for lane in drawn}
