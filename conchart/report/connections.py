"""Single connections, and the phases of a few. In: tables. Out: :class:`Connection`, :class:`Phase`."""

from collections.abc import Sequence
from dataclasses import dataclass

from conchart.report.rows import rows
from conchart.store.tables import Tables

_CONNECTIONS = """
    SELECT stream, client_ip, client_port, server_ip, server_port, coalesce(server_name, '') AS name, opened_at
    FROM connections ORDER BY waited_ns DESC NULLS LAST, stream
"""
_PHASES = """
    SELECT stream, kind, start_at, end_at, start_frame, end_frame, coalesce(inferred, false) AS inferred
    FROM phases WHERE list_contains($streams, stream) AND end_at > start_at ORDER BY start_at, stream LIMIT $most
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """One connection; every text is safe to print."""

    stream: int
    client_ip: str
    client_port: int
    server_ip: str
    server_port: int
    name: str
    """Of the server; empty when names are not wanted or not seen."""
    opened_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One phase of a connection, which lasts."""

    stream: int
    kind: str
    """As ``phases.kind``."""
    start_at: int
    end_at: int
    start_frame: int
    end_frame: int
    inferred: bool


def connections(tables: Tables, *, names: bool, most: int | None = None) -> list[Connection]:
    """List those whose users waited the longest, the longest wait first; all where ``most`` is not given."""
    query = _CONNECTIONS if most is None else f"{_CONNECTIONS} LIMIT {most}"
    return [Connection(**(row if names else row | {"name": ""})) for row in rows(tables, query)]


def phases(tables: Tables, streams: Sequence[int], most: int) -> list[Phase]:
    """List the phases of connections in the order of time, the first ``most`` of them."""
    return [Phase(**row) for row in rows(tables, _PHASES, {"streams": [*streams], "most": most})]
