"""Evidence for rules: connections and exchanges that are complete enough to judge, and what users waited for.

In: connections, handshakes, exchanges, phases, phase_stalls, links, nodes, servers, checks. Out: temporary tables and
views that the rules in ``rules/`` read beside the others, each made when the first rule that reads it is asked;
``docs/findings.md`` explains their columns. What has all the columns of handshakes and exchanges is a view: few rules
are asked, and each wants few of them.

A connection can be judged if the capture has both directions of it without holes, and somebody answered: also from its
middle on. How it was opened can be judged only where its TCP handshake was captured: that is in ``setups`` alone.
"""

from collections.abc import Mapping
from functools import partial

from conchart._native import judge_connections
from conchart.store.sql import (
    ANSWERED,
    ASKING,
    MISSING,
    OF_USERS,
    ONE_SIDED,
    OPENING,
    STARTING,
    with_values,
)
from conchart.store.steps import Step, Steps
from conchart.store.tables import Tables

# Where nothing is linked, time tells who waits, but too little of what a machine is: it makes no backend.
_CONNECTIONS = f"""
    WITH handing AS (
        SELECT DISTINCT stream, true AS handed FROM on_behalf JOIN connections USING (stream)
        SEMI JOIN (
            SELECT client_ip, server_ip, server_port FROM on_behalf JOIN connections USING (stream)
            WHERE method = 'link') USING (client_ip, server_ip, server_port))
    SELECT stream, client_ip, server_ip, server_port, server_name,
        CASE WHEN handed THEN 'backend' WHEN role = 'front' THEN 'front' ELSE 'server' END AS hop,
        coalesce(node, -1) AS client_node, opened_at,
        CASE WHEN syn_ack_at IS NOT NULL AND state <> 'midstream' THEN syn_at END AS syn_at,
        closed_at, fin_client_at, fin_server_at, rst_at, fin_by, rst_by, first_frame, ttl_client,
        announced_ip IS NOT NULL AS announced, rtt_client_ns, rtt_server_ns
    FROM connections
    LEFT JOIN (SELECT server_ip, server_port, role FROM servers) USING (server_ip, server_port)
    LEFT JOIN (SELECT address AS client_ip, node FROM nodes WHERE port IS NULL) USING (client_ip)
    LEFT JOIN handing USING (stream)
    WHERE transport = 'tcp' AND {ANSWERED} AND {MISSING} = 0 AND NOT ({ONE_SIDED})
    ORDER BY stream
"""
_PHASES = "SELECT stream, kind, start_at, end_at FROM phases WHERE kind IN ('syn', 'close')"
# The first handshake is the one that opens the connection; a later one is a renegotiation.
_HANDSHAKES = """
    SELECT stream, hello_at, ready_at, version IS NOT NULL AS has_version, kind, outcome, sni
    FROM handshakes WHERE number = 0
"""
# A connection whose last request was not answered ended for that reason, and so did a WebSocket: neither says how long
# it would have been kept.
_EXCHANGES = f"""
    SELECT stream, number, {ASKING} AS is_asking, request_at, request_done_at, response_at, response_done_at,
        protocol, kind, store, status, client_keepalive, server_keepalive,
        coalesce(outcome, 'answered') = 'answered' AND status IS DISTINCT FROM 101 AS is_answered
    FROM exchanges
"""
_CHECKS = "SELECT stream, count(*) AS checks FROM checks GROUP BY stream"

_SETUPS = "CREATE OR REPLACE TEMP VIEW setups AS FROM judged JOIN openings USING (stream)"

