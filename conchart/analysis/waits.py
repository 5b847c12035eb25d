"""Where the time went, and whose it was: what stalls explain of each phase, and what users waited for.

In: connections, phases, handshakes, exchanges, stalls, links, on_behalf. Out: tables ``phase_stalls``, ``times``,
``wait_owners``, ``connections.waited_ns``, ``exchanges.service_ns``.

``USERS_WAITS`` is the definition of what users waited; ``docs/phases.md`` says it in words. Every other number that is
called so (headline, costs of findings, predictions) is a sum over some of its rows, or over ``servers.users_ns`` and
``times.users_ns``, which are such sums. ``waited_ns`` of connections, servers and times is the same with what was
waited for on behalf of others: a sum over ``WAITS``.
"""

from collections.abc import Iterable, Mapping

from conchart._native import Attribution
from conchart.labels.phases import PHASES
from conchart.labels.stalls import DETAIL, OWNER
from conchart.store.sql import ANSWERED, GOES_ON, IS_TURN, OF_USERS, SERVED, with_values
from conchart.store.tables import Tables

MOST_PAIRS = 10_000
"""Of a connection's phases and stalls: so many are compared each with each."""

# Where there are more, that would take hours: phases touch, stalls do not overlap, and so a stall lies over the phases
# from the first that ends after it begins to the last that begins before it ends.
_EXPLAIN = f"""
    INSERT INTO phase_stalls BY NAME
    WITH tiles AS (SELECT stream, exchange, kind AS phase, start_at, end_at FROM phases WHERE end_at > start_at),
    lasting AS (FROM stalls WHERE end_at > start_at),
    many AS (
        SELECT stream FROM (SELECT stream, count(*) AS stall_count FROM stalls GROUP BY stream)
        JOIN (SELECT stream, count(*) AS tile_count FROM phases GROUP BY stream) USING (stream)
        WHERE stall_count * tile_count > $most_pairs),
    placed AS (
        SELECT *, row_number() OVER (ORDER BY stream, start_at) AS place FROM tiles SEMI JOIN many USING (stream)),
    covering AS (
        SELECT stalls.*, unnest(range(first.place, last.place + 1)) AS place
        FROM (FROM lasting SEMI JOIN many USING (stream)) stalls
        ASOF JOIN placed first ON stalls.stream = first.stream AND stalls.start_at < first.end_at
        ASOF JOIN placed last ON stalls.stream = last.stream AND stalls.end_at > last.start_at),
    pairs AS (
        SELECT stalls.*, exchange, phase, tiles.start_at AS opens_at, tiles.end_at AS closes_at
        FROM (FROM lasting ANTI JOIN many USING (stream)) stalls JOIN tiles ON stalls.stream = tiles.stream
            AND stalls.start_at < tiles.end_at AND stalls.end_at > tiles.start_at
        UNION ALL BY NAME
        SELECT covering.* EXCLUDE (place), exchange, phase, placed.start_at AS opens_at, placed.end_at AS closes_at
        FROM covering JOIN placed USING (place)),
    requests AS (SELECT stream, number, request_at FROM exchanges WHERE request_at IS NOT NULL)
    SELECT pairs.stream, greatest(start_at, opens_at) AS start_at, least(end_at, closes_at) AS end_at,
        coalesce(exchange, CASE WHEN side = 'server' AND phase IN ('idle', 'close') THEN before.number END,
            after.number)::INTEGER AS exchange,
        phase, kind, detail, side, {OWNER} AS owner, start_frame, end_frame, ack_delay_ns, confidence
    FROM pairs
    ASOF LEFT JOIN requests before ON pairs.stream = before.stream AND start_at >= before.request_at
    ASOF LEFT JOIN requests after ON pairs.stream = after.stream AND least(end_at, closes_at) <= after.request_at
    WHERE (phase = 'idle' AND detail IN ('ack', 'spurious')) IS NOT TRUE
"""
"""Where what was sent again had arrived, nothing was owed to idling: it stays idle. Between exchanges, what a client
owes is of the next one, and what a server owes of the last."""

