"""Lines of access logs beside exchanges: who is about whom, and on which clock.

In: ``logs``, ``log_lines``, exchanges, connections, links, ``expected_log_lines``. Out: the columns of both that say
which exchange a line is about, ``log_times``, ``log_differences``, and names of exchanges that encryption hides.

What a line says for certain makes groups: its id, its client, method, target, status. Inside a group, time, size and
order decide (``native/src/correlate/lines``). A line has one exchange at most, and an exchange one line of each log.
"""

from dataclasses import dataclass, replace

from conchart import _native
from conchart.logs.clocks import FINE_NS, LogClock, better_estimate, first_estimate
from conchart.logs.comparing import compare
from conchart.logs.formats import TOTALS
from conchart.store.sql import literal
from conchart.store.tables import Tables

_SECOND = 1_000_000_000
_ROUNDS = 3
"""Pairs make the clock better, and a better clock makes better pairs."""
_NEAR_NS = 1_000_000_000
"""How far a line and its exchange are apart at most, beyond what the clock may be wrong: a busy server is late."""

FORGET = """
    DROP TABLE IF EXISTS log_requests; DROP TABLE IF EXISTS log_fronts; DROP TABLE IF EXISTS log_pairs;
    DROP TABLE IF EXISTS log_paired; DROP TABLE IF EXISTS log_captured
"""
"""SQL that drops what ``join_logs`` leaves."""

_REQUESTS = """
    CREATE OR REPLACE TEMP TABLE log_requests AS
    WITH fronts AS (
        SELECT DISTINCT server_ip, server_port FROM links JOIN connections ON stream = front_stream
        WHERE front_exchange IS NOT NULL)
    SELECT exchanges.stream, exchanges.number, coalesce(announced_ip, client_ip) AS client_ip,
        coalesce(announced_port, client_port) AS client_port, method, host, target,
        regexp_replace(target, '[?#].*', '') AS path, status, ids, response_bytes AS bytes, request_at AS start_at,
        protocol = 'tls' AS sealed, server_ip, server_port,
        -- What a proxy hands on is written when the backend's answer is there; others are done shortly before the wire.
        coalesce(
            request_at + nginx_request_ns, greatest(response_at, response_done_at - {second}), response_at,
            least(fin_client_at, rst_at), request_done_at, request_at) AS low_at,
        greatest(low_at, coalesce(response_done_at, least(fin_client_at, rst_at), closed_at)) AS high_at,
        fronts.server_ip IS NOT NULL OR (SELECT count(*) FROM fronts) = 0 AS of_front
    FROM exchanges JOIN connections USING (stream)
    LEFT JOIN expected_log_lines ON expected_log_lines.stream = exchanges.stream AND exchange = exchanges.number
    LEFT JOIN fronts USING (server_ip, server_port)
    WHERE (kind IN ('web', 'rpc') OR protocol = 'tls') AND request_at IS NOT NULL
"""
_PAIRS = """
    CREATE OR REPLACE TEMP TABLE log_pairs (
        log INTEGER, line BIGINT, stream INTEGER, exchange INTEGER, confidence DOUBLE, rivals INTEGER)
"""
_LOGS = """
    SELECT log, instant, coalesce(resolution_ns, 1), zoned, fields FROM logs ORDER BY log
"""
_CONTENTS = """
    SELECT count(client_port) > 0, count(client_ip) > 0, count(id) > 0,
        avg((client_ip IN (SELECT client_ip FROM log_requests))::INTEGER) FILTER (client_ip IS NOT NULL)
    FROM (FROM log_lines WHERE log = {log} AND (target IS NULL OR target IN (SELECT target FROM log_requests)))
"""
_SHARE = 0.2
"""A log whose clients are hardly ever those of the capture has others' addresses: those in front of another proxy."""

