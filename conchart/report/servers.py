"""What a server cost: the waits of its users by phase, and what they were not waiting for.

In: the tables ``servers`` and ``times``. Out: :class:`Server` in the order in which to list them, the headline.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from conchart.labels.phases import PHASES, PhaseKind
from conchart.labels.printable import endpoint
from conchart.labels.stalls import stall_kind
from conchart.labels.units import count_of, format_ns, format_share
from conchart.report.rows import Columns, Row, columns, rows
from conchart.report.splits import Split, Splits
from conchart.store.sql import ANSWERED, USERS_WAITED, literal
from conchart.store.tables import Tables

MAX_NAMES = 3
HEADLINES = 3
"""Servers that the headline names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one kind of phase cost, or of idling one that was none: somebody had something to send."""

    phase: PhaseKind
    word: str | None = None
    """What to call it instead of idle; None where the phase's own name is right."""
    total_ns: int
    stalled: Counter[str]
    """What stalls explain of it, by word, but for trifles."""

    @property
    def name(self) -> str:
        """As short as a letter's legend."""
        return self.word or self.phase.name

    @property
    def title(self) -> str:
        """For sentences and charts."""
        return self.word.capitalize() if self.word else self.phase.title

    @property
    def words(self) -> str:
        """The title inside a sentence."""
        return self.title if self.title[:2].isupper() else self.title[0].lower() + self.title[1:]

    @property
    def stalled_ns(self) -> int:
        """The part of ``total_ns`` that stalls explain."""
        return self.stalled.total()

    @property
    def why(self) -> str:
        """``held 1.25 s, lost 200 ms``, the most first; empty where nothing is to be said, or the word says it all."""
        stalls = sorted(self.stalled.items(), key=lambda part: (-part[1], part[0]))
        return "" if self.word else ", ".join(f"{word} {format_ns(ns)}" for word, ns in stalls)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One server endpoint; the columns of ``servers``, and its rows of ``times`` as parts."""

    server_ip: str
    server_port: int
    names: tuple[str, ...]
    """Names that clients asked for, the most used first; empty when names are not wanted or not seen."""
    role: str
    unread: bool
    connections: int
    requests: int
    refused: int
    unanswered: int
    handshakes_full: int
    handshakes_resumed: int
    handshakes_failed: int
    handshakes_incomplete: int
    waited_ns: int
    users_ns: int
    total_ns: int
    wall_ns: int
    connection_median_ns: int
    connection_max_ns: int
    request_median_ns: int | None
    request_max_ns: int | None
    waited: tuple[Part, ...]
    """What its users waited for: adds up to ``waited_ns``."""
    besides: tuple[Part, ...]
    """The rest of its connections' time."""
    split: Split | None
    """What the waits for its responses consist of, where links say what they caused."""

    @property
    def endpoint(self) -> str:
        """Address and port."""
        return endpoint(self.server_ip, self.server_port)

    @property
    def title(self) -> str:
        """Names in one text, e.g. ``a.example, b.example and 4 more``."""
        return _title(self.names, len(self.names))

    @property
    def in_vain(self) -> str:
        """``3 refused, 1 unanswered``; empty where everybody was served."""
        return ", ".join(
            count_of(count, word, word)
            for count, word in ((self.refused, "refused"), (self.unanswered, "unanswered"))
            if count
        )


_HEADS = "role IN ('front', 'server') AND waited_ns > 0 AND NOT unread"
"""SQL: a server that the headline may name."""
_ORDER = "ORDER BY rank, server_ip, server_port"
_CHOSEN = f"""
    SELECT * EXCLUDE (place, heads, heads_before) FROM (
        SELECT *, count(*) FILTER (heads) OVER (ORDER BY place) - heads::INTEGER AS heads_before
        FROM (SELECT *, row_number() OVER ({_ORDER}) AS place, coalesce({_HEADS}, false) AS heads FROM servers))
    WHERE place <= {{most}} OR (heads AND heads_before < {HEADLINES})
"""


def servers(tables: Tables, split: Splits, *, names: bool = True, most: int | None = None) -> list[Server]:
    """List the servers: the costliest front first, after it what stands behind it.

    Args:
        tables: Of the trace.
        split: What the waits at fronts consist of.
        names: With the names found in the capture.
        most: Of more, the first ones, and after them those of the headline.
    """
    chosen = "FROM servers" if most is None else _CHOSEN.format(most=most)
    return _servers(tables, chosen, split, names=names)


