"""Where the time of each phase was spent: in a host, on a path, or until a lost packet came again.

In: ``place_packets``, ``paths``, ``clocks``, ``phases``, ``phase_stalls``, ``losses``, ``links``. Out:
``phase_places``, ``crossings``.

At any instant, it is somebody's turn: the last packet that said something is under way to its receiver, or the
receiver has it and has not answered. Of both packets that bound a turn, each place says when it saw them. From that,
the time between them divides into the path there, the host behind the last place, and the path back. While one side
sends on, the time between two of its packets is its own as far as the last place saw it pass, too; what is more, the
second packet spent on the path longer than the first. Both went the same way, so that no clock makes this wrong.

The turns of one connection have no gaps, and each phase gets the parts of them that it lies over: they add up to the
phase exactly. While a sender's timer runs for a lost packet, its host has nothing to do: that time is the loss's; nor
while it waits for an acknowledgement before it may send on, or what it sent is in a queue: that is the pace of the
path. A proxy's own part is divided further, by the connections that it caused (``links``).
"""

from conchart import _native
from conchart.store.sql import literal
from conchart.store.tables import Tables

_WAITED_FOR = ("syn", "tls", "request", "wait", "transfer")
"""The phases that are divided."""
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

# Places are numbered: a number for each packet costs less than a name.
_SIGHTINGS = """
    SELECT stream, {number} AS place, frame, packet, seen_at, sender = 'client' AS by_client, bytes, seq,
        bytes > 0 OR contains(flags, 'S') OR contains(flags, 'F') AS says
    FROM place_packets paths
"""
_STOPS = """
    SELECT paths.stream, {number} AS place, position, paths.place = captures.place AS tells, ack_at,
        paths.isn_client, paths.isn_server,
        if(ends.stream IS NOT NULL, coalesce(at_server, false), NULL) AS at_server,
        if(ends.stream IS NOT NULL, coalesce(at_client, false), NULL) AS at_client
    FROM paths JOIN connections USING (stream) JOIN captures USING (capture) LEFT JOIN ends USING (stream)
"""

# Requests of a connection that carries several at once, and what QUIC acknowledges between a request and its response.
_REQUESTS = """
    SELECT stream, number AS exchange, request_done_at AS start_at, response_at AS end_at
    FROM exchanges JOIN connections USING (stream)
    WHERE (transport = 'udp' OR protocol IN ('h2', 'grpc')) AND request_done_at < response_at
        AND stream IN (SELECT stream FROM paths WHERE position = 1)
"""

# In the time of the place that saw it.
_PACED = "CREATE OR REPLACE TEMP TABLE paced AS SELECT *, place AS seen_by, 'pace' AS kind FROM paces"

DOUBTS = """
    WITH uncertainty AS (
        SELECT place, max(uncertainty_ns) AS ns, bool_or(uncertainty_ns IS NULL) AS unknown,
            any_value(through) AS through,
            any_value(through_ns) AS through_ns
        FROM clocks GROUP BY place)
    SELECT one.place, other.place AS to_place,
        CASE WHEN other.through = one.place THEN other.through_ns
            WHEN one.through = other.place THEN one.through_ns
            WHEN one.unknown OR other.unknown THEN NULL
            ELSE one.ns + other.ns END AS ns
    FROM uncertainty one JOIN uncertainty other ON one.place <> other.place
"""
"""By how many ns the clocks of two places may be wrong against each other; NULL where nothing is known."""
_CROSSINGS = "INSERT INTO crossings BY NAME FROM crossed"
_BETWEEN = f"CREATE OR REPLACE TEMP TABLE doubts AS {DOUBTS}"