LATE_HELLO_NS = 10_000_000
"""A ClientHello that comes so long after its connection stood was held up by its client's program."""
OPENED_AHEAD_NS = 1_000_000_000
"""A connection that rested so long before its ClientHello was not opened for what it carries."""
# A ClientHello needs nothing of the server's: from the TCP handshake on, the client has it to send.
_LATE_HELLOS = f"""
    INSERT INTO phase_stalls BY NAME
    SELECT idle.stream, start_at, end_at, number AS exchange, 'idle' AS phase, 'sender' AS kind, 'hello' AS detail,
        'client' AS side, 'client' AS owner, start_frame, end_frame, 0.9 AS confidence
    FROM (
        SELECT stream, start_at, end_at, start_frame, end_frame FROM phases
        WHERE kind = 'idle' AND end_at - start_at BETWEEN {LATE_HELLO_NS} AND {OPENED_AHEAD_NS}) idle
    JOIN (SELECT stream, end_at AS start_at FROM phases WHERE kind = 'syn') USING (stream, start_at)
    JOIN (SELECT stream, hello_at AS end_at FROM handshakes WHERE number = 0) USING (stream, end_at)
    LEFT JOIN (SELECT stream, min(number)::INTEGER AS number FROM exchanges GROUP BY stream) USING (stream)
    WHERE stream NOT IN (SELECT stream FROM phase_stalls WHERE phase = 'idle' AND start_at < idle.end_at)
"""

WAITED = tuple(phase.name for phase in PHASES if phase.waited)
WAITS = f"""(
    FROM (
        SELECT stream, exchange, kind::VARCHAR AS phase, start_at, end_at FROM phases
        WHERE kind IN {WAITED} AND end_at > start_at
        UNION ALL
        SELECT stream, exchange, phase::VARCHAR, start_at, end_at FROM phase_stalls WHERE phase = 'idle')
    WHERE NOT {IS_TURN})"""
"""SQL: the stretches in which somebody waited, of connections that were served. Those of a connection do not overlap.

Somebody waits while a connection opens (TCP, TLS), a request goes out, the server has it, its response comes in; and
while it idles though one side has something to send, which a stall tells. On a connection an instant counts once,
however many requests wait on it. What was refused or never answered is no wait for a response: it is counted by itself.
"""
USERS_WAITS = f"(FROM {WAITS} WHERE {OF_USERS})"
"""SQL: those in which users waited: not for what was made for another request, for which they wait already."""
_ORDER = f"list_position({[phase.name for phase in PHASES]}, phase)"

_WAIT = f"""
    UPDATE connections SET waited_ns = ns FROM (
        SELECT stream, coalesce(sum(end_at - start_at) FILTER ({SERVED}), 0)::BIGINT AS ns
        FROM connections LEFT JOIN {WAITS} USING (stream)
        GROUP BY stream) AS totals
    WHERE connections.stream = totals.stream
"""
# Of a phase, what no stall explains is the rest of it.
_CHARGE = f"""
    INSERT INTO times BY NAME
    WITH pieces AS (
        SELECT stream, exchange, kind::VARCHAR AS phase, NULL AS kind, NULL AS detail, end_at - start_at AS ns
        FROM phases
        UNION ALL
        SELECT stream, exchange, phase::VARCHAR, kind, {DETAIL}, end_at - start_at FROM phase_stalls),
    judged AS (
        SELECT server_ip, server_port, phase, kind, detail, ns, {SERVED} AND NOT {IS_TURN} AS served,
            {OF_USERS} AS of_users
        FROM pieces JOIN connections USING (stream)),
    summed AS (
        SELECT server_ip, server_port, phase, kind, detail, served, of_users, sum(ns) AS ns FROM judged GROUP BY ALL)
    SELECT *, row_number() OVER (
        PARTITION BY server_ip, server_port ORDER BY {_ORDER}, kind NULLS LAST, detail)::INTEGER - 1 AS number
    FROM (
        SELECT server_ip, server_port, phase, kind, detail, sum(ns)::BIGINT AS total_ns,
            coalesce(sum(ns) FILTER (waited), 0)::BIGINT AS waited_ns,
            coalesce(sum(ns) FILTER (waited AND of_users), 0)::BIGINT AS users_ns
        FROM (
            SELECT *, served AND (phase IN {WAITED} OR phase = 'idle' AND kind IS NOT NULL) AS waited
            FROM (
                FROM summed
                UNION ALL
                SELECT * REPLACE (NULL AS kind, NULL AS detail, -ns AS ns) FROM summed WHERE kind IS NOT NULL))
        GROUP BY ALL HAVING sum(ns) > 0)
"""

