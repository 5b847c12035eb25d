"""What findings are found in: connections and exchanges that can be judged, and what users waited for.

In: connections, handshakes, exchanges, phases, stalled, links, servers. Out: five temporary tables that the rules in
``conchart/findings`` read beside the others; ``docs/findings.md`` explains their columns.

A connection can be judged if the capture has all of it from its first SYN on, both ways, and somebody answered.
"""

from collections.abc import Mapping

from conchart.sql import MISSING, ONE_SIDED
from conchart.tables import Tables

# The first handshake is the one that opens the connection; a later one is a renegotiation.
_SETUPS = f"""
    CREATE OR REPLACE TEMP TABLE setups AS
    WITH judged AS (
        SELECT * FROM connections
        WHERE transport = 'tcp' AND syn_at IS NOT NULL AND syn_ack_at IS NOT NULL
            AND state NOT IN ('refused', 'unanswered', 'midstream') AND {MISSING} = 0 AND NOT ({ONE_SIDED})),
    bounds AS (
        SELECT stream, max(end_at) FILTER (kind = 'syn') AS accepted_at, min(start_at) FILTER (kind = 'close') AS closing_at
        FROM phases SEMI JOIN judged USING (stream) WHERE kind IN ('syn', 'close') GROUP BY stream),
    secured AS (
        SELECT stream, hello_at, ready_at, version, kind, outcome, sni FROM handshakes WHERE number = 0),
    used AS (
        SELECT stream, count(*) AS exchanges, min(number) AS first_exchange, min(request_at) AS first_request_at,
            max(greatest(request_at, coalesce(response_done_at, response_at, request_done_at))) AS last_done_at,
            bool_or(protocol = 'h2') AS multiplexed
        FROM exchanges WHERE protocol NOT IN ('proxy', 'socks') GROUP BY stream),
    told AS (
        SELECT stream, client_ip, server_ip, server_port, server_name, coalesce(role, 'server') AS hop,
            coalesce(node, -1) AS client_node, syn_at, accepted_at, hello_at, closed_at, closing_at,
            CASE WHEN outcome IS NULL THEN accepted_at WHEN outcome = 'complete' THEN secured.ready_at END AS ready_at,
            version IS NOT NULL OR outcome IS NOT NULL AS tls, kind AS handshake,
            coalesce(exchanges, 0) AS exchanges, first_exchange, first_request_at, last_done_at,
            coalesce(multiplexed, false) AS multiplexed,
            coalesce(fin_by, rst_by) AS closed_by, rtt_client_ns + rtt_server_ns AS rtt_ns
        FROM judged JOIN bounds USING (stream) LEFT JOIN secured USING (stream) LEFT JOIN used USING (stream)
        LEFT JOIN (SELECT server_ip, server_port, role FROM servers) USING (server_ip, server_port)
        LEFT JOIN (SELECT address AS client_ip, node FROM nodes) USING (client_ip)),
    happened AS (
        SELECT client_ip, server_ip, server_port, syn_at AS seen_at, stream, 0 AS opened, 0 AS idle FROM told
        UNION ALL SELECT client_ip, server_ip, server_port, ready_at, NULL, 1, 1 FROM told WHERE ready_at IS NOT NULL
        UNION ALL SELECT client_ip, server_ip, server_port, coalesce(closing_at, closed_at), NULL, -1, -1 FROM told
            WHERE ready_at IS NOT NULL
        UNION ALL SELECT client_ip, server_ip, server_port, request_at, NULL, 0, -1
            FROM exchanges JOIN told USING (stream) WHERE NOT multiplexed AND ready_at IS NOT NULL
        UNION ALL SELECT client_ip, server_ip, server_port,
            least(coalesce(response_done_at, closing_at, closed_at), coalesce(closing_at, closed_at)), NULL, 0, 1
            FROM exchanges JOIN told USING (stream) WHERE NOT multiplexed AND ready_at IS NOT NULL),
    counted AS (
        SELECT stream, sum(opened) OVER earlier AS open_before, sum(idle) OVER earlier AS idle_before
        FROM happened WINDOW earlier AS (
            PARTITION BY client_ip, server_ip, server_port ORDER BY seen_at
            RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
        QUALIFY stream IS NOT NULL),
    closings AS (
        SELECT client_ip, server_ip, server_port, closing_at AS previous_closed_at, stream AS previous_stream,
            closed_by AS previous_closed_by, coalesce(server_name, '') AS name
        FROM told WHERE closing_at IS NOT NULL),
    probing AS (
        SELECT client_ip, server_ip, server_port, exchanges = 0 AS unused, true AS probe
        FROM (
            SELECT *, syn_at - lag(syn_at) OVER (
                PARTITION BY client_ip, server_ip, server_port, exchanges = 0 ORDER BY syn_at) AS gap_ns
            FROM told WHERE exchanges <= 1)
        GROUP BY ALL
        HAVING count(gap_ns) >= $probe_least AND avg(gap_ns) >= $probe_period_ns
            AND stddev_pop(gap_ns) < $probe_spread * avg(gap_ns))
    SELECT told.*, coalesce(ready_at - syn_at, 0) AS setup_ns, coalesce(greatest(open_before, 0), 0)::INTEGER AS open_before,
        coalesce(greatest(idle_before, 0), 0)::INTEGER AS idle_before,
        previous_stream, previous_closed_at, previous_closed_by,
        row_number() OVER (
            PARTITION BY told.client_ip, told.server_ip, told.server_port ORDER BY syn_at, told.stream)::INTEGER - 1 AS place,
        coalesce(probe, false) AS probe
    FROM told LEFT JOIN counted ON told.stream = counted.stream
    ASOF LEFT JOIN closings ON told.client_ip = closings.client_ip AND told.server_ip = closings.server_ip
        AND told.server_port = closings.server_port AND coalesce(told.server_name, '') = closings.name
        AND told.syn_at >= closings.previous_closed_at
    LEFT JOIN probing ON told.client_ip = probing.client_ip AND told.server_ip = probing.server_ip
        AND told.server_port = probing.server_port AND (told.exchanges = 0) = probing.unused AND told.exchanges <= 1
"""

