"""What was changed on the way between two places, and which packets came in another order, twice or needlessly.

In: ``place_packets``, ``paths``, ``connections``, ``handshakes``, ``links``. Out: ``changes`` and ``disorders``.

Both compare the same packet at two neighbouring places. A SYN that lost options is the same packet, too
(``places.matching``). A handshake is split where another SYN-ACK reached the client than the server sent, sooner than
any packet of the server can have come: a middlebox answered. Both times have the same error of the clocks, so that it
does not matter.
"""

from conchart.store.tables import Tables

# Most connections have the same packets everywhere, in one order and with the same headers: their SYNs do.
_LIKE = """
    CREATE OR REPLACE TEMP TABLE unlike AS
    SELECT stream FROM paths GROUP BY stream
    HAVING count(*) > 1 AND (sum(lacking + overtaken) > 0 OR count(DISTINCT isn_client) > 1
        OR count(DISTINCT isn_server) > 1 OR bool_or(varies));
    CREATE OR REPLACE TEMP TABLE compared AS
    FROM place_packets WHERE packet IS NOT NULL AND (contains(flags, 'S') OR stream IN (FROM unlike))
"""

_NEIGHBOURS = "paths one JOIN paths other ON other.stream = one.stream AND other.position = one.position + 1"
_CROSSED = f"""
    -- What each side's packets have in common where they leave a place and where they come to the next one.
    CREATE OR REPLACE TEMP TABLE hops AS
    SELECT one.stream, 'client' AS sender, one.place AS from_place, other.place AS to_place,
        one.packets_client AS packets,
        one.client_frame AS from_frame, other.client_frame AS to_frame, one.ttl_client AS from_ttl,
        other.ttl_client AS to_ttl, one.tos_client AS from_tos, other.tos_client AS to_tos,
        one.tunnel_client AS from_tunnel, other.tunnel_client AS to_tunnel
    FROM {_NEIGHBOURS}
    UNION ALL
    SELECT one.stream, 'server', other.place, one.place, other.packets_server, other.server_frame,
        one.server_frame, other.ttl_server, one.ttl_server, other.tos_server, one.tos_server,
        other.tunnel_server, one.tunnel_server
    FROM {_NEIGHBOURS};
    CREATE OR REPLACE TEMP TABLE crossed AS
    SELECT hops.stream, hops.sender, from_place, to_place,
        here.frame AS from_frame, there.frame AS to_frame, here.seen_at AS from_at, there.seen_at AS to_at,
        here.flags, here.bytes, there.bytes AS to_bytes, here.seq,
        here.ttl AS from_ttl, there.ttl AS to_ttl, here.tos AS from_tos, there.tos AS to_tos,
        here.mss AS from_mss, there.mss AS to_mss,
        here.window_scale AS from_scale, there.window_scale AS to_scale,
        here.options AS from_options, there.options AS to_options
    FROM hops
    JOIN compared here ON here.stream = hops.stream AND here.place = from_place AND here.sender::VARCHAR = hops.sender
    JOIN compared there ON there.stream = here.stream AND there.packet = here.packet AND there.place = to_place
"""

_ECN = "['not ECT', 'ECT(1)', 'ECT(0)', 'CE'][{} % 4 + 1]"
_HEADERS = f"""
    INSERT INTO changes BY NAME
    WITH alike AS (
        SELECT stream, from_place, to_place, sender, from_ttl, to_ttl, from_tos, to_tos, count(*) AS packets,
            arg_min(to_frame, from_frame) AS to_frame, min(from_frame) AS from_frame
        FROM crossed WHERE (from_ttl <> to_ttl OR from_tos <> to_tos) AND stream IN (FROM unlike) GROUP BY ALL
        UNION ALL BY NAME
        SELECT * EXCLUDE (from_tunnel, to_tunnel) FROM hops
        WHERE from_frame IS NOT NULL AND to_frame IS NOT NULL AND (from_ttl <> to_ttl OR from_tos <> to_tos)
            AND stream NOT IN (FROM unlike)),
    fields AS (
        SELECT * EXCLUDE (from_ttl, to_ttl, from_tos, to_tos, field), field.*
        FROM (SELECT *, unnest([
                {{'field': 'ttl', 'before': from_ttl::VARCHAR, 'after': to_ttl::VARCHAR}},
                {{'field': 'dscp', 'before': (from_tos // 4)::VARCHAR, 'after': (to_tos // 4)::VARCHAR}},
                {{'field': 'ecn', 'before': {_ECN.format("from_tos")}, 'after': {_ECN.format("to_tos")}}}]) AS field
            FROM alike))
    SELECT stream, from_place, to_place, sender, field, before, after, sum(packets)::BIGINT AS packets,
        min(from_frame) AS from_frame, arg_min(to_frame, from_frame) AS to_frame
    FROM fields WHERE before <> after GROUP BY ALL
"""