_WAY = """rtt_server_ns + CASE (SELECT any_value(seen_from) FROM captures)
    WHEN 'client' THEN coalesce(least_rtt_client_ns, 0)
    WHEN 'server' THEN -coalesce(least_rtt_server_ns, 0) ELSE 0 END"""
"""SQL, of ``connections``: the way from the point of view to the server and back, which is part of every wait."""
# Stalls of a connection do not overlap: what lies between two instants is the difference of two running sums.
_SERVE = f"""
    UPDATE exchanges SET service_ns = ns FROM (
        WITH held AS (
            SELECT stream, start_at, end_at, coalesce(sum(end_at - start_at) OVER (
                PARTITION BY stream ORDER BY start_at ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before_ns
            FROM phase_stalls WHERE phase = 'wait' AND (detail IN ('ack', 'spurious')) IS NOT TRUE)
        SELECT exchanges.stream, number, greatest(wait_ns - way_ns
            - coalesce(till.before_ns + least(response_at, till.end_at) - till.start_at, 0)
            + coalesce(since.before_ns + least(request_done_at, since.end_at) - since.start_at, 0), 0)::BIGINT AS ns
        FROM (SELECT stream, number, request_done_at, response_at, wait_ns FROM exchanges WHERE wait_ns IS NOT NULL)
            AS exchanges
        JOIN (SELECT stream, {_WAY} AS way_ns FROM connections) USING (stream)
        ASOF LEFT JOIN held since ON exchanges.stream = since.stream AND request_done_at >= since.start_at
        ASOF LEFT JOIN held till ON exchanges.stream = till.stream AND response_at >= till.start_at
        WHERE way_ns IS NOT NULL) AS measured
    WHERE exchanges.stream = measured.stream AND exchanges.number = measured.number
"""
# Where a connection's beginning is not in the capture, and acknowledgements came with the responses, nobody knows how
# much of a wait was the way.
_CONNECTIONS = f"""
    SELECT stream, server_ip, server_port, {SERVED} AS is_served, {ANSWERED} AS is_answered,
        ({_WAY})::BIGINT AS way_ns, rtt_server_ns >= $way_share * least_wait_ns AS is_most, client_ns, server_ns,
        if({GOES_ON}, closed_at, NULL) AS goes_on_until
    FROM connections LEFT JOIN (
        SELECT stream, min(wait_ns) AS least_wait_ns
        FROM exchanges SEMI JOIN (FROM connections WHERE transport = 'tcp' AND syn_at IS NULL) USING (stream)
        GROUP BY stream) USING (stream)
    LEFT JOIN (
        SELECT stream, sum(client_compute_ns)::BIGINT AS client_ns, sum(server_compute_ns)::BIGINT AS server_ns
        FROM handshakes GROUP BY stream) USING (stream)
"""
_STRETCHES = f"""
    SELECT stream, exchange, phase, owner, start_at, end_at
    FROM (
        SELECT stream, exchange, kind AS phase, NULL AS owner, start_at, end_at
        FROM phases WHERE kind IN {WAITED} AND end_at > start_at
        UNION ALL
        SELECT stream, exchange, phase, owner, start_at, end_at FROM phase_stalls WHERE phase IN {(*WAITED, "idle")})
    WHERE NOT {IS_TURN} AND {OF_USERS}
"""
"""The rows of ``USERS_WAITS``, and what stalls explain of them."""
_HANDED = """
    SELECT stream, exchange, proxy_ns::BIGINT AS proxy_ns, wait_ns
    FROM (
        SELECT front_stream AS stream, front_exchange AS exchange, sum(proxy_in_ns + proxy_out_ns) AS proxy_ns
        FROM links WHERE proxy_in_ns IS NOT NULL GROUP BY ALL)
    JOIN (SELECT stream, number AS exchange, wait_ns FROM exchanges WHERE wait_ns > 0) USING (stream, exchange)
"""
# Where the time was spent that findings explain. What was paid for them up to an instant is a running sum.
EXPLAINED_PLACES = """
    INSERT INTO explained_places BY NAME
    WITH edges AS (
        SELECT stream, unnest([start_at, end_at]) AS instant, unnest([1, -1]) AS paying FROM paid),
    walked AS (
        SELECT stream, instant AS start_at, sum(paying) OVER so_far > 0 AS is_paid, lead(instant) OVER so_far AS end_at
        FROM edges WINDOW so_far AS (PARTITION BY stream ORDER BY instant, paying DESC ROWS UNBOUNDED PRECEDING)),
    covered AS (
        SELECT stream, start_at, end_at, coalesce(sum(end_at - start_at) OVER (
            PARTITION BY stream ORDER BY start_at ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before_ns
        FROM walked WHERE is_paid AND end_at > start_at)
    SELECT own.stream, own.start_at, (
        coalesce(till.before_ns + least(own.end_at, till.end_at) - till.start_at, 0)
        - coalesce(since.before_ns + least(own.start_at, since.end_at) - since.start_at, 0))::BIGINT AS explained_ns
    FROM phase_places own
    ASOF LEFT JOIN covered since ON own.stream = since.stream AND own.start_at >= since.start_at
    ASOF LEFT JOIN covered till ON own.stream = till.stream AND own.end_at >= till.start_at
    WHERE explained_ns > 0
"""