_ASKED = """
    CREATE OR REPLACE TEMP TABLE asked AS
    WITH fronts AS (SELECT back_stream AS stream, back_exchange AS number, count(*) AS fronts FROM links GROUP BY ALL),
    backs AS (SELECT front_stream AS stream, front_exchange AS number, count(*) AS backs FROM links GROUP BY ALL),
    spaced AS (
        SELECT exchanges.*, client_ip, server_ip, server_port, server_name, hop, client_node, rtt_ns, ready_at, tls,
            exchanges.number = first_exchange AS first, setups.probe AS probing,
            request_at - lag(coalesce(response_done_at, response_at, request_done_at)) OVER (
                PARTITION BY stream ORDER BY exchanges.number) AS idle_ns,
            request_at - lag(request_at) OVER (alike ORDER BY request_at) AS gap_ns
        FROM exchanges JOIN setups USING (stream)
        WHERE protocol NOT IN ('proxy', 'socks')
        WINDOW alike AS (PARTITION BY client_ip, server_ip, server_port, method, target))
    SELECT spaced.* EXCLUDE (probing, gap_ns), coalesce(fronts, 0)::INTEGER AS fronts, coalesce(backs, 0)::INTEGER AS backs,
        probing OR fronts IS NULL AND coalesce(
            count(gap_ns) OVER alike >= $probe_least AND avg(gap_ns) OVER alike >= $probe_period_ns
            AND stddev_pop(gap_ns) OVER alike < $probe_spread * avg(gap_ns) OVER alike, false) AS probe
    FROM spaced LEFT JOIN fronts USING (stream, number) LEFT JOIN backs USING (stream, number)
    WINDOW alike AS (PARTITION BY client_ip, server_ip, server_port, method, target)
"""

