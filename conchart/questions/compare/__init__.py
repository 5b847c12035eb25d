"""Before against after: two captures of the same thing, compared server by server.

In: the tables of both. Out: a :class:`Comparison`, plain values that terminal, page and tools show alike. Nothing is
drawn here, and no cause is told that the captures do not show: what differs is, and whether that is more than noise.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from conchart.analysis.sights import first_sights
from conchart.errors import UsageError
from conchart.labels.printable import printable
from conchart.labels.units import count_of
from conchart.questions.compare.changes import finding_changes
from conchart.questions.compare.headline import headlines
from conchart.questions.compare.lanes import lanes
from conchart.questions.compare.matching import Match, Placed, match, placed_servers
from conchart.questions.compare.model import Comparison, Difference, Hop, Side
from conchart.questions.compare.noise import judge, spread
from conchart.questions.compare.samples import MEASURES, Endpoint, Samples, samples
from conchart.report.axis import captured_ns
from conchart.report.overview import Overview, overview
from conchart.report.rows import MAX_TEXT
from conchart.report.servers import Server
from conchart.store.sql import STATED
from conchart.store.tables import Tables

__all__ = ["compare"]

_MOST_NAMED = 3
"""Servers named where captures cannot be compared."""

# The sum of hashes does not depend on the order. What is not known of one request says nothing of all.
_WORK = f"""
    SELECT server_ip, server_port, CASE WHEN bool_and(target IS NOT NULL) THEN sum(hash(method, {STATED})::HUGEINT) END
    FROM exchanges JOIN connections USING (stream) GROUP BY ALL
"""


def compare(before: Tables, after: Tables, *, names: bool = True) -> Comparison:
    """Compare two captures.

    Args:
        before: Tables of the one.
        after: Tables of the other.
        names: Tell names found in the captures; servers are matched by them in any case.

    Raises:
        UsageError: There is nothing to compare; the message says what each capture has.
    """
    with first_sights(before), first_sights(after):
        return _compare(before, after, names=names)


def _compare(before: Tables, after: Tables, *, names: bool) -> Comparison:
    extents = [overview(tables) for tables in (before, after)]
    listed = [placed_servers(tables) for tables in (before, after)]
    matches, *left = match(*listed)
    _check(extents, listed, matches)
    shown = {id(one): one.server if names else replace(one.server, names=()) for side in listed for one in side}
    measured, work = (samples(before), samples(after)), (_work(before), _work(after))
    hops = []
    for pair in matches:
        one, other = _key(pair.before.server), _key(pair.after.server)
        hops.append(
            Hop(
                before=shown[id(pair.before)],
                after=shown[id(pair.after)],
                tier=max(pair.before.tier, pair.after.tier),
                by=pair.by,
                same_work=_same_work(pair, (work[0].get(one), work[1].get(other))),
                differences=tuple(_differences(*measured, one, other)),
            )
        )
    only = [tuple(shown[id(one)] for one in side) for side in left]
    titles = {_key(server): server.title for server in shown.values() if server.title}
    sides = [
        Side(
            name=_name(extent.paths),
            packets=extent.selected,
            span_ns=captured_ns(tables),
            connections=extent.connections,
            requests=extent.requests,
            only=alone,
            lanes=lanes(tables, [*(_key(getattr(hop, end)) for hop in hops), *map(_key, alone)]),
        )
        for end, tables, extent, alone in zip(("before", "after"), (before, after), extents, only, strict=True)
    ]
    return Comparison(
        before=sides[0],
        after=sides[1],
        headlines=tuple(headlines(hops)),
        hops=tuple(hops),
        findings=tuple(finding_changes(before, after, hops, titles)),
        span_ns=max(
            1, *(lane.end_ns for side in sides for lane in side.lanes.drawn), *(side.span_ns for side in sides)
        ),
        waited_ns=max(server.waited_ns for server in shown.values()),
    )


def _key(server: Server) -> Endpoint:
    return server.server_ip, server.server_port


def _name(paths: Sequence[str]) -> str:
    """Name the files that were read as one capture."""
    first = "standard input" if paths[0] == "-" else printable(paths[0], MAX_TEXT)
    return f"{first} and {count_of(len(paths) - 1, 'more file')}" if len(paths) > 1 else first


def _work(tables: Tables) -> dict[Endpoint, int | None]:
    return {(ip, port): work for ip, port, work in tables.fetch(_WORK)}


def _same_work(pair: Match, work: Sequence[int | None]) -> bool:
    if pair.before.server.requests != pair.after.server.requests:
        return False
    return None in work or work[0] == work[1]


def _differences(before: Samples, after: Samples, one: Endpoint, other: Endpoint) -> Iterator[Difference]:
    """Compare everything that was measured of a server, but for what took no time in either capture."""
    for measure in MEASURES:
        values = before.get(one, {}).get(measure.name, []), after.get(other, {}).get(measure.name, [])
        if any(map(any, values)):
            verdict, chance = judge(*values)
            yield Difference(
                measure=measure,
                before=spread(values[0]),
                after=spread(values[1]),
                verdict=verdict,
                chance=chance,
            )


def _check(extents: Sequence[Overview], listed: Sequence[Sequence[Placed]], matches: Sequence[Match]) -> None:
    """Refuse what cannot be compared."""
    if not all(extent.connections for extent in extents):
        why = "one of them contains no connection"
    elif not all(extent.requests for extent in extents):
        why = "one of them contains no request"
    elif not matches:
        why = "no server in one matches a server in the other by address, name or position"
    elif not any(pair.before.server.requests and pair.after.server.requests for pair in matches):
        why = "no server that they have in common received requests in both"
    else:
        return
    lines = [
        f"{which} ({printable(_name(extent.paths))}) has {count_of(extent.connections, 'connection')}, "
        f"{count_of(extent.requests, 'request')}{_named(side)}"
        for which, extent, side in zip(("before", "after"), extents, listed, strict=True)
    ]
    raise UsageError("\n".join((f"these captures cannot be compared: {why}", *lines)))


def _named(listed: Sequence[Placed]) -> str:
    servers = [
        f"{one.server.endpoint}{f' ({one.server.title})' if one.server.title else ''}" for one in listed[:_MOST_NAMED]
    ]
    more = len(listed) - len(servers)
    return f": {', '.join(servers)}{f' and {more} more' if more > 0 else ''}" if servers else ""
