"""Who waits for a request: whoever sent it, unless it was made for another request.

In: connections, exchanges, links, nodes. Out: the table ``on_behalf``. ``docs/phases.md`` states the rule.

A request is made for another one if a link says so. Without a link, it is if it lies inside the open wait of a request
that the same machine had accepted. What lies there by chance is not: links that are not sure, and time alone, count
where at least half of what the machine asks of that server is made for others.
Where a machine asks itself, time alone says nothing, because every program's client is the machine: there, some
requests of that server must be linked to that front.
"""

from conchart.store.sql import OPENING, TURNS
from conchart.store.sql import SURE as INFERRED
from conchart.store.tables import Tables

SURE = 0.9
"""Links of this confidence count by themselves."""

_MAY_BE = f"""
    SELECT EXISTS (FROM links) OR EXISTS (
        FROM (SELECT node FROM nodes WHERE port IS NULL) SEMI JOIN (
            SELECT node FROM nodes WHERE port IS NOT NULL) USING (node)),
        EXISTS (FROM exchanges WHERE confidence < {INFERRED})
"""
"""In most captures, no machine both accepts connections and opens some; in many, every request is read."""

# An attempt that was refused or never answered is over when it ends, a connection without requests once it was opened.
# A resolver, and protocols that are not read, accept nothing that others could be made for. A greeting is waited for
# since the connection was opened: a server may look up its client's name before it.
_REQUESTS = f"""
    CREATE OR REPLACE TEMP TABLE requests_there AS
    WITH clients AS (SELECT address AS client_ip, node AS asker FROM nodes WHERE port IS NULL),
    accepting AS (SELECT address AS server_ip, port AS server_port, node AS accepter FROM nodes WHERE port IS NOT NULL),
    ends AS (
        SELECT stream, asker, accepter, transport, state, opened_at, closed_at,
            dense_rank() OVER (ORDER BY server_ip, server_port)::INTEGER AS endpoint
        FROM connections JOIN clients USING (client_ip) JOIN accepting USING (server_ip, server_port)),
    linked AS (
        SELECT back_stream AS stream, back_exchange AS exchange, max({{
                'confidence': confidence, 'stream': front_stream, 'exchange': front_exchange}}) AS front
        FROM links WHERE back_exchange IS NOT NULL GROUP BY ALL),
    through AS (
        SELECT back_stream AS stream, min(front_stream) AS through, bool_or(back_exchange IS NULL) AS wholly
        FROM links GROUP BY ALL),
    requests AS (
        SELECT stream, number AS exchange, asker, accepter, endpoint, coalesce(request_at, opened_at) AS start_at,
            coalesce(response_done_at, response_at, request_done_at, request_at) AS end_at,
            coalesce(response_done_at, ended_at, closed_at) AS until_at, confidence < {INFERRED} AS inferred,
            NOT ({TURNS}) AND protocol <> 'dns' AS is_wait
        FROM exchanges JOIN ends USING (stream)
        UNION ALL
        SELECT stream, {OPENING}, asker, accepter, endpoint, opened_at,
            if(state IN ('refused', 'unanswered', 'abandoned'), closed_at, opened_at), closed_at, false, false
        FROM ends ANTI JOIN exchanges USING (stream))
    SELECT requests.*, coalesce(front.stream, if(wholly OR exchange = {OPENING}, through, NULL)) AS front_stream,
        front.exchange AS front_exchange, coalesce(front.confidence, 1) >= {SURE} AS sure
    FROM requests LEFT JOIN linked USING (stream, exchange) LEFT JOIN through USING (stream)
"""

_OPEN = """
    UPDATE requests_there SET until_at = shared.until_at
    FROM (
        SELECT stream, exchange, max(until_at) OVER (PARTITION BY stream, before) AS until_at
        FROM (
            SELECT *, count(*) FILTER (begins) OVER (PARTITION BY stream ORDER BY start_at, exchange) AS before
            FROM (
                SELECT *, start_at > max(until_at) OVER (
                    PARTITION BY stream ORDER BY start_at, exchange
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS begins
                FROM requests_there WHERE is_wait AND inferred))) AS shared
    WHERE requests_there.stream = shared.stream AND requests_there.exchange = shared.exchange
"""
"""Of requests that share a connection under TLS without keys, nobody knows which one a response answers.

Each of them is open until all are answered.
"""