# Behind a tunnel stands somebody else than the address says. A session of TLS 1.3 is at hand when its ticket has
# arrived: a round trip after the handshake, at the latest.
_VISITS = """
    CREATE OR REPLACE TEMP TABLE visits AS
    WITH opened AS (
        SELECT stream, hello_at, hash(client_ip, server_port, coalesce(sni, server_ip)) AS visited,
            if(ja4 IS NULL, NULL, hash(client_ip, server_ip, server_port, sni, ja4)) AS alike, server_ip AS before_ip,
            complete_at + CASE WHEN version = 'TLSv1.3' THEN coalesce(rtt_ns, 0) ELSE 0 END AS before_at,
            CASE WHEN kind <> 'full' THEN true ELSE ticket_issued OR session_id_issued END AS before_issued,
            kind = 'session-id' OR coalesce(session_id_issued, false) AS before_id
        FROM handshakes
        JOIN (SELECT stream, client_ip, server_ip, server_port, rtt_ns FROM judged WHERE NOT probe) USING (stream)
        WHERE number = 0 AND outcome = 'complete' AND ready_at IS NOT NULL AND client_ip NOT IN (FROM scanners)
            AND stream NOT IN (SELECT stream FROM exchanges WHERE method = 'CONNECT' OR protocol = 'socks'))
    SELECT stream, before_at, before_ip, before_issued, before_id, alike_at, alike_issued
    FROM (SELECT stream FROM opened) LEFT JOIN (
        SELECT visits.stream, sessions.before_at, sessions.before_ip, sessions.before_issued, sessions.before_id
        FROM opened visits ASOF JOIN opened sessions
            ON visits.visited = sessions.visited AND visits.hello_at >= sessions.before_at
        WHERE visits.hello_at - sessions.before_at <= $session_ns) USING (stream) LEFT JOIN (
        SELECT visits.stream, sessions.before_at AS alike_at, sessions.before_issued AS alike_issued
        FROM opened visits ASOF JOIN opened sessions
            ON visits.alike = sessions.alike AND visits.hello_at >= sessions.before_at
        WHERE visits.hello_at - sessions.before_at <= $session_ns) USING (stream)
"""
# What a resumed handshake would not have had. TLS 1.2 and older: the second round trip. TLS 1.3: the signature and the
# certificate, in and before the server's flight, and the client's verification, each less what that end takes where a
# session is resumed: on that server, else $resumed_ns. Where TCP lost or held anything, but for slow start,
# this cannot be told from the rest and counts as nothing.
_SECURED = """
    CREATE OR REPLACE TEMP VIEW secured AS
    WITH opened AS (
        SELECT handshakes.*, coalesce(first_exchange, -1) AS exchange, client_ip, server_ip, server_port,
            hop, rtt_ns, exchanges, first_request_at, before_at, before_ip, before_issued, before_id,
            alike_at, alike_issued,
            CASE WHEN hello_retry THEN 0 ELSE greatest(0, coalesce(least(
                server_compute_ns, server_hello_at - handshakes.hello_at - rtt_server_ns), 0)) END AS before_ns,
            median(server_compute_ns) FILTER (kind <> 'full') OVER of_server AS server_ns,
            median(client_compute_ns) FILTER (kind <> 'full') OVER of_server AS client_ns
        FROM visits JOIN handshakes USING (stream) JOIN judged USING (stream)
        JOIN (SELECT stream, rtt_server_ns FROM connections) USING (stream)
        WHERE number = 0
        WINDOW of_server AS (PARTITION BY server_ip, server_port)),
    needless AS (
        SELECT *, CASE
            WHEN version IS DISTINCT FROM 'TLSv1.3' THEN
                [(least(ready_at, coalesce(server_done_at, ready_at)), ready_at)]
            WHEN stream IN (SELECT stream FROM phase_stalls WHERE phase = 'tls' AND kind <> 'slow-start') THEN []
            ELSE list_filter([
                (server_hello_at - before_ns + coalesce(server_ns, $resumed_ns)::BIGINT,
                    least(server_done_at, ready_at)),
                (client_finished_at - client_compute_ns + coalesce(client_ns, $resumed_ns)::BIGINT,
                    least(client_finished_at, ready_at))],
                lambda span: span[1] < span[2]) END AS spans
        FROM opened)
    SELECT * EXCLUDE (number, outcome, alert, alert_by, client_random, ja3, quic_version, keys, missing_keys, before_ns,
            server_ns, client_ns, spans),
        list_transform(if(len(spans) > 0, spans, [(ready_at, ready_at)]), lambda span: {
            'stream': stream, 'exchange': exchange, 'start_at': span[1], 'end_at': span[2]}) AS needless
    FROM needless
"""

