"""What the waits at each front consist of: the backend, the way to it, the proxy itself.

In: exchanges, links. Out: the table ``splits``.
"""

from conchart.store.tables import Tables

_SPLIT = """
    INSERT INTO splits BY NAME
    WITH linked AS (
        SELECT front_stream AS stream, front_exchange AS number, true AS linked, sum(request_ns + wait_ns) AS backend,
            sum(connect_ns) AS connect, sum(tls_ns) AS tls, sum(proxy_in_ns + proxy_out_ns) AS proxy
        FROM links WHERE proxy_in_ns IS NOT NULL GROUP BY ALL)
    SELECT server_ip, server_port, count(*) AS requests, sum(wait_ns)::BIGINT AS wait_ns,
        coalesce(sum(backend), 0)::BIGINT AS backend_ns, coalesce(sum(connect), 0)::BIGINT AS connect_ns,
        coalesce(sum(tls), 0)::BIGINT AS tls_ns, coalesce(sum(proxy), 0)::BIGINT AS proxy_ns,
        count(*) FILTER (linked IS NULL) AS unlinked,
        coalesce(sum(wait_ns) FILTER (linked IS NULL), 0)::BIGINT AS unlinked_ns
    FROM exchanges JOIN connections USING (stream) LEFT JOIN linked USING (stream, number)
    WHERE wait_ns IS NOT NULL
    GROUP BY server_ip, server_port HAVING bool_or(linked)
"""


def split_waits(tables: Tables) -> None:
    """Fill ``splits``: the parts of a front's waits add up to them."""
    tables.execute(_SPLIT)
