"""The connections and the packets that several places saw.

In: ``all_connections``, and the packets, which the core holds. Out: temporary tables, and which packets are the same.

``members``: of each connection (``path``) the stream of each place that saw it (``part``, ``local``), and whether
client and server are taken the other way round there (``turned``). ``twins``: the connections that two places or more
saw. ``again``: streams of a place that are another one of it, behind an address translation. ``loose``: streams that
initial sequence numbers do not tell, ``stream_packets``: their packets. Packets are compared in the core
(``native/src/correlate/crossings.rs``).

Connections are the same if both initial sequence numbers are, whatever the addresses: 64 bits that no address
translation changes. Where a SYN is missing, or for UDP, their packets decide. Sequence numbers that a firewall changed
(both, on every packet) are recognised by the addresses, if these had one connection alone.

A packet is the same if sender, sequence and acknowledgement number, length, flags, window and timestamps are. Where
that is not enough, the IP identification decides, which some address translators change.
"""

from collections.abc import Sequence

from conchart import _native
from conchart.reading.places.views import Place
from conchart.store.tables import Rows, Tables

_LOOK_ALIKE = 4
"""Packets of one place that look alike: beyond, they do not tell which connection it is."""
_LEAST_ALIKE = 2
"""Packets of two streams of a place: these are the same connection."""
_BEHIND_NS = 1_000_000_000
"""So long after the other one may the second sighting of a connection's beginning be."""


def match_flows(tables: Tables, crossings: _native.Crossings, places: Sequence[Place]) -> None:
    """Make ``members``: one row for each connection of each place."""
    _lend_packets(tables, crossings, "SELECT part, stream FROM all_connections WHERE isn_client IS NULL")
    tables.execute(_AGAIN)
    tables.execute("""
        CREATE TEMP TABLE members AS
        SELECT row_number() OVER (ORDER BY first_frame) AS path, part, stream AS local, false AS turned,
            true AS is_first
        FROM all_connections WHERE part = 0 AND (part, stream) NOT IN (FROM again)
    """)
    for place in places[1:]:
        for step in (_BY_NUMBERS, _LOOSE):
            tables.execute(step, {"part": place.number})
        _lend_packets(tables, crossings, "SELECT part, local FROM loose")
        for step in (_BY_PACKETS, _BY_ADDRESSES, _OTHERS):
            tables.execute(step, {"part": place.number})


def _lend_packets(tables: Tables, crossings: _native.Crossings, streams: str) -> None:
    """Make ``stream_packets``: what the packets of these streams tell."""
    tables.lend_batch("stream_packets", crossings.of_streams(tables.stored(streams).fetchall()))


# A machine that translates addresses has a packet before and after it, if all its interfaces were captured: the second
# time under other addresses. What it wrote first tells; the other stream is a copy, as those of one capture are.
_AGAIN = f"""
    CREATE TEMP TABLE again AS
    WITH begun AS (
        SELECT part, stream, row_number() OVER same > 1 AS is_again
        FROM all_connections WHERE transport = 'tcp' AND isn_client IS NOT NULL
        WINDOW same AS (PARTITION BY part, isn_client, isn_server ORDER BY first_frame)
        QUALIFY opened_at - first_value(opened_at) OVER same < {_BEHIND_NS}),
    packets AS (
        SELECT rows.part, rows.stream, rows.first_frame, opened_at, transport, by_client,
            CASE WHEN transport = 'udp' THEN hash(print, bytes, ip_id) ELSE hash(seq, ack, bytes, flags) END AS named
        FROM all_connections rows JOIN stream_packets USING (part, stream)
        WHERE bytes > 0 AND (transport = 'tcp' OR ip_id > 0)
        QUALIFY count(*) OVER (PARTITION BY rows.part, named, by_client) <= {_LOOK_ALIKE}),
    twice AS (
        SELECT DISTINCT part, named, one.stream, other.stream AS again,
            -- A single question, with its identification: the same stack would have counted on.
            if(one.transport = 'udp' AND abs(other.opened_at - one.opened_at) < {_BEHIND_NS}, 1, {_LEAST_ALIKE})
                AS least
        FROM packets one JOIN packets other USING (part, named, by_client)
        WHERE (one.first_frame, one.stream) < (other.first_frame, other.stream))
    SELECT part, stream FROM begun WHERE is_again
    UNION
    SELECT part, again FROM twice GROUP BY part, stream, again, least HAVING count(*) >= least
"""

_UNKNOWN = """
    (NOT EXISTS (FROM members WHERE members.part = new.part AND members.local = new.stream)
        AND (new.part, new.stream) NOT IN (FROM again))
"""

_FREE = "NOT EXISTS (FROM members others WHERE others.path = member.path AND others.part = $part)"
"""Of each place, one stream is part of a connection."""

_MEMBERS = "members member JOIN all_connections old ON old.part = member.part AND old.stream = member.local"

_BY_NUMBERS = f"""
    INSERT INTO members
    SELECT member.path, new.part, new.stream, member.turned, false
    FROM all_connections new
    JOIN (SELECT * FROM {_MEMBERS}) member USING (transport, isn_client, isn_server)
    WHERE new.part = $part AND {_UNKNOWN} AND {_FREE}
    QUALIFY row_number() OVER (PARTITION BY new.stream ORDER BY
            (new.client_ip, new.client_port, new.server_ip, new.server_port)
                <> (member.client_ip, member.client_port, member.server_ip, member.server_port), member.path) = 1
        AND row_number() OVER (PARTITION BY member.path ORDER BY new.stream) = 1
"""

