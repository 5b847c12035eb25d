"""Messages of gRPC and WebSocket, exchange by exchange: how many, and the longest pause between two of the server's.

In: the table ``exchange_messages``. Out: SQL for all who tell of them, and the sentence of the terminal and of ladders.
"""

from conchart.labels.units import count_of, format_bytes, format_ns
from conchart.report.rows import Row
from conchart.store.tables import Tables

BY_EXCHANGE = """
    SELECT stream, exchange AS number,
        count(*) FILTER (sender = 'client' AND NOT control) AS said_client,
        count(*) FILTER (sender = 'server' AND NOT control) AS said_server,
        coalesce(sum(bytes) FILTER (sender = 'client' AND NOT control), 0)::BIGINT AS said_bytes_client,
        coalesce(sum(bytes) FILTER (sender = 'server' AND NOT control), 0)::BIGINT AS said_bytes_server,
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


def describe(row: Row) -> str:
    """Say it in one sentence, of a row of ``BY_EXCHANGE``."""
    sides = [
        f"{count_of(row[f'said_{side}'], 'message')} of the {side} ({format_bytes(row[f'said_bytes_{side}'])})"
        for side in ("client", "server")
        if row[f"said_{side}"]
    ]
    if row["controls"]:
        sides.append(count_of(row["controls"], "control frame"))
    if row["gap_ns"] is not None:
        frames = f"frames {row['gap_start_frame']} → {row['gap_end_frame']}"
        sides.append(f"longest pause between two of the server's {format_ns(row['gap_ns'])} ({frames})")
    return ", ".join(sides)