_BY_ID = """
    INSERT INTO log_pairs BY NAME
    WITH seen AS (
        SELECT stream, number, unnest(ids) AS id, {reference} AS seen_at, method, of_front FROM log_requests
        WHERE {candidates}),
    both_sides AS (
        SELECT line, stream, number, abs(logged_at - ({ahead}) - seen_at) AS far
        FROM log_lines JOIN seen USING (id)
        WHERE log = {log} AND coalesce(log_lines.method = seen.method, true) AND {inside}
        QUALIFY row_number() OVER (PARTITION BY line ORDER BY far, stream, number) = 1),
    once AS (
        FROM both_sides WHERE far < 60 * {second}
        QUALIFY row_number() OVER (PARTITION BY stream, number ORDER BY far, line) = 1)
    SELECT {log} AS log, line, stream, number AS exchange, 0.99 AS confidence, 0 AS rivals FROM once
"""
_LINES = """
    SELECT (hash({key}) >> 1)::BIGINT AS grp, line AS id, {start_at} AS start_at, {end_at} AS end_at,
        {took}::BIGINT AS took_ns, bytes
    FROM log_lines
    WHERE log = {log} AND ({key}) IS NOT NULL AND {inside}
        AND line NOT IN (SELECT line FROM log_pairs WHERE log = {log})
    ORDER BY grp, line
"""
_SEEN = """
    SELECT (hash({key}) >> 1)::BIGINT AS grp, stream, number, start_at, low_at, high_at, bytes
    FROM log_requests
    WHERE ({key}) IS NOT NULL AND {candidates} AND (stream, number) NOT IN (
        SELECT (stream, exchange) FROM log_pairs WHERE log = {log})
    ORDER BY grp, low_at
"""
_TAKE = """
    INSERT INTO log_pairs BY NAME
    SELECT {log} AS log, id AS line, stream, exchange, confidence * {sure} AS confidence, rivals FROM log_paired
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Log:
    """A log, and what the join knows of it."""

    number: int
    instant: str
    grain_ns: int
    zoned: bool
    took: str
    """SQL of how long a line says that the request took; ``NULL`` where it does not."""
    by_address: bool
    by_port: bool
    has_ids: bool
    clock: LogClock
    span: tuple[int, int]
    elsewhere: tuple[tuple[str, int], ...] = ()
    """Servers in front of the one that wrote the log, and behind it: what they were asked is not in it."""

    @property
    def candidates(self) -> str:
        """SQL: an exchange that the log may be about. Without addresses, those of clients, and not a proxy's own."""
        others = ", ".join(f"({literal(ip)}, {port})" for ip, port in self.elsewhere)
        here = f"(server_ip, server_port) NOT IN ({others})" if others else "true"
        return here if self.by_address else f"of_front AND {here}"

    @property
    def reference(self) -> str:
        """SQL of the instant of an exchange that a line tells."""
        return "start_at" if self.instant == "start" else "low_at"

    @property
    def latest(self) -> str:
        """SQL of the latest instant at which that may have been."""
        return "greatest(start_at, low_at)" if self.instant == "start" else "high_at"

    @property
    def is_fine(self) -> bool:
        """Whether differences of its instants and durations mean something."""
        return self.grain_ns <= FINE_NS

    @property
    def inside(self) -> str:
        """SQL: a line lies within the capture."""
        first, last = self.span
        room = _NEAR_NS + self.clock.uncertainty_ns
        ahead = self.clock.ahead_ns
        return f"logged_at BETWEEN {first + ahead - room - self.grain_ns} AND {last + ahead + room}"

    @property
    def ends(self) -> tuple[str, str]:
        """SQL of start and end that a line tells, on the capture's clock."""
        at = f"logged_at - ({self.clock.ahead_ns})"
        other = "NULL::BIGINT"
        if self.instant == "start":
            return at, f"{at} + {self.took}" if self.is_fine and self.took != "NULL" else other
        return (f"{at} - {self.took}" if self.is_fine and self.took != "NULL" else other), at

    def passes(self) -> list[tuple[float, list[str], list[str], str]]:
        """Give what lines and exchanges have to agree in, the surest first: the rest may fail to be logged or read."""
        client_columns = ["client_ip"] * self.by_address + ["client_port"] * self.by_port
        path = "regexp_replace(target, '[?#].*', '')"
        sure = 1.0 if self.by_port else 0.98
        return [
            (
                sure,
                [*client_columns, "method", "target", "status"],
                [*client_columns, "method", "target", "status"],
                "NOT sealed",
            ),
            (0.9 * sure, [*client_columns, "method", path], [*client_columns, "method", "path"], "NOT sealed"),
            (0.8 * sure, [*client_columns, "'sealed'"], [*client_columns, "'sealed'"], "sealed"),
        ]


