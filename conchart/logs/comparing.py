"""What a log says of a request beside what the wire says, and what explains the difference.

In: ``log_pairs``, ``log_lines``, exchanges, connections, handshakes, ``expected_log_lines``. Out: ``log_times`` and
``log_differences``.
"""

from conchart.logs.formats import WIRES
from conchart.store.tables import Tables

_TIMES = """
    INSERT INTO log_times BY NAME
    SELECT log, line, field, stream, exchange, logged_ns, wire_ns, logged_ns - wire_ns AS difference_ns
    FROM (
        SELECT log, line, {name} AS field, log_pairs.stream, log_pairs.exchange, durations[{place}] AS logged_ns,
            {wire} AS wire_ns
        FROM log_pairs JOIN log_lines USING (log, line)
        JOIN exchanges ON exchanges.stream = log_pairs.stream AND number = log_pairs.exchange
        LEFT JOIN expected_log_lines AS expected
            ON expected.stream = log_pairs.stream AND expected.exchange = log_pairs.exchange
        WHERE log = {log})
    WHERE logged_ns IS NOT NULL
"""
_DIFFERENCES = """
    INSERT INTO log_differences BY NAME
    WITH ready AS (
        SELECT stream, min(ready_at) AS ready_at FROM handshakes WHERE number = 0 AND ready_at IS NOT NULL
        GROUP BY stream),
    pairs AS (
        SELECT log, line, log_pairs.stream, log_pairs.exchange, {took} AS logged_ns, {starts} AS line_start_at,
            request_at, coalesce(response_done_at, least(fin_client_at, rst_at), closed_at) AS done_at,
            if(number = 0, greatest(coalesce(ready_at, ack_at) - syn_at, 0), 0) AS set_up_ns,
            coalesce(rtt_client_ns, 0) AS network_ns
        FROM log_pairs JOIN log_lines USING (log, line)
        JOIN exchanges ON exchanges.stream = log_pairs.stream AND number = log_pairs.exchange
        JOIN connections ON connections.stream = log_pairs.stream LEFT JOIN ready ON ready.stream = log_pairs.stream
        WHERE log = {log}),
    late AS (
        SELECT *, coalesce(set_up_ns, 0) AS setup_ns, CASE
            WHEN line_start_at - request_at > {tolerance} THEN least(line_start_at - request_at, done_at - request_at)
            ELSE 0 END AS queued_ns
        FROM pairs WHERE logged_ns IS NOT NULL AND done_at >= request_at),
    rests AS (SELECT *, done_at - request_at - queued_ns - logged_ns AS rest_ns FROM late),
    parts AS (
        SELECT *, if(rest_ns > {tolerance}, rest_ns, 0) AS buffered_ns, rest_ns - buffered_ns AS clock_ns FROM rests)
    SELECT log, line, stream, exchange, logged_ns, setup_ns + network_ns + done_at - request_at AS wire_ns,
        wire_ns - logged_ns AS difference_ns, setup_ns, queued_ns, buffered_ns, network_ns, clock_ns,
        CASE greatest(setup_ns, queued_ns, buffered_ns, network_ns, abs(clock_ns))
            WHEN setup_ns THEN 'setup' WHEN buffered_ns THEN 'buffered' WHEN queued_ns THEN 'queued'
            WHEN network_ns THEN 'network' ELSE 'clock' END AS explained
    FROM parts
"""
_USUAL_NS = 2_000_000
"""What kernel and loop take between packet and clock."""


def compare(tables: Tables, log: int, *, starts: str, grain_ns: int, slack_ns: int, took: str) -> None:
    """Fill ``log_times`` and ``log_differences`` for the lines of a log that have an exchange.

    Args:
        tables: With ``log_pairs``.
        log: Its number.
        starts: SQL of the instant, on the capture's clock, at which the line says that the request began.
        grain_ns: What it cuts off.
        slack_ns: How wrong that may be.
        took: SQL of how long the line says that the request took.
    """
    ((fields,),) = tables.fetch("SELECT fields FROM logs WHERE log = ?", [log])
    for place, field in enumerate(fields, 1):
        column, total = WIRES.get(field, ("", False))
        wire = column or "NULL::BIGINT"
        if total:
            wire = f"coalesce({wire}, response_done_at - request_at)"
        name = "'" + field.replace("'", "''") + "'"
        tables.execute(_TIMES.format(log=log, name=name, place=place, wire=wire))
    if took != "NULL":
        tolerance = grain_ns + slack_ns + _USUAL_NS if starts != "NULL::BIGINT" else _USUAL_NS + 1_000_000
        tables.execute(_DIFFERENCES.format(log=log, took=took, starts=starts, tolerance=tolerance))
