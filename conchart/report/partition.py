"""What users waited, divided: what each finding costs, and what none explains, without remainder and overlap.

In: findings, the tables ``servers``, ``wait_owners``, ``explained_waits``, ``splits``, ``links``, and the rows behind
the largest parts. Out: :class:`Unexplained`, which add up to what users waited together with what findings cost
(``Finding.own_ns``).

What no finding explains is divided by server, phase and owner; where places were named, by server and where it was
spent. Parts below a percent are added up: first those of all servers in the same phase with the same owner, then the
rest.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from conchart.labels.phases import PHASE_BY_NAME, UNDER_WAY
from conchart.labels.printable import endpoint, named_endpoint, printable
from conchart.labels.stalls import DETAIL, stall_kind
from conchart.labels.units import count_of, format_bytes, format_count, format_ns, format_share
from conchart.report.places import PLACED, WORST_AT, Spent
from conchart.report.places import Part as Spot
from conchart.report.rows import Row, rows
from conchart.report.splits import POOL_WAIT, Split, Splits
from conchart.store.sql import FORWARDED, OF_USERS, OPENING, RESUMED, SERVED, SURE, UNFINISHED
from conchart.store.tables import Tables

_Key = tuple[str | None, int | None, str, str]
"""Server, phase and owner."""
MOST_DETAILS = 3
"""Parts that are described: the largest."""
LEAST_SHARE = 100
"""One in so many: smaller parts are added up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unexplained:
    """A part of what users waited that no finding explains, in words."""

    part: str
    """What it is, inside a sentence: ``TLS handshake, the client's own time``; empty for the sum of all small ones."""
    where: str = ""
    """The server, or how many there are."""
    detail: str = ""
    """What it consists of; empty but for the largest ones, as the rest."""
    next_step: str = ""
    """What to do next."""
    ns: int
    phase: str = ""
    """Its phase, inside a sentence; empty where it is divided by place."""
    kind: str = ""
    """The same as tables have it, and whose time it is; empty where that is not known."""
    owner: str = ""
    server_ip: str | None = None
    """None where it is at several servers."""
    server_port: int | None = None
    stream: int | None = None
    """The connection where it took longest, and the frame with which that began."""
    frame: int | None = None

    @property
    def title(self) -> str:
        """At the beginning of a line."""
        return self.part[:1].upper() + self.part[1:] if self.part else "Smaller parts"


