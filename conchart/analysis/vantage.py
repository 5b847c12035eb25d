"""Where on the path a capture was taken: at the client, at the server, or in the middle.

In: round trips, hop limits and link-layer addresses of ``connections``. Out: the ``vantage`` columns of ``connections``
and ``captures``. Every time is as seen at the capture point; the vantage says what a wait includes.

Hosts are told before connections. A round trip to a host that is the capture point itself is over in the time that its
kernel takes to answer, whoever the other end is; a single connection may be slow for other reasons, so the least of all
of a host's connections counts. The hop limit (RFC 791 TTL, RFC 8200) tells whether a router came between (systems
start at 64, 128 or 255), and so whether an address is a host of its own or hides others (address translation). What
no round trip tells, a scan that is refused or a datagram, is told by a host that others told, or by its network card.
"""

from typing import Literal, get_args

from conchart.sql import literal
from conchart.tables import Tables

Vantage = Literal["client", "server", "middle"]
VANTAGES: tuple[Vantage, ...] = get_args(Vantage)

ROUTED_NS = 200_000
"""With a router in between, a round trip below this is still as good as none: a container on the same machine."""
MANY = 8
"""Of so many connections one was answered as quickly as the host can."""
AT_HOST_NS, AT_HOST_OF_MANY_NS = 500_000, 300_000
"""No host needs longer to answer a packet that is for itself; nearer than that is no neighbour."""
AWAY_NS, AWAY_OF_MANY_NS = 5_000_000, 750_000
"""No host is as busy as that; in between, a busy host and a wireless neighbour look the same."""
MUCH_FARTHER = 4
"""The other end is farther by this factor, or the two round trips tell nothing."""


def _routers(side: str) -> str:
    """How many routers the first packet of a side had passed, as SQL."""
    return f"CASE WHEN ttl_{side} <= 64 THEN 64 WHEN ttl_{side} <= 128 THEN 128 ELSE 255 END - ttl_{side}"


def _ends(side: str) -> str:
    """One side of every connection, as SQL."""
    return f"""
        SELECT capture, {side}_ip AS address, routers_{side} AS routers, mac_{side} AS mac,
            CASE WHEN shaken THEN rtt_{side}_ns END AS ns, own = '{side}' AS own
        FROM flows WHERE routers_{side} IS NOT NULL"""


