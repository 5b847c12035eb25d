"""What was captured, counted by kind: connections, handshakes, requests, and what the network did to packets.

In: the tables ``captures``, ``connections``, ``handshakes``, ``exchanges``. Out: :class:`CaptureFile`, counts.
"""

from dataclasses import dataclass

from conchart.labels.stalls import DETAIL
from conchart.labels.units import count_of
from conchart.report.rows import rows
from conchart.store.sql import TO_GROUP
from conchart.store.tables import Tables

_STATE = f"""CASE WHEN transport = 'tcp' THEN state WHEN {TO_GROUP} THEN 'UDP to a group'
    WHEN state IN ('abandoned', 'unanswered') THEN 'UDP unanswered' ELSE 'UDP' END"""
"""SQL: how a connection ended; UDP has no end."""
RENEGOTIATION = "CASE WHEN version IS NULL AND number > 0 THEN 'encrypted renegotiation' END"
"""SQL: what to call a handshake of which only the times are known."""
_HANDSHAKE = f"concat_ws(' ', version, kind, {RENEGOTIATION}, nullif(outcome, 'complete'))"

Kinds = tuple[tuple[str | None, int], ...]
"""Names of kinds, as the capture or a closed vocabulary has them, with how many there are: the most first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureFile:
    """One file."""

    path: str
    """As given, text of the user's."""
    format: str | None
    link_types: str | None
    resolution_ns: int | None
    """Of its timestamps."""
    packets: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tallies:
    """Rows by kind."""

    connections: Kinds
    """By how they ended."""
    handshakes: Kinds
    requests: Kinds
    """By protocol."""


def files(tables: Tables) -> tuple[CaptureFile, ...]:
    """List the files, in the order in which they were given."""
    query = "SELECT path, format, link_types, resolution_ns, packets, bytes FROM captures ORDER BY capture"
    return tuple(CaptureFile(**row) for row in rows(tables, query))


def tallies(tables: Tables) -> Tallies:
    """Count connections, handshakes and requests by kind."""
    of: dict[str, list[tuple[str | None, int]]] = {"connections": [], "handshakes": [], "exchanges": []}
    kinds = " UNION ALL ".join(
        f"SELECT '{table}' AS of, {kind} AS kind, count(*) AS n FROM {table} GROUP BY ALL"
        for table, kind in (("connections", _STATE), ("handshakes", _HANDSHAKE), ("exchanges", "protocol"))
    )
    for table, kind, count in tables.fetch(f"FROM ({kinds}) ORDER BY n DESC, kind"):
        of[table].append((kind, count))
    return Tallies(
        connections=tuple(of["connections"]), handshakes=tuple(of["handshakes"]), requests=tuple(of["exchanges"])
    )


def times(tables: Tables) -> dict[tuple[str, str | None, str | None], int]:
    """Say how long each kind of time is: phase, and kind and detail of the stall that explains it, if one does."""
    query = f"SELECT phase, kind, {DETAIL}, sum(total_ns)::BIGINT FROM times WHERE total_ns > 0 GROUP BY ALL"
    return {(phase, kind, detail): ns for phase, kind, detail, ns in tables.fetch(query)}


def network(tables: Tables) -> tuple[str, ...]:
    """Count what the network, not the capture, did to packets; empty when nothing."""
    ((syns, retransmits, out_of_order, zero_windows),) = tables.fetch(
        """
        SELECT sum(syn_retransmits), sum(retransmits_client + retransmits_server),
            sum(out_of_order_client + out_of_order_server), sum(zero_windows_client + zero_windows_server)
        FROM connections
        """
    )
    counts = (
        (syns, "SYN sent again", "SYNs sent again"),
        (retransmits, "segment sent again", "segments sent again"),
        (out_of_order, "segment out of order", "segments out of order"),
        (zero_windows, "full receive window", "full receive windows"),
    )
    return tuple(count_of(count, one, many) for count, one, many in counts if count)