_REQUESTS = f"""
    CREATE OR REPLACE TEMP TABLE requests AS
    WITH fronts AS (SELECT back_stream AS stream, back_exchange AS number, count(*) AS fronts FROM links GROUP BY ALL),
    backs AS (SELECT front_stream AS stream, front_exchange AS number, count(*) AS backs FROM links GROUP BY ALL),
    spaced AS (
        SELECT stream, number, request_at - lag(coalesce(response_done_at, response_at, request_done_at)) OVER (
            PARTITION BY stream ORDER BY number) AS idle_ns
        FROM exchanges SEMI JOIN judged USING (stream) WHERE {ASKING})
    SELECT stream, number, idle_ns, coalesce(fronts, 0)::INTEGER AS fronts, coalesce(backs, 0)::INTEGER AS backs,
        fronts IS NULL AND (stream, number) IN (FROM checks) AS checks
    FROM spaced LEFT JOIN fronts USING (stream, number) LEFT JOIN backs USING (stream, number)
"""
_REQUESTS_ASKING = """
    CREATE OR REPLACE TEMP VIEW asked AS
    SELECT exchanges.*, client_ip, server_ip, server_port, server_name, hop, client_node, rtt_ns, ready_at, tls,
        exchanges.number = first_exchange AND stream IN (SELECT stream FROM openings) AS first, idle_ns, fronts, backs,
        judged.probe OR checks AS probe
    FROM requests JOIN exchanges USING (stream, number) JOIN judged USING (stream)
"""

# What a server did by itself before it answered: it had the whole request, the path is not counted, nothing was held by
# TCP, and the answers before it on the connection were out (pipelining, and HTTP/2 over one path). Where a server may
# speak unasked, an answer is none; without keys HTTP/2 says too little of which answer is whose. A command that a store
# answers when something happens (BLPOP) has no wait, but those behind it on the connection have to wait for its answer.
# Of a database, the usual time is that of a statement's shape.
_ANSWERS = """
    CREATE OR REPLACE TEMP TABLE answers AS
    WITH answered AS (
        SELECT stream, number AS exchange, server_ip, server_port, hop, protocol, kind, coalesce(rtt_ns, 0) AS rtt_ns,
            request_at, request_done_at, response_at, response_done_at, request_frame,
            coalesce(method || coalesce(' ' || target, ''), 'it cannot be read') AS target,
            if(store = 'sql', shape, NULL) AS statement,
            greatest(request_done_at, max(response_done_at) OVER (
                PARTITION BY stream ORDER BY response_at, number
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) AS start_at,
            wait_ns IS NULL AS awaits_event
        FROM asked
        WHERE (NOT probe OR awaits_event) AND backs = 0 AND status IS DISTINCT FROM 101
            AND stream NOT IN (SELECT stream FROM exchanges WHERE method = 'CONNECT' OR protocol = 'socks')
            AND (protocol IN ('http/1.0', 'http/1.1', 'ldap') OR kind = 'store'
                OR protocol IN ('h2', 'grpc') AND NOT inferred
                OR protocol = 'tls' AND stream IN (SELECT stream FROM handshakes WHERE alpn = 'http/1.1'))
            AND response_at >= request_done_at AND outcome IS DISTINCT FROM 'abandoned')
    SELECT * EXCLUDE (awaits_event), greatest(response_at - start_at - rtt_ns, 0) AS ns,
        greatest(median(response_at - start_at - rtt_ns) OVER alike, 0)::BIGINT AS usual_ns,
        median(response_at - request_done_at) OVER alike AS usual_wait_ns,
        count(*) OVER alike AS requests
    FROM answered ANTI JOIN (SELECT stream, exchange FROM phase_stalls WHERE phase = 'wait') USING (stream, exchange)
    WHERE NOT awaits_event
    WINDOW alike AS (PARTITION BY server_ip, server_port, statement)
"""