# Of servers, phases and owners what is a percent or more; of the others, phases and owners.
_PARTS = f"""
    WITH parts AS (
        SELECT server_ip, server_port, phase::VARCHAR AS phase, owner::VARCHAR AS owner,
            waited_ns - coalesce(explained_waits.explained_ns, 0) AS ns,
            coalesce(explained_waits.explained_ns, 0) AS explained_ns
        FROM wait_owners LEFT JOIN explained_waits USING (server_ip, server_port, phase, owner)),
    folded AS (
        SELECT phase, owner, sum(ns)::BIGINT AS ns, count(*) AS servers,
            if(servers = 1, any_value(server_ip), NULL) AS server_ip,
            if(servers = 1, any_value(server_port), NULL) AS server_port, sum(explained_ns)::BIGINT AS explained_ns
        FROM parts WHERE ns <> 0
        GROUP BY phase, owner, if({LEAST_SHARE} * ns >= $waited_ns, (server_ip, server_port), NULL))
    SELECT folded.*, names[1] AS name, is_dns IS NOT NULL AS is_dns, forwards IS NOT NULL AS forwards
    FROM folded LEFT JOIN servers USING (server_ip, server_port)
    LEFT JOIN (SELECT DISTINCT server_ip, server_port, true AS is_dns FROM connections WHERE app = 'dns')
        USING (server_ip, server_port)
    LEFT JOIN (
        SELECT server_ip, server_port, true AS forwards FROM connections JOIN exchanges USING (stream) GROUP BY ALL
        HAVING 2 * count(DISTINCT stream) FILTER ({FORWARDED}) > count(DISTINCT stream)) USING (server_ip, server_port)
    ORDER BY ns DESC, server_ip, server_port, phase, owner
"""
_SERVED = f"""
    FROM connections WHERE {SERVED} AND server_ip = $ip AND server_port = $port
"""
"""The connections at a server. Of what was done on them, what users waited for counts."""
_OPENED_FOR_USERS = f"""
    FROM ({_SERVED}) ANTI JOIN (SELECT stream FROM on_behalf WHERE exchange = {OPENING}) USING (stream)
"""
_HERE = f"""
    SELECT stream, part, phase AS phase_wanted, owner AS owner_wanted
    FROM connections JOIN (SELECT unnest($parts, max_depth := 2)) USING (server_ip, server_port) WHERE {SERVED}
"""
"""The connections of the parts that are described: all parts are looked up at once."""
# Of phases that nobody waits for, what a stall lies over. Connections of which no finding tells come first, if they
# took half of the longest.
_WORST = f"""
    WITH pieces AS (
        SELECT part, phase_wanted AS phase, stream, exchange, start_frame, end_at - start_at AS ns
        FROM phases JOIN ({_HERE}) USING (stream)
        WHERE kind = phase_wanted AND kind <> 'idle' AND {OF_USERS}
        UNION ALL
        SELECT part, phase, stream, exchange, start_frame, end_at - start_at
        FROM phase_stalls JOIN ({_HERE}) USING (stream)
        WHERE phase = phase_wanted AND phase = 'idle' AND {OF_USERS}),
    sums AS (SELECT part, count(*) AS pieces, max(ns) AS longest_ns FROM pieces GROUP BY part),
    guesses AS (
        SELECT part, 2 * sum(ns) FILTER (confidence < {SURE} OR phase = 'transfer' AND request_at IS NULL) >= sum(ns)
            AS guessed
        FROM pieces JOIN exchanges ON exchanges.stream = pieces.stream AND number = exchange GROUP BY part),
    ranked AS (
        SELECT *, ns - if(2 * ns < longest_ns OR stream IN (
            SELECT unnest(streams) FROM findings WHERE root IS NULL AND critical_ns > shared_ns), {1 << 61}, 0) AS rank
        FROM pieces JOIN sums USING (part)),
    worst AS (
        SELECT DISTINCT ON (part) * FROM ranked JOIN (SELECT part, max(rank) AS rank FROM ranked GROUP BY part)
            USING (part, rank)
        ORDER BY part, start_frame, stream)
    SELECT part, worst.stream, start_frame AS frame, ns,
        if(phase = 'wait' AND number = 0 AND (request_at IS NULL OR protocol = 'ssh'), 'Greeting',
            concat_ws(' ', method, target)) AS request, pieces, coalesce(guessed, false) AS guessed
    FROM worst LEFT JOIN guesses USING (part)
    LEFT JOIN exchanges ON exchanges.stream = worst.stream AND number = exchange
"""
"""Is half of the time, or more, that of requests of which it is not sure that they are some? Then it is guessed."""
_STALLED = f"""
    WITH stalled AS (
        SELECT part, kind, {DETAIL} AS named_detail, sum(end_at - start_at)::BIGINT AS ns
        FROM phase_stalls JOIN ({_HERE}) USING (stream)
        WHERE phase = phase_wanted AND owner = owner_wanted AND {OF_USERS} GROUP BY ALL)
    SELECT DISTINCT ON (part) * FROM stalled ORDER BY part, ns DESC, kind, named_detail
"""
_OPENED = f"""
    SELECT count(*) AS opened, sum(coalesce(syn_retransmits, 0) + coalesce(syn_ack_retransmits, 0))::BIGINT AS again,
        median(rtt_client_ns + rtt_server_ns)::BIGINT AS rtt_ns
    FROM ({_OPENED_FOR_USERS}) WHERE syn_at IS NOT NULL
"""
_HANDSHAKES = f"""
    SELECT count(*) FILTER (outcome = 'complete' AND kind = 'full') AS "full", count(*) FILTER ({RESUMED}) AS resumed,
        count(*) FILTER (outcome = 'complete' AND kind = 'full' AND resumption_offered IS NOT NULL) AS offered,
        count(*) FILTER (outcome = 'failed') AS failed, count(*) FILTER (outcome = 'incomplete') AS incomplete
    FROM handshakes JOIN ({_OPENED_FOR_USERS}) USING (stream)
"""
_EXCHANGES = f"""
    SELECT count(*) AS requests, sum(request_bytes)::BIGINT AS request_bytes, sum(response_bytes)::BIGINT AS answered,
        count(*) FILTER ({UNFINISHED} AND CASE $phase WHEN 'request' THEN request_done_at IS NULL
            WHEN 'wait' THEN request_done_at IS NOT NULL AND response_at IS NULL
            ELSE response_at IS NOT NULL END) AS unfinished
    FROM (SELECT *, number AS exchange FROM exchanges) JOIN ({_SERVED}) USING (stream) WHERE {OF_USERS}
"""
_AT_ONCE = f"""
    SELECT max(open) AS most FROM (
        SELECT sum(step) OVER (ORDER BY instant, step ROWS UNBOUNDED PRECEDING)::BIGINT AS open
        FROM (
            SELECT unnest([request_at, coalesce(response_at, closed_at)]) AS instant, unnest([1, -1]) AS step
            FROM exchanges JOIN ({_SERVED}) USING (stream)
            WHERE request_at IS NOT NULL AND (server_ip, server_port) IN (SELECT (server_ip, server_port) FROM splits)))
"""
_LONGEST_REQUEST = 50
"""Characters of a request that are told."""


