"""Hops: which machines are proxies, and which back exchange each of their front exchanges caused.

In: connections, handshakes and exchanges of a trace. Out: the tables ``nodes`` and ``links``. Which addresses are one
machine ``machines`` finds out; which exchange belongs to which, the native core (``linking``), which learns each
proxy's habits from the capture.
"""

from collections.abc import Collection, Iterable

from conchart import _native
from conchart.analysis.machines import find_machines
from conchart.store.sql import CAUSES_UNTIL, PATH, PROTOCOLS, STARTING, TURNS, literal
from conchart.store.tables import Tables

_OPENS = "(e.method = 'CONNECT' OR (e.protocol = 'socks' AND e.host IS NOT NULL))"
"""Of exchanges: they ask for a connection."""

_PATH = PATH.format("e")

_DIALECT = "CASE e.protocol WHEN 'postgresql' THEN 1 WHEN 'mysql' THEN 2 END"
"""Of exchanges: the protocol in which a pooler speaks to both sides."""

POOLED = f"protocol IN {tuple(row['name'] for row in PROTOCOLS if row['store'] == 'sql')}"
"""Condition on ``exchanges``: a pooler hands such on, in the same protocol."""

_TURNS = "ROLLBACK[A-Z ]* TO|BEGIN|START TRANSACTION|COMMIT|END|ROLLBACK|ABORT|PREPARE TRANSACTION"
_TURN = rf"""CASE WHEN {_DIALECT} IS NULL THEN NULL
    ELSE coalesce(list_last(list_transform(
        list_filter(regexp_extract_all(upper(e.target), '(?:^|;) ?({_TURNS})\b', 1), lambda word: word NOT LIKE '% TO'),
        lambda word: if(word IN ('BEGIN', 'START TRANSACTION'), 1, -1))), 0) END::INTEGER"""
"""Of exchanges: what follows is part of a transaction (1), or of none (-1); 0: as before."""

_KIND = f"regexp_replace({_PATH}, '[0-9][0-9a-f-]*', '?', 'g')"
"""The same without numbers: what kind of request it is."""

