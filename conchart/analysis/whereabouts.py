"""Where the time of each phase was spent: in a host, or on the path between two places.

In: ``sightings``, ``paths``, ``clocks``, ``phases``, ``links``. Out: the table ``whereabouts``.

At any instant, it is somebody's turn: the last packet that said something is under way to its receiver, or the
receiver has it and has not answered. Of both packets that bound a turn, each place says when it saw them. From that,
the time between them divides into the path there, the host behind the last place, and the path back. While one side
sends on, the time between two of its packets is its own as far as the last place saw it pass, too; what is more, the
second packet spent on the path longer than the first. Both went the same way, so that no clock makes this wrong.

The turns of one connection have no gaps, and each phase gets the parts of them that it lies over: they add up to the
phase exactly. A proxy's own part is divided further, by the connections that it caused (``links``).
"""

from conchart.store.tables import Tables

_MOST_HOPS = 8
"""Proxies in a row that are followed."""

_TURNS = """
    CREATE OR REPLACE TEMP TABLE turns AS
    WITH mine AS (
        SELECT stream, place, position FROM paths JOIN connections USING (stream) JOIN captures USING (capture, place)),
    spoken AS (
        SELECT stream, packet, sender, seen_at, frame, position
        FROM sightings JOIN mine USING (stream, place) JOIN connections USING (stream)
        WHERE packet IS NOT NULL AND stream IN (SELECT stream FROM paths WHERE position = 1)
            AND (sightings.bytes > 0 OR contains(flags, 'S') OR contains(flags, 'F') OR seen_at = ack_at)),
    changes AS (
        SELECT *, sender IS DISTINCT FROM lag(sender) OVER of_stream AS begins,
            sender IS DISTINCT FROM lead(sender) OVER of_stream AS ends
        FROM spoken WINDOW of_stream AS (PARTITION BY stream ORDER BY seen_at, frame)),
    bounds AS (FROM changes WHERE begins OR ends)
    SELECT stream, position, packet AS start_packet, sender AS start_by, seen_at AS start_at,
        lead(packet) OVER of_stream AS end_packet, lead(sender) OVER of_stream AS end_by,
        lead(seen_at) OVER of_stream AS end_at
    FROM bounds
    WINDOW of_stream AS (PARTITION BY stream ORDER BY seen_at, frame)
    QUALIFY end_at IS NOT NULL AND end_at > start_at
"""

# Who is waited for is behind the last place in that direction which saw the packets.
_STEPS = """
    CREATE OR REPLACE TEMP TABLE steps AS
    WITH places_behind AS (
        SELECT turns.*, paths.place, if(end_by = 'server', paths.position - turns.position,
            turns.position - paths.position)
                AS away
        FROM turns JOIN paths USING (stream)),
    seen AS (
        SELECT behind.*, asked.seen_at AS asked_at, answered.seen_at AS answered_at
        FROM (FROM places_behind WHERE away >= 0) behind
        LEFT JOIN sightings asked ON asked.stream = behind.stream AND asked.packet = start_packet
            AND asked.place = behind.place
        LEFT JOIN sightings answered ON answered.stream = behind.stream AND answered.packet = end_packet
            AND answered.place = behind.place),
    -- No packet is before the one that caused it, and each place lies behind the one before it.
    ordered AS (
        SELECT *, start_by = end_by AS alone,
            if(alone, start_at, least(end_at, max(greatest(start_at, asked_at)) OVER near)) AS there_at,
            greatest(start_at, min(least(end_at, if(alone, start_at + answered_at - asked_at,
                answered_at))) OVER near) AS back_at,
            answered_at IS NOT NULL AND asked_at IS NOT NULL AS known
        FROM seen WINDOW near AS (PARTITION BY stream, start_at ORDER BY away)),
    legs AS (
        SELECT *, greatest(there_at, back_at) AS left_at,
            lead(place) OVER near AS farther,
            least(lead(there_at) OVER near, lead(greatest(there_at, back_at)) OVER near) AS farther_there_at,
            lead(greatest(there_at, back_at)) OVER near AS farther_left_at
        FROM ordered WHERE known
        WINDOW near AS (PARTITION BY stream, start_at ORDER BY away)),
    parts AS (
        SELECT stream, there_at AS start_at, farther_there_at AS end_at, 'path' AS kind, place,
            farther AS to_place, alone,
            NULL::BIGINT AS ahead_ns
        FROM legs WHERE farther IS NOT NULL
        UNION ALL
        SELECT stream, farther_left_at, left_at, 'path', farther, place, alone, NULL FROM legs WHERE farther IS NOT NULL
        UNION ALL
        SELECT stream, there_at, left_at, 'host', place, NULL, alone,
            if(alone, start_at - asked_at, 0) FROM legs WHERE farther IS NULL)
    SELECT * FROM parts WHERE end_at > start_at
"""

DOUBTS = """
    WITH known AS (
        SELECT place, max(uncertainty_ns) AS ns, bool_or(uncertainty_ns IS NULL) AS unknown,
            any_value(through) AS through,
            any_value(through_ns) AS through_ns
        FROM clocks GROUP BY place)
    SELECT one.place, other.place AS to_place,
        CASE WHEN other.through = one.place THEN other.through_ns
            WHEN one.through = other.place THEN one.through_ns
            WHEN one.unknown OR other.unknown THEN NULL
            ELSE one.ns + other.ns END AS ns
    FROM known one JOIN known other ON one.place <> other.place
"""
"""By how many ns the clocks of two places may be wrong against each other; NULL where nothing is known."""
# A proxy's front that its own place alone saw: the wait is the proxy's, or that of its backends.
_ALONE = """
    INSERT INTO whereabouts BY NAME
    SELECT phases.stream, exchange, handshake, phases.kind AS phase, start_at, end_at, 'host' AS kind, paths.place,
        0 AS ahead_ns, phases.stream AS of_stream, exchange AS of_exchange, inferred
    FROM phases JOIN paths USING (stream)
    WHERE phases.kind = 'wait' AND end_at > start_at AND phases.stream IN (SELECT front_stream FROM links)
        AND phases.stream NOT IN (SELECT stream FROM paths WHERE position = 1)
"""
_BETWEEN = f"CREATE OR REPLACE TEMP TABLE doubts AS {DOUBTS}"