@dataclass(frozen=True, slots=True)
class _Hop:
    """A part of the waits at fronts."""

    called: str
    """``{front}`` in it stands for what the front is: a proxy or an application."""
    part: Callable[[Split], int]
    next_step: str


_HOPS = {
    "proxy": _Hop(
        "the {front} itself",
        lambda split: split.proxy_ns,
        "look into its log or traces at that time: queues, free workers and connections, buffers",
    ),
    "pool": _Hop(
        POOL_WAIT, lambda split: split.pool_ns, "look at the size of the pool, and at how long connections are held"
    ),
    "backend": _Hop(
        "the backend",
        lambda split: split.backend_ns,
        "look into the backend's log or traces at that time: the front only waits for it",
    ),
    "way": _Hop(
        "connecting to the backend",
        lambda split: split.connect_ns + split.tls_ns,
        "keep connections to the backend open (nginx: keepalive in upstream; HAProxy: http-reuse)",
    ),
    "unlinked": _Hop(
        "the {front} and what stands behind it",
        lambda split: split.unlinked_ns,
        "tell them apart: capture on both sides of it, and give keys (--keylog)",
    ),
}
_HOPS_OF = {"proxy": ("proxy", "pool"), "server": ("backend", "way", "unlinked")}
"""Of which owner's time they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lookup:
    """What all parts are looked up in."""

    tables: Tables
    splits: Splits
    names: bool
    worst: Mapping[_Key, Row] = field(default_factory=dict)
    """Of the parts that are described, where the phase took longest."""
    stalled: Mapping[_Key, Row] = field(default_factory=dict)
    """Of the same, the stall that took most of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A row of ``_PARTS``; what several servers have together has no address."""

    server_ip: str | None
    server_port: int | None
    name: str | None
    phase: str
    owner: str
    """Empty where it is that of several."""
    ns: int
    servers: int
    explained_ns: int
    """What findings explain besides, of the same phase and owner."""
    is_dns: bool
    forwards: bool
    """It is a forward proxy: another server has what it is asked for."""


_OWN = {
    "client": "the client's own time",
    "server": "the server's own time",
    "proxy": "the proxy's own time",
    "path": "on the path",
}
"""Whose time a part is; of a message on its way, the path's goes without saying."""
_ON_ITS_WAY = ("syn", "request", "transfer")

