"""Where on the path a capture was taken: at the client, at the server, or in the middle.

In: the round trips and hop limits of ``connections``. Out: the ``vantage`` columns of ``connections`` and
``captures``. Every time is as seen at the capture point; the vantage says what a wait includes.

A round trip to a host that is the capture point itself is over in the time that its kernel takes to answer, whoever
the other end is; a single connection may be slow for other reasons, so the least of all connections between the same
two addresses counts. The hop limit (RFC 791 TTL, RFC 8200) tells whether a router came between: systems start at 64,
128 or 255.
"""

from typing import Literal, get_args

from conchart.sql import literal
from conchart.tables import Tables

Vantage = Literal["client", "server", "middle"]
VANTAGES: tuple[Vantage, ...] = get_args(Vantage)

AT_HOST_NS = 1_000_000
"""No host needs longer to answer a SYN that is for itself, at least once in a few connections."""
ROUTED_NS = 200_000
"""With a router in between, a round trip below this is still as good as none."""
MUCH_FARTHER = 4
"""The other end is farther by this factor, or the two round trips tell nothing."""


def _hops(side: str) -> str:
    """How many routers the first packet of a side had passed, as SQL."""
    return f"CASE WHEN ttl_{side} <= 64 THEN 64 WHEN ttl_{side} <= 128 THEN 128 ELSE 255 END - ttl_{side}"


# In stages: a name that is used where it is made is spelled out again, and planning it takes longer than most captures.
_INFER = f"""
    UPDATE connections SET vantage = seen.vantage FROM (
        SELECT capture, client_ip, server_ip,
            CASE
                WHEN at_client AND client_ns <= server_ns // {MUCH_FARTHER} AND server_ns >= {ROUTED_NS} THEN 'client'
                WHEN at_server AND server_ns <= client_ns // {MUCH_FARTHER} AND client_ns >= {ROUTED_NS} THEN 'server'
                WHEN at_client AND at_server AND to_client = 0 AND to_server > 0 THEN 'client'
                WHEN at_client AND at_server AND to_server = 0 AND to_client > 0 THEN 'server'
                WHEN greatest(client_ns, server_ns) >= {ROUTED_NS} THEN 'middle'
            END AS vantage
        FROM (
            SELECT *,
                client_ns < CASE WHEN to_client = 0 THEN {AT_HOST_NS} ELSE {ROUTED_NS} END AS at_client,
                server_ns < CASE WHEN to_server = 0 THEN {AT_HOST_NS} ELSE {ROUTED_NS} END AS at_server
            FROM (
                SELECT capture, client_ip, server_ip,
                    min(rtt_client_ns) AS client_ns, min(rtt_server_ns) AS server_ns,
                    coalesce(min({_hops("client")}), 0) AS to_client, coalesce(min({_hops("server")}), 0) AS to_server
                FROM connections
                WHERE syn_at IS NOT NULL AND syn_ack_at IS NOT NULL AND ack_at IS NOT NULL
                GROUP BY capture, client_ip, server_ip
            )
        )
    ) AS seen
    WHERE connections.capture = seen.capture AND connections.client_ip = seen.client_ip
        AND connections.server_ip = seen.server_ip
"""


def locate(tables: Tables, override: Vantage | None = None) -> None:
    """Fill the ``vantage`` columns: as told, or as far as the packets say; NULL where they do not."""
    if override:
        tables.execute(f"UPDATE connections SET vantage = {literal(override)}")
    else:
        tables.execute(_INFER)
    found: dict[int, list[str]] = {}
    for capture, vantage in tables.sql(
        "SELECT DISTINCT capture, vantage FROM connections WHERE vantage IS NOT NULL"
    ).fetchall():
        found.setdefault(capture, []).append(vantage)
    for capture, vantages in found.items():
        whole = vantages[0] if len(vantages) == 1 else "mixed"
        tables.execute(f"UPDATE captures SET vantage = {literal(whole)} WHERE capture = {capture}")
