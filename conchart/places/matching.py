"""The connections and the packets that several places saw.

In: ``all_connections`` and ``all_sightings``. Out: two temporary tables.

``members``: of each connection (``path``) the stream of each place that saw it (``part``, ``local``), and whether
client and server are taken the other way round there (``turned``). ``crossings``: the packets of connections that two
places or more saw; ``packet`` is equal where it is the same one, ``alone`` where no other packet of its side looks like
it.

Connections are the same if both initial sequence numbers are, whatever the addresses: 64 bits that no address
translation changes. Where a SYN is missing, or for UDP, their packets decide. Sequence numbers that a firewall changed
(both, on every packet) are recognised by the addresses, if these had one connection alone.

A packet is the same if sender, sequence and acknowledgement number, length, flags, window and timestamps are. Where
that is not enough, the IP identification decides, which some address translators change.
"""

from collections.abc import Sequence

from conchart.places.views import Place
from conchart.store.tables import Tables

_LOOK_ALIKE = 4
"""Packets of one place that look alike: beyond, they do not tell which connection it is."""


def match_flows(tables: Tables, places: Sequence[Place]) -> None:
    """Make ``members``: one row for each connection of each place."""
    tables.execute("""
        CREATE TEMP TABLE members AS
        SELECT row_number() OVER (ORDER BY first_frame) AS path, part, stream AS local, false AS turned,
            true AS is_first
        FROM all_connections WHERE part = 0
    """)
    for place in places[1:]:
        for step in (_BY_NUMBERS, _BY_PACKETS, _BY_ADDRESSES):
            tables.execute(step, {"part": place.number})
        tables.execute(_OTHERS, {"part": place.number})


_UNKNOWN = "NOT EXISTS (FROM members WHERE members.part = new.part AND members.local = new.stream)"

_FREE = "NOT EXISTS (FROM members others WHERE others.path = known.path AND others.part = $part)"
"""Of each place, one stream is part of a connection."""

_KNOWN = "members known JOIN all_connections old ON old.part = known.part AND old.stream = known.local"

_BY_NUMBERS = f"""
    INSERT INTO members
    SELECT known.path, new.part, new.stream, known.turned, false
    FROM all_connections new
    JOIN (SELECT * FROM {_KNOWN}) known USING (transport, isn_client, isn_server)
    WHERE new.part = $part AND {_UNKNOWN} AND {_FREE}
    QUALIFY row_number() OVER (PARTITION BY new.stream ORDER BY
            (new.client_ip, new.client_port, new.server_ip, new.server_port)
                <> (known.client_ip, known.client_port, known.server_ip, known.server_port), known.path) = 1
        AND row_number() OVER (PARTITION BY known.path ORDER BY new.stream) = 1
"""

# A datagram by what it carries; a segment by its numbers, of a SYN that nobody answered with its port.
_TOLD = """
    CASE WHEN transport = 'udp' THEN hash(print, bytes)
        ELSE hash(seq, ack, bytes, flags, if(flags = 'S', client_port, 0)) END
"""

_BY_PACKETS = f"""
    INSERT INTO members
    WITH loose AS (
        SELECT part, stream AS local, transport, client_ip, client_port, server_ip, server_port, 0::BIGINT AS path,
            false AS turned
        FROM all_connections new WHERE part = $part AND {_UNKNOWN}
        UNION ALL
        SELECT old.part, old.stream, transport, client_ip, client_port, server_ip, server_port, path, turned
        FROM {_KNOWN} WHERE (isn_client IS NULL OR isn_server IS NULL OR EXISTS (
            FROM all_connections new WHERE part = $part AND (isn_client IS NULL OR isn_server IS NULL) AND {_UNKNOWN}))
            AND {_FREE}),
    told AS (
        SELECT loose.*, sender, bytes > 0 OR contains(flags, 'S') AS says, {_TOLD} AS told
        FROM loose JOIN all_sightings ON all_sightings.part = loose.part AND all_sightings.stream = loose.local
        QUALIFY count(*) OVER (PARTITION BY loose.part, told) <= {_LOOK_ALIKE}),
    pairs AS (
        SELECT new.local, old.path, any_value(old.turned) AS turned, count(DISTINCT told) FILTER (new.says) AS alike,
            count(*) FILTER (new.sender <> old.sender) * 2 > count(*) AS crossed,
            bool_or(least((new.client_ip, new.client_port), (new.server_ip, new.server_port))
                    = least((old.client_ip, old.client_port), (old.server_ip, old.server_port))
                AND greatest((new.client_ip, new.client_port), (new.server_ip, new.server_port))
                    = greatest((old.client_ip, old.client_port), (old.server_ip, old.server_port))) AS same_ends
        FROM told new JOIN told old USING (told, transport)
        WHERE new.part = $part AND old.part <> $part
        GROUP BY ALL)
    SELECT path, $part, local, turned <> crossed, false FROM pairs
    WHERE alike >= if(same_ends, 1, 2)
    QUALIFY row_number() OVER (PARTITION BY local ORDER BY same_ends DESC, alike DESC, path) = 1
        AND row_number() OVER (PARTITION BY path ORDER BY same_ends DESC, alike DESC, local) = 1
"""

