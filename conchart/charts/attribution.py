"""Where the time went: each server's connection time, split by phase.

In: connections, phases, stalls, handshakes, exchanges of a trace. Out: one :class:`Share` per server, for the page's
bars.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conchart.charts.servers import Server, servers
from conchart.charts.tables import Row, rows
from conchart.phases import PHASE_BY_NAME, PhaseKind
from conchart.stalled import Part, parts, stalled_phases

if TYPE_CHECKING:
    from conchart.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """What one kind of phase cost at one server, or of idling what was stalled."""

    kind: PhaseKind
    title: str
    total_ns: int
    stalled_ns: int
    """The part of ``total_ns`` that stalls explain."""
    why: str
    """What they were, where the title does not say it."""
    share: float
    """Of the server's connection time, in percent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """One server's part of the capture's time."""

    server: Server
    total_ns: int
    """Sum of its connections' lifetimes: connections that run side by side count side by side."""
    wall_ns: int
    """Time during which at least one of its connections was open."""
    slices: tuple[Slice, ...]
    """In the order of ``PHASES``, what was stalled before what was idle; kinds that do not occur are left out."""
    connections: int
    requests: int
    full: int
    resumed: int
    failed: int
    incomplete: int
    """Handshakes of which the end is not in the capture."""
    connection_median_ns: int
    connection_max_ns: int
    request_median_ns: int | None
    """First byte of a request to the last byte of its response."""
    request_max_ns: int | None


CONNECTIONS = """
    SELECT server_ip, server_port, count(*) AS connections,
        sum(closed_at - opened_at) AS total_ns,
        sum(greatest(0, closed_at - greatest(opened_at, covered_until))) AS wall_ns,
        quantile_disc(closed_at - opened_at, 0.5) AS connection_median_ns,
        max(closed_at - opened_at) AS connection_max_ns
    FROM (SELECT *, coalesce(max(closed_at) OVER (
              PARTITION BY server_ip, server_port ORDER BY opened_at, stream
              ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), opened_at) AS covered_until
          FROM connections)
    GROUP BY ALL"""

PHASE_TIMES = """
    SELECT server_ip, server_port, kind, sum(end_at - start_at) AS total_ns
    FROM phases JOIN connections USING (stream) GROUP BY ALL"""

HANDSHAKES = """
    SELECT server_ip, server_port,
        count(*) FILTER (outcome = 'complete' AND kind = 'full') AS "full",
        count(*) FILTER (outcome = 'complete' AND kind <> 'full') AS resumed,
        count(*) FILTER (outcome = 'failed') AS failed,
        count(*) FILTER (outcome = 'incomplete') AS incomplete
    FROM handshakes JOIN connections USING (stream) GROUP BY ALL"""

REQUESTS = """
    SELECT server_ip, server_port, count(*) AS requests,
        quantile_disc(response_done_at - request_at, 0.5) AS request_median_ns,
        max(response_done_at - request_at) AS request_max_ns
    FROM exchanges JOIN connections USING (stream) GROUP BY ALL"""


def attribute(trace: "Trace", *, names: bool = True) -> list[Share]:
    """Charge every server with its connections' time, in the order in which :func:`servers` lists them."""
    phases: dict[tuple[str, int], dict[str, int]] = {}
    for row in rows(trace, PHASE_TIMES):
        phases.setdefault((row["server_ip"], row["server_port"]), {})[row["kind"]] = row["total_ns"]
    stalled = stalled_phases(trace)
    facts = {(server.ip, server.port): server for server in servers(trace, names=names)}
    joined: dict[tuple[str, int], Row] = {key: {} for key in facts}
    for query in (CONNECTIONS, HANDSHAKES, REQUESTS):
        for row in rows(trace, query):
            joined[row["server_ip"], row["server_port"]].update(row)
    return [
        _share(server, joined[key], parts(phases.get(key, {}), stalled.get(key, {}))) for key, server in facts.items()
    ]


def _share(server: Server, row: Row, told: Iterable[Part]) -> Share:
    total_ns = row["total_ns"]
    return Share(
        server=server,
        total_ns=total_ns,
        wall_ns=row["wall_ns"],
        slices=tuple(
            Slice(
                kind=part.phase,
                title=part.word.capitalize() if part.word else part.phase.title,
                total_ns=part.total_ns,
                stalled_ns=part.stalled.total(),
                why=part.why,
                share=100 * part.total_ns / total_ns,
            )
            for part in told
        ),
        connections=row["connections"],
        requests=row.get("requests", 0),
        full=row.get("full", 0),
        resumed=row.get("resumed", 0),
        failed=row.get("failed", 0),
        incomplete=row.get("incomplete", 0),
        connection_median_ns=row["connection_median_ns"],
        connection_max_ns=row["connection_max_ns"],
        request_median_ns=row.get("request_median_ns"),
        request_max_ns=row.get("request_max_ns"),
    )


def headline(shares: list[Share], most: int = 3) -> list[Slice]:
    """Name what cost the most over all servers, with its share of the time that was not idle."""
    by_title: dict[str, list[Slice]] = {}
    for share in shares:
        for part in () if share.server.unread else share.slices:
            if part.title != PHASE_BY_NAME["idle"].title:
                by_title.setdefault(part.title, []).append(part)
    busy_ns = sum(part.total_ns for group in by_title.values() for part in group)
    found = []
    for title, group in by_title.items():
        total_ns, stalled_ns = sum(part.total_ns for part in group), sum(part.stalled_ns for part in group)
        if total_ns * 100 >= busy_ns > 0:
            found.append(
                Slice(
                    kind=group[0].kind,
                    title=title,
                    total_ns=total_ns,
                    stalled_ns=stalled_ns,
                    why="",
                    share=100 * total_ns / busy_ns,
                )
            )
    return sorted(found, key=lambda s: -s.total_ns)[:most]
