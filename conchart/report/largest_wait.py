"""Where most of what users waited was, whether something was found about it or not.

In: the tables ``servers``, ``times``, ``wait_owners``, ``explained``, ``splits``, ``links``, and the rows behind the
largest of them. Out: :class:`Longest`.

A law against silence holds here: whatever has half or more of what users waited (a phase, a server, the proxy itself,
the way to what stands behind it, that, attempts at it that came to nothing) is explained by findings for at least half
of it, or is named. The largest phase at a server is named in any case.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from conchart.report.places import Part as Spot
from conchart.report.places import Spent
from conchart.report.rows import Row, rows
from conchart.report.splits import POOL_WAIT, Split, Splits
from conchart.store.sql import OF_USERS, OPENING, RESUMED, SERVED, SURE, UNFINISHED
from conchart.store.tables import Tables
from conchart.words.phases import PHASE_BY_NAME, UNDER_WAY
from conchart.words.printable import endpoint, named_endpoint, printable
from conchart.words.stalls import DETAIL, stall_kind
from conchart.words.units import count_of, format_bytes, format_ns, format_share

Aspect = tuple[str, ...]
"""What of all waits is named: ``("phase", "tls")``, ``("server", "10.0.0.9", "443")``, ``("hop", "proxy")``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Longest:
    """A part of what users waited, in words."""

    title: str
    part: str
    """The part inside a sentence: ``TLS handshake``, ``wait for the server``."""
    where: str
    detail: str
    ns: int
    stream: int | None = None
    """The connection where it took longest, and the frame with which that began."""
    frame: int | None = None
    about: frozenset[Aspect]


# Of phases at servers, of servers, of phases at all servers: the largest each.
_LARGEST = """
    WITH parts AS (
        SELECT times.server_ip, times.server_port, any_value(names[1]) AS name, times.phase,
            sum(times.users_ns) AS ns, coalesce(any_value(explained_ns), 0) AS explained_ns
        FROM times JOIN servers USING (server_ip, server_port)
        LEFT JOIN explained USING (server_ip, server_port, phase)
        WHERE times.users_ns > 0 GROUP BY ALL)
    SELECT server_ip, server_port, any_value(name) AS name, phase, sum(ns)::BIGINT AS ns,
        sum(explained_ns)::BIGINT AS explained_ns, count(*) AS parts
    FROM parts GROUP BY GROUPING SETS ((server_ip, server_port, phase), (server_ip, server_port), (phase))
    QUALIFY row_number() OVER (
        PARTITION BY grouping(server_ip, phase) ORDER BY sum(ns) DESC, server_ip, server_port, phase) = 1
    ORDER BY server_ip IS NULL, phase IS NULL
"""
_SERVED = f"""
    FROM connections WHERE {SERVED} AND ($ip IS NULL OR server_ip = $ip AND server_port = $port)
"""
"""The connections that are meant: those at a server, or all. Of what was done on them, what users waited for counts."""
_OPENED_FOR_USERS = f"""
    FROM ({_SERVED}) ANTI JOIN (SELECT stream FROM on_behalf WHERE exchange = {OPENING}) USING (stream)
"""
# Of phases that nobody waits for, what a stall lies over.
_WORST = f"""
    WITH pieces AS (
        SELECT stream, exchange, start_frame, end_at - start_at AS ns
        FROM phases JOIN ({_SERVED}) USING (stream) WHERE kind = $phase AND kind <> 'idle' AND {OF_USERS}
        UNION ALL
        SELECT stream, exchange, start_frame, end_at - start_at
        FROM stalled JOIN ({_SERVED}) USING (stream)
        WHERE phase = $phase AND phase = 'idle' AND {OF_USERS}),
    worst AS (FROM pieces ORDER BY ns DESC, start_frame, stream LIMIT 1)
    SELECT worst.stream, worst.start_frame AS frame, worst.ns,
        if($phase = 'wait' AND number = 0 AND (request_at IS NULL OR protocol = 'ssh'), 'Greeting',
            concat_ws(' ', method, target)) AS request,
        (SELECT count(*) FROM pieces) AS pieces
    FROM worst LEFT JOIN exchanges ON exchanges.stream = worst.stream AND number = exchange
"""
_STALLED = f"""
    SELECT kind, {DETAIL} AS told_detail, sum(end_at - start_at)::BIGINT AS ns
    FROM stalled JOIN ({_SERVED}) USING (stream) WHERE phase = $phase AND {OF_USERS}
    GROUP BY ALL ORDER BY ns DESC, kind, told_detail LIMIT 1
"""
# Is half of the time, or more, that of requests of which it is not sure that they are some?
_GUESSED = f"""
    SELECT coalesce(2 * sum(end_at - start_at) FILTER (confidence < {SURE}) >= sum(end_at - start_at), false)
    FROM phases JOIN ({_SERVED}) USING (stream)
    JOIN exchanges ON exchanges.stream = phases.stream AND number = exchange
    WHERE phases.kind = $phase
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
    SELECT count(*) AS requests, sum(request_bytes)::BIGINT AS asked, sum(response_bytes)::BIGINT AS answered,
        count(*) FILTER ({UNFINISHED} AND CASE $phase WHEN 'request' THEN request_done_at IS NULL
            WHEN 'wait' THEN request_done_at IS NOT NULL AND response_at IS NULL
            ELSE response_at IS NOT NULL END) AS unfinished
    FROM (SELECT *, number AS exchange FROM exchanges) JOIN ({_SERVED}) USING (stream) WHERE {OF_USERS}
"""
_OWNER = """
    SELECT owner, sum(waited_ns)::BIGINT AS ns
    FROM wait_owners WHERE phase = $phase AND ($ip IS NULL OR server_ip = $ip AND server_port = $port)
    GROUP BY owner ORDER BY ns DESC, owner LIMIT 1
"""
_AT_ONCE = f"""
    SELECT max(open) AS most FROM (
        SELECT sum(step) OVER (ORDER BY instant, step ROWS UNBOUNDED PRECEDING)::BIGINT AS open
        FROM (
            SELECT unnest([request_at, coalesce(response_at, closed_at)]) AS instant, unnest([1, -1]) AS step
            FROM exchanges JOIN ({_SERVED}) USING (stream)
            WHERE request_at IS NOT NULL AND (server_ip, server_port) IN (SELECT (server_ip, server_port) FROM splits)))
"""
_IN_VAIN = f"""
    SELECT server_ip, server_port, any_value(names[1]) AS name, count(*) AS attempts, min(back_stream) AS stream,
        sum(connect_ns + tls_ns + links.request_ns + links.wait_ns)::BIGINT AS ns
    FROM links
    JOIN exchanges ON exchanges.stream = back_stream AND number = back_exchange AND response_at IS NULL
    JOIN connections ON connections.stream = back_stream AND state = 'reset'
    JOIN servers USING (server_ip, server_port)
    WHERE front_stream IN (SELECT stream FROM ({_SERVED}))
    GROUP BY server_ip, server_port ORDER BY ns DESC, server_ip, server_port LIMIT 1
"""
_LARGEST_WAIT = "Largest wait"
"""Title of the largest phase at a server, unless more is told of something else: of a server, or a phase at several."""
_LONGEST_REQUEST = 50
"""Characters of a request that are told."""
_EVERYWHERE: Row = {"ip": None, "port": None}


