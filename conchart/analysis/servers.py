"""The server endpoints of a capture, their backends and their cost, in the order of lists.

In: connections, handshakes, exchanges, links, on_behalf, times. Out: the table ``servers``.

A server stands behind another if ``links`` say that what was asked of that one caused what was asked of this one, and
no more than half of the time waited here was waited by users themselves.
"""

from collections.abc import Iterator

from conchart.store.sql import ANSWERED, FORWARDED, RESUMED, TO_GROUP, UNREAD
from conchart.store.tables import Tables

Endpoint = tuple[str, int]
"""Address and port of a server."""
_ANSWERING = f"(FROM connections WHERE {ANSWERED} AND state <> 'abandoned' AND NOT {UNREAD})"
"""SQL: what tells who is a server: a port that refuses everybody is nobody's front."""

# A few links may be wrong: what is little to both ends stands for nothing.
_LINKED = """
    WITH pairs AS (
        SELECT front.server_ip AS front_ip, front.server_port AS front_port, back.server_ip AS back_ip,
            back.server_port AS back_port, sum(confidence) AS weight
        FROM links JOIN connections front ON front.stream = front_stream
        JOIN connections back ON back.stream = back_stream
        WHERE (front_ip, front_port) <> (back_ip, back_port)
        GROUP BY ALL),
    direct AS (
        SELECT server_ip AS back_ip, server_port AS back_port FROM times
        GROUP BY ALL HAVING 2 * sum(users_ns) > sum(waited_ns))
    FROM pairs ANTI JOIN direct USING (back_ip, back_port)
    QUALIFY 10 * weight >= least(
        sum(weight) OVER (PARTITION BY front_ip, front_port), sum(weight) OVER (PARTITION BY back_ip, back_port))
    ORDER BY ALL
"""
_STANDING = {
    "server_ip": "VARCHAR", "server_port": "INTEGER", "root_ip": "VARCHAR", "root_port": "INTEGER", "tier": "INTEGER",
}  # fmt: skip
"""What stands behind what: a server, the front of its chain, how many steps behind that."""

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
            count(*) FILTER (state = 'unanswered' AND NOT {TO_GROUP}) AS unanswered,
            coalesce(sum(ns) FILTER (state = 'unanswered' AND NOT {TO_GROUP}), 0)::BIGINT AS unanswered_ns,
            sum(waited_ns)::BIGINT AS waited_ns, sum(ns)::BIGINT AS total_ns,
            sum(greatest(0, closed_at - greatest(opened_at, covered_until)))::BIGINT AS wall_ns,
            quantile_disc(ns, 0.5) AS connection_median_ns, max(ns) AS connection_max_ns
        FROM (SELECT *, closed_at - opened_at AS ns, coalesce(max(closed_at) OVER (
                PARTITION BY server_ip, server_port ORDER BY opened_at, stream
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), opened_at) AS covered_until
            FROM (
                SELECT stream, server_ip, server_port, transport, app, state, opened_at, closed_at, waited_ns
                FROM connections))
        GROUP BY ALL),
    secured AS (
        SELECT server_ip, server_port,
            count(*) FILTER (outcome = 'complete' AND kind = 'full') AS handshakes_full,
            count(*) FILTER ({RESUMED}) AS handshakes_resumed,
            count(*) FILTER (outcome = 'failed') AS handshakes_failed,
            count(*) FILTER (outcome = 'incomplete') AS handshakes_incomplete
        FROM handshakes JOIN connections USING (stream) GROUP BY ALL),
    requested AS (
        SELECT server_ip, server_port, count(*) AS requests,
            quantile_disc(response_done_at - request_at, 0.5) AS request_median_ns,
            max(response_done_at - request_at) AS request_max_ns,
            count(DISTINCT stream) FILTER ({FORWARDED}) AS forwarded
        FROM exchanges JOIN connections USING (stream) GROUP BY ALL),
    placed AS (
        SELECT *, coalesce(root_ip, server_ip) AS stands_with_ip, coalesce(root_port, server_port) AS stands_with_port,
            CASE WHEN NOT unread AND refused + unanswered = connections THEN 'closed' WHEN tier > 0 THEN 'backend'
                WHEN tier = 0 THEN 'front' ELSE 'server' END AS role
        FROM lived LEFT JOIN standing USING (server_ip, server_port)),
    charged AS (SELECT server_ip, server_port, sum(users_ns)::BIGINT AS users_ns FROM times GROUP BY ALL),
    weighed AS (SELECT server_ip AS stands_with_ip, server_port AS stands_with_port, waited_ns AS weight FROM lived)
    SELECT * EXCLUDE (root_ip, root_port, stands_with_ip, stands_with_port, weight, forwarded) REPLACE (
            coalesce(tier, 0)::INTEGER AS tier,
            if(2 * coalesce(forwarded, 0) > connections, [], coalesce(names, [])) AS names,
            coalesce(requests, 0) AS requests,
            coalesce(users_ns, 0) AS users_ns,
            coalesce(handshakes_full, 0) AS handshakes_full, coalesce(handshakes_resumed, 0) AS handshakes_resumed,
            coalesce(handshakes_failed, 0) AS handshakes_failed,
            coalesce(handshakes_incomplete, 0) AS handshakes_incomplete),
        row_number() OVER (ORDER BY unread, role = 'closed',
            CASE role WHEN 'closed' THEN refused_ns + unanswered_ns ELSE weight END DESC,
            stands_with_ip, stands_with_port, coalesce(tier, 0), waited_ns DESC, server_ip, server_port
        )::INTEGER - 1 AS rank
    FROM placed LEFT JOIN weighed USING (stands_with_ip, stands_with_port)
    LEFT JOIN named USING (server_ip, server_port) LEFT JOIN secured USING (server_ip, server_port)
    LEFT JOIN requested USING (server_ip, server_port) LEFT JOIN charged USING (server_ip, server_port)
"""

_WEIGHTS = f"SELECT server_ip, server_port, sum(waited_ns) FROM {_ANSWERING} GROUP BY ALL"


def describe_servers(tables: Tables) -> None:
    """Fill ``servers``: the costliest front first, after it what stands behind it, the farthest last.

    Who only ever refused or never answered comes after those who did, datagrams that nobody reads come last.
    """
    standing = [(*server, *root, tier) for server, root, tier in _standing(tables)]
    with tables.lent("standing", _STANDING, standing):
        tables.execute(_DESCRIBE)


def _standing(tables: Tables) -> Iterator[tuple[Endpoint, Endpoint, int]]:
    """Give each server of a chain, the front that it belongs to, and how many servers stand in between, and one."""
    behind: dict[Endpoint, list[Endpoint]] = {}
    for front_ip, front_port, back_ip, back_port, *_ in tables.fetch(_LINKED):
        behind.setdefault((front_ip, front_port), []).append((back_ip, back_port))
    if not behind:
        return
    inner = {server for backs in behind.values() for server in backs}
    weights = {(ip, port): weight for ip, port, weight in tables.fetch(_WEIGHTS)}
    # Servers that only call each other have no outermost one: nobody is a front.
    fronts = sorted(behind.keys() - inner, key=lambda front: (-weights.get(front, 0), front))
    queue = [(front, front, 0) for front in fronts]
    seen = set(fronts)
    for server, root, tier in queue:  # grows while it is walked: breadth first
        yield server, root, tier
        for back in behind.pop(server, ()):
            if back not in seen:
                seen.add(back)
                queue.append((back, root, tier + 1))