_CAPTURE_THERE = "capture at the server, too (--at): that tells its own time from the path's"
_NEXT = {
    ("syn", "path"): "keep connections open: each one that is not opened anew saves a round trip",
    ("tls", "path"): "resume sessions, use TLS 1.3 (one round trip; TLS 1.2 takes two), or keep connections open",
    ("tls", "client"): "look at what the client does during the handshake: CPU, checks of certificates, lookups",
    ("tls", "server"): "look at what the server does during the handshake: CPU, kind of key (ECDSA, RSA), key servers",
    ("request", "path"): "look at the size of requests, and at the bandwidth and losses on the way to the server",
    ("request", "client"): "look at the client: it has more to send, and does not send it",
    ("wait", "server"): "look into the server's log or traces at that time: the network only waits for it",
    ("wait", "path"): "move client and server nearer, or ask less often: each request takes a round trip",
    ("tls", "unknown"): _CAPTURE_THERE,
    ("wait", "unknown"): _CAPTURE_THERE,
    ("transfer", "path"): "look at the size of responses, and at the bandwidth and losses on the way to the client",
    ("transfer", "server"): "look at the server: it has more to send, and does not send it",
    ("transfer", "client"): "look at the client: it does not read what has arrived",
    ("idle", "client"): "look at the client: it has something to send, and does not send it",
    ("idle", "server"): "look at the server: it has something to send, and does not send it",
}
"""What to do next about a phase of an owner."""
# Where it is mostly a stall of the network's doing; of TCP's own doing, the stall's meaning says enough.
_NEXT_NETWORK = "look for where packets are lost or wait: drops of interfaces, queues, firewalls"
_NEXT_DNS = "look at the resolver: whom it asks, and for how long (dig +stats NAME @SERVER)"
_NEXT_ONE = "open the connection ahead of its first request, or move client and server nearer"
_FEW_BYTES = 14_600
"""What a new connection may send at once: less needs no bandwidth (RFC 6928)."""
_NEXT_SPOT = {
    "path": "look at that part of the network: its distance, bandwidth, queues",
    "between": "capture at the proxy between them, too: it tells the proxy from the paths",
    "host": "look into the log or traces of that host at that time",
    "before": "capture nearer to the client, too: it tells the path from the host",
    "behind": "capture nearer to the server, too: it tells the path from the host",
    "loss": "look for the loss between these places",
    "pace": "look at windows and queues between these places",
}
"""The same about where the time was spent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spot:
    """Where a part of a server's waits was spent, by the captures of several places."""

    part: _Part
    """The largest one at the server."""
    spot: Spot | None
    """None: the captures do not tell where."""
    spent: Spent


def partition(
    tables: Tables, waited_ns: int, split: Splits, places: Sequence[Spent], *, names: bool = True
) -> list[Unexplained]:
    """List what no finding explains, the largest first; at the end, without words, what is below a percent each.

    Args:
        tables: Of the trace.
        waited_ns: What users waited.
        split: What the waits at fronts consist of.
        places: Where the time was spent; nothing where nobody named places.
        names: With names found in the capture.
    """
    lookup = _Lookup(tables=tables, splits=split, names=names)
    at: dict[tuple[str | None, int | None], list[_Part]] = {}
    for row in rows(tables, _PARTS, {"waited_ns": waited_ns}):
        at.setdefault((row["server_ip"], row["server_port"]), []).append(_Part(**row))
    unexplained: list[tuple[Unexplained, _Part | _Spot]] = []
    for spent in places:
        place = (spent.server_ip, spent.server_port)
        # Of a pause the owner is known, and no place.
        here = [part for part in at.get(place, []) if part.phase in PLACED]
        # A trace that an earlier version saved does not tell where findings explain what they do.
        if here and (any(spot.explained_ns for spot in spent.parts) or not any(part.explained_ns for part in here)):
            at[place] = [part for part in at[place] if part.phase not in PLACED]
            unexplained += _by_spot(lookup, here, spent)
    unexplained += ((_brief(lookup, part), part) for here in at.values() for part in here)
    unexplained.sort(key=lambda one: -one[0].ns)
    large = [one for one in _distinguished(unexplained) if LEAST_SHARE * one[0].ns >= waited_ns]
    small_ns = sum(one.ns for one, _ in unexplained) - sum(one.ns for one, _ in large)
    lookup = _looked_up(lookup, [of for _, of in large[:MOST_DETAILS] if isinstance(of, _Part)])
    return [
        *(_described(lookup, one, of) for one, of in large[:MOST_DETAILS]),
        *(one for one, _ in large[MOST_DETAILS:]),
        *([Unexplained(part="", ns=small_ns)] if small_ns else []),
    ]


