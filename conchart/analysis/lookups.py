"""How long clients waited for resolvers that never answered.

In: the tables as the core filled them. Out: the same; a flow of DNS over UDP that nobody answered lasts until its
client asked for the same elsewhere, and its state is ``abandoned``.

The core sees one flow at a time: the last packet of such a flow is the last query, and the client's wait only begins
there. It comes before everything else that is worked out, so that what users waited, servers, findings and exports all
count the same. Questions that go out side by side (A and AAAA) are waited for once, from one port or from two. Reverse
lookups are left out: a server asks those about its clients, inside their waits.
"""

from conchart.store.tables import Tables

LEAST_NS = 100_000_000
"""Who asks elsewhere sooner does not wait: it asks several resolvers at once."""
MOST_NS = 30_000_000_000
"""The same question later than this is a new one."""

_ABANDONED = f"""
    CREATE OR REPLACE TEMP TABLE abandoned AS
    WITH queries AS (
        SELECT stream, number, client_ip, lower(dns_name) AS name, request_at, opened_at, closed_at,
            state = 'unanswered' AND response_at IS NULL AS silent, lead(stream) OVER same AS again_stream,
            lead(request_at) OVER same AS again_at, lead(request_frame) OVER same AS again_frame
        FROM exchanges JOIN connections USING (stream)
        WHERE dns_over = 'udp' AND server_port = 53 AND dns_type <> 'PTR' AND dns_name IS NOT NULL
            AND request_at IS NOT NULL
        WINDOW same AS (PARTITION BY client_ip, dns_type, lower(dns_name) ORDER BY request_at, stream, number)),
    left_alone AS (
        SELECT stream, client_ip, min(name) AS name, min(number) AS exchange, any_value(opened_at) AS opened_at,
            max(again_at) AS until_at, arg_max(again_frame, again_at) AS until_frame
        FROM queries
        WHERE silent AND again_stream <> stream AND again_at - closed_at BETWEEN {LEAST_NS} AND {MOST_NS}
        GROUP BY stream, client_ip)
    FROM left_alone
    QUALIFY opened_at >= coalesce(max(until_at) OVER (
        PARTITION BY client_ip, name ORDER BY opened_at, stream
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), opened_at)
"""
_PROLONG = """
    INSERT INTO phases BY NAME
    SELECT stream, exchange, 'wait' AS kind, closed_at AS start_at, until_at AS end_at, 'client' AS start_by,
        'client' AS end_by, last_frame AS start_frame, until_frame AS end_frame, true AS inferred
    FROM abandoned JOIN connections USING (stream);
    UPDATE connections SET closed_at = until_at, closed_by = 'client', state = 'abandoned'
    FROM abandoned WHERE connections.stream = abandoned.stream;
"""


def wait_for_names(tables: Tables) -> None:
    """Prolong the flows of queries that nobody answered until their clients asked elsewhere."""
    tables.execute(_ABANDONED)
    tables.execute(_PROLONG)
    tables.execute("DROP TABLE abandoned")