_PHASES = """
    INSERT INTO whereabouts BY NAME
    WITH parts AS (
        SELECT phases.stream, exchange, handshake, phases.kind AS phase,
            greatest(phases.start_at, steps.start_at) AS start_at, least(phases.end_at, steps.end_at) AS end_at,
            steps.kind, place, to_place, alone, ahead_ns, inferred
        FROM phases JOIN steps ON steps.stream = phases.stream
            AND steps.start_at < phases.end_at AND phases.start_at < steps.end_at
        WHERE phases.kind IN ('syn', 'tls', 'request', 'wait', 'transfer'))
    SELECT parts.* EXCLUDE (alone), if(alone, 0, doubts.ns) AS uncertainty_ns, stream AS of_stream,
        exchange AS of_exchange
    FROM parts LEFT JOIN doubts USING (place, to_place)
"""

# What a proxy's own part is made of: what its back connections say of the time in which it waited for them.
_BEHIND = """
    CREATE OR REPLACE TEMP TABLE behind AS
    WITH caused AS (
        SELECT own.*, back_stream, back_exchange,
            greatest(own.start_at - own.ahead_ns, coalesce(opening.opened_at, asked.request_at)) AS from_at,
            least(own.end_at - own.ahead_ns, asked.response_done_at) AS until_at
        FROM whereabouts own
        JOIN links ON front_stream = of_stream AND front_exchange = of_exchange
        JOIN exchanges asked ON asked.stream = back_stream AND asked.number = back_exchange
        LEFT JOIN connections opening ON opening.stream = back_stream
            AND opening.opened_at >= own.start_at - own.ahead_ns
            AND back_exchange = 0
        WHERE own.kind = 'host' AND own.phase = 'wait' AND own.of_stream <> back_stream
            AND (own.place = (SELECT place FROM paths WHERE stream = back_stream AND position = 0)
                -- What other places alone saw of a proxy's connections, it sent on behind the front's last place.
                OR own.place NOT IN (SELECT place FROM paths WHERE stream = back_stream)
                AND own.place = (SELECT arg_max(place, position) FROM paths WHERE stream = of_stream))),
    -- Where several are under way, the one that ends last is waited for.
    alone AS (
        SELECT *, greatest(from_at, coalesce(max(until_at) OVER earlier, from_at)) AS since_at FROM caused
        WHERE until_at > from_at
        WINDOW earlier AS (PARTITION BY stream, start_at ORDER BY from_at, until_at DESC, back_stream, back_exchange
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
    SELECT alone.stream, alone.exchange, alone.handshake, alone.phase, alone.start_at AS own_start_at,
        greatest(since_at, back.start_at) + alone.ahead_ns AS start_at,
        least(until_at, back.end_at) + alone.ahead_ns AS end_at,
        back.kind, back.place, back.to_place, back.uncertainty_ns, back.ahead_ns + alone.ahead_ns AS ahead_ns,
            back.of_stream, back.of_exchange, back.inferred
    FROM alone JOIN whereabouts back ON back.stream = back_stream
        AND back.start_at < until_at AND since_at < back.end_at
    -- The proxy's own time stays its own.
    WHERE since_at < until_at AND NOT (back.kind = 'host' AND back.place = alone.place)
"""
_FEWER = """
    CREATE OR REPLACE TEMP TABLE own AS
    WITH cut AS (
        SELECT own.*, behind.start_at AS taken_at, behind.end_at AS given_at
        FROM whereabouts own JOIN behind ON behind.stream = own.stream AND behind.own_start_at = own.start_at
            AND own.kind = 'host'),
    edges AS (
        SELECT * EXCLUDE (taken_at, given_at), coalesce(lag(given_at) OVER own, start_at) AS from_at,
            taken_at AS until_at
        FROM cut WINDOW own AS (PARTITION BY stream, start_at ORDER BY taken_at)
        UNION ALL
        SELECT * EXCLUDE (taken_at, given_at), max(given_at), max(end_at) FROM cut GROUP BY ALL)
    SELECT * EXCLUDE (start_at, end_at, from_at, until_at), from_at AS start_at, until_at AS end_at,
        start_at AS own_start_at
    FROM edges WHERE until_at > from_at
"""
_REPLACE = """
    DELETE FROM whereabouts WHERE kind = 'host' AND (stream, start_at) IN (SELECT (stream, own_start_at) FROM behind);
    INSERT INTO whereabouts BY NAME SELECT * EXCLUDE (own_start_at) FROM own;
    INSERT INTO whereabouts BY NAME SELECT * EXCLUDE (own_start_at) FROM behind;
"""
FORGET = "; ".join(f"DROP TABLE IF EXISTS {name}" for name in ("turns", "steps", "doubts", "behind", "own"))


def place_phases(tables: Tables) -> None:
    """Fill ``whereabouts``."""
    if not tables.have_places:
        return
    for statement in (_TURNS, _STEPS, _BETWEEN, _PHASES, _ALONE):
        tables.execute(statement)
    for _ in range(_MOST_HOPS):
        tables.execute(_BEHIND)
        if not tables.count("behind"):
            break
        tables.execute(_FEWER)
        tables.execute(_REPLACE)