_INFER = f"""
    WITH flows AS (
        SELECT *, {_routers("client")} AS routers_client, {_routers("server")} AS routers_server,
            syn_at IS NOT NULL AND syn_ack_at IS NOT NULL AND ack_at IS NOT NULL AS shaken,
            -- What only came in may go on to somebody else, and whoever hands on packets is no end of them.
            CASE WHEN NOT hands_on AND ((local_end = 'client' AND ttl_client IS NOT NULL)
                OR (local_end = 'server' AND ttl_server IS NOT NULL)) THEN local_end END AS own
        FROM connections JOIN (
            SELECT capture,
                bool_or(local_end IN ('client', 'server'))
                    AND bool_or(local_end IS NULL AND ttl_client IS NOT NULL AND ttl_server IS NOT NULL) AS hands_on
            FROM connections GROUP BY capture) USING (capture)),
    hosts AS (
        SELECT *,
            own OR ns < CASE WHEN routers > 0 THEN {ROUTED_NS} WHEN many THEN {AT_HOST_OF_MANY_NS} ELSE {AT_HOST_NS} END
                AS here,
            ns >= CASE WHEN routers > 0 THEN {ROUTED_NS} WHEN many THEN {AWAY_OF_MANY_NS} ELSE {AWAY_NS} END
                AND NOT claimed AS away
        FROM (
            -- No round trip is over at once: where most are, the clock ticks too seldom.
            SELECT capture, address, routers, count(ns) >= {MANY} AS many,
                CASE WHEN min(mac) = max(mac) THEN min(mac) END AS mac, coalesce(bool_or(own), false) AS claimed,
                CASE WHEN count(ns) >= 2 * count(*) FILTER (ns = 0) THEN min(ns) FILTER (ns > 0) END AS ns,
                claimed AND (routers = 0 OR coalesce(min(ns) < {ROUTED_NS}, false)) AS own
            FROM ({_ends("client")} UNION ALL {_ends("server")}) GROUP BY capture, address, routers)),
    -- One connection before and behind whoever translates its addresses.
    translated AS (
        SELECT capture, isn_client, isn_server FROM connections WHERE isn_client IS NOT NULL AND isn_server IS NOT NULL
        GROUP BY ALL HAVING count(DISTINCT (client_ip, server_ip)) > 1),
    told AS (
        SELECT flows.*, c.ns AS client_ns, s.ns AS server_ns, c.here AS client_here, s.here AS server_here,
            CASE
                WHEN local_end = 'both' THEN NULL
                WHEN flows.own = 'client' AND c.own THEN 'client'
                WHEN flows.own = 'server' AND s.own THEN 'server'
                WHEN c.here AND s.ns >= greatest(c.ns * {MUCH_FARTHER}, {ROUTED_NS}) THEN 'client'
                WHEN s.here AND c.ns >= greatest(s.ns * {MUCH_FARTHER}, {ROUTED_NS}) THEN 'server'
                WHEN c.here AND s.here AND c.routers = 0 AND s.routers > 0 THEN 'client'
                WHEN c.here AND s.here AND s.routers = 0 AND c.routers > 0 THEN 'server'
                WHEN c.away AND s.away THEN 'middle'
                WHEN translated.capture IS NOT NULL AND NOT c.here AND NOT s.here THEN 'middle'
            END AS said
        FROM flows
        LEFT JOIN hosts c ON c.capture = flows.capture AND c.address = client_ip AND c.routers = routers_client
        LEFT JOIN hosts s ON s.capture = flows.capture AND s.address = server_ip AND s.routers = routers_server
        LEFT JOIN translated ON translated.capture = flows.capture
            AND translated.isn_client = flows.isn_client AND translated.isn_server = flows.isn_server),
    at_home AS (
        SELECT DISTINCT capture, client_ip AS address, routers_client AS routers FROM told WHERE said = 'client'
        UNION SELECT DISTINCT capture, server_ip, routers_server FROM told WHERE said = 'server'),
    card AS (
        SELECT capture, min(mac) AS mac FROM at_home JOIN hosts USING (capture, address, routers)
        WHERE routers = 0 GROUP BY capture HAVING count(DISTINCT mac) = 1),
    homes AS (
        SELECT hosts.capture, hosts.address, hosts.routers,
            at_home.address IS NOT NULL OR coalesce(hosts.routers = 0 AND hosts.mac = card.mac, false) AS home
        FROM hosts LEFT JOIN at_home USING (capture, address, routers) LEFT JOIN card ON card.capture = hosts.capture),
    known AS (
        SELECT capture, address, routers FROM homes WHERE home
        -- An end of which no packet came has no hop limit: its address tells if it hides nobody.
        UNION ALL SELECT capture, address, -1 FROM homes GROUP BY capture, address HAVING bool_and(home)),
    placed AS (
        SELECT stream,
            CASE
                WHEN said IS NOT NULL OR local_end = 'both' THEN said
                WHEN c.address IS NOT NULL AND s.address IS NULL
                    AND coalesce(server_ns >= client_ns * {MUCH_FARTHER}, true) THEN 'client'
                WHEN s.address IS NOT NULL AND c.address IS NULL
                    AND coalesce(client_ns >= server_ns * {MUCH_FARTHER}, true) THEN 'server'
                -- Slow, as a busy host is; but the host that captured is another.
                WHEN c.address IS NULL AND s.address IS NULL AND own IS NULL AND shaken
                    AND NOT client_here AND NOT server_here
                    AND told.capture IN (SELECT capture FROM known) THEN 'middle'
            END AS place
        FROM told
        LEFT JOIN known c ON c.capture = told.capture AND c.address = client_ip
            AND c.routers = coalesce(routers_client, -1)
        LEFT JOIN known s ON s.capture = told.capture AND s.address = server_ip
            AND s.routers = coalesce(routers_server, -1))
    UPDATE connections SET vantage = place FROM placed WHERE connections.stream = placed.stream AND place IS NOT NULL
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