# Numbers: https://www.iana.org/assignments/tcp-parameters
_NAMES = """
    CASE kind WHEN '4' THEN 'sack_permitted' WHEN '8' THEN 'timestamps' WHEN '30' THEN 'multipath_tcp'
        WHEN '34' THEN 'fast_open' ELSE 'tcp_option_' || kind END
"""
_OPTIONS = f"""
    INSERT INTO changes BY NAME
    WITH begun AS (
        SELECT *, string_split(from_options, ',') AS had, string_split(to_options, ',') AS has
        FROM crossed WHERE contains(flags, 'S') AND from_options IS NOT NULL AND to_options IS NOT NULL
            AND (from_options, from_mss, from_scale) IS DISTINCT FROM (to_options, to_mss, to_scale)),
    valued AS (
        SELECT begun.*, unnest([
            {{'field': 'mss', 'before': from_mss::VARCHAR, 'after': to_mss::VARCHAR}},
            {{'field': 'window_scale', 'before': from_scale::VARCHAR, 'after': to_scale::VARCHAR}}]) AS change
        FROM begun),
    others AS (
        SELECT * EXCLUDE (kind), {{'field': {_NAMES}, 'before': if(list_contains(had, kind), 'present', NULL),
            'after': if(list_contains(has, kind), 'present', NULL)}} AS change
        FROM (SELECT begun.*, unnest(list_distinct(list_concat(had, has))) AS kind FROM begun)
        WHERE kind NOT IN ('', '2', '3'))
    SELECT stream, from_place, to_place, sender, change.field AS field, change.before AS before, change.after AS after,
        count(*) AS packets, min(from_frame) AS from_frame, arg_min(to_frame, from_frame) AS to_frame
    FROM (FROM valued UNION ALL BY NAME FROM others)
    WHERE change.before IS DISTINCT FROM change.after GROUP BY ALL
"""

_ENDS = f"""
    INSERT INTO changes BY NAME
    WITH ends AS (
        SELECT one.stream, one.place AS from_place, other.place AS to_place, one.first_frame AS from_frame,
            other.first_frame AS to_frame, unnest([
                {{'sender': 'client', 'field': 'client_ip', 'before': one.client_ip, 'after': other.client_ip}},
                {{'sender': 'client', 'field': 'client_port', 'before': one.client_port::VARCHAR,
                    'after': other.client_port::VARCHAR}},
                {{'sender': 'client', 'field': 'server_ip', 'before': one.server_ip, 'after': other.server_ip}},
                {{'sender': 'client', 'field': 'server_port', 'before': one.server_port::VARCHAR,
                    'after': other.server_port::VARCHAR}},
                {{'sender': 'client', 'field': 'isn', 'before': one.isn_client::VARCHAR,
                    'after': other.isn_client::VARCHAR}},
                {{'sender': 'server', 'field': 'isn', 'before': other.isn_server::VARCHAR,
                    'after': one.isn_server::VARCHAR}}]) AS change
        FROM {_NEIGHBOURS}
        WHERE (one.client_ip, one.client_port, one.server_ip, one.server_port, one.isn_client, one.isn_server)
            IS DISTINCT FROM (other.client_ip, other.client_port, other.server_ip, other.server_port,
                other.isn_client, other.isn_server))
    SELECT stream, if(change.sender = 'client', from_place, to_place) AS from_place,
        if(change.sender = 'client', to_place, from_place) AS to_place, change.sender AS sender, change.field AS field,
        change.before AS before, change.after AS after, 1 AS packets,
        if(change.sender = 'client', from_frame, to_frame) AS from_frame,
        if(change.sender = 'client', to_frame, from_frame) AS to_frame
    FROM ends WHERE change.before <> change.after
"""

# What a place saw in a tunnel, and its neighbour outside of it or in another one.
_TUNNELS = """
    INSERT INTO changes BY NAME
    SELECT stream, from_place, to_place, sender, 'tunnel' AS field, from_tunnel AS before, to_tunnel AS after, packets,
        from_frame, to_frame
    FROM hops
    WHERE from_tunnel IS DISTINCT FROM to_tunnel AND from_frame IS NOT NULL AND to_frame IS NOT NULL
"""