def _looked_up(lookup: _Lookup, parts: Iterable[_Part]) -> _Lookup:
    """Look up what these parts consist of."""
    wanted = {_key(part): part for part in parts if part.server_ip is not None}  # several servers have little each
    if not wanted:
        return lookup
    values = [
        {
            "part": number,
            "server_ip": part.server_ip,
            "server_port": part.server_port,
            "phase": part.phase,
            "owner": part.owner,
        }
        for number, part in enumerate(wanted.values())
    ]
    keys = [*wanted]
    worst, stalled = (
        {keys[row["part"]]: row for row in rows(lookup.tables, query, {"parts": values})}
        for query in (_WORST, _STALLED)
    )
    return replace(lookup, worst=worst, stalled=stalled)


def _key(part: _Part) -> _Key:
    return part.server_ip, part.server_port, part.phase, part.owner


def _distinguished(
    unexplained: Sequence[tuple[Unexplained, _Part | _Spot]],
) -> Iterator[tuple[Unexplained, _Part | _Spot]]:
    """Add the address where two servers have one name and the same part of the wait."""
    alike = Counter((one.part, one.where) for one, _ in unexplained)
    for one, of in unexplained:
        ip = (of.part if isinstance(of, _Spot) else of).server_ip
        is_clear = alike[one.part, one.where] == 1 or ip is None or ip in one.where
        yield one if is_clear else replace(one, where=f"{one.where} ({ip})"), of


def _brief(lookup: _Lookup, part: _Part) -> Unexplained:
    whose = "" if part.phase in _ON_ITS_WAY and part.owner == "path" else _OWN.get(part.owner, "")
    if (part.phase, part.owner) == ("wait", "server"):
        whose = "its own time"
    split, hop = _behind(lookup, part)
    if part.forwards and part.owner == "server" and not split:
        hop, whose = "unlinked", _HOPS["unlinked"].called.format(front="proxy")
    if split:
        whose = _called_hop(split, hop)
    word = "pause" if part.phase == "idle" else _inside(PHASE_BY_NAME[part.phase].title)
    if part.phase == "wait" and part.is_dns:
        word = "DNS lookup"
    return Unexplained(
        part=", ".join(filter(None, (word, whose))),
        where=_where(lookup, part),
        next_step=_next_step(part, hop),
        ns=part.ns,
        phase=word,
        kind=part.phase,
        owner=part.owner,
        server_ip=part.server_ip,
        server_port=part.server_port,
    )


def _next_step(part: _Part, hop: str) -> str:
    if hop:
        return _HOPS[hop].next_step
    if part.phase == "wait" and part.is_dns:
        return _NEXT_DNS
    return _NEXT.get((part.phase, part.owner), "")


def _by_spot(lookup: _Lookup, here: Sequence[_Part], spent: Spent) -> Iterator[tuple[Unexplained, _Spot]]:
    """Divide what findings leave of a server's waits by where it was spent.

    A phase is seen from one place; where the line takes most of it, it is no wait for the server. The place is not
    known of the waits on connections that one place alone saw.
    """
    first, left_ns = max(here, key=lambda part: part.ns), sum(part.ns for part in here)
    spots: list[tuple[Spot | None, int]] = [
        (spot, max(spot.total_ns - spot.explained_ns, 0)) for spot in spent.parts if spot.total_ns > spot.explained_ns
    ]
    placed_ns = sum(ns for _, ns in spots)
    spots.append((None, max(left_ns - placed_ns, 0)))
    whole_ns = max(placed_ns, left_ns)
    so_far = given = 0
    for spot, ns in spots:
        so_far += ns
        # More than all is left at places where findings explain the same wait in different places.
        until = left_ns * so_far // whole_ns
        if until > given:
            unexplained = Unexplained(
                part=spot.words if spot else "not known where",
                where=_where(lookup, first),
                next_step=_NEXT_SPOT[spot.kind] if spot else "",
                ns=until - given,
                server_ip=first.server_ip,
                server_port=first.server_port,
            )
            yield unexplained, _Spot(part=first, spot=spot, spent=spent)
        given = until


