"""Where the time of each phase was spent: in a host, on a path, or until a lost packet came again.

In: ``sightings``, ``paths``, ``clocks``, ``phases``, ``stalled``, ``losses``, ``links``. Out: ``whereabouts``.

At any instant, it is somebody's turn: the last packet that said something is under way to its receiver, or the
receiver has it and has not answered. Of both packets that bound a turn, each place says when it saw them. From that,
the time between them divides into the path there, the host behind the last place, and the path back. While one side
sends on, the time between two of its packets is its own as far as the last place saw it pass, too; what is more, the
second packet spent on the path longer than the first. Both went the same way, so that no clock makes this wrong.

The turns of one connection have no gaps, and each phase gets the parts of them that it lies over: they add up to the
phase exactly. While a sender's timer runs for a lost packet, its host has nothing to do: that time is the loss's; nor
while it waits for an acknowledgement before it may send on: that is the pace of the path. A proxy's own part is divided
further, by the connections that it caused (``links``).
"""

from conchart.store.tables import Tables

_WAITED_FOR = ("syn", "tls", "request", "wait", "transfer")
"""The phases that are divided."""
_AT_ONCE_NS = 1_000_000
"""A segment that follows an acknowledgement within so much was waiting for it."""
_MOST_HOPS = 8
"""Proxies in a row that are followed."""

# A connection of a proxy that one place alone saw: that place is the proxy, if it saw the proxy's other side too.
_ENDS = """
    CREATE OR REPLACE TEMP TABLE ends AS
    WITH single AS (SELECT stream, any_value(place) AS place FROM paths GROUP BY stream HAVING count(*) = 1),
    linked AS (
        SELECT single.stream, 'server' AS side, bool_or(other.place = single.place) AS is_here
        FROM single JOIN links ON front_stream = single.stream JOIN paths other ON other.stream = back_stream
        GROUP BY single.stream
        UNION ALL
        SELECT single.stream, 'client', bool_or(other.place = single.place)
        FROM single JOIN links ON back_stream = single.stream JOIN paths other ON other.stream = front_stream
        GROUP BY single.stream)
    -- Where the other side of the proxy was seen elsewhere, this place is at the other end of the connection.
    SELECT stream, bool_or(if(side = 'server', is_here, NOT is_here)) AS at_server,
        bool_or(if(side = 'client', is_here, NOT is_here)) AS at_client
    FROM linked GROUP BY stream
"""

_TURNS = """
    CREATE OR REPLACE TEMP TABLE turns AS
    WITH mine AS (
        SELECT stream, place, position FROM paths JOIN connections USING (stream) JOIN captures USING (capture, place)),
    spoken AS (
        SELECT stream, coalesce(packet, frame) AS packet, sender, seen_at, frame, position
        FROM sightings JOIN mine USING (stream, place) JOIN connections USING (stream)
        WHERE (packet IS NOT NULL AND stream IN (SELECT stream FROM paths WHERE position = 1)
            OR stream IN (SELECT stream FROM ends))
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
_SEEN = """
    CREATE OR REPLACE TEMP TABLE bounding AS
    SELECT packet, position, seen_at FROM sightings JOIN paths USING (stream, place)
    WHERE packet IN (SELECT start_packet FROM turns UNION SELECT end_packet FROM turns);
    CREATE OR REPLACE TEMP TABLE seen AS
    WITH places_behind AS (
        SELECT turns.*, paths.place, paths.position AS its_position,
            if(end_by = 'server', paths.position - turns.position, turns.position - paths.position) AS away
        FROM (FROM turns ANTI JOIN ends USING (stream)) turns JOIN paths USING (stream))
    SELECT behind.*, asked.seen_at AS asked_at, answered.seen_at AS answered_at
    FROM (FROM places_behind WHERE away >= 0) behind
    LEFT JOIN bounding asked ON asked.packet = start_packet AND asked.position = its_position
    LEFT JOIN bounding answered ON answered.packet = end_packet AND answered.position = its_position