# The server's SYN-ACK, if it was the one that the client got, was faster than each other packet.
_SPLIT = f"""
    INSERT INTO changes BY NAME
    WITH renumbered AS (
        SELECT one.stream, one.place AS near, other.place AS far FROM {_NEIGHBOURS}
        WHERE one.isn_server <> other.isn_server),
    fastest AS (
        SELECT stream, to_place, from_place, min(to_at - from_at) AS ns FROM crossed
        WHERE sender = 'server' AND stream IN (SELECT stream FROM renumbered) GROUP BY ALL),
    answered AS (
        SELECT stream, place, min(seen_at) AS seen_at, arg_min(frame, seen_at) AS frame FROM compared
        WHERE sender = 'server' AND contains(flags, 'S') AND stream IN (SELECT stream FROM renumbered) GROUP BY ALL)
    SELECT renumbered.stream, far AS from_place, near AS to_place, 'server' AS sender, 'handshake' AS field,
        'server' AS before, 'middlebox' AS after, 1 AS packets, behind.frame AS from_frame, got.frame AS to_frame
    FROM renumbered
    JOIN fastest ON fastest.stream = renumbered.stream AND fastest.to_place = near AND fastest.from_place = far
    JOIN answered got ON got.stream = renumbered.stream AND got.place = near
    JOIN answered behind ON behind.stream = renumbered.stream AND behind.place = far
    WHERE got.seen_at - behind.seen_at < ns
"""

_OF_PROXIES = """
    INSERT INTO changes BY NAME
    WITH places_of AS (
        SELECT stream, arg_min(place, position) AS first_place, arg_max(place, position) AS last_place
        FROM paths GROUP BY stream),
    spoken AS (
        SELECT stream, coalesce(version, 'TLS') AS version, client_random, hello_frame
        FROM handshakes WHERE number = 0),
    pairs AS (
        SELECT DISTINCT front_stream, back_stream FROM links WHERE back_stream IS NOT NULL
        UNION
        SELECT front.stream, back.stream FROM spoken front JOIN spoken back USING (client_random)
        JOIN connections one ON one.stream = front.stream JOIN connections other ON other.stream = back.stream
        WHERE front.stream <> back.stream AND front.hello_frame <> back.hello_frame
            AND (one.syn_at, one.stream) < (other.syn_at, other.stream)),
    both_sides AS (
        SELECT front_stream AS stream, front_places.last_place AS from_place, back_places.first_place AS to_place,
            front.version AS before, back.version AS after, front.client_random = back.client_random AS same,
            coalesce(front.hello_frame, one.first_frame) AS from_frame,
            coalesce(back.hello_frame, other.first_frame) AS to_frame
        FROM pairs JOIN places_of front_places ON front_places.stream = front_stream
        JOIN places_of back_places ON back_places.stream = back_stream
        JOIN connections one ON one.stream = front_stream JOIN connections other ON other.stream = back_stream
        LEFT JOIN spoken front ON front.stream = front_stream LEFT JOIN spoken back ON back.stream = back_stream
        WHERE front.version IS NOT NULL OR back.version IS NOT NULL),
    announced AS (
        SELECT coalesce(front.stream, back.stream) AS stream, coalesce(front.place, first_place) AS from_place,
            first_place AS to_place, NULL AS before, announced_ip || ' ' || announced_port AS after,
            coalesce(front.first_frame, back.first_frame) AS from_frame, back.first_frame AS to_frame
        FROM connections back JOIN places_of ON places_of.stream = back.stream
        LEFT JOIN (
            SELECT paths.* FROM paths JOIN places_of ON places_of.stream = paths.stream AND last_place = place) front
            ON front.client_ip = announced_ip AND front.client_port = announced_port AND front.stream <> back.stream
        WHERE announced_ip IS NOT NULL),
    changed AS (
        SELECT * EXCLUDE (same), if(coalesce(same, false), 'tls_passed_through', 'tls') AS field FROM both_sides
        UNION ALL BY NAME
        SELECT *, 'proxy_header' AS field FROM announced)
    SELECT stream, from_place, to_place, 'client' AS sender, field, before, after, count(*) AS packets,
        min(from_frame) AS from_frame, min(to_frame) AS to_frame
    FROM changed GROUP BY ALL
"""

_OVERTAKEN = """
    INSERT INTO disorders BY NAME
    WITH ranked AS (
        SELECT *, max({'from_frame': from_frame, 'to_frame': to_frame, 'to_at': to_at}) OVER (
            PARTITION BY stream, sender, from_place, to_place ORDER BY to_frame
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS ahead
        FROM crossed WHERE stream IN (FROM unlike))
    SELECT stream, sender, 'reordered' AS kind, from_place, to_place, from_frame AS frame, to_frame,
        ahead.to_frame AS other_frame, seq, bytes, to_at - ahead.to_at AS late_ns
    FROM ranked WHERE ahead.from_frame > from_frame
"""