# The wait that began last is the likeliest. If it does not hold the request, the one of those before that lasts the
# longest does, if any does.
_HELD = """
    CREATE OR REPLACE TEMP TABLE held_there AS
    WITH waits AS (
        SELECT accepter AS machine, NULL AS front, start_at, until_at, stream, exchange
        FROM requests_there WHERE is_wait AND asker <> accepter
            AND accepter IN (SELECT asker FROM requests_there WHERE asker <> accepter)
        UNION ALL
        SELECT accepter, endpoint, start_at, until_at, stream, exchange
        FROM requests_there WHERE is_wait AND endpoint IN (SELECT front FROM paired_there)),
    longest AS (
        SELECT machine, coalesce(front, 0) AS front, start_at, wait AS last,
            max(wait) OVER (PARTITION BY machine, front ORDER BY start_at ROWS UNBOUNDED PRECEDING) AS wait
        FROM (SELECT *, {'until_at': until_at, 'stream': stream, 'exchange': exchange} AS wait FROM waits)),
    backs AS (
        SELECT stream, exchange, asker AS machine, coalesce(front, 0) AS front, start_at, end_at
        FROM requests_there LEFT JOIN paired_there USING (endpoint)
        WHERE front_stream IS NULL AND (asker <> accepter OR front IS NOT NULL))
    SELECT stream, exchange, held.stream AS front_stream, held.exchange AS front_exchange
    FROM (
        SELECT backs.stream, backs.exchange, end_at, if(end_at <= last.until_at, last, wait) AS held
        FROM backs ASOF JOIN longest
            ON backs.machine = longest.machine AND backs.front = longest.front AND backs.start_at >= longest.start_at)
    WHERE end_at <= held.until_at
"""
_PAIRED = """
    CREATE OR REPLACE TEMP TABLE paired_there AS
    SELECT backs.endpoint, mode(fronts.endpoint) AS front
    FROM requests_there backs JOIN requests_there fronts
        ON fronts.stream = backs.front_stream AND fronts.exchange = backs.front_exchange
    WHERE backs.endpoint <> fronts.endpoint GROUP BY ALL
"""
"""Which server the requests at another one are mostly linked to."""

_DECIDE = f"""
    INSERT INTO on_behalf BY NAME
    WITH resolved AS (
        SELECT requests_there.* EXCLUDE (front_stream, front_exchange),
            coalesce(requests_there.front_stream, held_there.front_stream) AS front_stream,
            coalesce(requests_there.front_exchange, held_there.front_exchange) AS front_exchange,
            requests_there.front_stream IS NOT NULL AS linked
        FROM requests_there LEFT JOIN held_there USING (stream, exchange)),
    weighed AS (
        SELECT *, 2 * count(front_stream) OVER pair >= count(*) OVER pair AS mostly,
            row_number() OVER (PARTITION BY stream ORDER BY exchange) = 1 AS first
        FROM resolved WINDOW pair AS (PARTITION BY asker, endpoint)),
    made AS (
        SELECT stream, exchange, first, front_stream, front_exchange, if(linked, 'link', 'time') AS method
        FROM weighed WHERE front_stream IS NOT NULL AND (linked AND sure OR mostly) OR mostly AND exchange = {OPENING})
    SELECT stream, unnest(if(first AND exchange <> {OPENING}, [exchange, {OPENING}], [exchange])) AS exchange,
        front_stream, front_exchange, method
    FROM made
"""

FORGET = "; ".join(f"DROP TABLE IF EXISTS {table}" for table in ("requests_there", "paired_there", "held_there"))
"""SQL that drops what ``find_behalf`` leaves."""


def find_behalf(tables: Tables) -> None:
    """Fill ``on_behalf``. A connection belongs to whom its first request does, without requests to whom most do."""
    ((may_be, inferred),) = tables.fetch(_MAY_BE)
    if may_be:
        for statement in (_REQUESTS, *[_OPEN] * inferred, _PAIRED, _HELD, _DECIDE):
            tables.execute(statement)
