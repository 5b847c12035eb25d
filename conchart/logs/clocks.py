"""How far the clock of a log is ahead of the capture's.

In: ``log_lines``, ``log_requests`` (the exchanges that the log may be about). Out: a first estimate, from requests that
are rare enough to be recognised whatever the clocks say, and a better one from pairs.
"""

from dataclasses import dataclass

from conchart.labels.units import SECOND
from conchart.store.tables import Tables

QUARTER = 900 * SECOND
"""Zones differ by multiples of a quarter of an hour."""
FINE_NS = 20_000_000
"""A clock with a larger unit tells no durations."""
_MOST_PAIRS = 64
"""Lines times exchanges that agree: beyond that, they are not rare."""
_PAIRS = 100_000
_SHARE = 0.4
"""Of the rare requests, so many have to agree on one second."""
_SEVERAL = 3
_NEAR_NS = 300 * SECOND
"""Fewer rare requests that agree may be others of the same name, unless the clocks agree anyway."""
_USUAL_NS = 2_000_000
"""What the kernel and the loop of a server take between packet and clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogClock:
    """How far a log's clock is ahead."""

    ahead_ns: int
    uncertainty_ns: int
    method: str
    """``ids``, ``requests`` (rare ones), ``zone`` (that alone), ``pairs`` (lines beside exchanges)."""


_VOTES = """
    WITH keyed AS (SELECT {line_key} AS key, logged_at FROM log_lines WHERE log = {log} AND logged_at IS NOT NULL),
    seen AS (SELECT {request_key} AS key, {reference} AS seen_at FROM {requests}),
    few AS (
        SELECT key FROM (SELECT key, count(*) AS lines FROM keyed WHERE key IS NOT NULL GROUP BY key)
        JOIN (SELECT key, count(*) AS requests FROM seen GROUP BY key) USING (key)
        WHERE lines * requests <= {most} ORDER BY lines * requests, hash(key) LIMIT {pairs} // {most}),
    apart AS (SELECT key, logged_at - seen_at AS ns FROM few JOIN keyed USING (key) JOIN seen USING (key)),
    bins AS (SELECT ns // {second} AS bin, list(DISTINCT key) AS keys FROM apart GROUP BY bin),
    both_bins AS (
        SELECT one.bin, len(list_distinct(list_concat(one.keys, other.keys))) AS votes
        FROM bins one LEFT JOIN bins other ON other.bin = one.bin + 1)
    SELECT bin, votes, (SELECT count(*) FROM few),
        (SELECT median(ns)::BIGINT FROM apart WHERE ns // {second} IN (bin, bin + 1))
    FROM both_bins ORDER BY votes DESC, abs(bin) LIMIT 1
"""
_ZONES = """
    SELECT quarter::BIGINT, count(logged_at)
    FROM generate_series(-{most}, {most}) series(quarter)
    JOIN (SELECT logged_at FROM log_lines WHERE log = {log}) logged
        ON logged_at BETWEEN {first} + quarter * {quarter} AND {last} + quarter * {quarter}
    GROUP BY quarter ORDER BY count(*) DESC, abs(quarter) LIMIT 1
"""


def first_estimate(
    tables: Tables,
    log: int,
    *,
    keys: list[tuple[str, str, str, str]],
    reference: str,
    zoned: bool,
    span: tuple[int, int],
) -> LogClock:
    """Estimate to a second.

    Args:
        tables: With ``log_requests``.
        log: Its number.
        keys: Ways of recognising a request, the surest first: its name, SQL of the key of a line and of an exchange,
            and the table of those.
        reference: SQL of the instant of an exchange that the line tells.
        zoned: The log's instants have a zone: the clocks are seconds apart, and not hours.
        span: The first and the last instant of the capture.
    """
    for method, line_key, request_key, requests in keys:
        votes = _VOTES.format(
            log=log,
            line_key=line_key,
            request_key=request_key,
            requests=requests,
            reference=reference,
            most=_MOST_PAIRS,
            pairs=_PAIRS,
            second=SECOND,
        )
        for _, agreeing, rare, ahead in tables.fetch(votes):
            if agreeing >= _SHARE * rare and (agreeing >= _SEVERAL or abs(ahead) <= _NEAR_NS):
                return LogClock(ahead_ns=ahead, uncertainty_ns=SECOND // 2, method=method)
    quarters = 0 if zoned else 56
    zone = _ZONES.format(log=log, most=quarters, first=span[0], last=span[1], quarter=QUARTER)
    for quarter, _ in tables.fetch(zone):
        return LogClock(ahead_ns=quarter * QUARTER, uncertainty_ns=SECOND // 2, method="zone")
    return LogClock(ahead_ns=0, uncertainty_ns=SECOND // 2, method="zone")


_APART = """
    SELECT quantile_cont(ns, 0.02), quantile_cont(ns, 0.25), median(ns), quantile_cont(ns, 0.75),
        quantile_cont(late_ns, 0.98), count(*)
    FROM (
        SELECT {logged} - {reference} AS ns, {logged} - {latest} AS late_ns
        FROM log_pairs JOIN log_lines USING (log, line)
        JOIN log_requests ON log_requests.stream = log_pairs.stream AND number = log_pairs.exchange
        WHERE log = {log} QUALIFY log_pairs.rivals = 0 OR count(*) FILTER (log_pairs.rivals = 0) OVER () < 10)
"""


def better_estimate(
    tables: Tables, log: int, *, logged: str, reference: str, latest: str, grain_ns: int, current: LogClock
) -> LogClock:
    """Estimate from pairs: by the median, or of a coarse clock by the bounds that each pair sets.

    Args:
        tables: With ``log_pairs``.
        log: Its number.
        logged: SQL of an instant of the line, in ``log_lines``.
        reference: SQL of the same instant, of ``log_requests``: the earliest that it can be.
        latest: The latest: a server's clock does not contain how long a request lay in the kernel before it was read,
            nor how long the end of a response did after it was written.
        grain_ns: What the log's clock cuts off.
        current: The estimate so far.
    """
    ((least, lower, middle, upper, most, pairs),) = tables.fetch(
        _APART.format(log=log, logged=logged, reference=reference, latest=latest)
    )
    if not pairs:
        return current
    if grain_ns > FINE_NS:
        # An instant that was cut off lies up to a unit before the real one: each pair bounds what the clock is ahead.
        low, high = most, least + grain_ns
        ahead, half = (low + high) / 2, abs(high - low) / 2
        return LogClock(ahead_ns=round(ahead), uncertainty_ns=round(half) + _USUAL_NS, method="pairs")
    spread = (upper - lower) / 2 / max(pairs, 1) ** 0.5
    return LogClock(
        ahead_ns=round(middle + grain_ns / 2), uncertainty_ns=round(spread + max(grain_ns / 2, 1_000)), method="pairs"
    )