"""
# Offloading may have cut or joined segments: a place saw a packet when it saw the first of its bytes.
_BY_BYTES = """
    CREATE OR REPLACE TEMP TABLE by_bytes AS
    WITH missing AS (
        SELECT stream, place, start_packet AS packet FROM seen WHERE asked_at IS NULL
        UNION
        SELECT stream, place, end_packet FROM seen WHERE answered_at IS NULL),
    wanted AS (
        SELECT DISTINCT missing.*, own.sender, own.seq
        FROM missing JOIN sightings own ON own.stream = missing.stream AND own.frame = missing.packet
        WHERE own.bytes > 0 AND own.seq IS NOT NULL AND own.frame NOT IN (SELECT frame FROM losses)
            AND missing.stream IN (
            SELECT stream FROM paths GROUP BY stream
            HAVING count(DISTINCT isn_client) <= 1 AND count(DISTINCT isn_server) <= 1)),
    segments AS (
        SELECT stream, place, sender, seq, max(bytes) AS bytes, min(seen_at) AS seen_at
        FROM sightings WHERE bytes > 0 AND seq IS NOT NULL AND (stream, place) IN (SELECT (stream, place) FROM wanted)
        GROUP BY ALL)
    SELECT wanted.stream, wanted.place, packet, segments.seen_at
    FROM wanted ASOF JOIN segments ON segments.stream = wanted.stream AND segments.place = wanted.place
        AND segments.sender = wanted.sender AND wanted.seq >= segments.seq
    WHERE wanted.seq < segments.seq + segments.bytes
"""
_STEPS = """
    CREATE OR REPLACE TEMP TABLE steps AS
    WITH known_by AS (
        SELECT seen.* REPLACE (
            coalesce(asked_at, asked.seen_at) AS asked_at, coalesce(answered_at, answered.seen_at) AS answered_at)
        FROM seen
        LEFT JOIN by_bytes asked ON asked.stream = seen.stream AND asked.place = seen.place
            AND asked.packet = start_packet
        LEFT JOIN by_bytes answered ON answered.stream = seen.stream AND answered.place = seen.place
            AND answered.packet = end_packet),
    -- No packet is before the one that caused it, and each place lies behind the one before it.
    ordered AS (
        SELECT *, start_by = end_by AS alone,
            if(alone, start_at, least(end_at, max(greatest(start_at, asked_at)) OVER near)) AS there_at,
            greatest(start_at, min(least(end_at, if(alone, start_at + answered_at - asked_at,
                answered_at))) OVER near) AS back_at,
            answered_at IS NOT NULL AND asked_at IS NOT NULL AS known
        FROM known_by WINDOW near AS (PARTITION BY stream, start_at ORDER BY away)),
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
    UNION ALL
    SELECT turns.stream, start_at, end_at,
        if(end_by = 'server', if(at_server, 'host', 'behind'), if(at_client, 'host', 'before')), place, NULL,
        start_by = end_by, 0
    FROM turns JOIN ends USING (stream) JOIN paths USING (stream)
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
_BETWEEN = f"CREATE OR REPLACE TEMP TABLE doubts AS {DOUBTS}"

_PHASES = f"""
    INSERT INTO whereabouts BY NAME
    WITH parts AS (
        SELECT phases.stream, exchange, handshake, phases.kind AS phase,
            greatest(phases.start_at, steps.start_at) AS start_at, least(phases.end_at, steps.end_at) AS end_at,
            steps.kind, place, to_place, alone, ahead_ns, inferred
        FROM phases JOIN steps ON steps.stream = phases.stream
            AND steps.start_at < phases.end_at AND phases.start_at < steps.end_at
        WHERE phases.kind IN {_WAITED_FOR})
    SELECT parts.* EXCLUDE (alone), if(alone, 0, doubts.ns) AS uncertainty_ns, stream AS of_stream,
        exchange AS of_exchange
    FROM parts LEFT JOIN doubts USING (place, to_place)
"""