_PHASES = f"""
    INSERT INTO phase_places BY NAME
    WITH own AS (FROM steps SELECT DISTINCT stream, turn WHERE turn IS NOT NULL),
    waited AS (
        SELECT phases.*, turn
        FROM phases LEFT JOIN own ON phases.kind = 'wait' AND own.stream = phases.stream AND turn = exchange
        WHERE phases.kind IN {_WAITED_FOR}),
    parts AS (
        SELECT phases.stream, exchange, handshake, phases.kind AS phase,
            greatest(phases.start_at, steps.start_at) AS start_at, least(phases.end_at, steps.end_at) AS end_at,
            steps.kind, place, to_place, alone, ahead_ns, inferred
        FROM waited phases JOIN steps ON steps.stream = phases.stream AND steps.turn IS NOT DISTINCT FROM phases.turn
            AND steps.start_at < phases.end_at AND phases.start_at < steps.end_at)
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
        SELECT held.stream, held.start_at, held.end_at, came.sender::VARCHAR AS sender, seq
        FROM phase_stalls AS held
        LEFT JOIN place_packets AS came ON came.stream = held.stream AND came.frame = end_frame
        WHERE kind IN ('rto', 'fast-retransmit', 'syn-rto', 'pto', 'loss')
            AND held.stream IN (SELECT stream FROM phase_places)),
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
        ASOF JOIN (FROM place_packets WHERE stream IN (SELECT stream FROM losses)) next
            ON next.stream = gone.stream AND next.place = gone.from_place AND next.sender = gone.sender
                AND next.seq = gone.seq AND next.flags = gone.flags AND gone.seen_at < next.seen_at)
    SELECT stream, seen_by, greatest(lost_at, coalesce(max(end_at) OVER earlier, lost_at)) AS start_at, end_at,
        'loss' AS kind, seen_by AS place, to_place
    FROM again
    WINDOW earlier AS (PARTITION BY stream, seen_by ORDER BY lost_at, end_at DESC
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    QUALIFY end_at > start_at
"""
_DIVIDED = """
    CREATE OR REPLACE TEMP TABLE divided AS
    WITH cut AS (
        SELECT own.*, charged.kind AS charged_kind, coalesce(charged.place, own.place) AS from_place,
            charged.to_place AS next_place,
            if(seen_by IS NULL, 0, own.ahead_ns) AS later_ns,
            greatest(own.start_at, charged.start_at + later_ns) AS taken_at,
            least(own.end_at, charged.end_at + later_ns) AS given_at
        FROM phase_places own JOIN {charged} AS charged ON charged.stream = own.stream
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
    FROM pieces
    JOIN phase_places AS own ON own.stream = pieces.stream AND own.start_at = own_start_at AND own.kind = 'host'
    WHERE pieces.end_at > pieces.start_at
"""

_ROUTED = """
    CREATE OR REPLACE TEMP TABLE routed AS
    SELECT stream, list(place) AS places, arg_min(place, position) AS first_place,
        arg_max(place, position) AS last_place
    FROM paths GROUP BY stream
"""