# Those of the place, and known ones, that initial sequence numbers did not bring together.
_LOOSE = f"""
    CREATE OR REPLACE TEMP TABLE loose AS
    SELECT part, stream AS local, transport, client_ip, client_port, server_ip, server_port, 0::BIGINT AS path,
        false AS turned
    FROM all_connections new WHERE part = $part AND {_UNKNOWN}
    UNION ALL
    SELECT old.part, old.stream, transport, client_ip, client_port, server_ip, server_port, path, turned
    FROM {_MEMBERS} WHERE (isn_client IS NULL OR isn_server IS NULL OR EXISTS (
        FROM all_connections new WHERE part = $part AND (isn_client IS NULL OR isn_server IS NULL) AND {_UNKNOWN}))
        AND {_FREE}
"""

# A datagram by what it carries; a segment by its numbers, of a SYN that nobody answered with its port.
_NAMED = """
    CASE WHEN transport = 'udp' THEN hash(print, bytes)
        ELSE hash(seq, ack, bytes, flags, if(flags = 'S', client_port, 0)) END
"""

_BY_PACKETS = f"""
    INSERT INTO members
    WITH packets AS (
        SELECT loose.*, by_client, bytes, ip_id, bytes > 0 OR contains(flags, 'S') AS says, {_NAMED} AS named
        FROM loose JOIN stream_packets ON stream_packets.part = loose.part AND stream_packets.stream = loose.local
        QUALIFY count(*) OVER (PARTITION BY loose.part, named) <= {_LOOK_ALIKE}),
    pairs AS (
        SELECT new.local, old.path, any_value(old.turned) AS turned, count(DISTINCT named) FILTER (new.says) AS alike,
            count(*) FILTER (new.by_client <> old.by_client) * 2 > count(*) AS crossed,
            bool_or(transport = 'udp' AND new.bytes > 0 AND new.ip_id > 0 AND new.ip_id = old.ip_id) AS numbered,
            bool_or(least((new.client_ip, new.client_port), (new.server_ip, new.server_port))
                    = least((old.client_ip, old.client_port), (old.server_ip, old.server_port))
                AND greatest((new.client_ip, new.client_port), (new.server_ip, new.server_port))
                    = greatest((old.client_ip, old.client_port), (old.server_ip, old.server_port))) AS same_ends
        FROM packets new JOIN packets old USING (named, transport)
        WHERE new.part = $part AND old.part <> $part
        GROUP BY ALL)
    SELECT path, $part, local, turned <> crossed, false FROM pairs
    -- A datagram with its identification is one of a kind.
    WHERE alike >= if(same_ends OR numbered, 1, 2)
    QUALIFY row_number() OVER (PARTITION BY local ORDER BY same_ends DESC, numbered DESC, alike DESC, path) = 1
        AND row_number() OVER (PARTITION BY path ORDER BY same_ends DESC, numbered DESC, alike DESC, local) = 1
"""

_ENDS = "(transport, client_ip, client_port, server_ip, server_port)"
_BY_ADDRESSES = f"""
    INSERT INTO members
    WITH new AS (
        SELECT * FROM all_connections new WHERE part = $part AND transport = 'tcp' AND {_UNKNOWN}
        QUALIFY count(*) OVER (PARTITION BY {_ENDS}) = 1),
    member AS (
        SELECT member.path, member.turned, old.* FROM {_MEMBERS} WHERE {_FREE}
        QUALIFY count(*) OVER (PARTITION BY {_ENDS}) = 1)
    SELECT member.path, new.part, new.stream, member.turned, false
    FROM new JOIN member USING (transport, client_ip, client_port, server_ip, server_port, bytes_client, bytes_server)
    WHERE new.bytes_client > 0 AND new.bytes_server > 0
"""

_OTHERS = f"""
    INSERT INTO members
    SELECT (SELECT coalesce(max(path), 0) FROM members) + row_number() OVER (ORDER BY first_frame), part, stream,
        false, true
    FROM all_connections new WHERE part = $part AND {_UNKNOWN}
"""


def match_packets(tables: Tables, crossings: _native.Crossings) -> None:
    """Make ``twins``, and find the packets that are the same in the connections that places share."""
    tables.execute("""
        CREATE TEMP TABLE twins AS
        SELECT path, count(*) AS places,
            -- A firewall gave the connection other sequence numbers: they count from the SYN.
            coalesce(greatest(count(DISTINCT isn_client), count(DISTINCT isn_server)) > 1
                AND count(isn_client) = count(*) AND count(isn_server) = count(*), false) AS renumbered
        FROM members JOIN all_connections rows ON rows.part = members.part AND rows.stream = members.local
        GROUP BY path HAVING count(*) > 1
    """)
    crossings.meet(
        Rows(
            tables.stored("""
                SELECT members.part, local, path, turned, coalesce(places, 1) AS places,
                    if(renumbered, isn_client, NULL) AS isn_client, if(renumbered, isn_server, NULL) AS isn_server
                FROM members LEFT JOIN twins USING (path)
                JOIN all_connections rows ON rows.part = members.part AND rows.stream = members.local
            """)
        )
    )
