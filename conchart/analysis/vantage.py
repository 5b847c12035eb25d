"""Where on the path a capture was taken: at the client, at the server, or in the middle.

In: round trips, hop limits and link-layer addresses of ``connections``. Out: the ``vantage`` columns of ``connections``
and ``captures``. Every time is as seen at the capture point; the vantage says what a wait includes.

Hosts are told before connections. A round trip to a host that is the capture point itself is over in the time that its
kernel takes to answer, whoever the other end is; a single connection may be slow for other reasons, so the least of all
of a host's connections counts. The hop limit (RFC 791 TTL, RFC 8200) tells whether a router came between (systems
start at 64, 128 or 255), and so whether an address is a host of its own or hides others (address translation). What
no round trip tells, a scan that is refused or a datagram, is told by a host that others told, or by its network card.
"""

from conchart.reading.knowledge import Vantage
from conchart.store.sql import literal
from conchart.store.tables import Tables

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
    """One side of every connection of which it sent a packet, as SQL."""
    return f"""
        SELECT capture, {side}_ip AS address, {_routers(side)} AS routers, mac_{side} AS mac,
            CASE WHEN {_SHAKEN} THEN rtt_{side}_ns END AS ns,
            -- Whoever hands on packets is no end of them, and what only came in may go on to somebody else.
            coalesce(local_end = '{side}' AND NOT hands_on, false) AS claimed
        FROM connections JOIN passing USING (capture) WHERE ttl_{side} IS NOT NULL"""


_SHAKEN = "syn_at IS NOT NULL AND syn_ack_at IS NOT NULL AND ack_at IS NOT NULL"

_HOSTS = f"""
    CREATE OR REPLACE TEMP TABLE hosts AS
    WITH passing AS (
        SELECT capture,
            bool_or(local_end IN ('client', 'server'))
                AND bool_or(local_end IS NULL AND ttl_client IS NOT NULL AND ttl_server IS NOT NULL) AS hands_on
        FROM connections GROUP BY capture)
    SELECT *,
        own OR ns < CASE WHEN routers > 0 THEN {ROUTED_NS} WHEN many THEN {AT_HOST_OF_MANY_NS} ELSE {AT_HOST_NS} END
            AS here,
        ns >= CASE WHEN routers > 0 THEN {ROUTED_NS} WHEN many THEN {AWAY_OF_MANY_NS} ELSE {AWAY_NS} END
            AND NOT claimed AS away
    FROM (
        SELECT capture, address, routers, bool_or(claimed) AS claimed, count(ns) >= {MANY} AS many,
            CASE WHEN min(hash(mac)) = max(hash(mac)) THEN any_value(mac) END AS mac,
            -- No round trip is over at once: where most are, the clock ticks too seldom.
            CASE WHEN count(ns) >= 2 * count(*) FILTER (ns = 0) THEN min(ns) FILTER (ns > 0) END AS ns,
            bool_or(claimed) AND (routers = 0 OR coalesce(min(ns) < {ROUTED_NS}, false)) AS own
        FROM ({_ends("client")} UNION ALL {_ends("server")}) GROUP BY capture, address, routers)
"""
"""A host is an address and how far it is: who hides behind a translated address is another."""

_ENDS = f"""
        LEFT JOIN hosts c ON c.capture = seen.capture AND c.address = client_ip AND c.routers = {_routers("client")}
        LEFT JOIN hosts s ON s.capture = seen.capture AND s.address = server_ip AND s.routers = {_routers("server")}"""

_TELL = f"""
    CREATE OR REPLACE TEMP TABLE standpoints AS
    FROM (
        SELECT stream, seen.capture,
            CASE
                WHEN local_end = 'both' THEN NULL
                WHEN local_end = 'client' AND c.own THEN 'client'
                WHEN local_end = 'server' AND s.own THEN 'server'
                WHEN c.here AND s.ns >= greatest(c.ns * {MUCH_FARTHER}, {ROUTED_NS}) THEN 'client'
                WHEN s.here AND c.ns >= greatest(s.ns * {MUCH_FARTHER}, {ROUTED_NS}) THEN 'server'
                WHEN c.here AND s.here AND c.routers = 0 AND s.routers > 0 THEN 'client'
                WHEN c.here AND s.here AND s.routers = 0 AND c.routers > 0 THEN 'server'
                WHEN c.away AND s.away THEN 'middle'
                WHEN NOT c.here AND NOT s.here AND translated.capture IS NOT NULL THEN 'middle'
            END AS place
        FROM connections seen {_ENDS}
        -- One connection before and behind whoever translates its addresses.
        LEFT JOIN (
            SELECT capture, isn_client, isn_server FROM connections
            GROUP BY ALL HAVING min(hash(client_ip, server_ip)) <> max(hash(client_ip, server_ip))) translated
            ON translated.capture = seen.capture
                AND translated.isn_client = seen.isn_client AND translated.isn_server = seen.isn_server)
"""