# What a proxy's own part is made of: what its back connections say of the time in which it waited for them.
_BEHIND = """
    CREATE OR REPLACE TEMP TABLE behind AS
    WITH caused AS (
        SELECT own.*, back_stream, back_exchange,
            -- The first request of a connection that was opened for it begins with that.
            greatest(own.start_at - own.ahead_ns, if(back_exchange = 0
                AND opening.opened_at >= own.start_at - own.ahead_ns, opening.opened_at, request.request_at))
                AS from_at,
            least(own.end_at - own.ahead_ns, request.response_done_at) AS until_at
        FROM phase_places own
        JOIN links ON front_stream = of_stream AND front_exchange = of_exchange
        JOIN exchanges request ON request.stream = back_stream AND request.number = back_exchange
        JOIN connections opening ON opening.stream = back_stream
        JOIN routed there ON there.stream = back_stream JOIN routed here ON here.stream = of_stream
        WHERE own.kind IN ('host', 'behind') AND own.phase = 'wait' AND own.of_stream <> back_stream
            AND (own.place = there.first_place
                -- What other places alone saw of a proxy's connections, it sent on behind the front's last place.
                OR NOT list_contains(there.places, own.place) AND own.place = here.last_place)),
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
    FROM alone JOIN phase_places back ON back.stream = back_stream
        AND back.start_at < until_at AND since_at < back.end_at
    -- The proxy's own time stays its own.
    WHERE since_at < until_at AND NOT (back.kind = 'host' AND back.place = alone.place)
        AND back.kind <> 'before'
"""
_FEWER = """
    CREATE OR REPLACE TEMP TABLE own AS
    WITH cut AS (
        SELECT own.*, behind.start_at AS taken_at, behind.end_at AS given_at
        FROM phase_places own JOIN behind ON behind.stream = own.stream AND behind.own_start_at = own.start_at
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
# What lies between two places that share no packets: before the back connection has the request, and after it. The way
# there and back is exact; each part alone is as uncertain as the clocks.
_LEFT = """
    UPDATE phase_places own SET kind = 'between', uncertainty_ns = ns,
        place = if(is_there, here, there), to_place = if(is_there, there, here)
    FROM (
        SELECT behind.stream, behind.start_at, behind.end_at, behind.place AS here, back.place AS there,
            behind.end_at <= min(back.start_at) AS is_there, any_value(doubts.ns) AS ns
        FROM phase_places behind
        JOIN links ON links.method = 'likeness' AND front_stream = behind.of_stream
            AND front_exchange = behind.of_exchange
        JOIN phase_places back ON back.stream = behind.stream AND back.of_stream = back_stream
            AND back.of_exchange = back_exchange
        JOIN doubts ON doubts.place = behind.place AND doubts.to_place = back.place
        WHERE behind.kind = 'behind' AND behind.phase = 'wait' AND behind.stream = behind.of_stream
            AND behind.exchange = behind.of_exchange
        GROUP BY behind.stream, behind.start_at, behind.end_at, behind.place, back.place
        HAVING behind.end_at <= min(back.start_at) OR behind.start_at >= max(back.end_at)) parts
    WHERE own.stream = parts.stream AND own.start_at = parts.start_at AND own.end_at = parts.end_at
        AND own.kind = 'behind'
"""
FORGET = "; ".join(
    f"DROP TABLE IF EXISTS {name}"
    for name in (
        "ends",
        "steps",
        "doubts",
        "lost",
        "resent",
        "paces",
        "paced",
        "crossed",
        "divided",
        "routed",
        "behind",
        "own",
    )
)


def place_phases(tables: Tables) -> None:
    """Fill ``phase_places`` and ``crossings``."""
    if not tables.have_places:
        return
    tables.execute(_ENDS)
    names = [name for (name,) in tables.fetch("SELECT place FROM places ORDER BY number")]
    number = " ".join(f"WHEN {literal(name)} THEN {number}" for number, name in enumerate(names))
    chosen = {"number": f"(CASE paths.place {number} END)::UTINYINT"}
    queries = (_SIGHTINGS.format(**chosen), _STOPS.format(**chosen), "SELECT frame FROM losses", _REQUESTS)
    steps, paced, crossed = _native.divide_turns(names, *map(tables.sql, queries))
    tables.lend_batch("steps", steps)
    tables.lend_batch("paces", paced)
    tables.lend_batch("crossed", crossed)
    for statement in (_CROSSINGS, _PACED, _BETWEEN, _PHASES, _LOST, _RESENT, _ROUTED):
        tables.execute(statement)
    for charged, phases in (
        ("lost", _WAITED_FOR),
        ("resent", ("syn", "tls", "wait")),
        ("paced", ("request", "wait", "transfer")),
    ):
        tables.execute(_DIVIDED.format(charged=charged, phases=phases))
        _replace(tables, "divided", "divided")
    for _ in range(_MOST_HOPS):
        tables.execute(_BEHIND)
        if not tables.count("behind"):
            break
        tables.execute(_FEWER)
        _replace(tables, "behind", "own", "behind")
    tables.execute(_LEFT)


def _replace(tables: Tables, divided: str, *parts: str) -> None:
    """Put parts in the place of the hosts' time that they divide."""
    tables.execute(f"""
        DELETE FROM phase_places
        WHERE kind IN ('host', 'behind') AND (stream, start_at) IN (SELECT (stream, own_start_at) FROM {divided})
    """)
    for part in parts:
        tables.execute(f"INSERT INTO phase_places BY NAME SELECT * EXCLUDE (own_start_at) FROM {part}")