def _described(lookup: _Lookup, unexplained: Unexplained, of: _Part | _Spot) -> Unexplained:
    """Add what a part consists of, and where to look."""
    part = of.part if isinstance(of, _Spot) else of
    worst = _longest(lookup, of)
    if worst is None:
        return unexplained
    unexplained = replace(unexplained, stream=worst["stream"], frame=worst["frame"])
    # What is longer than all that nothing explains is explained for the most part.
    longest = (
        _worst(worst, names=lookup.names) if unexplained.ns // LEAST_SHARE <= worst["ns"] <= unexplained.ns else ""
    )
    if isinstance(of, _Spot):
        return replace(unexplained, detail="; ".join(filter(None, (_went_by(of), longest))))
    return _consisting(lookup, unexplained, part, longest, guessed=worst["guessed"])


def _longest(lookup: _Lookup, of: _Part | _Spot) -> Row | None:
    """Give where it took longest."""
    if isinstance(of, _Part):
        return lookup.worst.get(_key(of))
    if of.spot is None:
        return None
    where = {"kind": of.spot.kind, "place": of.spot.place, "to_place": of.spot.to_place}
    return next(rows(lookup.tables, WORST_AT, {"ip": of.part.server_ip, "port": of.part.server_port, **where}), None)


def _consisting(lookup: _Lookup, unexplained: Unexplained, part: _Part, longest: str, *, guessed: bool) -> Unexplained:
    """Say what a phase of one owner consists of."""
    words, (facts, next_step) = unexplained.part, _facts(lookup.tables, part)
    stall = lookup.stalled.get(_key(part))
    kind = stall_kind(stall["kind"], stall["named_detail"]) if stall else None
    facts.append(_consists(lookup, part))
    if part.phase == "idle" and kind:
        words = ", ".join(filter(None, (kind.word, _OWN.get(part.owner))))
    # Findings explain no more of the stall than they do of all time of its owner.
    if stall and kind and 2 * (stall["ns"] - part.explained_ns) >= part.ns:
        facts.append(f"{kind.word}: {kind.meaning}")
        # A loss makes a host's timer run: that time is the host's, and so is the next step.
        if next_step is None and kind.doing == "TCP's":
            next_step = ""
        elif next_step is None and kind.doing == "the network's" and part.owner not in ("client", "server"):
            next_step = _NEXT_NETWORK
    less = f"{format_ns(part.ns + part.explained_ns)} less {format_ns(part.explained_ns)} that findings explain"
    # The path's part of a wait is not what was long.
    details = [
        less if part.explained_ns else "",
        *facts,
        "" if (part.phase, part.owner) == ("wait", "path") else longest,
    ]
    return replace(
        unexplained,
        part=f"{words} (inferred)" if guessed else words,
        detail="; ".join(filter(None, details)),
        next_step=unexplained.next_step if next_step is None else next_step,
    )


def _inside(words: str) -> str:
    """Write a title as it stands inside a sentence."""
    return words if words[:2].isupper() else words[0].lower() + words[1:]


def _where(lookup: _Lookup, part: _Part) -> str:
    return _called(part.server_ip, part.server_port, part.name, names=lookup.names) or count_of(part.servers, "server")


def _went_by(of: _Spot) -> str:
    if of.spot is None:
        return ""
    spot, whole_ns = of.spot, of.spent.total_ns
    went = f"{spot.length} of {format_ns(whole_ns)} ({format_share(spot.total_ns, whole_ns)}) went by {spot.spent}"
    if not spot.explained_ns or LEAST_SHARE * spot.explained_ns < spot.total_ns:
        return went
    return f"{went}; findings explain {format_ns(spot.explained_ns)} of it"


