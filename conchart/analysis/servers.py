"""Which server endpoints a capture holds, which stand behind which, what they cost; in the order in which to list them.

In: connections, handshakes, exchanges, with what the steps before worked out. Out: the table ``servers``.

Which exchange caused which is not decided here. A server stands behind another if that one's address is its client, or,
for proxies with one address on each side, if its answers come about while the other's clients are waiting.
"""

from collections.abc import Iterator

from conchart.sql import SERVED, UNREAD
from conchart.tables import Tables

MAX_NESTED = 64
"""With more server addresses than this, nesting is not looked at: it compares every two of them."""

_ANSWERING = f"(FROM connections WHERE {SERVED} AND NOT {UNREAD})"
"""SQL: what tells who is a server: a port that refuses everybody is nobody's front."""

_CALLS = f"""
    SELECT DISTINCT client_ip AS front, server_ip AS back FROM {_ANSWERING}
    WHERE client_ip <> server_ip AND client_ip IN (SELECT server_ip FROM {_ANSWERING})
"""
# Of each server's first requests, how many were sent and answered while a client of another server was waiting. One
# client that asks two servers at once is a browser, not a chain.
_NESTED = f"""
    WITH asked AS (
        SELECT server_ip, stream, number, request_at, request_done_at, response_at
        FROM exchanges JOIN {_ANSWERING} USING (stream) WHERE response_at IS NOT NULL),
    sample AS (
        SELECT *, count(*) OVER (PARTITION BY server_ip) AS size FROM asked
        QUALIFY row_number() OVER (PARTITION BY server_ip ORDER BY request_at, stream, number) <= 20),
    called AS (SELECT DISTINCT client_ip, server_ip FROM {_ANSWERING})
    SELECT waiting.server_ip AS front, sample.server_ip AS back
    FROM sample JOIN asked waiting ON waiting.server_ip <> sample.server_ip
        AND waiting.request_done_at <= sample.request_at AND sample.response_at <= waiting.response_at
    WHERE (waiting.server_ip, sample.server_ip) NOT IN (
        SELECT (a.server_ip, b.server_ip) FROM called a JOIN called b USING (client_ip))
    GROUP BY ALL HAVING count(DISTINCT (sample.stream, sample.number)) >= 0.8 * least(20, any_value(size))
"""