_EXCHANGES = f"""
    WITH both_sides AS (
        SELECT machine FROM machines JOIN connections ON server_ip = address
        INTERSECT SELECT machine FROM machines JOIN connections ON client_ip = address),
    places AS (FROM machines SEMI JOIN both_sides USING (machine)),
    handed AS (SELECT *, -row_number() OVER (ORDER BY back_stream)::INTEGER AS machine FROM through),
    sides AS (
        SELECT c.stream, a.machine AS accepted_by, NULL::INTEGER AS opened_by, NULL::INTEGER AS through
        FROM connections c JOIN places a ON a.address = server_ip
        UNION ALL SELECT c.stream, NULL, o.machine, NULL
        FROM connections c JOIN places o ON o.address = client_ip
        ANTI JOIN handed ON back_stream = c.stream
        UNION ALL SELECT front_stream, machine, NULL, NULL FROM handed
        UNION ALL SELECT back_stream, NULL, machine, front_stream FROM handed),
    ends AS (
        SELECT stream, dense_rank() OVER (ORDER BY server_ip, server_port, transport)::INTEGER AS endpoint,
            transport, closed_at, opened_at, ack_at, concat(server_ip, ':', server_port) AS server FROM connections),
    hellos AS (SELECT stream, hello_at, ready_at FROM handshakes WHERE number = 0),
    requested AS (
        SELECT e.stream, e.number, request_at, coalesce(request_done_at, request_at) AS request_done_at, response_at,
            response_done_at, outcome, request_bytes, response_bytes, status, {_OPENS} AS opens,
            CASE WHEN {_OPENS} THEN hash(coalesce(e.host, e.target)) WHEN target IS NOT NULL THEN hash(method, {_PATH})
                END AS target,
            CASE WHEN NOT {_OPENS} AND (target IS NOT NULL OR protocol NOT LIKE 'http%') THEN hash(method, {_KIND})
                END AS kind,
            list_transform(ids, lambda id: hash(id)) AS ids, confidence,
            e.number = min(e.number) OVER (PARTITION BY e.stream) AS first,
            {_DIALECT}::INTEGER AS dialect, if({_DIALECT} IS NULL OR e.target IS NULL, NULL, hash(e.target)) AS shape,
            {STARTING} AS starts, {_TURN} AS turn
        FROM exchanges e SEMI JOIN sides USING (stream) WHERE request_at IS NOT NULL AND protocol <> 'proxy'
            AND NOT ({TURNS})),
    openings AS (
        SELECT stream, NULL::INTEGER AS number, opened_at AS request_at, opened_at AS request_done_at,
            ack_at AS response_at, ack_at AS response_done_at, NULL AS outcome, NULL::BIGINT AS request_bytes,
            NULL::BIGINT AS response_bytes, NULL::INTEGER AS status, false AS opens, hash(server) AS target,
            NULL::UBIGINT AS kind,
            NULL::UBIGINT[] AS ids, 1.0::DOUBLE AS confidence, true AS first,
            NULL::INTEGER AS dialect, NULL::UBIGINT AS shape, false AS starts, NULL::INTEGER AS turn
        FROM ends
        WHERE EXISTS (FROM requested WHERE opens) AND transport = 'tcp'
            AND stream IN (FROM (SELECT stream FROM sides WHERE opened_by IS NOT NULL)))
    SELECT stream, number, accepted_by, opened_by, endpoint, through, opens,
        request_at, request_done_at, response_at, response_done_at, {CAUSES_UNTIL} AS closed_at, first,
        opened_at, ack_at AS connected_at, hello_at, ready_at,
        request_bytes, response_bytes, target, kind, status, ids, confidence, dialect, shape, starts, turn
    FROM (FROM requested UNION ALL BY NAME FROM openings)
    JOIN sides USING (stream) JOIN ends USING (stream) LEFT JOIN hellos USING (stream)
    WHERE number IS NOT NULL OR opened_by IS NOT NULL
    ORDER BY request_at, stream, number"""
"""Both sides of every machine that has two, as linking wants them. An opening is a back without a number."""

_HOPS = """
    FROM (SELECT back_stream FROM through LIMIT 1)
    UNION ALL FROM (
        SELECT machine FROM (
            SELECT machine, true AS accepts, hash(server_ip, server_port, transport) AS endpoint
            FROM connections JOIN machines ON address = server_ip
            UNION ALL SELECT machine, false, hash(server_ip, server_port, transport)
            FROM connections JOIN machines ON address = client_ip)
        GROUP BY machine HAVING bool_or(accepts) AND NOT bool_and(accepts) AND min(endpoint) <> max(endpoint) LIMIT 1)
"""
"""A row where there may be a hop: a connection that is handed through, or a machine that accepts and opens connections,
not all to one endpoint: a server causes none of its own requests."""

_HANDED_THROUGH = """
    INSERT INTO links BY NAME
    SELECT front_stream, back_stream, method, 0.99 AS confidence FROM through
    ANTI JOIN links USING (front_stream, back_stream)
"""
"""Connections that are handed through, and of whose exchanges nothing is known."""

_PAIRS = dict.fromkeys(("front_stream", "front_exchange", "back_stream", "back_exchange"), "INTEGER")
_PAIRS |= {"confidence": "DOUBLE"}
_LIKE_LINKS = """
    INSERT INTO links BY NAME
    SELECT *, 'likeness' AS method FROM alike
"""
_SURER = """
    DELETE FROM links
    WHERE (SELECT any_value(place) FROM paths WHERE stream = front_stream HAVING count(*) = 1) IN ({names})
        AND (SELECT any_value(place) FROM paths WHERE stream = back_stream HAVING count(*) = 1) IN ({names})
        AND (SELECT any_value(place) FROM paths WHERE stream = front_stream)
            <> (SELECT any_value(place) FROM paths WHERE stream = back_stream)
"""
"""Links that take clocks for right that are known by likeness alone."""
_CONFIDENCE = {True: 0.6, False: 0.5}
"""Of links between requests that look alike: those that were read, and those of which sizes alone are known."""
_LIKE = """
    SELECT exchanges.* FROM exchanges SEMI JOIN (
        SELECT stream FROM paths GROUP BY stream HAVING count(*) = 1 AND any_value(place) IN ({})) USING (stream)
"""