_HOMES = f"""
    CREATE OR REPLACE TEMP TABLE homes AS
    WITH at_home AS (
        SELECT DISTINCT capture, client_ip AS address, {_routers("client")} AS routers
        FROM connections JOIN standpoints USING (stream, capture) WHERE place = 'client'
        UNION SELECT DISTINCT capture, server_ip, {_routers("server")}
        FROM connections JOIN standpoints USING (stream, capture) WHERE place = 'server'),
    card AS (
        SELECT capture, min(mac) AS mac FROM at_home JOIN hosts USING (capture, address, routers)
        WHERE routers = 0 GROUP BY capture HAVING count(DISTINCT mac) = 1),
    judged AS (
        SELECT hosts.capture, hosts.address, hosts.routers,
            at_home.address IS NOT NULL OR coalesce(hosts.routers = 0 AND hosts.mac = card.mac, false) AS home
        FROM hosts LEFT JOIN at_home USING (capture, address, routers) LEFT JOIN card ON card.capture = hosts.capture)
    SELECT capture, address, routers FROM judged WHERE home
    -- An end of which no packet came has no hop limit: its address tells if it hides nobody.
    UNION ALL SELECT capture, address, -1 FROM judged GROUP BY capture, address HAVING bool_and(home)
"""
"""The hosts that are the capturing machine: some connection tells, or their card."""

_TELL_REST = f"""
    INSERT INTO standpoints BY NAME
    FROM (
        SELECT stream, seen.capture,
            CASE
                WHEN at_client.address IS NOT NULL AND at_server.address IS NULL
                    AND coalesce(s.ns >= c.ns * {MUCH_FARTHER}, true) THEN 'client'
                WHEN at_server.address IS NOT NULL AND at_client.address IS NULL
                    AND coalesce(c.ns >= s.ns * {MUCH_FARTHER}, true) THEN 'server'
                -- Slow, as a busy host is; but the host that captured is another.
                WHEN at_client.address IS NULL AND at_server.address IS NULL AND local_end IS NULL AND {_SHAKEN}
                    AND NOT c.here AND NOT s.here AND seen.capture IN (SELECT capture FROM homes) THEN 'middle'
            END AS place
        FROM connections seen {_ENDS}
        LEFT JOIN homes at_client ON at_client.capture = seen.capture AND at_client.address = client_ip
            AND at_client.routers = coalesce({_routers("client")}, -1)
        LEFT JOIN homes at_server ON at_server.capture = seen.capture AND at_server.address = server_ip
            AND at_server.routers = coalesce({_routers("server")}, -1)
        WHERE stream IN (SELECT stream FROM standpoints WHERE place IS NULL) AND local_end IS DISTINCT FROM 'both')
    WHERE place IS NOT NULL
"""

_KEEP = """
    UPDATE connections SET vantage = place FROM standpoints
    WHERE connections.stream = standpoints.stream AND place IS NOT NULL
"""
"""Once for all: an update of a table is dearer than a narrow table beside it."""

FORGET = "DROP TABLE IF EXISTS hosts; DROP TABLE IF EXISTS standpoints; DROP TABLE IF EXISTS homes"
"""SQL that drops what ``locate`` leaves."""


_HALF_LOCATED = """
    SELECT capture FROM standpoints GROUP BY capture
    HAVING bool_or(place IS NULL) AND bool_or(place IN ('client', 'server')) LIMIT 1
"""
"""Captures of which the place is known for some connections, and of these one is the end itself."""


def locate(tables: Tables, override: Vantage | None = None) -> None:
    """Fill the ``vantage`` columns: as told, or as far as the packets say; NULL where they do not."""
    if override:
        tables.execute(f"UPDATE connections SET vantage = {literal(override)}")
    else:
        tables.execute(_HOSTS)
        tables.execute(_TELL)
        if tables.fetch(_HALF_LOCATED):
            tables.execute(_HOMES)
            tables.execute(_TELL_REST)
        tables.execute(_KEEP)
    for capture, vantages in _found(tables).items():
        places = sorted(vantage for vantage in vantages if vantage)
        if places:
            whole = places[0] if len(places) == 1 else "mixed"
            tables.execute(f"UPDATE captures SET vantage = {literal(whole)} WHERE capture = {capture}")


def _found(tables: Tables) -> dict[int, set[str | None]]:
    """The vantages of each capture's connections."""
    found: dict[int, set[str | None]] = {}
    for capture, vantage in tables.fetch("SELECT DISTINCT capture, vantage FROM connections"):
        found.setdefault(capture, set()).add(vantage)
    return found