def _behind(lookup: _Lookup, part: _Part) -> tuple[Split | None, str]:
    """Give what a wait at a front consists of, and the hop that this part of it is; None where nothing is behind."""
    split = lookup.splits.get((part.server_ip or "", part.server_port or 0)) if part.phase == "wait" else None
    if split is None or part.owner not in ("proxy", "server"):
        return None, ""
    hop = max(_HOPS_OF[part.owner], key=lambda name: _HOPS[name].part(split))
    return (split, hop) if _HOPS[hop].part(split) else (None, "")


def _consists(lookup: _Lookup, part: _Part) -> str:
    """``the proxy itself took 2.78 ms of 6.38 ms wait (44 %), up to 12 requests at a time``."""
    split, hop = _behind(lookup, part)
    if split is None:
        return ""
    at_once = ""
    if hop == "proxy":
        ((most,),) = lookup.tables.fetch(_AT_ONCE, {"ip": part.server_ip, "port": part.server_port})
        at_once = f", up to {count_of(most, 'request')} at a time" if most and most > 1 else ""
    took_ns = _HOPS[hop].part(split)
    share = format_share(took_ns, split.wait_ns)
    return f"{_called_hop(split, hop)} took {format_ns(took_ns)} of {format_ns(split.wait_ns)} wait ({share}){at_once}"


def _called_hop(split: Split, hop: str) -> str:
    return _HOPS[hop].called.format(front="application" if split.stores else "proxy")


def _called(ip: str | None, port: int | None, name: str | None, *, names: bool) -> str:
    if ip is None or port is None:
        return ""
    return named_endpoint(name, port) if names and name else endpoint(ip, port)


def _worst(row: Row, *, names: bool) -> str:
    """``the longest GET /x 5.70 s at frame 443``; of only one its name and time, empty where it has no name."""
    what = f" {printable(row['request'], _LONGEST_REQUEST)}" if names and row["request"] else ""
    longest = "the longest" if row["pieces"] > 1 else ""
    found = f"{longest}{what}".strip()
    return f"{found} {format_ns(row['ns'])} at frame {row['frame']}" if found else ""


def _facts(tables: Tables, part: _Part) -> tuple[list[str], str | None]:
    """Say what a phase consists of, and what to do next, where that depends on it."""
    phase, parameters = part.phase, {"ip": part.server_ip, "port": part.server_port}
    if phase == "syn":
        row = next(rows(tables, _OPENED, parameters))
        facts = [count_of(row["opened"], "connection")] if row["opened"] else []
        if row["again"]:
            facts.append(f"{count_of(row['again'], 'SYN or SYN-ACK', 'SYNs or SYN-ACKs')} sent again")
        if row["rtt_ns"]:
            facts.append(f"a round trip of {format_ns(row['rtt_ns'])}")
        return facts, _NEXT_NETWORK if row["again"] else _NEXT_ONE if row["opened"] == 1 else None
    if phase == "tls":
        row = next(rows(tables, _HANDSHAKES, parameters))
        kinds = [kind for kind in ("full", "resumed", "failed", "incomplete") if row[kind]]
        if not kinds:
            return [], None
        first, *others = kinds
        facts = [count_of(row[first], f"{first} handshake"), *(f"{format_count(row[kind])} {kind}" for kind in others)]
        if row["offered"]:
            facts[0] += f" ({format_count(row['offered'])} had offered a session)"
        return [", ".join(facts)], None
    if phase == "idle":
        return [], None
    row = next(rows(tables, _EXCHANGES, {**parameters, "phase": phase}))
    facts = [f"{count_of(row['requests'], 'request')}{_unfinished(row['unfinished'], row['requests'])}"]
    size = {"request": row["request_bytes"], "transfer": row["answered"]}.get(phase)
    if size:
        facts.append(format_bytes(size))
    is_small = phase != "wait" and part.owner == "path" and (size or 0) < _FEW_BYTES * row["requests"]
    return facts, "" if is_small else None


def _unfinished(count: int, of: int) -> str:
    """``, 2 of them unfinished at the last packet``; empty where all came to an end."""
    if not count:
        return ""
    return f", {'' if count == of else f'{format_count(count)} of them '}{UNDER_WAY}"
