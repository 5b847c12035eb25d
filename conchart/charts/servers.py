"""Which server endpoints a capture holds, what they are called, and which stand behind which.

In: connections and exchanges of a trace. Out: endpoints in drawing order: the farthest backend first, the front last.
Which exchange caused which is not decided here. A server stands behind another if that one's address is its client, or,
for proxies with one address on each side, if its answers come about while the other's clients are waiting.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conchart.charts.tables import rows
from conchart.sql import UNREAD

if TYPE_CHECKING:
    from conchart.trace import Trace

MAX_NAMES = 3

CONNECTION_NAMES = """
    SELECT stream, coalesce(
        (SELECT arg_min(sni, number) FROM handshakes h WHERE h.stream = c.stream AND sni <> ''),
        (SELECT arg_min(host, number) FROM exchanges e WHERE e.stream = c.stream AND host <> ''
            AND host NOT IN (server_ip, concat(server_ip, ':', server_port)))) AS name
    FROM connections c"""
"""The name that the client asked for on each connection: SNI, else the first Host that is not just the address."""

MAX_NESTED = 64
"""With more server addresses than this, nesting is not looked at: it compares every two of them."""

# Of each server's first requests, how many were sent and answered while a client of another server was waiting.
NESTED = """
    WITH asked AS (
        SELECT server_ip, stream, number, request_at, request_done_at, response_at
        FROM exchanges JOIN connections USING (stream) WHERE response_at IS NOT NULL),
    sample AS (
        SELECT *, count(*) OVER (PARTITION BY server_ip) AS size FROM asked
        QUALIFY row_number() OVER (PARTITION BY server_ip ORDER BY request_at, stream, number) <= 20)
    SELECT waiting.server_ip AS front, sample.server_ip AS back
    FROM sample JOIN asked waiting ON waiting.server_ip <> sample.server_ip
        AND waiting.request_done_at <= sample.request_at AND sample.response_at <= waiting.response_at
    GROUP BY ALL HAVING count(DISTINCT (sample.stream, sample.number)) >= 0.8 * least(20, any_value(size))
    ORDER BY ALL"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One server endpoint."""

    ip: str
    port: int
    names: tuple[str, ...]
    """Server names that clients asked for, the most used first; empty when names are not wanted or not seen."""
    more_names: int
    """How many further names there are."""
    tier: int
    """0 for a front; 1 for what a server of tier 0 connects to, and so on."""
    role: str
    """``front`` or ``backend``; ``server`` where the capture shows only one tier."""
    unread: bool = False
    """Only datagrams that nobody reads went there: such servers come last, and the headline leaves them out."""

    @property
    def endpoint(self) -> str:
        """Address and port as one text."""
        return join(self.ip, self.port)

    @property
    def title(self) -> str:
        """Names in one text, e.g. ``a.example, b.example and 4 more``."""
        listed = ", ".join(self.names)
        return f"{listed} and {self.more_names} more" if self.more_names else listed


def join(ip: str, port: int) -> str:
    """Write an endpoint; IPv6 addresses in brackets (RFC 3986 section 3.2.2)."""
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


def servers(trace: "Trace", *, names: bool = True) -> list[Server]:
    """List the server endpoints: backends first, then what is nearer to the clients, those that are unread last."""
    tiers = _tiers(trace)
    layered = any(tiers.values())
    known = _names(trace) if names else {}
    found = []
    query = f"SELECT server_ip, server_port, bool_and({UNREAD}) AS unread FROM connections GROUP BY ALL ORDER BY ALL"
    for row in rows(trace, query):
        ip, port = row["server_ip"], row["server_port"]
        named = known.get((ip, port), [])
        found.append(
            Server(
                ip=ip,
                port=port,
                names=tuple(named[:MAX_NAMES]),
                more_names=max(0, len(named) - MAX_NAMES),
                tier=tiers.get(ip, 0),
                role=("backend" if tiers.get(ip) else "front") if layered else "server",
                unread=row["unread"],
            )
        )
    return sorted(found, key=lambda server: (server.unread, -server.tier))


def _tiers(trace: "Trace") -> dict[str, int]:
    """Distance of each server address from the clients, counted in servers in between."""
    pairs = [
        (row["client_ip"], row["server_ip"])
        for row in rows(trace, f"SELECT DISTINCT client_ip, server_ip FROM connections WHERE NOT {UNREAD} ORDER BY ALL")
    ]
    addresses = {server for _, server in pairs}
    behind: dict[str, list[str]] = {}
    for client, server in pairs:
        if client in addresses and client != server:
            behind.setdefault(client, []).append(server)
    if 1 < len(addresses) <= MAX_NESTED:
        clients = {address: {client for client, server in pairs if server == address} for address in addresses}
        for row in rows(trace, NESTED):
            # One client that asks two servers at once is a browser, not a chain.
            if clients[row["front"]].isdisjoint(clients[row["back"]]):
                behind.setdefault(row["front"], []).append(row["back"])
    inner = {server for group in behind.values() for server in group}
    tiers = dict.fromkeys(sorted(addresses - inner), 0)
    queue = list(tiers)
    for address in queue:  # grows while it is walked: breadth first
        for server in behind.get(address, ()):
            if server not in tiers:
                tiers[server] = tiers[address] + 1
                queue.append(server)
    # Addresses that only call each other have no outermost one: nobody is a front.
    return {address: tiers.get(address, 0) for address in addresses}


def _names(trace: "Trace") -> dict[tuple[str, int], list[str]]:
    known: dict[tuple[str, int], list[str]] = {}
    query = f"""
        SELECT server_ip, server_port, name, count(*) AS uses
        FROM connections JOIN ({CONNECTION_NAMES}) USING (stream)
        WHERE name IS NOT NULL GROUP BY ALL ORDER BY server_ip, server_port, uses DESC, name"""
    for row in rows(trace, query):
        known.setdefault((row["server_ip"], row["server_port"]), []).append(row["name"])
    return known
