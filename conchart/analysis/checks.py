"""Health checks: what load balancers, orchestrators and monitors ask at equal intervals.

In: connections, exchanges. Out: the table ``checks``. Rules leave health checks out; ``remarks`` says how many, and how
much of what users waited that is. ``docs/findings.md`` states the rule.
"""

from collections.abc import Mapping

from conchart.store.sql import ANSWERED, ASKING, MISSING, ONE_SIDED, OPENING, STATED, with_values
from conchart.store.tables import Tables

# What health checks ask: by path (kubelet, load balancers, Prometheus), by who asks, by command (HAProxy's OPTIONS,
# gRPC's health protocol, clients of stores). Regularity alone tells nothing: users' programs poll, too.
_CHECKING = """coalesce(
    regexp_matches(target, '^([a-z]+://[^/]*)?/([^?]*/)?[-_.a-z]*(health[a-z_-]*|live(z|ness)?|alive|readyz?'
        || '|readiness|ping|status|heartbeat|metrics|up)(/check)?(\\?.*)?$', 'i')
    OR regexp_matches(user_agent,
        'health|probe|prometheus|blackbox|uptime|pingdom|nagios|zabbix|GoogleHC|check_http', 'i')
    OR method = 'OPTIONS' AND target IN ('/', '*')
    OR protocol IN ('redis', 'mysql') AND lower(method) = 'ping'
    OR protocol = 'memcached' AND method = 'version', false)"""
# Who fails, or takes long, is no health check: whatever asks, somebody wants to know.
_HEALTHY = """coalesce(
    if(protocol IN ('http/1.0', 'http/1.1', 'h2'), status BETWEEN 200 AND 399, coalesce(status, 0) = 0)
    AND coalesce(response_done_at, response_at) - request_at <= $probe_takes_ns, false)"""
# What is asked again and again, and connections that carry nothing.
_CHECKS = f"""
    INSERT INTO checks BY NAME
    WITH ends AS (
        SELECT stream, client_ip, server_ip, server_port, if(syn_ack_at IS NULL, NULL, syn_at) AS syn_at
        FROM connections WHERE transport = 'tcp' AND {ANSWERED} AND {MISSING} = 0 AND NOT ({ONE_SIDED})),
    candidates AS (
        SELECT stream, number AS exchange, request_at AS requested_at, {_HEALTHY} AS healthy,
            hash(client_ip, server_ip, server_port, method, {STATED}) AS alike
        FROM exchanges JOIN ends USING (stream) WHERE {ASKING} AND {_CHECKING}
        UNION ALL
        SELECT stream, {OPENING}, syn_at, true, hash(client_ip, server_ip, server_port)
        FROM ends WHERE syn_at IS NOT NULL AND stream NOT IN (SELECT stream FROM exchanges WHERE {ASKING})
            AND stream NOT IN (SELECT stream FROM handshakes WHERE version IS NOT NULL OR outcome IS NOT NULL)),
    even AS (
        SELECT alike
        FROM (
            SELECT alike, requested_at - lag(requested_at) OVER (PARTITION BY alike ORDER BY requested_at) AS gap_ns
            FROM candidates)
        GROUP BY alike
        HAVING count(gap_ns) >= $probe_least AND avg(gap_ns) >= $probe_period_ns
            AND stddev_pop(gap_ns) < $probe_spread * avg(gap_ns))
    SELECT stream, exchange FROM candidates SEMI JOIN even USING (alike) WHERE healthy
"""


def find_checks(tables: Tables, *, thresholds: Mapping[str, float]) -> None:
    """Fill ``checks``: health checks that succeed and take little."""
    tables.execute(with_values(_CHECKS, thresholds))
