"""Which server endpoints a capture holds, what they are called, and which stand behind which.

In: the connections of a trace. Out: endpoints in drawing order: the farthest backend first, the client's front last.
Which exchange caused which is not decided here; an address that is both a server and a client is enough for a tier.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conchart.charts.tables import rows

if TYPE_CHECKING:
    from conchart.trace import Trace

MAX_NAMES = 3

CONNECTION_NAMES = """
    SELECT stream, coalesce(
        (SELECT arg_min(sni, number) FROM handshakes h WHERE h.stream = c.stream AND sni <> ''),
        (SELECT arg_min(host, number) FROM exchanges e WHERE e.stream = c.stream AND host <> '')) AS name
    FROM connections c"""
"""The name that the client asked for on each connection: SNI, else the Host of its first request that has one."""


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
    """List the server endpoints: backends first, then what is nearer to the clients; within a tier by address."""
    tiers = _tiers(trace)
    layered = any(tiers.values())
    known = _names(trace) if names else {}
    found = []
    for row in rows(trace, "SELECT DISTINCT server_ip, server_port FROM connections ORDER BY ALL"):
        ip, port = row["server_ip"], row["server_port"]
        named = known.get((ip, port), [])
        found.append(
            Server(
                ip=ip,
                port=port,
                names=tuple(named[:MAX_NAMES]),
                more_names=max(0, len(named) - MAX_NAMES),
                tier=tiers[ip],
                role=("backend" if tiers[ip] else "front") if layered else "server",
            )
        )
    return sorted(found, key=lambda server: -server.tier)


def _tiers(trace: "Trace") -> dict[str, int]:
    """Distance of each server address from the clients, counted in servers in between."""
    pairs = [
        (row["client_ip"], row["server_ip"])
        for row in rows(trace, "SELECT DISTINCT client_ip, server_ip FROM connections ORDER BY ALL")
    ]
    addresses = {server for _, server in pairs}
    behind: dict[str, list[str]] = {}
    for client, server in pairs:
        if client in addresses and client != server:
            behind.setdefault(client, []).append(server)
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
