"""Messages of gRPC and WebSocket, exchange by exchange: how many, and the longest pause between two of the server's.

In: the table ``exchange_messages``. Out: SQL with the columns of ``facts.MESSAGES``.
"""

from conchart.store.tables import Tables

BY_EXCHANGE = """
    SELECT stream, exchange AS number,
        count(*) FILTER (sender = 'client' AND NOT control) AS messages_client,
        count(*) FILTER (sender = 'server' AND NOT control) AS messages_server,
        coalesce(sum(bytes) FILTER (sender = 'client' AND NOT control), 0)::BIGINT AS message_bytes_client,
        coalesce(sum(bytes) FILTER (sender = 'server' AND NOT control), 0)::BIGINT AS message_bytes_server,
        count(*) FILTER (control) AS controls,
        max(gap_ns) FILTER (sender = 'server' AND NOT control) AS gap_ns,
        arg_max(before_frame, gap_ns) FILTER (sender = 'server' AND NOT control) AS gap_start_frame,
        arg_max(start_frame, gap_ns) FILTER (sender = 'server' AND NOT control) AS gap_end_frame
    FROM (
        SELECT *, kind IN ('close', 'ping', 'pong') AS control,
            start_at - lag(end_at) OVER each_side AS gap_ns, lag(end_frame) OVER each_side AS before_frame
        FROM exchange_messages
        WINDOW each_side AS (PARTITION BY stream, exchange, sender, kind IN ('close', 'ping', 'pong') ORDER BY number))
    GROUP BY stream, exchange
"""
"""One row per exchange that has messages. Control frames of WebSocket are counted apart; a pause lies between the last
byte of a message and the first byte of the next one of the same side."""


def are_there(tables: Tables) -> bool:
    """Tell whether the capture has messages: most have none, and pay for none."""
    ((found,),) = tables.fetch("SELECT count(*) > 0 FROM (FROM exchange_messages LIMIT 1)")
    return bool(found)
