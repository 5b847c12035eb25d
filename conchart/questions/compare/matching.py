"""Match the servers of two captures.

In: the servers of both. Out: pairs with what tells them, and who has no partner.

The same address and port is the same server. Of the rest, the same name is, and the same port where one name has
several. Of the rest, where on either side just one server stands at a place (front, backend behind one, …), these two
are.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from conchart.report.report import Report
from conchart.report.servers import Server
from conchart.store.tables import Tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A server, and how many stand before it."""

    server: Server
    tier: int
    datagrams: bool
    """It is asked in single datagrams, as DNS is: never the same as one that is not."""

    @property
    def place(self) -> tuple[str, int, bool]:
        """Where it stands."""
        return self.server.role, self.tier, self.datagrams


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """One server in both captures."""

    before: Placed
    after: Placed
    by: str
    """What tells it: ``address``, ``name``, ``place``."""


_PLACES = """
    SELECT server_ip, server_port, tier, bool_and(transport = 'udp')
    FROM servers JOIN connections USING (server_ip, server_port) GROUP BY ALL
"""


def placed_servers(tables: Tables) -> list[Placed]:
    """List the servers, costliest front first, without datagrams that nobody reads."""
    places = {(ip, port): (tier, udp) for ip, port, tier, udp in tables.fetch(_PLACES)}
    found = []
    for server in Report(tables).servers():
        tier, datagrams = places[server.server_ip, server.server_port]
        if not server.unread:
            found.append(Placed(server=server, tier=tier, datagrams=datagrams))
    return found


def match(before: Sequence[Placed], after: Sequence[Placed]) -> tuple[list[Match], list[Placed], list[Placed]]:
    """Give the pairs in the order of ``before``, and who is there only before, and only after."""
    found: list[Match] = []
    left = list(before), list(after)

    def pair(by: str, keys: Callable[[Placed], Iterable[Hashable]]) -> None:
        pairs = list(_alone_together(*left, keys))
        found.extend(Match(before=one, after=other, by=by) for one, other in pairs)
        paired = {id(one) for pair in pairs for one in pair}
        for side in left:
            side[:] = [one for one in side if id(one) not in paired]

    pair("address", lambda one: [(one.server.server_ip, one.server.server_port)])
    pair("name", lambda one: [(name, one.server.server_port) for name in one.server.names])
    pair("name", lambda one: one.server.names)
    # Of those that are alone at their place among all, not only among who is left.
    single = [{place for place, n in Counter(one.place for one in side).items() if n == 1} for side in (before, after)]
    pair("place", lambda one: [one.place] if one.place in single[0] & single[1] else [])
    order = {id(one): number for number, one in enumerate(before)}
    return sorted(found, key=lambda pair: order[id(pair.before)]), *left


def _alone_together(
    before: Sequence[Placed], after: Sequence[Placed], keys: Callable[[Placed], Iterable[Hashable]]
) -> Iterator[tuple[Placed, Placed]]:
    """Give the pairs that share a key which nobody else has; nobody twice."""
    holders = [_holders(side, keys) for side in (before, after)]
    taken: set[int] = set()
    for one in before:
        for key in keys(one):
            mine, theirs = holders[0][key], holders[1].get(key, [])
            if len(mine) == len(theirs) == 1 and not {id(one), id(theirs[0])} & taken:
                taken |= {id(one), id(theirs[0])}
                yield one, theirs[0]


def _holders(side: Sequence[Placed], keys: Callable[[Placed], Iterable[Hashable]]) -> dict[Hashable, list[Placed]]:
    found: dict[Hashable, list[Placed]] = {}
    for one in side:
        for key in keys(one):
            found.setdefault(key, []).append(one)
    return found