# What opens a connection comes before all else on it. A burst is what one front caused, where links are sure, else what
# follows each other at once on a connection. A command that awaits an event does not wait for the store.
_QUERIES = f"""
    CREATE OR REPLACE TEMP TABLE queries AS
    WITH fronts AS (
        SELECT back_stream AS stream, back_exchange AS number, min(front_stream) AS front_stream,
            min(front_exchange) AS front_exchange
        FROM links WHERE confidence >= $link_sure AND front_exchange IS NOT NULL
        GROUP BY ALL HAVING count(*) = 1),
    statements AS (
        SELECT stream, number AS exchange, client_ip, server_ip, server_port, protocol, store, method, target, shape,
            request_at, request_done_at, response_at, coalesce(response_done_at, response_at) AS done_at,
            response_bytes, request_frame, rtt_ns, wait_ns, front_stream, front_exchange,
            bool_and({STARTING}) OVER so_far AS opening,
            coalesce(request_at - lag(coalesce(response_done_at, response_at))
                OVER (PARTITION BY stream ORDER BY number) > $burst_ns, false) AS apart
        FROM asked LEFT JOIN fronts USING (stream, number)
        WHERE kind = 'store' AND NOT probe AND wait_ns IS NOT NULL
        WINDOW so_far AS (PARTITION BY stream ORDER BY number ROWS UNBOUNDED PRECEDING))
    SELECT * EXCLUDE (apart), CASE WHEN front_stream IS NULL
            THEN hash(stream, count_if(apart) OVER (PARTITION BY stream ORDER BY exchange ROWS UNBOUNDED PRECEDING))
            ELSE hash(front_stream, front_exchange, 'front') END AS burst
    FROM statements
"""

# Sessions with stores whose start was captured, and those whose commands were refused because nobody had logged in. The
# first error while a session starts is its end, for the application at least.
_SESSIONS = f"""
    CREATE OR REPLACE TEMP TABLE sessions AS
    WITH commands AS (
        SELECT exchanges.stream, number AS exchange, protocol, method, target, client_ip, server_ip, server_port,
            opened_at, coalesce(response_done_at, response_at) AS failed_at,
            coalesce(response_frame, request_frame) AS frame,
            bool_and({STARTING}) OVER (
                PARTITION BY exchanges.stream ORDER BY number ROWS UNBOUNDED PRECEDING) AS starting,
            CASE WHEN status > 0 THEN status_text END AS error
        FROM exchanges
        JOIN (SELECT stream, client_ip, server_ip, server_port, opened_at FROM connections) USING (stream)
        WHERE kind = 'store')
    SELECT stream, protocol, client_ip, server_ip, server_port, opened_at, min(exchange) AS exchange,
        min(failed_at) AS failed_at, min(frame) AS frame, arg_min(error, exchange) AS error
    FROM (
        SELECT * REPLACE (if(error IS NULL, NULL, exchange) AS exchange,
            if(error IS NULL, NULL, failed_at) AS failed_at, if(error IS NULL, NULL, frame) AS frame)
        FROM commands WHERE starting OR error = 'NOAUTH')
    GROUP BY ALL
"""

# What every command to a store takes at least, though what is asked differs: commands that need no work take as long as
# others, or four shapes and more take alike. A command that came once may have waited for something else. It is no
# statement's time, but that of what lies between, or of the host.
_FLOORS = """
    CREATE OR REPLACE TEMP TABLE floors AS
    WITH timed AS (
        SELECT server_ip, server_port, stream, exchange, shape,
            greatest(wait_ns - coalesce(rtt_ns, 0), 0) AS ns,
            CASE WHEN store = 'sql' THEN regexp_matches(
                    shape,
                    '^(Ping|Init DB|Reset|(\\w+: )?((BEGIN|START TRANSACTION|ROLLBACK|SET|SHOW|USE)\\b|SELECT \\?$))',
                    'i')
                WHEN protocol = 'mongodb' THEN method IN ('ping', 'buildInfo', 'getParameter')
                ELSE method NOT IN (
                    'KEYS', 'EVAL', 'EVALSHA', 'SORT', 'SUNION', 'SINTER', 'SDIFF', 'FLUSHALL', 'FLUSHDB') END AS idle
        FROM queries WHERE NOT opening),
    shaped AS (
        SELECT server_ip, server_port, shape, bool_or(idle) AS idle, min(ns) AS least_ns, count(*) AS commands
        FROM timed GROUP BY ALL)
    SELECT server_ip, server_port, min(least_ns) AS floor_ns, sum(commands) AS commands, count(*) AS shapes
    FROM shaped GROUP BY ALL
    HAVING floor_ns >= $store_far_ns AND sum(commands) >= $floor_commands
        AND (count_if(idle AND commands > 1) > 0 AND count(*) >= $floor_idle_shapes
            OR count(*) >= $floor_shapes AND max(least_ns) <= $floor_spread * floor_ns)
"""

