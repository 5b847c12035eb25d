"""What the waits at each front consist of: the backend, the way to it, a place in a pooler's pool, the proxy itself.

In: exchanges, links. Out: the table ``splits``.
"""

from conchart.analysis.hops import POOLED
from conchart.store.tables import Tables

# A statement waited for a pooled connection as long as the one that took it was not free: busy with what came before on
# it, or not set up yet. Inside a transaction it has one.
_SPLIT = f"""
    INSERT INTO splits BY NAME
    WITH pooled AS (
        SELECT front_stream, front_exchange, back_stream, back_exchange, proxy_in_ns, connect_ns, tls_ns,
            front.request_done_at AS requested_at
        FROM links JOIN exchanges front ON front_stream = front.stream AND front_exchange = front.number
        JOIN (SELECT stream, number, protocol AS spoken FROM exchanges WHERE {POOLED}) back
            ON back_stream = back.stream AND back_exchange = back.number
        WHERE {POOLED} AND spoken = protocol AND proxy_in_ns > 0),
    freed AS (
        SELECT stream AS back_stream, number AS back_exchange,
            lag(coalesce(response_done_at, response_at, request_done_at)) OVER (
                PARTITION BY stream ORDER BY number) AS freed_at
        FROM exchanges SEMI JOIN (SELECT back_stream AS stream FROM pooled) USING (stream)),
    queued AS (
        SELECT front_stream, front_exchange, back_stream, back_exchange,
            least(proxy_in_ns, greatest(freed_at - requested_at - connect_ns - tls_ns, 0)) AS pool_ns
        FROM pooled JOIN freed USING (back_stream, back_exchange)),
    linked AS (
        SELECT front_stream AS stream, front_exchange AS number, true AS linked, sum(request_ns + wait_ns) AS backend,
            sum(connect_ns) AS connect, sum(tls_ns) AS tls, sum(pool_ns) AS pool,
            sum(proxy_in_ns + proxy_out_ns - coalesce(pool_ns, 0)) AS proxy
        FROM links LEFT JOIN queued USING (front_stream, front_exchange, back_stream, back_exchange)
        WHERE proxy_in_ns IS NOT NULL GROUP BY ALL)
    SELECT server_ip, server_port, count(*) AS requests, sum(wait_ns)::BIGINT AS wait_ns,
        coalesce(sum(backend), 0)::BIGINT AS backend_ns, coalesce(sum(connect), 0)::BIGINT AS connect_ns,
        coalesce(sum(tls), 0)::BIGINT AS tls_ns, coalesce(sum(pool), 0)::BIGINT AS pool_ns,
        coalesce(sum(proxy), 0)::BIGINT AS proxy_ns,
        count(*) FILTER (linked IS NULL) AS unlinked,
        coalesce(sum(wait_ns) FILTER (linked IS NULL), 0)::BIGINT AS unlinked_ns
    FROM exchanges JOIN connections USING (stream) LEFT JOIN linked USING (stream, number)
    WHERE wait_ns IS NOT NULL
    GROUP BY server_ip, server_port HAVING bool_or(linked)
"""


def split_waits(tables: Tables) -> None:
    """Fill ``splits``: the parts of a front's waits add up to them."""
    tables.execute(_SPLIT)