def _servers(tables: Tables, chosen: str, split: Splits, *, names: bool) -> list[Server]:
    among = f"SEMI JOIN ({chosen}) USING (server_ip, server_port)"
    by_server: dict[tuple[str, int], list[Row]] = {}
    for row in rows(tables, f"FROM times {among} ORDER BY server_ip, server_port, number"):
        by_server.setdefault((row["server_ip"], row["server_port"]), []).append(row)
    found = []
    for row in rows(tables, f"SELECT * EXCLUDE (rank, tier, refused_ns, unanswered_ns) FROM ({chosen}) {_ORDER}"):
        key = (row["server_ip"], row["server_port"])
        times = by_server.get(key, [])
        waited = tuple(parts((time["phase"], time["kind"], time["detail"], time["waited_ns"]) for time in times))
        besides = tuple(parts((time["phase"], None, None, time["total_ns"] - time["waited_ns"]) for time in times))
        row["names"] = tuple(row["names"]) if names else ()
        found.append(Server(**row, waited=waited, besides=besides, split=split.get(key)))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerGroup:
    """Servers of one role whose users waited mostly in the same phase; the first of the list stands for all."""

    server: Server
    others: int
    """How many more there are."""
    others_connections: int
    others_waited_ns: int
    one_address: bool
    """Whether all have the same address, and differ in their ports."""

    @property
    def rest(self) -> str:
        """``and 11 more servers like it: 13 connections, waited 4.27 ms``; empty where it is alone."""
        if not self.others:
            return ""
        facts = [count_of(self.others_connections, "connection")]
        if self.others_waited_ns:
            facts.append(f"waited {format_ns(self.others_waited_ns)}")
        noun = "more port" if self.one_address else "more server"
        return f"and {count_of(self.others, noun)} like it: {', '.join(facts)}"


_ALIKE = f"""
    WITH parts AS (SELECT server_ip, server_port, phase, sum(waited_ns) AS ns FROM times GROUP BY ALL),
    longest AS (
        SELECT server_ip, server_port, arg_max(phase, ns) AS longest FROM parts WHERE ns > 0 GROUP BY ALL),
    placed AS (FROM (SELECT *, row_number() OVER ({_ORDER}) AS place FROM servers)
        LEFT JOIN longest USING (server_ip, server_port))
    SELECT arg_min(server_ip, place), arg_min(server_port, place), count(*) - 1,
        (sum(connections) - arg_min(connections, place))::BIGINT, (sum(waited_ns) - arg_min(waited_ns, place))::BIGINT,
        count(DISTINCT server_ip) = 1
    FROM placed GROUP BY role, unread, refused > 0, unanswered > 0, longest ORDER BY min(place) LIMIT {{most}}
"""


