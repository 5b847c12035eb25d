"""The lanes of both captures, to be drawn side by side: each on its own clock, which starts at its first packet.

In: the tables of a capture, the servers compared. Out: :class:`Lanes`. Of many connections, those are there whose users
waited the longest, in the order in which they were opened.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from conchart.labels.printable import endpoint
from conchart.labels.stalls import DETAIL, LISTED, StallKind, stall_kind
from conchart.questions.compare.samples import Endpoint
from conchart.report.axis import time_axis
from conchart.store.sql import COSTLIEST
from conchart.store.tables import Tables

MOST_LANES = 24
MOST_PHASES = 2_000
"""Of one lane, and of its stalls; what comes after them is not drawn."""

_LANES = f"""
    WITH compared AS (
        SELECT unnest($ips::VARCHAR[]) AS server_ip, unnest($ports::INTEGER[]) AS server_port,
            unnest(range(len($ips))) AS number)
    SELECT * FROM (
        SELECT number, stream, client_ip, client_port, {{opened}} AS start_ns,
            {{opened}} + closed_at - opened_at AS end_ns
        FROM connections JOIN compared USING (server_ip, server_port) ORDER BY {COSTLIEST} LIMIT {MOST_LANES})
    ORDER BY number, start_ns, stream
"""
_COUNT = "SELECT count(*) FROM connections"
_PHASES = f"""
    SELECT stream, kind, {{start}}, {{start}} + end_at - start_at, inferred
    FROM phases WHERE list_contains($streams, stream)
    QUALIFY row_number() OVER (PARTITION BY stream ORDER BY start_at, end_at, start_frame) <= {MOST_PHASES}
    ORDER BY stream, start_at, end_at, start_frame
"""

_STALLS = f"""
    SELECT stream, kind, {DETAIL}, {{start}}, {{start}} + end_at - start_at
    FROM {LISTED} WHERE list_contains($streams, stream)
    QUALIFY row_number() OVER (PARTITION BY stream ORDER BY start_at, end_at) <= {MOST_PHASES}
    ORDER BY stream, start_at, end_at
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A phase of a lane; nanoseconds since the first packet."""

    kind: str
    start_ns: int
    end_ns: int
    inferred: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One connection; nanoseconds since the first packet."""

    server: int
    """Its place among the servers compared."""
    stream: int
    client: str
    start_ns: int
    end_ns: int
    pieces: tuple[Piece, ...]
    stalls: tuple[tuple[StallKind, int, int], ...]
    """Where the next byte did not come: from, to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """What is drawn of one capture."""

    drawn: tuple[Lane, ...]
    besides: int
    """How many connections there are that are not drawn."""


def lanes(tables: Tables, compared: Sequence[Endpoint]) -> Lanes:
    """Give the lanes, ordered by server and start."""
    axis = time_axis(tables)
    opened, start = axis.place("opened_at"), axis.place("start_at")
    ((count,),) = tables.fetch(_COUNT)
    ips, ports = [ip for ip, _ in compared], [port for _, port in compared]
    rows = tables.fetch(_LANES.format(opened=opened), {"ips": ips, "ports": ports})
    pieces: dict[int, list[Piece]] = {row[1]: [] for row in rows}
    for stream, kind, start_ns, end_ns, inferred in tables.fetch(
        _PHASES.format(start=start), {"streams": list(pieces)}
    ):
        pieces[stream].append(Piece(kind=kind, start_ns=start_ns, end_ns=end_ns, inferred=inferred))
    stalls: dict[int, list[tuple[StallKind, int, int]]] = {stream: [] for stream in pieces}
    for stream, kind, detail, start_ns, end_ns in tables.fetch(_STALLS.format(start=start), {"streams": list(pieces)}):
        stalls[stream].append((stall_kind(kind, detail), start_ns, end_ns))
    drawn = tuple(
        Lane(
            server=server,
            stream=stream,
            client=endpoint(ip, port),
            start_ns=start_ns,
            end_ns=end_ns,
            pieces=tuple(pieces[stream]),
            stalls=tuple(stalls[stream]),
        )
        for server, stream, ip, port, start_ns, end_ns in rows
    )
    return Lanes(drawn=drawn, besides=count - len(drawn))
