"""What access logs say, beside what the packets say.

In: ``logs``, ``log_lines``, ``log_differences``. Out: sentences for terminal and page. Without a log nothing is asked.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from conchart.labels.printable import printable
from conchart.labels.units import count_of, format_ns
from conchart.report.rows import Row, rows
from conchart.store.tables import Tables

EXPLAINED = {
    "setup": "set-up of the connection",
    "queued": "queue before the server read it",
    "buffered": "response still in buffers",
    "network": "way between client and capture",
    "clock": "clocks",
}
"""Parts of a difference, in words."""
UNMATCHED = {
    "outside": "outside the capture's time",
    "request": "no such request in the capture",
    "taken": "every such request has another line, or is too far away in time",
}
"""Why a line has no exchange, in words."""

BY_EXCHANGE = """
    SELECT log_lines.stream, log_lines.exchange, log, path, line, text, log_lines.confidence, logged_ns, wire_ns,
        difference_ns, setup_ns, queued_ns, buffered_ns, network_ns, clock_ns, explained
    FROM log_lines JOIN logs USING (log) LEFT JOIN log_differences USING (log, line)
    WHERE log_lines.stream IS NOT NULL
"""
"""SQL: a row per line that has an exchange."""
_WORST = f"""
    SELECT *, method, host, target, count(*) OVER () AS compared
    FROM ({BY_EXCHANGE}) JOIN (SELECT stream, number AS exchange, method, host, target FROM exchanges)
        USING (stream, exchange)
    WHERE wire_ns IS NOT NULL ORDER BY difference_ns DESC, log, line LIMIT {{most}}
"""
_LOGS = "FROM logs ORDER BY log"
_REASONS = """
    SELECT log, unmatched, count(*) AS lines FROM log_lines WHERE unmatched IS NOT NULL GROUP BY ALL ORDER BY ALL
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A request of which the log and the wire tell the time."""

    stream: int
    exchange: int
    name: str
    """The request, as far as it is known."""
    says: str
    """Log, wire, and what explains the difference."""
    where: str
    """File and line."""


def are_there(tables: Tables) -> bool:
    """Tell whether there are logs: most captures have none."""
    return tables.have_logs


def summaries(tables: Tables) -> Iterator[str]:
    """Say of each log how many lines it has, how many are beside their requests, and how its clock is."""
    if not are_there(tables):
        return
    reasons: dict[int, list[Row]] = {}
    for row in rows(tables, _REASONS):
        reasons.setdefault(row["log"], []).append(row)
    for row in rows(tables, _LOGS):
        yield f"{_file(row['path'])} ({row['product']}): {', '.join(_facts(row, reasons.get(row['log'], [])))}"


def _facts(row: Row, reasons: list[Row]) -> Iterator[str]:
    yield f"{count_of(row['lines'], 'line')}, {row['matched']:,} beside their requests"
    if row["matched"]:
        yield f"clock {_ahead(row['ahead_ns'])} ± {format_ns(row['uncertainty_ns'])}"
    if row["malformed"]:
        yield f"{row['malformed']:,} cannot be read (the first is line {row['first_malformed']:,})"
    for reason in reasons:
        yield f"{reason['lines']:,}: {UNMATCHED[reason['unmatched']]}"
    if row["unlogged"]:
        yield f"{count_of(row['unlogged'], 'request')} without a line"
    if row["broken"]:
        yield f"the file breaks off ({row['broken']})"


def _ahead(ns: int) -> str:
    return f"{format_ns(abs(ns))} {'ahead' if ns >= 0 else 'behind'}"


def worst(tables: Tables, *, most: int) -> list[Compared]:
    """List the requests whose users waited longest beyond what the log says."""
    if not are_there(tables):
        return []
    return [
        Compared(
            stream=row["stream"],
            exchange=row["exchange"],
            name=" ".join(part for part in (row["method"], row["target"]) if part) or "request",
            says=says(row),
            where=where(row),
        )
        for row in rows(tables, _WORST.format(most=most))
    ]


def says(row: Row) -> str:
    """Say in one sentence what log and wire say, of a row of ``BY_EXCHANGE``."""
    if row["wire_ns"] is None:
        return "no duration in the log"
    parts = [
        f"{EXPLAINED[name]} {format_ns(row[f'{name}_ns'])}"
        for name in sorted(EXPLAINED, key=lambda name: -abs(row[f"{name}_ns"]))
        if row[f"{name}_ns"] and (name != "clock" or row["explained"] == "clock" or abs(row["clock_ns"]) > _SMALL_NS)
    ]
    times = f"log {format_ns(row['logged_ns'])}, wire {format_ns(row['wire_ns'])}"
    return f"{times}: {', '.join(parts)}" if parts else times


MOST_CHARACTERS = 300
"""Of a line, where it is told."""
_SMALL_NS = 2_000_000
"""Differences of clocks that nobody asks about."""


def where(row: Row) -> str:
    """Say where the line stands, and how sure it is that the line is about this exchange."""
    return f"{_file(row['path'])}:{row['line']} (confidence {row['confidence']:.2f})"


def of_stream(tables: Tables, stream: int) -> list[Row]:
    """Give the lines about exchanges of a connection."""
    if not are_there(tables):
        return []
    return list(rows(tables, f"FROM ({BY_EXCHANGE}) WHERE stream = ? ORDER BY exchange, log, line", [stream]))


def _file(path: str) -> str:
    return printable(PurePath(path).name)