def alike(tables: Tables, split: Splits, *, names: bool = True, most: int) -> list[ServerGroup]:
    """List the servers as :func:`servers` does, with those that are alike folded; the first ``most`` of these."""
    folded = {(ip, port): others for ip, port, *others in tables.fetch(_ALIKE.format(most=most))}
    if not folded:
        return []
    chosen = ", ".join(f"({literal(ip)}, {port})" for ip, port in folded)
    return [
        ServerGroup(
            server=server,
            others=others,
            others_connections=connections,
            others_waited_ns=waited_ns,
            one_address=one_address,
        )
        for server in _servers(tables, f"FROM servers WHERE (server_ip, server_port) IN ({chosen})", split, names=names)
        for others, connections, waited_ns, one_address in (folded[server.server_ip, server.server_port],)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """All servers, added up."""

    count: int
    waited_ns: int
    """What users waited for; what stands behind a front is part of the front's."""
    longest_ns: int
    """Of one server."""
    total_ns: int


def totals(tables: Tables) -> Totals:
    """Add up the servers."""
    ((count, waited, longest, total),) = tables.fetch(
        f"""
        SELECT count(*), ({USERS_WAITED}), coalesce(max(waited_ns), 0), coalesce(sum(total_ns), 0)::HUGEINT
        FROM servers
        """
    )
    return Totals(count=count, waited_ns=waited, longest_ns=longest, total_ns=total)


def groups(tables: Tables, *, names: bool = True) -> Columns:
    """Give address, title and role of every server, in the order of :func:`servers`."""
    named = f"names[:{MAX_NAMES}]" if names else "[]::VARCHAR[]"
    found = columns(
        tables, f"SELECT server_ip, server_port, role, {named} AS names, len(names) AS named FROM servers {_ORDER}"
    )
    return {
        "endpoint": [endpoint(*one) for one in zip(found["server_ip"], found["server_port"], strict=True)],
        "title": [_title(*one) for one in zip(found["names"], found["named"], strict=True)],
        "role": found["role"],
    }


def _title(names: Sequence[str], count: int) -> str:
    """Write the first names, and how many more there are."""
    listed = ", ".join(names[:MAX_NAMES])
    return f"{listed} and {count - MAX_NAMES} more" if listed and count > MAX_NAMES else listed


def parts(times: Iterable[tuple[str, str | None, str | None, int]]) -> Iterator[Part]:
    """Tell the time of each kind of phase, in the order of ``PHASES``; what was stalled is not called idle.

    Args:
        times: Phase, kind and detail of the stall that explains it, nanoseconds.
    """
    whole: Counter[str] = Counter()
    stalled: dict[str, Counter[str]] = {}
    for name, kind, detail, ns in times:
        whole[name] += ns
        if kind is not None:
            stalled.setdefault(name, Counter())[stall_kind(kind, detail).word] += ns
    for phase in PHASES:
        left = whole[phase.name]
        why = stalled.get(phase.name, Counter())
        if phase.waited:
            why = Counter({word: ns for word, ns in why.items() if ns and ns * 100 >= left})
        else:
            for word, ns in sorted(why.items()):
                if ns > 0:
                    yield Part(phase=phase, word=word, total_ns=ns, stalled=Counter({word: ns}))
                    left -= ns
            why = Counter()
        if left > 0:
            yield Part(phase=phase, total_ns=left, stalled=why)


def headline(listed: list[Server]) -> list[Server]:
    """Choose the servers whose users waited the most. What stands behind a front is part of the front's wait."""
    fronts = [server for server in listed if server.role in ("front", "server") and server.waited_ns]
    return [server for server in fronts if not server.unread][:HEADLINES]


_OTHER_WAYS = f"""
    SELECT count(*), median(delay_ns)::BIGINT FROM races JOIN connections ON stream = loser_stream
    WHERE NOT ({ANSWERED}) AND delay_ns > 0
"""
"""How long the client waited for an answer before it tried another way: what the missing answer cost."""


def in_vain(tables: Tables) -> str:
    """Say what was never served, and where: ``1 unanswered (63.0 s) at 10.0.0.1:81``; empty where all was.

    Lookups inside a wait are a part of that.
    """
    ((refused, refused_ns, unanswered, unanswered_ns, ports, hosts, ip, port),) = tables.fetch(
        """
        WITH inside AS (
            SELECT server_ip, server_port, count(*) AS inside, sum(closed_at - opened_at) AS inside_ns
            FROM connections WHERE state = 'unanswered' AND app = 'dns' AND stream IN (SELECT stream FROM on_behalf)
            GROUP BY ALL)
        SELECT sum(refused), sum(refused_ns), sum(unanswered - coalesce(inside, 0)),
            sum(unanswered_ns - coalesce(inside_ns, 0)), count(*), count(DISTINCT server_ip), min(server_ip),
            min(server_port)
        FROM servers LEFT JOIN inside USING (server_ip, server_port)
        WHERE NOT unread AND refused + unanswered > coalesce(inside, 0)
        """
    )
    counts = [
        f"{count_of(number, word, word)}{f' ({format_ns(ns)})' if ns else ''}"
        for number, ns, word in ((refused, refused_ns, "refused"), (unanswered, unanswered_ns, "unanswered"))
        if number
    ]
    if not counts:
        return ""
    if ports == 1:
        where = endpoint(ip, port)
    elif ports == hosts:
        where = count_of(hosts, "server")
    else:
        where = f"{count_of(ports, 'port')} of {ip if hosts == 1 else count_of(hosts, 'server')}"
    ((raced, delay_ns),) = tables.fetch(_OTHER_WAYS)
    if not raced:
        return f"{', '.join(counts)} at {where}"
    which = "" if raced == refused + unanswered else f"for {raced} of them, "
    median = "" if raced == 1 else " (median)"
    return f"{', '.join(counts)} at {where}; {which}another way was tried {format_ns(delay_ns)} later{median}"


def shares(server: Server) -> Iterator[tuple[Part, str]]:
    """Give what users waited for, the most first, with its share."""
    for part in sorted(server.waited, key=lambda part: -part.total_ns):
        if part.total_ns * 100 >= server.waited_ns:
            yield part, format_share(part.total_ns, server.waited_ns)