# The packet that was lost: the one that ended the stall, before it came again; or the last one that got lost then, as
# an acknowledgement that came late may have been lost itself.
_LOST = """
    CREATE OR REPLACE TEMP TABLE lost AS
    WITH gone AS (
        SELECT stream, sender::VARCHAR AS sender, seq, seen_at, from_place, to_place
        FROM losses WHERE NOT captured_elsewhere),
    held AS (
        SELECT stalled.stream, stalled.start_at, stalled.end_at, sightings.sender::VARCHAR AS sender, seq
        FROM stalled LEFT JOIN sightings ON sightings.stream = stalled.stream AND sightings.frame = end_frame
        WHERE kind IN ('rto', 'fast-retransmit', 'syn-rto', 'pto', 'loss')
            AND stalled.stream IN (SELECT stream FROM whereabouts)),
    again AS (
        SELECT held.*, gone.from_place, gone.to_place
        FROM held ASOF LEFT JOIN gone ON gone.stream = held.stream AND gone.sender = held.sender
            AND gone.seq = held.seq AND gone.seen_at < held.end_at)
    SELECT again.stream, NULL AS seen_by, start_at, end_at, 'loss' AS kind, seen_at >= 2 * start_at - end_at AS is_then,
        coalesce(again.from_place, if(is_then, gone.from_place, NULL)) AS place,
        coalesce(again.to_place, if(is_then, gone.to_place, NULL)) AS to_place
    FROM again ASOF LEFT JOIN gone ON gone.stream = again.stream AND gone.seen_at < again.end_at
"""
# What the capture that tells cannot see: a packet was lost before it came there.
_RESENT = """
    CREATE OR REPLACE TEMP TABLE resent AS
    WITH again AS (
        SELECT gone.stream, gone.from_place AS seen_by, gone.seen_at AS lost_at, next.seen_at AS end_at, gone.to_place
        FROM (FROM losses WHERE NOT captured_elsewhere AND (bytes > 0 OR contains(flags, 'S'))) gone
        ASOF JOIN (FROM sightings WHERE stream IN (SELECT stream FROM losses)) next
            ON next.stream = gone.stream AND next.place = gone.from_place AND next.sender = gone.sender
                AND next.seq = gone.seq AND next.flags = gone.flags AND gone.seen_at < next.seen_at)
    SELECT stream, seen_by, greatest(lost_at, coalesce(max(end_at) OVER earlier, lost_at)) AS start_at, end_at,
        'loss' AS kind, seen_by AS place, to_place
    FROM again
    WINDOW earlier AS (PARTITION BY stream, seen_by ORDER BY lost_at, end_at DESC
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    QUALIFY end_at > start_at
"""
# A sender that sends as soon as an acknowledgement comes had to wait for it. In the time of the place that saw it.
_PACED = f"""
    CREATE OR REPLACE TEMP TABLE paced AS
    WITH nearest AS (
        SELECT stream, 'client' AS sender, arg_min(place, position) AS place, min_by(place, position, 2)[2] AS to_place
        FROM paths GROUP BY stream HAVING count(*) > 1
        UNION ALL
        SELECT stream, 'server', arg_max(place, position), max_by(place, position, 2)[2]
        FROM paths GROUP BY stream HAVING count(*) > 1),
    events AS (
        SELECT stream, nearest.sender, place, to_place, seen_at, frame, bytes > 0 AS is_data,
            sightings.sender::VARCHAR = nearest.sender AS is_own
        FROM sightings JOIN nearest USING (stream, place)),
    ordered AS (
        SELECT *, lag(seen_at) OVER of_stream AS before_at, lag(NOT is_own AND NOT is_data) OVER of_stream AS after_ack,
            -- Since its own last segment, nothing but acknowledgements came.
            max(seen_at) FILTER (is_own) OVER earlier AS sent_at,
            max(seen_at) FILTER (NOT is_own AND is_data) OVER earlier AS asked_at
        FROM events WINDOW of_stream AS (PARTITION BY stream, sender ORDER BY seen_at, frame),
            earlier AS (PARTITION BY stream, sender ORDER BY seen_at, frame
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)),
    waited AS (
        SELECT stream, sender, place, to_place, sent_at AS start_at, before_at AS end_at FROM ordered
        WHERE is_own AND is_data AND after_ack AND seen_at - before_at <= {_AT_ONCE_NS} AND before_at > sent_at
            AND coalesce(asked_at < sent_at, true)),
    bursts AS (
        SELECT *, sum(is_first::INTEGER) OVER (PARTITION BY stream, sender ORDER BY start_at) AS burst FROM (
            SELECT *, coalesce(start_at - lag(end_at) OVER (PARTITION BY stream, sender ORDER BY start_at)
                > {_AT_ONCE_NS}, true) AS is_first FROM waited))
    SELECT stream, place AS seen_by, min(start_at) AS start_at, max(end_at) AS end_at, 'pace' AS kind, place, to_place
    FROM bursts GROUP BY stream, sender, place, to_place, burst
"""
_DIVIDED = """
    CREATE OR REPLACE TEMP TABLE divided AS
    WITH cut AS (
        SELECT own.*, charged.kind AS charged_kind, coalesce(charged.place, own.place) AS from_place,
            charged.to_place AS next_place,
            if(seen_by IS NULL, 0, own.ahead_ns) AS later_ns,
            greatest(own.start_at, charged.start_at + later_ns) AS taken_at,
            least(own.end_at, charged.end_at + later_ns) AS given_at
        FROM whereabouts own JOIN {charged} AS charged ON charged.stream = own.stream
            AND (seen_by IS NULL OR seen_by = own.place)
            AND charged.start_at + if(seen_by IS NULL, 0, own.ahead_ns) < own.end_at
            AND own.start_at < charged.end_at + if(seen_by IS NULL, 0, own.ahead_ns)
        WHERE own.kind = 'host' AND own.phase IN {phases}),
    edges AS (
        SELECT *, coalesce(lag(given_at) OVER own, start_at) AS since_at
        FROM cut WINDOW own AS (PARTITION BY stream, start_at ORDER BY taken_at)),
    pieces AS (
        SELECT stream, start_at AS own_start_at, since_at AS start_at, taken_at AS end_at, 'host' AS kind, place,
            NULL AS to_place, ahead_ns, uncertainty_ns
        FROM edges
        UNION ALL
        SELECT stream, start_at, taken_at, given_at, charged_kind, from_place, next_place, NULL, 0 FROM edges
        UNION ALL
        SELECT stream, start_at, max(given_at), any_value(end_at), 'host', any_value(place), NULL, any_value(ahead_ns),
            any_value(uncertainty_ns)
        FROM edges GROUP BY stream, start_at)
    SELECT pieces.*, own.* EXCLUDE (stream, start_at, end_at, kind, place, to_place, ahead_ns, uncertainty_ns)
    FROM pieces JOIN whereabouts own ON own.stream = pieces.stream AND own.start_at = own_start_at AND own.kind = 'host'
    WHERE pieces.end_at > pieces.start_at
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
        WHERE own.kind IN ('host', 'behind') AND own.phase = 'wait' AND own.of_stream <> back_stream
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
        AND back.kind <> 'before'
"""
_FEWER = """
    CREATE OR REPLACE TEMP TABLE own AS
    WITH cut AS (
        SELECT own.*, behind.start_at AS taken_at, behind.end_at AS given_at
        FROM whereabouts own JOIN behind ON behind.stream = own.stream AND behind.own_start_at = own.start_at
            AND own.kind IN ('host', 'behind')),
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
FORGET = "; ".join(
    f"DROP TABLE IF EXISTS {name}"
    for name in (
        "ends",
        "turns",
        "bounding",
        "seen",
        "by_bytes",
        "steps",
        "doubts",
        "lost",
        "resent",
        "paced",
        "divided",
        "behind",
        "own",
    )
)


def place_phases(tables: Tables) -> None:
    """Fill ``whereabouts``."""
    if not tables.have_places:
        return
    for statement in (_ENDS, _TURNS, _SEEN, _BY_BYTES, _STEPS, _BETWEEN, _PHASES):
        tables.execute(statement)
    for charged, statement, phases in (
        ("lost", _LOST, _WAITED_FOR),
        ("resent", _RESENT, ("syn", "tls", "wait")),
        ("paced", _PACED, ("request", "wait", "transfer")),
    ):
        tables.execute(statement)
        tables.execute(_DIVIDED.format(charged=charged, phases=phases))
        _replace(tables, "divided", "divided")
    for _ in range(_MOST_HOPS):
        tables.execute(_BEHIND)
        if not tables.count("behind"):
            break
        tables.execute(_FEWER)
        _replace(tables, "behind", "own", "behind")


def _replace(tables: Tables, divided: str, *parts: str) -> None:
    """Put parts in the place of the hosts' time that they divide."""
    tables.execute(f"""
        DELETE FROM whereabouts
        WHERE kind IN ('host', 'behind') AND (stream, start_at) IN (SELECT (stream, own_start_at) FROM {divided})
    """)
    for part in parts:
        tables.execute(f"INSERT INTO whereabouts BY NAME SELECT * EXCLUDE (own_start_at) FROM {part}")