_DESCRIBE = f"""
    INSERT INTO servers BY NAME
    WITH named AS (
        SELECT server_ip, server_port, list(server_name ORDER BY uses DESC, server_name) AS names
        FROM (SELECT server_ip, server_port, server_name, count(*) AS uses
            FROM connections WHERE server_name IS NOT NULL GROUP BY ALL)
        GROUP BY ALL),
    lived AS (
        SELECT server_ip, server_port, count(*) AS connections, bool_and({UNREAD}) AS unread,
            count(*) FILTER (state = 'refused') AS refused,
            coalesce(sum(ns) FILTER (state = 'refused'), 0)::BIGINT AS refused_ns,
            count(*) FILTER (state = 'unanswered') AS unanswered,
            coalesce(sum(ns) FILTER (state = 'unanswered'), 0)::BIGINT AS unanswered_ns,
            sum(waited_ns)::BIGINT AS waited_ns, sum(ns)::BIGINT AS total_ns,
            sum(greatest(0, closed_at - greatest(opened_at, covered_until)))::BIGINT AS wall_ns,
            quantile_disc(ns, 0.5) AS connection_median_ns, max(ns) AS connection_max_ns
        FROM (SELECT *, closed_at - opened_at AS ns, coalesce(max(closed_at) OVER (
                PARTITION BY server_ip, server_port ORDER BY opened_at, stream
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), opened_at) AS covered_until
            FROM connections)
        GROUP BY ALL),
    secured AS (
        SELECT server_ip, server_port,
            count(*) FILTER (outcome = 'complete' AND kind = 'full') AS handshakes_full,
            count(*) FILTER (outcome = 'complete' AND kind <> 'full') AS handshakes_resumed,
            count(*) FILTER (outcome = 'failed') AS handshakes_failed,
            count(*) FILTER (outcome = 'incomplete') AS handshakes_incomplete
        FROM handshakes JOIN connections USING (stream) GROUP BY ALL),
    asked AS (
        SELECT server_ip, server_port, count(*) AS requests,
            quantile_disc(response_done_at - request_at, 0.5) AS request_median_ns,
            max(response_done_at - request_at) AS request_max_ns
        FROM exchanges JOIN connections USING (stream) GROUP BY ALL),
    standing AS (SELECT unnest($addresses::VARCHAR[]) AS server_ip, unnest($roots::VARCHAR[]) AS root,
        unnest($tiers::INTEGER[]) AS tier),
    placed AS (
        SELECT *, coalesce(root, server_ip) AS stands_with,
            CASE WHEN NOT unread AND refused + unanswered = connections THEN 'closed' WHEN tier > 0 THEN 'backend'
                WHEN tier = 0 THEN 'front' ELSE 'server' END AS role
        FROM lived LEFT JOIN standing USING (server_ip)),
    weighed AS (
        SELECT stands_with, sum(waited_ns) AS weight FROM placed WHERE server_ip = stands_with GROUP BY stands_with)
    SELECT * EXCLUDE (root, stands_with, weight) REPLACE (
            coalesce(tier, 0)::INTEGER AS tier, coalesce(names, []) AS names, coalesce(requests, 0) AS requests,
            coalesce(handshakes_full, 0) AS handshakes_full, coalesce(handshakes_resumed, 0) AS handshakes_resumed,
            coalesce(handshakes_failed, 0) AS handshakes_failed,
            coalesce(handshakes_incomplete, 0) AS handshakes_incomplete),
        row_number() OVER (ORDER BY unread, role = 'closed',
            CASE role WHEN 'closed' THEN refused_ns + unanswered_ns ELSE weight END DESC, stands_with,
            coalesce(tier, 0), waited_ns DESC, server_ip, server_port)::INTEGER - 1 AS rank
    FROM placed LEFT JOIN weighed USING (stands_with) LEFT JOIN named USING (server_ip, server_port)
    LEFT JOIN secured USING (server_ip, server_port) LEFT JOIN asked USING (server_ip, server_port)
"""

_WEIGHTS = f"SELECT server_ip, sum(waited_ns) FROM {_ANSWERING} GROUP BY server_ip"


def describe_servers(tables: Tables) -> None:
    """Fill ``servers``: the costliest front first, after it what stands behind it, the farthest last.

    Who only ever refused or never answered comes after those who did, datagrams that nobody reads come last.
    """
    standing = list(_standing(tables))
    addresses, roots, tiers = (list(column) for column in zip(*standing, strict=True)) if standing else ([], [], [])
    tables.execute(_DESCRIBE, {"addresses": addresses, "roots": roots, "tiers": tiers})


def _standing(tables: Tables) -> Iterator[tuple[str, str, int]]:
    """Give each address of a chain, the front that it belongs to, and how many servers stand in between, and one."""
    behind: dict[str, list[str]] = {}
    for front, back in _pairs(tables):
        behind.setdefault(front, []).append(back)
    inner = {address for backs in behind.values() for address in backs}
    weights = dict(tables.sql(_WEIGHTS).fetchall()) if behind else {}
    # Addresses that only call each other have no outermost one: nobody is a front.
    queue = [(front, front, 0) for front in sorted(behind.keys() - inner, key=lambda front: (-weights[front], front))]
    seen = {front for front, _, _ in queue}
    for address, root, tier in queue:  # grows while it is walked: breadth first
        yield address, root, tier
        for back in behind.get(address, ()):
            if back not in seen:
                seen.add(back)
                queue.append((back, root, tier + 1))


def _pairs(tables: Tables) -> list[tuple[str, str]]:
    """Give who stands in front of whom, directly."""
    ((addresses,),) = tables.sql(f"SELECT count(DISTINCT server_ip) FROM {_ANSWERING}").fetchall()
    pairs: set[tuple[str, str]] = set(tables.sql(_CALLS).fetchall())
    if 1 < addresses <= MAX_NESTED:
        pairs.update(tables.sql(_NESTED).fetchall())
    return sorted(pairs)