# Names of which somebody wants the address, with what came of it: the same question again, from any port and to any
# resolver, and the next connection of that machine. Multicast names are asked of everybody, and mostly nobody answers.
# A query that is sent again from its port is the same lookup; only the number of datagrams tells.
_LOOKUPS = """
    CREATE OR REPLACE TEMP TABLE lookups AS
    WITH homes AS (SELECT address AS client_ip, 'node ' || node AS home FROM nodes WHERE port IS NULL),
    named AS (
        SELECT stream, number AS exchange, coalesce(home, client_ip) AS home, client_ip, server_ip, server_port,
            dns_type AS kind, lower(dns_name) AS name, dns_rcode AS status, request_at, response_at,
            closed_at, request_frame,
            dns_over = 'udp' AND packets_client > count(*) OVER (PARTITION BY stream) AS resent
        FROM exchanges JOIN connections USING (stream) LEFT JOIN homes USING (client_ip)
        WHERE dns_over IS NOT NULL AND server_port NOT IN (5353, 5355) AND dns_type <> 'PTR' AND dns_name IS NOT NULL
            AND request_at IS NOT NULL),
    opened AS (
        SELECT coalesce(home, client_ip) AS home, opened_at AS follows_at
        FROM connections LEFT JOIN homes USING (client_ip) WHERE server_port NOT IN (53, 853, 5353, 5355))
    SELECT named.*, follows_at,
        lead(request_at) OVER (PARTITION BY named.home, kind, name ORDER BY request_at, stream, exchange) AS again_at
    FROM named ASOF LEFT JOIN opened
        ON named.home = opened.home AND coalesce(response_at, request_at) <= opened.follows_at
"""