@dataclass(frozen=True, slots=True)
class _Hop:
    """A part of the waits at fronts."""

    called: str
    """``{front}`` in it stands for what the fronts are: proxies or applications."""
    part: Callable[[Split], int]


_HOPS = {
    "proxy": _Hop("the {front} itself", lambda split: split.proxy_ns),
    "pool": _Hop(POOL_WAIT, lambda split: split.pool_ns),
    "backend": _Hop("the backend", lambda split: split.backend_ns),
    "way": _Hop("connecting to the backend", lambda split: split.connect_ns + split.tls_ns),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What all parts are looked up in."""

    tables: Tables
    splits: Splits
    places: Sequence[Spent]
    names: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A row of ``_LARGEST``; what it is over all of is None."""

    server_ip: str | None
    server_port: int | None
    name: str | None
    phase: str | None
    ns: int
    explained_ns: int
    parts: int

    @property
    def about(self) -> frozenset[Aspect]:
        """What it names."""
        phase: list[Aspect] = [("phase", self.phase)] if self.phase else []
        server: list[Aspect] = [("server", self.server_ip, str(self.server_port))] if self.server_ip else []
        return frozenset((*phase, *server))


def longest(
    tables: Tables,
    waited_ns: int,
    split: Splits,
    places: Sequence[Spent],
    *,
    names: bool = True,
) -> list[Longest]:
    """Name the largest wait, and whatever has half of all and is neither explained nor named yet, the largest first.

    Args:
        tables: Of the trace.
        waited_ns: What users waited.
        split: What the waits at fronts consist of.
        places: Where the time was spent; nothing where nobody named places.
        names: With names found in the capture.
    """
    known = _Known(tables=tables, splits=split, places=places, names=names)
    found = sorted(_named(known, waited_ns), key=lambda one: -one.ns)
    smaller = [
        replace(one, title=one.title.replace(_LARGEST_WAIT, f"{_LARGEST_WAIT} at one server")) for one in found[1:]
    ]
    return [*found[:1], *smaller]


def _named(known: _Known, waited_ns: int) -> Iterator[Longest]:
    named: set[Aspect] = set()
    for number, row in enumerate(rows(known.tables, _LARGEST)):
        part = _Part(**row)
        is_silent = 2 * part.ns >= waited_ns and 2 * part.explained_ns < part.ns
        if not number or is_silent and not part.about <= named:
            told = _told(known, part)
            named |= told.about
            yield told
    if named:
        yield from _behind(known, waited_ns, named)


def _told(known: _Known, part: _Part) -> Longest:
    tables, names = known.tables, known.names
    asked: Row = {"ip": part.server_ip, "port": part.server_port}
    where = _called(part.server_ip, part.server_port, part.name, names=names)
    if not part.phase:
        title = "Most of the wait is at one server"
        return Longest(title=title, part="one server", where=where, detail="", ns=part.ns, about=part.about)
    of_phase = {**asked, "phase": part.phase}
    stall = next(rows(tables, _STALLED, of_phase), None)
    worst = next(rows(tables, _WORST, of_phase))
    word = PHASE_BY_NAME[part.phase].title
    if part.phase == "idle" and stall:
        word = stall_kind(stall["kind"], stall["told_detail"]).word.capitalize()
    ((guessed,),) = tables.fetch(_GUESSED, of_phase)
    hop, behind = _hop(known, asked) if part.phase == "wait" and part.server_ip else ("", "")
    own = _whose(tables, part, of_phase, held=stall is not None) if not behind else ""
    place = _place(known, asked)
    spent_at, ns = "", part.ns
    if place and 2 * place[0].total_ns >= place[1]:
        # A phase is seen from one place. Where the line takes most of it, it is no wait for the server.
        spent_at, ns = place[0].words, place[0].total_ns
    said = [*_facts(tables, part.phase, asked), _went_by(place) or behind or own, _worst(worst, names=names)]
    if stall and 2 * stall["ns"] >= part.ns:
        kind = stall_kind(stall["kind"], stall["told_detail"])
        said.append(f"{kind.word} {format_ns(stall['ns'])}: {kind.meaning}")
    if part.explained_ns:
        said.append(f"findings explain {format_ns(part.explained_ns)} of it")
    return Longest(
        title=f"{_LARGEST_WAIT if part.server_ip else 'Most of the wait'}: {spent_at or word}"
        f"{' (inferred)' if guessed else ''}",
        part=spent_at or (word if word[:2].isupper() else word[0].lower() + word[1:]),
        where=where or f"{count_of(part.parts, 'server')}",
        detail="; ".join(filter(None, said)),
        ns=ns,
        stream=worst["stream"],
        frame=worst["frame"],
        about=part.about | ({("hop", hop)} if hop else set()),
    )


def _called(ip: str | None, port: int | None, name: str | None, *, names: bool) -> str:
    if ip is None or port is None:
        return ""
    return named_endpoint(name, port) if names and name else endpoint(ip, port)


def _worst(row: Row, *, names: bool) -> str:
    """``the longest GET /x 5.70 s at frame 443``; empty where there is only one."""
    what = f" {printable(row['request'], _LONGEST_REQUEST)}" if names and row["request"] else ""
    only = "it is" if row["pieces"] == 1 else "the longest"
    return f"{only}{what} {format_ns(row['ns'])} at frame {row['frame']}" if what or row["pieces"] > 1 else ""


def _facts(tables: Tables, phase: str, asked: Row) -> Iterator[str]:
    """Say what a phase consists of, and whose doing it is."""
    if phase == "syn":
        row = next(rows(tables, _OPENED, asked))
        yield count_of(row["opened"], "connection")
        if row["again"]:
            yield f"{count_of(row['again'], 'SYN or SYN-ACK', 'SYNs or SYN-ACKs')} sent again"
        if row["rtt_ns"]:
            yield f"a round trip of {format_ns(row['rtt_ns'])}"
    elif phase == "tls":
        row = next(rows(tables, _HANDSHAKES, asked))
        offered = f", {row['offered']} of which had offered a session" if row["offered"] else ""
        counts = (
            f"{row['full']} full{offered}",
            *(f"{row[kind]} {kind}" for kind in ("resumed", "failed", "incomplete") if row[kind]),
        )
        yield ", ".join(counts)
    elif phase in ("request", "wait", "transfer"):
        row = next(rows(tables, _EXCHANGES, {**asked, "phase": phase}))
        yield f"{count_of(row['requests'], 'request')}{_unfinished(row['unfinished'], row['requests'])}"
        size = {"request": row["asked"], "transfer": row["answered"]}.get(phase)
        if size:
            yield format_bytes(size)


def _unfinished(count: int, of: int) -> str:
    """``, 2 of them unfinished at the last packet``; empty where all came to an end."""
    if not count:
        return ""
    return f", {'' if count == of else f'{count} of them '}{UNDER_WAY}"


def _whose(tables: Tables, part: _Part, of_phase: Row, *, held: bool) -> str:
    """Say whose time most of a phase is; empty where its name says as much, or nobody knows.

    What stalls held up is its owner's time, too, but nobody computed meanwhile. What is not told apart of a message on
    its way is the path's: nothing is to be learnt from that.
    """
    row = next(rows(tables, _OWNER, of_phase), None)
    if row is None or row["owner"] == "unknown":
        return ""
    if part.phase == "tls" and row["owner"] != "path" and not held:
        return f"the {row['owner']} computed for {format_ns(row['ns'])}"
    if row["owner"] != "path":
        return f"{format_share(row['ns'], part.ns)} of it the {row['owner']}'s own time"
    return f"{format_share(row['ns'], part.ns)} of it on the path" if part.phase in ("tls", "wait") else ""


def _place(known: _Known, asked: Row) -> tuple[Spot, int] | None:
    """Give where most of what users waited for at a server was spent, and all that was; None without places."""
    for one in known.places:
        if (one.server_ip, one.server_port) == (asked["ip"], asked["port"]):
            return max(one.parts, key=lambda part: part.total_ns), one.total_ns
    return None


def _went_by(place: tuple[Spot, int] | None) -> str:
    if place is None:
        return ""
    part, whole_ns = place
    share = format_share(part.total_ns, whole_ns)
    return f"of {format_ns(whole_ns)} waited there, {part.length} ({share}) went by {part.spent}"


def _hop(known: _Known, asked: Row) -> tuple[str, str]:
    """Say which hop behind a front took most of its wait: its name, and a sentence; empty where nothing is behind."""
    fronts = _fronts(known, asked)
    hop = max(_HOPS, key=lambda name: _took(fronts, name))
    if not _took(fronts, hop):
        return "", ""
    return hop, f"{_called_hop(fronts, hop)} took {_of_wait(known, hop, fronts, asked)}"


def _fronts(known: _Known, asked: Row) -> list[Split]:
    """Give what the waits at a front consist of, or at all that users waited for."""
    here = (asked["ip"], asked["port"])
    found = known.splits.items()
    return [split for place, split in found if split.is_outermost and (asked["ip"] is None or place == here)]


def _took(fronts: list[Split], hop: str) -> int:
    return sum(_HOPS[hop].part(split) for split in fronts)


def _called_hop(fronts: list[Split], hop: str) -> str:
    """``the proxy itself``; what asks stores is an application."""
    kinds = sorted({"application" if split.stores else "proxy" for split in fronts if split.proxy_ns}, reverse=True)
    return _HOPS[hop].called.format(front=" or the ".join(kinds))


def _of_wait(known: _Known, hop: str, fronts: list[Split], asked: Row) -> str:
    """``23.7 s of 29.1 s wait (81 %), up to 12 requests at a time``."""
    at_once = ""
    if hop == "proxy":
        ((most,),) = known.tables.fetch(_AT_ONCE, asked)
        at_once = f", up to {count_of(most, 'request')} at a time" if most and most > 1 else ""
    took, whole = _took(fronts, hop), sum(split.wait_ns for split in fronts)
    return f"{format_ns(took)} of {format_ns(whole)} wait ({format_share(took, whole)}){at_once}"


def _behind(known: _Known, waited_ns: int, named: set[Aspect]) -> Iterator[Longest]:
    """Name hops behind the fronts that have half of all."""
    fronts = _fronts(known, _EVERYWHERE)
    for hop in _HOPS:
        took = _took(fronts, hop)
        if took and 2 * took >= waited_ns and ("hop", hop) not in named:
            yield Longest(
                title=f"Half of the wait or more: {_called_hop(fronts, hop)}",
                part=_called_hop(fronts, hop),
                where="",
                detail=_of_wait(known, hop, fronts, _EVERYWHERE),
                ns=took,
                about=frozenset({("hop", hop)}),
            )
    for row in rows(known.tables, _IN_VAIN, _EVERYWHERE):
        if row["ns"] and 2 * row["ns"] >= waited_ns:
            yield Longest(
                title="Most of the wait lies in attempts at a backend that reset them",
                part="attempts at a backend that reset them",
                where=_called(row["server_ip"], row["server_port"], row["name"], names=known.names),
                detail=count_of(row["attempts"], "attempt"),
                ns=row["ns"],
                stream=row["stream"],
                about=frozenset({("hop", "in vain")}),
            )