_ENDS = "(transport, client_ip, client_port, server_ip, server_port)"
_BY_ADDRESSES = f"""
    INSERT INTO members
    WITH new AS (
        SELECT * FROM all_connections new WHERE part = $part AND transport = 'tcp' AND {_UNKNOWN}
        QUALIFY count(*) OVER (PARTITION BY {_ENDS}) = 1),
    known AS (
        SELECT known.path, known.turned, old.* FROM {_KNOWN} WHERE {_FREE}
        QUALIFY count(*) OVER (PARTITION BY {_ENDS}) = 1)
    SELECT known.path, new.part, new.stream, known.turned, false
    FROM new JOIN known USING (transport, client_ip, client_port, server_ip, server_port, bytes_client, bytes_server)
    WHERE new.bytes_client > 0 AND new.bytes_server > 0
"""

_OTHERS = f"""
    INSERT INTO members
    SELECT (SELECT max(path) FROM members) + row_number() OVER (ORDER BY first_frame), part, stream, false, true
    FROM all_connections new WHERE part = $part AND {_UNKNOWN}
"""


def match_packets(tables: Tables) -> None:
    """Make ``crossings``: one row for each packet of each place, of the connections that places share."""
    tables.execute("""
        CREATE TEMP TABLE twins AS
        SELECT path, count(*) AS places,
            -- A firewall gave the connection other sequence numbers: they count from the SYN.
            coalesce(greatest(count(DISTINCT isn_client), count(DISTINCT isn_server)) > 1
                AND count(isn_client) = count(*) AND count(isn_server) = count(*), false) AS renumbered
        FROM members JOIN all_connections rows ON rows.part = members.part AND rows.stream = members.local
        GROUP BY path HAVING count(*) > 1
    """)
    tables.execute(f"""
        CREATE TEMP TABLE crossings AS
        WITH seen AS (
            SELECT path, seen.part, seen.stream AS local, frame, seen_at,
                if(turned, if(sender = 'client', 'server', 'client'), sender::VARCHAR) AS sender, flags, bytes,
                {_number("seq", "seen.sender")} AS seq, {_number("ack", "peer")} AS ack, seq AS raw_seq, ack AS raw_ack,
                print, ip_id, ttl, window_scale, mss, options, tos, renumbered
            FROM (SELECT *, if(sender = 'client', 'server', 'client') AS peer FROM all_sightings) seen
            JOIN members ON members.part = seen.part AND members.local = seen.stream
            JOIN twins USING (path)
            JOIN all_connections rows ON rows.part = seen.part AND rows.stream = seen.stream),
        keyed AS (
            SELECT *, hash(path, sender, seq, ack, bytes, flags, print) AS alike FROM seen),
        counted AS (
            SELECT alike, max(times) AS times, min(times) AS least, count(*) AS places
            FROM (SELECT alike, part, count(*) AS times FROM keyed GROUP BY ALL) GROUP BY alike),
        -- What is in one place alone: offloading cut or joined it, or a middlebox changed it. Its beginning stays.
        begun AS (
            SELECT path, sender, seq, count(DISTINCT part) AS places, count(*) AS packets
            FROM keyed JOIN counted USING (alike)
            WHERE counted.places = 1 AND times = 1 AND seq IS NOT NULL
                -- A middlebox took options from a SYN.
                AND (bytes > 0 OR contains(flags, 'F') OR contains(flags, 'S') AND NOT renumbered)
            GROUP BY ALL HAVING count(*) > 1 AND count(*) = count(DISTINCT part))
        SELECT keyed.* EXCLUDE (renumbered), times = 1 AND (counted.places > 1 OR begun.packets IS NOT NULL) AS alone,
            CASE WHEN begun.packets IS NOT NULL AND counted.places = 1 AND times = 1
                THEN hash(keyed.path, keyed.sender, keyed.seq, 'begins')
                WHEN times = 1 THEN alike
                -- As many times at each place: the first is the first.
                WHEN times = least AND counted.places = twins.places THEN
                    hash(alike, row_number() OVER (PARTITION BY alike, part ORDER BY frame))
                ELSE hash(alike, coalesce(ip_id, 0), row_number() OVER (PARTITION BY alike, ip_id, part ORDER BY frame))
            END AS packet
        FROM keyed JOIN counted USING (alike) JOIN twins USING (path)
        LEFT JOIN begun ON begun.path = keyed.path AND begun.sender = keyed.sender AND begun.seq = keyed.seq
            AND (bytes > 0 OR contains(flags, 'F') OR contains(flags, 'S'))
    """)


def _number(column: str, side: str) -> str:
    """Give a sequence number that is the same everywhere."""
    isn = f"if({side} = 'client', isn_client, isn_server)"
    return f"if(renumbered, ({column} - {isn} + {1 << 32}) % {1 << 32}, {column})"