def join_logs(tables: Tables) -> None:
    """Fill what ``logs``, ``log_lines``, ``log_times`` and ``log_differences`` say of exchanges."""
    tables.execute(_REQUESTS.format(second=_SECOND))
    tables.execute(_PAIRS)
    ((first, last),) = tables.fetch("SELECT min(first_at), max(last_at) FROM captures")
    for number, instant, grain, zoned, fields in tables.fetch(_LOGS):
        log = _described(tables, number, instant, grain, zoned=zoned, fields=fields, span=(first or 0, last or 0))
        log = _pair(tables, log)
        compare(
            tables,
            log.number,
            starts=log.ends[0] if log.is_fine else "NULL::BIGINT",
            grain_ns=log.grain_ns,
            slack_ns=log.clock.uncertainty_ns,
            took=log.took,
        )
        _tell(tables, log)


def _described(
    tables: Tables, number: int, instant: str, grain: int, *, zoned: bool, fields: list[str], span: tuple[int, int]
) -> _Log:
    ((port, address, ids, share),) = tables.fetch(_CONTENTS.format(log=number))
    totals = [place for place, name in enumerate(fields, 1) if name in TOTALS]
    took = f"coalesce({', '.join(f'durations[{place}]' for place in totals)})" if totals else "NULL"
    by_address = bool(address) and (share or 0) >= _SHARE
    log = _Log(
        number=number,
        instant=instant,
        grain_ns=grain,
        zoned=zoned,
        took=took,
        by_address=by_address,
        by_port=bool(port) and (by_address or not address),
        has_ids=bool(ids),
        clock=LogClock(ahead_ns=0, uncertainty_ns=0, method="zone"),
        span=span,
    )
    requests = f"(FROM log_requests WHERE {log.candidates})"
    with_ids = f"(SELECT *, unnest(ids) AS id FROM log_requests WHERE {log.candidates})"
    keys = [("ids", "id", "id", with_ids)] if log.has_ids else []
    _, line_key, request_key, _ = log.passes()[0]
    keys.append(("requests", _row(line_key), _row(request_key), requests))
    clock = first_estimate(tables, number, keys=keys, reference=log.reference, zoned=zoned, span=span)
    return replace(log, clock=clock)


def _row(columns: list[str]) -> str:
    """SQL of a text in which all of these are told apart; NULL where one is not known."""
    return " || chr(31) || ".join(f"({column})::VARCHAR" for column in columns)


def _pair(tables: Tables, log: _Log) -> _Log:
    """Pair lines and exchanges, and make the clock better by them; the last pairs count."""
    for turn in range(_ROUNDS):
        tables.execute(f"DELETE FROM log_pairs WHERE log = {log.number}")
        if log.has_ids:
            tables.execute(
                _BY_ID.format(
                    log=log.number,
                    reference=log.reference,
                    ahead=log.clock.ahead_ns,
                    candidates=log.candidates,
                    inside=log.inside,
                    second=_SECOND,
                )
            )
        for sure, in_line, seen, which in log.passes():
            _pair_groups(tables, log, sure, _row(in_line), _row(seen), which)
        log = replace(log, elsewhere=_elsewhere(tables, log.number) or log.elsewhere)
        if turn + 1 < _ROUNDS:
            by_start = log.took != "NULL" and log.is_fine and log.instant == "end"
            clock = better_estimate(
                tables,
                log.number,
                logged=f"logged_at - {log.took}" if by_start else "logged_at",
                reference="start_at" if by_start else log.reference,
                latest="start_at" if by_start else log.latest,
                grain_ns=log.grain_ns,
                current=log.clock,
            )
            log = replace(log, clock=clock)
    return log


_CHAINS = """
    WITH pairs AS (
        SELECT server_ip, server_port, count(*) AS pairs FROM log_pairs JOIN connections USING (stream)
        WHERE log = {log} GROUP BY ALL),
    chains AS (
        SELECT DISTINCT f.server_ip AS front_ip, f.server_port AS front_port, b.server_ip AS back_ip,
            b.server_port AS back_port
        FROM links JOIN connections f ON f.stream = front_stream JOIN connections b ON b.stream = back_stream
        WHERE (f.server_ip, f.server_port) <> (b.server_ip, b.server_port))
    SELECT front_ip, front_port, back_ip, back_port, coalesce(front.pairs, 0), coalesce(back.pairs, 0)
    FROM chains LEFT JOIN pairs front ON front.server_ip = front_ip AND front.server_port = front_port
    LEFT JOIN pairs back ON back.server_ip = back_ip AND back.server_port = back_port
    ORDER BY ALL
"""


