"""Connections that a page does not draw, as sums: the number in each phase over time, and latency distributions.

In: a trace, and its ``drawn`` connections. Out: two small tables, whatever number of connections is left out. Times are
counted in hundredths of a decade, so that what is read from them is right to about 1 %.
"""

from conchart.labels.phases import PHASES
from conchart.outputs.limits import PAGE
from conchart.report.axis import TimeAxis

PARTS = 500
"""Equal parts of the time axis."""
PER_DECADE = 100
"""Steps of a logarithmic scale in a decade: ``LEFT_PER_DECADE`` of statistics.js."""

_LEFT = "stream NOT IN (SELECT stream FROM drawn)"
_MEASURES = {
    "wait": "SELECT stream, wait_ns FROM exchanges",
    "request": "SELECT stream, request_ns + wait_ns + transfer_ns FROM exchanges",
    "handshake": "SELECT stream, ready_at - hello_at FROM handshakes",
    "connection": "SELECT stream, closed_at - opened_at FROM connections",
}
"""By the key that statistics.js has: a connection and a duration."""


def left_out(axis: TimeAxis) -> dict[str, str]:
    """Give a query for each table."""
    return {"left_levels": _levels(axis), "left_times": _times()}


def _levels(axis: TimeAxis) -> str:
    """Time in each phase, in each part of the axis.

    The time before an instant is whole parts, and a piece of the part that it lies in. The time of a phase in a part is
    what lies before its end less what lies before its start; so each phase counts twice, however long it is.
    """
    kinds = " ".join(f"WHEN '{kind.name}' THEN {number}" for number, kind in enumerate(PHASES))
    length = max(1, -(-axis.span // PARTS))
    return f"""
        WITH edges AS (
            SELECT (CASE kind {kinds} END)::UTINYINT AS kind, greatest({axis.place("edge_at")}, 0) AS place, sign,
                least(place // {length}, {PARTS - 1}) AS part
            FROM (
                SELECT kind, unnest([start_at, end_at]) AS edge_at, unnest([-1, 1]) AS sign
                FROM phases WHERE {_LEFT} AND end_at > start_at)),
        by_part AS (
            SELECT kind, part, sum(sign) AS later, sum(sign * (place - part * {length})) AS here
            FROM edges GROUP BY ALL)
        SELECT kind, part::INTEGER AS part, (coalesce(here, 0) + {length} * coalesce(
            sum(later) OVER (PARTITION BY kind ORDER BY part DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)
            )::BIGINT AS ns
        FROM (SELECT unnest(range({PARTS})) AS part) CROSS JOIN (SELECT DISTINCT kind FROM by_part)
            LEFT JOIN by_part USING (kind, part)
        ORDER BY kind, part"""


def _times() -> str:
    """Durations, counted by step of a logarithmic scale; only the first servers by themselves."""
    phases = [
        f"SELECT 'phase-{kind.name}', stream, end_at - start_at FROM phases WHERE kind = '{kind.name}'"
        for kind in PHASES
    ]
    measures = [f"SELECT '{key}', * FROM ({query})" for key, query in _MEASURES.items()]
    return f"""
        SELECT measure, "group", step, count(*)::INTEGER AS count
        FROM (
            SELECT measure, CASE WHEN "group" < {PAGE.servers} THEN "group" END AS "group",
                CASE WHEN ns < 1 THEN 0 ELSE 1 + floor({PER_DECADE} * log10(ns)) END::INTEGER AS step
            FROM ({" UNION ALL ".join((*measures, *phases))}) durations (measure, stream, ns)
            JOIN (SELECT stream, "group" FROM ranked WHERE {_LEFT}) USING (stream)
            WHERE ns > 0 OR ns = 0 AND NOT starts_with(measure, 'phase-'))
        GROUP BY ALL ORDER BY ALL"""
