"""Who waits where packets alone do not tell: when the capture ends, and for responses that had begun before it.

In: the tables as the core filled them. Out: the same. A connection on which a response is owed by its last packet lasts
as long as the capture shows its client or its server. A response of which the capture shows neither request nor head,
and that comes in small parts with pauses, is a stream of events (``exchanges.awaits``): idle.

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

LARGEST_EVENT = 10_000
"""Bytes between two pauses. More is a file that comes slowly, rather than events."""

_OWES_MORE = "(protocol IN ('http/1.0', 'http/1.1', 'h2') AND tunnel IS NULL AND NOT inferred)"
"""Of a response that has begun and is not complete: the server owes the rest."""

_OWED = """
    SELECT count(*) FILTER (response_at IS NULL AND dns_over = 'udp'),
        count(*) FILTER (response_done_at IS NULL AND outcome = 'unknown'),
        count(*) FILTER (request_at IS NULL AND protocol = 'unknown')
    FROM exchanges
"""
_OF_EVENTS = "protocol = 'unknown' AND awaits = 'stream'"
_STREAMS = f"""
    UPDATE exchanges SET awaits = 'stream' FROM (
        SELECT stream, number
        FROM (
            SELECT stream, number, response_at, coalesce(response_done_at, closed_at) AS done_at, response_bytes
            FROM exchanges JOIN (SELECT stream, closed_at FROM connections) USING (stream)
            WHERE request_at IS NULL AND protocol = 'unknown')
        JOIN (SELECT stream, start_at, end_at FROM stalls WHERE kind = 'sender' AND side = 'server') USING (stream)
        WHERE start_at >= response_at AND end_at <= done_at
        GROUP BY ALL
        HAVING 2 * sum(end_at - start_at) >= any_value(done_at - response_at)
            AND any_value(response_bytes) <= {LARGEST_EVENT} * (count(*) + 1)) AS events
    WHERE exchanges.stream = events.stream AND exchanges.number = events.number;
    UPDATE phases SET kind = 'idle', exchange = NULL FROM exchanges
    WHERE phases.stream = exchanges.stream AND exchange = number AND phases.kind = 'transfer' AND {_OF_EVENTS};
    DELETE FROM stalls USING exchanges
    WHERE stalls.stream = exchanges.stream AND stalls.kind = 'sender' AND side = 'server' AND start_at >= response_at
        AND end_at <= coalesce(response_done_at, end_at) AND {_OF_EVENTS}
"""
"""Nobody owes an event: what lies between two is idle, as in a stream that says what it is, and no stall."""
# All that was sent was acknowledged: else packets are missing. The capture lasts as long as it shows either host.
_WAITING = f"""
    WITH left_open AS (
        SELECT stream, number AS exchange, client_ip, server_ip, closed_at, last_frame,
            if(response_at IS NULL, 'wait', 'transfer') AS kind
        FROM exchanges JOIN (
            SELECT stream, client_ip, server_ip, closed_at, last_frame, unacknowledged_server FROM connections
            WHERE transport = 'tcp' AND unacknowledged_client = 0) USING (stream)
        WHERE {UNFINISHED} AND NOT ({TURNS}) AND request_done_at < closed_at
            AND confidence >= if(inferred, {SURE_TO_ASK}, {SURE})
            AND (protocol <> 'tls' OR request_bytes >= {LEAST_BYTES})
            AND (response_at IS NULL OR {_OWES_MORE} AND unacknowledged_server = 0)),
    seen AS (
        SELECT ip, max(seen_at) AS seen_at
        FROM (SELECT unnest([client_ip, server_ip]) AS ip, closed_at AS seen_at FROM connections) GROUP BY ip)
    SELECT left_open.*, greatest(clients.seen_at, servers.seen_at) AS until_at
    FROM left_open JOIN seen clients ON clients.ip = client_ip JOIN seen servers ON servers.ip = server_ip
    WHERE greatest(clients.seen_at, servers.seen_at) - closed_at BETWEEN {LEAST_NS} AND {MOST_NS}
"""
_PROLONG = """
    UPDATE phases SET end_at = until_at, inferred = true FROM waiting
    WHERE phases.stream = waiting.stream AND phases.exchange = waiting.exchange AND phases.kind = waiting.kind
        AND end_at = closed_at;
    INSERT INTO stalls BY NAME
    SELECT DISTINCT stream, 'sender' AS kind, 'server' AS side, closed_at AS start_at, until_at AS end_at,
        'server' AS start_by, 'server' AS end_by, last_frame AS start_frame, last_frame AS end_frame,
        0.6 AS confidence, true AS unfinished
    FROM waiting WHERE kind = 'transfer';
    UPDATE connections SET closed_at = until_at FROM waiting WHERE connections.stream = waiting.stream;
"""


def wait_on(tables: Tables) -> None:
    """Let clients wait as long as they did: for names, and for responses that had not come when the capture ended."""
    ((names, responses, pushes),) = tables.fetch(_OWED)
    if names:
        wait_for_names(tables)
    if pushes:
        tables.execute(_STREAMS)
    if responses and tables.fetch(_WAITING):
        tables.execute(f"CREATE OR REPLACE TEMP TABLE waiting AS {_WAITING}")
        tables.execute(_PROLONG)
        tables.execute("DROP TABLE waiting")
