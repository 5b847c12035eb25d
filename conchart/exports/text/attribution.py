"""Where the time went, per server and phase, and why. In: a trace. Out: lines of text.

For each server a line, a stacked bar, its shares; for each kind of stall that matters a sentence.
"""

from collections.abc import Iterable, Iterator
from textwrap import wrap
from typing import TYPE_CHECKING

from rich.text import Text

from conchart.exports.text.strip import Axis, Stretch, draw_strip, swatch
from conchart.exports.text.words import both_ends, endpoint, flow, names_text
from conchart.phases import PHASES
from conchart.sql import UNREAD
from conchart.stalled import Part, parts, stall_costs, stalled_phases
from conchart.units import count_of, format_ns, format_share

if TYPE_CHECKING:
    from conchart.trace import Trace

_MOST_SERVERS = 12

_SERVERS = """
    SELECT server_ip, server_port, count(*) AS connections, sum(requests)::BIGINT AS requests, names,
           sum(closed_at - opened_at) AS total
    FROM connections
    LEFT JOIN (SELECT stream, count(*) AS requests FROM exchanges GROUP BY stream) USING (stream)
    LEFT JOIN ({names}) USING (server_ip, server_port)
    GROUP BY ALL ORDER BY bool_and({unread}), total DESC, server_ip, server_port
"""
_SHARES = """
    SELECT server_ip, server_port, kind, sum(end_at - start_at)
    FROM phases JOIN connections USING (stream) GROUP BY ALL
"""
NAMES = """
    SELECT server_ip, server_port, list(name ORDER BY uses DESC, name) AS names
    FROM (
        SELECT server_ip, server_port, name, count(*) AS uses
        FROM (
            SELECT stream, sni AS name FROM handshakes WHERE sni <> ''
            UNION ALL SELECT stream, host FROM exchanges WHERE host <> ''
        ) JOIN connections USING (stream)
        WHERE name NOT IN (server_ip, server_ip || ':' || server_port)
        GROUP BY ALL
    ) GROUP BY ALL
"""
"""The names that clients called each server by, commonest first; never looked up. An address is no name."""


def attribution(trace: "Trace", width: int, *, colours: bool, names: bool) -> Iterator[Text]:
    """Give the lines of the table; the server that took most time comes first."""
    shares: dict[tuple[str, int], dict[str, int]] = {}
    for ip, port, kind, duration in trace.sql(_SHARES).fetchall():
        shares.setdefault((ip, port), {})[kind] = duration
    stalled = stalled_phases(trace)
    servers = trace.sql(_SERVERS.format(names=NAMES, unread=UNREAD)).fetchall()
    for number, (ip, port, connections, requests, called, total) in enumerate(servers[:_MOST_SERVERS]):
        if number:
            yield Text()
        title = Text.assemble((endpoint(ip, port), "bold"), f"  {names_text(called)}" if names and called else "")
        numbers = f"{count_of(connections, 'connection')}, {count_of(requests or 0, 'request')}, {format_ns(total)}"
        yield both_ends(title, numbers, width)
        if total:
            by_phase = shares.get((ip, port), {})
            yield draw_strip(_stacked(by_phase), Axis(0, total, width, colours))
            told = parts(by_phase, stalled.get((ip, port), {}))
            yield from flow(_legend(told, total, colours=colours), width)
    if len(servers) > _MOST_SERVERS:
        yield Text(f"… and {count_of(len(servers) - _MOST_SERVERS, 'more server')}")


def _stacked(by_phase: dict[str, int]) -> list[Stretch]:
    """Lay the phases end to end, in their fixed order."""
    stretches, at = [], 0
    for phase in PHASES:
        length = by_phase.get(phase.name, 0)
        stretches.append(Stretch(phase.name, at, at + length))
        at += length
    return stretches


def _legend(told: Iterable[Part], total: int, *, colours: bool) -> Iterator[Text]:
    for part in told:
        words = f" {part.word or part.phase.name} {format_ns(part.total_ns)} "
        share = (format_share(part.total_ns, total), "bold")
        why = f" ({part.why})" if part.why else ""
        yield Text.assemble(swatch(part.phase, colours=colours), words, share, why)


def causes(trace: "Trace", width: int) -> Iterator[Text]:
    """Say why the next byte did not come, where that cost much."""
    for cost in stall_costs(trace):
        for line in wrap(str(cost), width, subsequent_indent="  "):
            yield Text(line)