# Whose bytes the last place on the way had already: those of one packet, or of several that were new then.
_NEEDLESS = """
    CREATE OR REPLACE TEMP TABLE repeating AS
    FROM place_packets WHERE packet IS NOT NULL AND stream IN (SELECT stream FROM paths WHERE late > 0);
    INSERT INTO disorders BY NAME
    WITH ends AS (
        SELECT stream, 'client' AS sender, arg_min(place, position) AS from_place, arg_max(place, position) AS to_place
        FROM paths GROUP BY stream HAVING count(*) > 1 AND sum(late) > 0
        UNION ALL
        SELECT stream, 'server', arg_max(place, position), arg_min(place, position)
        FROM paths GROUP BY stream HAVING count(*) > 1 AND sum(late) > 0),
    arrived AS (
        SELECT repeating.*, (seq - isn + 4294967296) % 4294967296 AS starts, starts + bytes AS ends_at, from_place
        FROM ends JOIN repeating ON repeating.stream = ends.stream AND repeating.place = to_place
            AND repeating.sender::VARCHAR = ends.sender
        JOIN (SELECT stream, 'client' AS side, place, coalesce(isn_client, 0) AS isn FROM paths
            UNION ALL SELECT stream, 'server', place, coalesce(isn_server, 0) FROM paths) numbers
            ON numbers.stream = repeating.stream AND numbers.place = repeating.place
                AND side = repeating.sender::VARCHAR
        WHERE bytes > 0 AND seq IS NOT NULL),
    placed AS (
        SELECT *, coalesce(starts < max(ends_at) OVER (
            PARTITION BY stream, sender ORDER BY frame
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), false) AS again,
            lag(frame) OVER (PARTITION BY stream, sender, starts, bytes ORDER BY frame) AS same_frame
        FROM arrived),
    -- Of those with the same bytes the first one, by blocks: each is compared with few others.
    laid AS (
        SELECT stream, sender, starts, ends_at, frame, again,
            unnest(range(starts // 65536, (ends_at - 1) // 65536 + 1)) AS block
        FROM placed WHERE same_frame IS NULL),
    had AS (
        SELECT stream, frame, same_frame AS whole_frame, same_frame AS frame_before, bytes
        FROM placed WHERE again AND same_frame IS NOT NULL
        UNION ALL BY NAME
        SELECT late.stream, late.frame, arg_max(earlier.frame, earlier.frame) FILTER (
                earlier.starts <= late.starts AND late.ends_at <= earlier.ends_at) AS whole_frame,
            max(earlier.frame) AS frame_before,
            sum(least(late.ends_at, earlier.ends_at) - greatest(late.starts, earlier.starts))
                FILTER (NOT earlier.again) AS bytes
        FROM (FROM laid WHERE again) late JOIN laid earlier ON earlier.stream = late.stream
            AND earlier.sender = late.sender AND earlier.block = late.block AND earlier.frame < late.frame
            AND earlier.starts < late.ends_at AND late.starts < earlier.ends_at
            AND greatest(earlier.starts, late.starts) // 65536 = late.block
        GROUP BY ALL)
    SELECT late.stream, late.sender, if(here.frame IS NULL, 'duplicated', 'needless') AS kind, late.from_place,
        late.place AS to_place, coalesce(here.frame, first_one.frame) AS frame, late.frame AS to_frame,
        coalesce(whole_frame, frame_before) AS other_frame, late.seq, late.bytes,
        late.seen_at - before.seen_at AS late_ns
    FROM had JOIN placed late ON late.stream = had.stream AND late.frame = had.frame
    JOIN placed before ON before.stream = had.stream AND before.frame = coalesce(whole_frame, frame_before)
    LEFT JOIN repeating here ON here.stream = late.stream AND here.packet = late.packet AND here.place = late.from_place
    -- Its sender sent it once, and it came twice.
    LEFT JOIN repeating first_one ON here.frame IS NULL AND first_one.stream = before.stream
        AND first_one.packet = before.packet AND first_one.place = late.from_place
    WHERE (whole_frame IS NOT NULL OR had.bytes >= late.bytes) AND coalesce(here.frame, first_one.frame) IS NOT NULL
"""

FORGET = "; ".join(f"DROP TABLE IF EXISTS {name}" for name in ("unlike", "compared", "hops", "crossed", "repeating"))


def compare_places(tables: Tables) -> None:
    """Fill ``changes`` and ``disorders``."""
    if not tables.have_places:
        return
    for statement in (_LIKE, _CROSSED, _HEADERS, _OPTIONS, _ENDS, _TUNNELS, _SPLIT, _OF_PROXIES, _OVERTAKEN, _NEEDLESS):
        tables.execute(statement)
