"""Who still waits when the capture ends.

In: the tables as the core filled them. Out: the same; a connection on which a request is not answered by its last
packet lasts as long as the capture shows its client or its server.

The core sees one connection at a time: its last packet is the last that is known of it. A server that hangs sends none,
and its client waits on. As with lookups, this comes before everything else that is worked out.
"""

from conchart.analysis.lookups import wait_for_names
from conchart.store.sql import SURE, TURNS, UNFINISHED
from conchart.store.tables import Tables

LEAST_NS, MOST_NS = 1_000_000_000, 600_000_000_000
"""Less is no silence: the capture was stopped soon after. After more, nobody knows: captures are put together, too."""
SURE_TO_ASK, LEAST_BYTES = 0.9, 60
"""What is inferred with less, or shorter under TLS, may be a message that needs no response."""

_UNANSWERED = """
    SELECT count(*) FILTER (dns_over = 'udp'), count(*) FILTER (outcome = 'unknown')
    FROM exchanges WHERE response_at IS NULL
"""
# The server acknowledged the request: else its packets are missing. The capture lasts as long as it shows either host.
_WAITING = f"""
    WITH left_open AS (
        SELECT stream, number AS exchange, client_ip, server_ip, closed_at, last_frame
        FROM exchanges JOIN (
            SELECT stream, client_ip, server_ip, closed_at, last_frame FROM connections
            WHERE transport = 'tcp' AND unacknowledged_client = 0) USING (stream)
        WHERE {UNFINISHED} AND NOT ({TURNS}) AND response_at IS NULL AND request_done_at < closed_at
            AND confidence >= if(inferred, {SURE_TO_ASK}, {SURE})
            AND (protocol <> 'tls' OR request_bytes >= {LEAST_BYTES})),
    seen AS (
        SELECT ip, max(seen_at) AS seen_at
        FROM (SELECT unnest([client_ip, server_ip]) AS ip, closed_at AS seen_at FROM connections) GROUP BY ip)
    SELECT left_open.*, greatest(clients.seen_at, servers.seen_at) AS until_at
    FROM left_open JOIN seen clients ON clients.ip = client_ip JOIN seen servers ON servers.ip = server_ip
    WHERE greatest(clients.seen_at, servers.seen_at) - closed_at BETWEEN {LEAST_NS} AND {MOST_NS}
"""
_PROLONG = """
    UPDATE phases SET end_at = until_at, inferred = true FROM waiting
    WHERE phases.stream = waiting.stream AND phases.exchange = waiting.exchange AND kind = 'wait'
        AND end_at = closed_at;
    UPDATE connections SET closed_at = until_at FROM waiting WHERE connections.stream = waiting.stream;
"""


def wait_on(tables: Tables) -> None:
    """Let clients wait as long as they did: for names, and for responses that had not come when the capture ended."""
    ((names, responses),) = tables.fetch(_UNANSWERED)
    if names:
        wait_for_names(tables)
    if responses and tables.fetch(_WAITING):
        tables.execute(f"CREATE OR REPLACE TEMP TABLE waiting AS {_WAITING}")
        tables.execute(_PROLONG)
        tables.execute("DROP TABLE waiting")
