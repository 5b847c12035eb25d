"""What the capture does not let anybody judge, why, and how much waiting that is.

``labels/unjudged.py`` has the sentences. In: connections, handshakes, exchanges, phases, phase_stalls, on_behalf,
remarks. Out: the table ``unjudged``; no row where all was judged.

What rules need decides: no rule judges a connection with missing bytes, or with one direction only (``setups`` and the
evidence made of it leave both out); openings need the TCP handshake; what depends on the content of messages (status,
target, query) needs messages that can be read.
"""

from conchart.analysis.waits import USERS_WAITS
from conchart.store.sql import HOLED, ONE_SIDED, SERVED, UNREAD
from conchart.store.tables import Tables

_OF_CONNECTIONS = ("keys", "midstream", "missing", "one-sided")
"""Remarks of which the connections tell more."""

_UNJUDGED = f"""
    INSERT INTO unjudged BY NAME
    WITH waits AS (SELECT stream, sum(end_at - start_at) AS users_ns FROM {USERS_WAITS} GROUP BY stream),
    secured AS (
        SELECT stream, bool_or(keys = 'all') AS opened, bool_and(outcome = 'failed') AS failed
        FROM handshakes GROUP BY stream),
    guessed AS (SELECT stream, bool_or(inferred) AS inferred FROM exchanges GROUP BY stream),
    assessed AS (
        SELECT stream, connections.state = 'midstream' AS midstream,
            if({SERVED}, coalesce(users_ns, 0), 0) AS ns,
            CASE WHEN {ONE_SIDED} THEN 'one-sided' WHEN {HOLED} THEN 'missing' WHEN {UNREAD} THEN 'unread' END
                AS timeless,
            CASE WHEN coalesce(opened, false) THEN NULL
                WHEN failed IS NULL AND app IN ('tls', 'quic') OR NOT failed THEN 'sealed'
                WHEN inferred THEN 'unread' END AS meaningless
        FROM connections LEFT JOIN waits USING (stream)
        LEFT JOIN secured USING (stream) LEFT JOIN guessed USING (stream)
        WHERE connections.state NOT IN ('refused', 'unanswered')),
    parts AS (
        SELECT 1 AS place, 'waits' AS what, timeless AS why, count(*) AS connections, sum(ns) AS ns
        FROM assessed WHERE timeless IS NOT NULL GROUP BY timeless
        UNION ALL
        SELECT 2, 'opening', 'midstream', count(*), NULL
        FROM assessed WHERE midstream AND timeless IS NULL HAVING count(*) > 0
        UNION ALL
        SELECT 3, 'content', meaningless, count(*), sum(ns)
        FROM assessed WHERE meaningless IS NOT NULL AND timeless IS NULL GROUP BY meaningless
        UNION ALL
        SELECT DISTINCT 4, 'packets', kind, NULL, NULL FROM remarks WHERE warning AND kind NOT IN {_OF_CONNECTIONS}
            AND (kind <> 'unseen' OR NOT EXISTS (FROM assessed WHERE midstream OR timeless IS NOT NULL)))
    SELECT (row_number() OVER (ORDER BY place, ns DESC NULLS LAST, why))::INTEGER - 1 AS number, what, why, connections,
        nullif(ns, 0)::BIGINT AS waited_ns
    FROM parts
"""


def tell_unjudged(tables: Tables) -> None:
    """Count the connections that could not be judged, by what of them, and why."""
    tables.execute(_UNJUDGED)