# Users wait for exchanges that no other caused, from the opening of a connection if it was opened for them, or from when
# the request was held, and for attempts that failed. Of what these caused, they wait for what lies within; where several
# overlap, for the last one,
# and for an earlier one until that began.
_WAITED = """
    CREATE OR REPLACE TEMP TABLE waited AS
    WITH RECURSIVE late AS (
        SELECT stream, exchange AS number, min(start_at) FILTER (side = 'client') AS held_at,
            sum(end_at - start_at) FILTER (side = 'client') AS held_ns,
            max(end_at) FILTER (side = 'server') AS arrived_at
        FROM stalled WHERE phase = 'idle' AND exchange IS NOT NULL GROUP BY ALL),
    opened AS (
        SELECT setups.stream, first_exchange AS number, syn_at
        FROM setups LEFT JOIN late ON setups.stream = late.stream AND first_exchange = number
        WHERE first_request_at - ready_at - coalesce(held_ns, 0) <= $preconnect_ns),
    lives AS (
        SELECT stream, number, request_at, coalesce(syn_at, held_at, request_at) AS start_at,
            greatest(request_at, arrived_at, coalesce(response_done_at, closed_at)) AS end_at,
            client_ip, server_ip, server_port
        FROM exchanges JOIN (SELECT stream, client_ip, server_ip, server_port, closed_at FROM connections) USING (stream)
        LEFT JOIN opened USING (stream, number) LEFT JOIN late USING (stream, number)
        WHERE protocol NOT IN ('proxy', 'socks') AND request_at IS NOT NULL),
    proxies AS (SELECT address AS client_ip FROM nodes WHERE role = 'proxy'),
    asked_by_users AS (
        SELECT stream, number, start_at, end_at FROM lives
        WHERE (stream, number) NOT IN (SELECT (back_stream, back_exchange) FROM links WHERE back_exchange IS NOT NULL)
            AND NOT (client_ip IN (FROM proxies)
                AND (server_ip, server_port) IN (SELECT (server_ip, server_port) FROM servers WHERE role = 'backend'))
        UNION ALL
        SELECT stream, -1, opened_at, closed_at FROM connections
        WHERE (state IN ('refused', 'unanswered') AND transport = 'tcp'
                OR stream IN (SELECT stream FROM handshakes WHERE outcome = 'failed'))
            AND stream NOT IN (SELECT stream FROM exchanges)
            AND client_ip NOT IN (FROM proxies) AND client_ip NOT IN (FROM scanners)),
    backs AS (
        SELECT front_stream, front_exchange, back_stream, back_exchange, start_at, request_at,
            least(end_at, coalesce(
                lead(request_at) OVER (PARTITION BY front_stream, front_exchange ORDER BY end_at, back_stream, back_exchange),
                end_at)) AS end_at
        FROM links JOIN lives ON stream = back_stream AND number = back_exchange WHERE front_exchange IS NOT NULL),
    paths AS (
        SELECT stream AS user_stream, number AS user_exchange, stream, number AS exchange, start_at, end_at, 0 AS depth
        FROM asked_by_users
        UNION ALL
        SELECT user_stream, user_exchange, back_stream, back_exchange,
            greatest(paths.start_at, backs.start_at), least(paths.end_at, backs.end_at), depth + 1
        FROM paths JOIN backs ON stream = front_stream AND exchange = front_exchange
        WHERE depth < 8 AND greatest(paths.start_at, backs.start_at) < least(paths.end_at, backs.end_at))
    SELECT * EXCLUDE (depth) FROM paths
"""

# Both ends of a proxy's connection to its backend have names of their own. A clock of whole milliseconds tells no
# pauses. A sender in slow start that had sent as much
# before has forgotten it: a rest of a retransmission timeout does that (RFC 5681 section 4.1).
_HELD = """
    CREATE OR REPLACE TEMP TABLE held AS
    WITH again AS (
        SELECT stream, number AS exchange, idle_ns, max(request_bytes) OVER earlier >= request_bytes AS client,
            max(response_bytes) OVER earlier >= response_bytes AS server
        FROM asked SEMI JOIN (FROM stalled WHERE kind = 'slow-start') USING (stream)
        WINDOW earlier AS (PARTITION BY stream ORDER BY number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
    SELECT stream, exchange, kind, detail, phase, side, start_at, end_at, end_at - start_at AS ns, ack_delay_ns,
        CASE WHEN kind = 'slow-start' AND idle_ns >= $rto_ns + coalesce(rtt_ns, 0)
            AND if(side = 'client', again.client, again.server) THEN idle_ns END AS rested_ns, confidence,
        {'stream': stream, 'exchange': coalesce(exchange, -1), 'start_at': start_at, 'end_at': end_at} AS delay,
        [start_frame, end_frame] AS frames, if(side = 'client', asking, answering) AS sender,
        if(side = 'client', answering, asking) AS receiver, client_ip, server_ip, server_port, server_name, hop,
        rtt_ns, tls
    FROM stalled JOIN (
        SELECT *, if(hop = 'backend', 'proxy', 'client') AS asking,
            if(hop = 'backend', 'backend', 'server') AS answering
        FROM setups WHERE NOT probe
            AND greatest(syn_at % 1_000_000, accepted_at % 1_000_000, closed_at % 1_000_000) > 0) USING (stream)
    LEFT JOIN again USING (stream, exchange)
    WHERE phase <> 'close'
"""

# Who tries many servers of which few answer does not wait for any.
_SCANNERS = """
    CREATE OR REPLACE TEMP TABLE scanners AS
    SELECT client_ip FROM connections WHERE transport = 'tcp' GROUP BY client_ip
    HAVING count(DISTINCT (server_ip, server_port)) >= $scan_least
        AND count(DISTINCT (server_ip, server_port)) FILTER (state NOT IN ('refused', 'unanswered'))
            <= $scan_answered * count(DISTINCT (server_ip, server_port))
"""


def gather(tables: Tables, thresholds: Mapping[str, float]) -> None:
    """Make the temporary tables ``setups``, ``asked``, ``held``, ``scanners`` and ``waited``."""
    for statement in (_SETUPS, _ASKED, _HELD, _SCANNERS, _WAITED):
        tables.execute(statement, {name: value for name, value in thresholds.items() if f"${name}" in statement})
