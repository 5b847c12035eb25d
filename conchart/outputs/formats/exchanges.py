"""SQL about exchanges that several formats share: begin, end, and the cost of opening a connection."""

TIMED_EXCHANGES = """
    SELECT *, coalesce(request_at, request_done_at, response_at, response_done_at) AS start_at,
        greatest(start_at, request_done_at, response_at, coalesce(response_done_at, given_up_at)) AS end_at
    FROM exchanges LEFT JOIN (
        SELECT stream, exchange AS number, max(end_at) AS given_up_at
        FROM phases WHERE exchange IS NOT NULL GROUP BY ALL
    ) USING (stream, number)
    WHERE coalesce(request_at, request_done_at, response_at, response_done_at) IS NOT NULL
"""
"""Exchanges with ``start_at`` and ``end_at``: one without a response lasts until nobody waits for it any more."""


def parts(exchanges: str) -> str:
    """Give the SQL for the parts of exchanges: ``part``, ``part_at``, ``part_done_at``, and all of ``exchanges``.

    Args:
        exchanges: A table with the columns of ``TIMED_EXCHANGES``.
    """
    waited_at = "CASE WHEN response_at < request_done_at THEN request_done_at ELSE response_at END"
    return f"""
        SELECT * FROM (
            SELECT *, unnest(['request', 'wait', 'transfer']) AS part,
                unnest([request_at, request_done_at, response_at]) AS part_at,
                unnest([request_done_at, {waited_at}, response_done_at]) AS part_done_at
            FROM {exchanges})
        WHERE part_at IS NOT NULL AND part_done_at IS NOT NULL AND (part <> 'wait' OR wait_ns IS NOT NULL)
    """


def first_after(events: str, exchanges: str) -> str:
    """Give the SQL that adds ``for_exchange`` to events of connections: the next exchange to begin, or NULL.

    Args:
        events: A table with ``stream`` and ``start_at``.
        exchanges: A table with the columns of ``TIMED_EXCHANGES``.
    """
    return f"""
        SELECT events.*, next.number AS for_exchange FROM {events} AS events
        ASOF LEFT JOIN (SELECT stream, start_at, min(number) AS number FROM {exchanges} GROUP BY ALL) AS next
            ON events.stream = next.stream AND events.start_at <= next.start_at
    """