_NODES = """
    INSERT INTO nodes BY NAME
    WITH seen AS (
        SELECT client_ip AS address, NULL AS port FROM connections
        UNION SELECT server_ip, server_port FROM connections),
    both_ways AS (
        SELECT client_ip AS address FROM connections
        INTERSECT SELECT server_ip FROM connections WHERE state NOT IN ('abandoned', 'refused', 'unanswered')),
    linked AS (
        SELECT DISTINCT f.server_ip, f.server_port, b.client_ip
        FROM (SELECT DISTINCT front_stream, back_stream FROM links)
        JOIN connections f ON f.stream = front_stream JOIN connections b ON b.stream = back_stream
        WHERE (f.server_ip, f.server_port) <> (b.server_ip, b.server_port)),
    passing AS (
        SELECT server_ip AS address, server_port AS port FROM linked UNION SELECT client_ip, NULL FROM linked
        UNION SELECT server_ip, server_port FROM through JOIN connections ON stream = front_stream
        WHERE method = 'same-bytes'),
    named AS (
        SELECT address, first(address) OVER (PARTITION BY machine ORDER BY address) AS name, method, confidence
        FROM machines)
    SELECT seen.address, seen.port, dense_rank() OVER (ORDER BY coalesce(name, seen.address))::INTEGER - 1 AS node,
        CASE WHEN passing.address IS NOT NULL THEN 'proxy'
            WHEN seen.address IN (FROM both_ways) AND seen.address NOT IN (SELECT address FROM passing) THEN 'peer'
            WHEN seen.port IS NULL THEN 'client' ELSE 'server' END AS role,
        method, coalesce(confidence, 1.0) AS confidence
    FROM seen LEFT JOIN named USING (address)
    LEFT JOIN passing ON passing.address = seen.address AND passing.port IS NOT DISTINCT FROM seen.port
"""


FORGET = "DROP TABLE IF EXISTS machines; DROP TABLE IF EXISTS through"
"""SQL that drops what ``link_hops`` leaves."""


def link_hops(tables: Tables, proxies: Iterable[Collection[str]] = ()) -> None:
    """Fill ``links`` and ``nodes``.

    Args:
        tables: Those of a trace.
        proxies: Addresses of each proxy, where somebody knows better than the capture tells.
    """
    find_machines(tables, proxies)
    if tables.fetch(_HOPS):
        for batch in _native.link_exchanges(tables.sql(_EXCHANGES)):
            tables.add_batch("links", batch)
        tables.execute(_HANDED_THROUGH)
    _link_alike(tables)
    tables.execute(_NODES)


def _link_alike(tables: Tables) -> None:
    """Link the exchanges of places that share no packets: those by which their clocks were aligned."""
    if not tables.have_places:
        return
    # Only captures of several places pay for what those need.
    from conchart.reading.places.similarity import pair_exchanges

    aligned = tables.fetch("SELECT DISTINCT through, place FROM clocks WHERE method = 'likeness' ORDER BY ALL")
    for here, there in aligned:
        names = f"{literal(here)}, {literal(there)}"
        first = f"stream IN (SELECT stream FROM paths WHERE place = {literal(here)})"
        found = pair_exchanges(tables, _LIKE.format(names), first)
        tables.execute(_SURER.format(names=names))
        if found is None:
            continue
        rows = [(*front, *back, _CONFIDENCE[found.read]) for front, back in found.pairs]
        with tables.lent("alike", _PAIRS, rows):
            tables.execute(_LIKE_LINKS)