# Users wait for exchanges that no other caused, from the opening of a connection if it was opened for them, or from
# when the request was held, and for attempts that failed. Of what these caused, they wait for what lies within; where
# several overlap, for the last one, and for an earlier one until that began. What a proxy tries in vain is charged to
# the request that came last.
_WAITED = f"""
    CREATE OR REPLACE TEMP TABLE waited AS
    WITH RECURSIVE late AS (
        SELECT stream, exchange AS number, min(start_at) FILTER (side = 'client') AS held_at,
            sum(end_at - start_at) FILTER (side = 'client') AS held_ns,
            max(end_at) FILTER (side = 'server') AS arrived_at
        FROM phase_stalls WHERE phase = 'idle' AND exchange IS NOT NULL GROUP BY ALL),
    opened AS (
        SELECT judged.stream, first_exchange AS number, coalesce(syn_at, hello_at) AS syn_at, ready_at
        FROM judged LEFT JOIN (SELECT stream, syn_at FROM openings) USING (stream)
        LEFT JOIN late ON judged.stream = late.stream AND first_exchange = number
        WHERE first_request_at - ready_at - coalesce(held_ns, 0) <= $preconnect_ns
        UNION ALL
        SELECT stream, min(exchanges.number), min(hello_at), min(ready_at)
        FROM handshakes JOIN exchanges USING (stream)
        WHERE quic_version IS NOT NULL AND handshakes.number = 0
        GROUP BY stream HAVING min(request_at) - min(ready_at) <= $preconnect_ns),
    lives AS (
        SELECT stream, number, request_at, coalesce(syn_at, held_at, request_at) AS start_at,
            -- Who asked for a tunnel, or for encryption, waits for TLS in it, too.
            greatest(request_at, arrived_at, coalesce(response_done_at, closed_at),
                if(method IN ('CONNECT', 'SSLRequest'), ready_at, NULL)) AS end_at,
            client_ip, server_ip, server_port
        FROM exchanges
        JOIN (SELECT stream, client_ip, server_ip, server_port, closed_at FROM connections) USING (stream)
        LEFT JOIN opened USING (stream, number) LEFT JOIN late USING (stream, number)
        WHERE {ASKING} AND request_at IS NOT NULL
        UNION ALL
        -- A greeting: the server speaks first.
        SELECT stream, number, request_at, opened_at, end_at, client_ip, server_ip, server_port
        FROM exchanges
        JOIN (SELECT stream, exchange AS number, end_at FROM phases WHERE kind = 'wait') USING (stream, number)
        JOIN (SELECT stream, client_ip, server_ip, server_port, opened_at FROM connections) USING (stream)
        WHERE number = 0 AND request_at IS NULL),
    begun AS (
        SELECT stream, number AS exchange, start_at, end_at FROM lives
        UNION ALL
        -- Without keys, of QUIC nothing but its handshake is seen.
        SELECT stream, -1, hello_at, ready_at FROM handshakes
        WHERE quic_version IS NOT NULL AND outcome = 'complete' AND stream NOT IN (SELECT stream FROM exchanges)
        UNION ALL
        SELECT stream, -1, opened_at, closed_at FROM connections
        WHERE (state IN ('refused', 'unanswered') AND transport = 'tcp'
                OR state = 'unanswered' AND stream IN (SELECT stream FROM handshakes WHERE quic_version IS NOT NULL)
                OR stream IN (SELECT stream FROM handshakes WHERE outcome = 'failed')
                OR stream IN (SELECT stream FROM phase_stalls WHERE kind = 'syn-rto'))
            AND stream NOT IN (SELECT stream FROM exchanges) AND client_ip NOT IN (FROM scanners)),
    begun_by_users AS (FROM begun WHERE {OF_USERS}),
    caused AS (
        SELECT front_stream, front_exchange, back_stream, back_exchange
        FROM links SEMI JOIN on_behalf ON stream = back_stream AND exchange = back_exchange
        UNION ALL
        SELECT front_stream, front_exchange, stream, exchange FROM on_behalf
        WHERE method = 'time' AND exchange <> {OPENING}),
    backs AS (
        SELECT front_stream, front_exchange, back_stream, back_exchange, start_at, request_at,
            least(end_at, coalesce(
                lead(request_at) OVER (
                    PARTITION BY front_stream, front_exchange ORDER BY end_at, back_stream, back_exchange),
                end_at)) AS end_at
        FROM caused JOIN lives ON stream = back_stream AND number = back_exchange WHERE front_exchange IS NOT NULL),
    paths AS (
        SELECT stream AS user_stream, exchange AS user_exchange, stream, exchange, start_at, end_at, 0 AS depth
        FROM begun_by_users
        UNION ALL
        SELECT user_stream, user_exchange, back_stream, back_exchange,
            greatest(paths.start_at, backs.start_at), least(paths.end_at, backs.end_at), depth + 1
        FROM paths JOIN backs ON stream = front_stream AND exchange = front_exchange
        WHERE depth < 8 AND greatest(paths.start_at, backs.start_at) < least(paths.end_at, backs.end_at))
    SELECT * EXCLUDE (depth) FROM paths
    UNION ALL
    SELECT user_stream, user_exchange, tries.stream, -1, greatest(paths.start_at, opened_at),
        least(paths.end_at, closed_at)
    FROM (
        SELECT stream, opened_at, closed_at, front_stream, front_exchange
        FROM on_behalf JOIN connections USING (stream)
        WHERE exchange = {OPENING} AND state IN ('refused', 'unanswered') AND transport = 'tcp') tries
    JOIN paths ON paths.stream = front_stream AND exchange = front_exchange
"""

# Both ends of a proxy's connection to its backend have names of their own. A clock of whole milliseconds tells no
# pauses. A sender in slow start that had sent as much before has forgotten it: a rest of a retransmission timeout does
# that (RFC 5681 section 4.1).
_HELD = """
    CREATE OR REPLACE TEMP TABLE held AS
    WITH again AS (
        SELECT stream, number AS exchange, idle_ns,
            max(request_bytes) OVER earlier >= request_bytes AS client,
            max(response_bytes) OVER earlier >= response_bytes AS server
        FROM asked SEMI JOIN (FROM phase_stalls WHERE kind = 'slow-start') USING (stream)
        WINDOW earlier AS (PARTITION BY stream ORDER BY number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
    SELECT stream, exchange, kind, detail, phase, side, start_at, end_at, end_at - start_at AS ns, ack_delay_ns,
        CASE WHEN kind = 'slow-start' AND idle_ns >= $rto_ns + coalesce(rtt_ns, 0)
            AND if(side = 'client', again.client, again.server) THEN idle_ns END AS rested_ns, confidence,
        {'stream': stream, 'exchange': coalesce(exchange, -1), 'start_at': start_at, 'end_at': end_at} AS delay,
        [start_frame, end_frame] AS frames, if(side = 'client', asking, answering) AS sender,
        if(side = 'client', answering, asking) AS receiver,
        client_ip, server_ip, server_port, server_name, hop, rtt_ns, tls
    FROM phase_stalls JOIN (
        SELECT stream, client_ip, server_ip, server_port, server_name, hop, rtt_ns, tls, 'tcp' AS transport,
            if(hop = 'backend', 'proxy', 'client') AS asking, if(hop = 'backend', 'backend', 'server') AS answering
        FROM judged WHERE NOT probe AND NOT coarse
        UNION ALL
        SELECT stream, client_ip, server_ip, server_port, server_name, 'server', rtt_client_ns + rtt_server_ns, true,
            transport, 'client', 'server'
        FROM connections WHERE transport = 'udp'
    ) USING (stream)
    LEFT JOIN again USING (stream, exchange)
    WHERE phase <> 'close' AND detail IS DISTINCT FROM 'hello'
        AND (transport = 'tcp' OR kind IN ('loss', 'pto', 'qpack', 'migration'))
"""