def _elsewhere(tables: Tables, log: int) -> tuple[tuple[str, int], ...]:
    """Give the servers of chains that did not write the log.

    On one machine, a proxy and what it asks have clients of one address, and are asked the same. What one server was
    asked is written once: of two that stand in one chain, the one with most lines wrote it, and rather the front.
    """
    others = set()
    for front_ip, front_port, back_ip, back_port, fronts, backs in tables.fetch(_CHAINS.format(log=log)):
        if fronts or backs:
            others.add((front_ip, front_port) if backs > 2 * fronts else (back_ip, back_port))
    return tuple(sorted(others))


def _pair_groups(tables: Tables, log: _Log, sure: float, line_key: str, seen: str, which: str) -> None:
    """Pair what agrees in a key."""
    start_at, end_at = log.ends
    candidates = f"{log.candidates} AND {which}"
    requests = tables.stored(_SEEN.format(log=log.number, key=seen, candidates=candidates))
    lines = tables.stored(
        _LINES.format(log=log.number, key=line_key, start_at=start_at, end_at=end_at, took=log.took, inside=log.inside)
    )
    slack = max(log.clock.uncertainty_ns, 1_000_000)
    paired = _native.pair_lines(lines, requests, (log.grain_ns, slack, _NEAR_NS + slack))
    tables.lend_batch("log_paired", paired)
    tables.execute(_TAKE.format(log=log.number, sure=sure))


_CAPTURED = """
    CREATE OR REPLACE TEMP TABLE log_captured AS
    SELECT DISTINCT {key} AS key FROM log_requests WHERE {candidates} AND NOT sealed
"""
_MARK = """
    UPDATE log_lines SET line_at = logged_at - ({ahead}), unmatched = CASE
        WHEN NOT coalesce({inside}, false) THEN 'outside'
        WHEN {path} NOT IN (SELECT key FROM log_captured WHERE key IS NOT NULL) THEN 'request'
        ELSE 'taken' END
    WHERE log = {log}
"""
_PLACE = """
    UPDATE log_lines SET stream = log_pairs.stream, exchange = log_pairs.exchange,
        confidence = log_pairs.confidence, rivals = log_pairs.rivals, unmatched = NULL
    FROM log_pairs WHERE log_pairs.log = {log} AND log_lines.log = {log} AND log_lines.line = log_pairs.line
"""
_COUNT = """
    UPDATE logs SET ahead_ns = {ahead}, uncertainty_ns = {slack}, method = '{method}',
        matched = (SELECT count(stream) FROM log_lines WHERE log = {log}),
        outside = (SELECT count(*) FROM log_lines WHERE log = {log} AND unmatched = 'outside'),
        unmatched = (SELECT count(*) FROM log_lines WHERE log = {log} AND unmatched <> 'outside'),
        requests = counted.requests, unlogged = counted.unlogged
    FROM (
        SELECT count(*) AS requests, count(*) FILTER (log_pairs.line IS NULL) AS unlogged
        FROM log_requests LEFT JOIN log_pairs
            ON log_pairs.log = {log} AND log_pairs.stream = log_requests.stream AND exchange = number
        WHERE (server_ip, server_port) IN (
            SELECT (server_ip, server_port) FROM log_pairs JOIN connections USING (stream) WHERE log = {log})
    ) counted
    WHERE log = {log}
"""
_NAME = """
    UPDATE exchanges SET method = log_lines.method, target = log_lines.target, status = log_lines.status,
        from_log = true
    FROM log_lines
    WHERE log = {log} AND exchanges.stream = log_lines.stream AND number = exchange AND protocol = 'tls'
        AND exchanges.target IS NULL AND log_lines.confidence >= 0.5
"""


def _tell(tables: Tables, log: _Log) -> None:
    """Write down what was found."""
    facts = {
        "log": log.number,
        "ahead": log.clock.ahead_ns,
        "slack": log.clock.uncertainty_ns,
        "method": log.clock.method,
        "inside": log.inside,
    }
    tables.execute(_CAPTURED.format(key="method || path", candidates=log.candidates))
    tables.execute(_MARK.format(path="method || regexp_replace(target, '[?#].*', '')", **facts))
    tables.execute(_PLACE.format(**facts))
    tables.execute(_COUNT.format(**facts))
    tables.execute(_NAME.format(**facts))