def explain_phases(tables: Tables) -> None:
    """Fill ``phase_stalls``: pieces of time in which one phase and one stall of a connection lie over each other.

    A ClientHello that comes late is told as one that its sender deferred.
    """
    tables.execute(_EXPLAIN, {"most_pairs": MOST_PAIRS})
    tables.execute(_LATE_HELLOS)


def count_waits(tables: Tables) -> None:
    """Fill ``connections.waited_ns``."""
    tables.execute(_WAIT)


def charge_servers(tables: Tables) -> None:
    """Fill ``times``, whose rows add up to the lifetimes of a server's connections."""
    tables.execute(_CHARGE)


def time_servers(tables: Tables) -> None:
    """Fill ``exchanges.service_ns``: of a wait, when the server had the request and nothing was held up."""
    tables.execute(_SERVE)


class UsersWaits:
    """What users waited, as the core has it: read when somebody first asks."""

    def __init__(self, tables: Tables, thresholds: Mapping[str, float]) -> None:
        """Take tables, and from where on an acknowledgement tells no round trip."""
        self._tables = tables
        self._thresholds = thresholds
        self._read: Attribution | None = None

    def read(self) -> Attribution:
        """Give it."""
        if self._read is None:
            queries = (with_values(_CONNECTIONS, self._thresholds), _STRETCHES, _HANDED)
            self._read = Attribution(*map(self._tables.sql, queries))
        return self._read

    def forget(self) -> None:
        """Free its memory."""
        self._read = None


def find_owners(tables: Tables, *, waits: UsersWaits) -> None:
    """Fill ``wait_owners``, whose rows add up to what users waited in each phase at a server."""
    tables.add_batch("wait_owners", waits.read().owners())


def explain_waits(tables: Tables, attribution: Attribution, ids: Iterable[int]) -> None:
    """Fill ``explained_waits`` and ``explained_places``: what users waited for some finding.

    Args:
        tables: Of the trace.
        attribution: What users waited, with what they paid for findings.
        ids: Of the findings that stand for themselves.
    """
    chosen = [*ids]
    tables.add_batch("explained_waits", attribution.explained(chosen))
    if tables.have_places:
        tables.lend_batch("paid", attribution.paid(chosen))
        tables.execute(EXPLAINED_PLACES)