# Who tries many servers of which few answer does not wait for any.
_SCANNERS = """
    CREATE OR REPLACE TEMP TABLE scanners AS
    SELECT client_ip FROM connections WHERE transport = 'tcp' GROUP BY client_ip
    HAVING count(DISTINCT (server_ip, server_port)) >= $scan_least
        AND count(DISTINCT (server_ip, server_port)) FILTER (state NOT IN ('refused', 'unanswered'))
            <= $scan_answered * count(DISTINCT (server_ip, server_port))
"""


_MADE: dict[str, tuple[str, tuple[str, ...]]] = {
    "setups": (_SETUPS, ("judged",)),
    "requests": (_REQUESTS, ("judged",)),
    "asked": (_REQUESTS_ASKING, ("requests", "judged")),
    "answers": (_ANSWERS, ("asked",)),
    "queries": (_QUERIES, ("asked",)),
    "floors": (_FLOORS, ("queries",)),
    "sessions": (_SESSIONS, ()),
    "lookups": (_LOOKUPS, ()),
    "held": (_HELD, ("asked", "judged")),
    "scanners": (_SCANNERS, ()),
    "visits": (_VISITS, ("scanners", "judged")),
    "secured": (_SECURED, ("judged", "visits")),
    "waited": (_WAITED, ("scanners", "judged")),
}
"""What each table and view is made by, and the others that this reads."""

EVIDENCE = frozenset(("judged", *_MADE))
"""What rules may read of it."""

MADE_OF = {
    "judged": "connections",
    "setups": "connections",
    "asked": "exchanges",
    "answers": "exchanges",
    "queries": "exchanges",
    "floors": "exchanges",
    "sessions": "exchanges",
    "lookups": "exchanges",
    "held": "phase_stalls",
    "secured": "handshakes",
    "clocks": "places",
    "changes": "places",
    "disorders": "places",
    "losses": "places",
    "paths": "places",
    "phase_places": "places",
}
"""What has no row where the table that it is made of has none."""

_VIEWS = ("secured", "asked", "setups")
FORGET_EVIDENCE = "; ".join(
    f"DROP {'VIEW' if name in _VIEWS else 'TABLE'} IF EXISTS {name}"
    for name in (
        *_VIEWS,
        *(name for name in ("openings", "judged", *_MADE) if name not in _VIEWS),
    )
)
"""SQL that drops all of it."""


def evidence(tables: Tables, thresholds: Mapping[str, float]) -> Steps:
    """Give the steps that make each table of ``EVIDENCE`` when asked to."""

    def make(statement: str) -> None:
        tables.execute(with_values(statement, thresholds))

    def judge() -> None:
        queries = (_CONNECTIONS, _PHASES, _HANDSHAKES, _EXCHANGES, _CHECKS)
        judged, openings = judge_connections(*map(tables.sql, queries))
        tables.lend_batch("judged", judged)
        tables.lend_batch("openings", openings)

    judging = Step(name="judged", reads=frozenset(), writes=frozenset(("judged",)), run=judge)
    making = (
        Step(name=name, reads=frozenset(reads), writes=frozenset((name,)), run=partial(make, statement))
        for name, (statement, reads) in _MADE.items()
    )
    return Steps((judging, *making))
