"""What the swimlanes and the tables of the page show: every connection, grouped by server, and what happened on it.

In: a trace. Out: columns, packed. Times are whole nanoseconds since the capture's first packet: as a number in a
browser they stay exact for 104 days, which nanoseconds since the epoch would not.

Nothing is left out of a page that a browser can hold. Beyond the limits of connections, phases, stalls and links in
:mod:`conchart.report.swimlanes`, :data:`MAX_EXCHANGES` requests, :data:`MAX_PACKETS` packets and :data:`MAX_QUERIES`
shapes of queries, the page says what it lacks. Of more connections, it draws the first ones of each finding and the
worst ones of each server, and then those whose users waited the longest. The others are sums
(:mod:`conchart.outputs.page.left_out`).
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from conchart.analysis.vantage import ROUTED_NS
from conchart.labels.phases import PHASES
from conchart.labels.stalls import STALLS
from conchart.labels.units import format_count
from conchart.outputs.options import DrawOptions
from conchart.outputs.page.ladders import ladders
from conchart.outputs.page.left_out import left_out
from conchart.outputs.page.packed import Packer, counted_from
from conchart.questions.explain.clocks import WHY
from conchart.report import facts, owners, queries, races
from conchart.report import swimlanes as drawn
from conchart.report.axis import TimeAxis, time_axis
from conchart.report.messages import BY_EXCHANGE, are_there
from conchart.report.notes import RACE, Note, notes
from conchart.report.queries import ALL, BY_SHAPE, IS_QUERY
from conchart.report.servers import groups
from conchart.report.splits import STEPS
from conchart.report.swimlanes import drawn_lanes, link_rows, phase_rows, stall_rows
from conchart.store.sql import TURNS, UNFINISHED
from conchart.store.tables import Tables

MAX_EXCHANGES = 1_000_000
MAX_PACKETS = 1_000_000
MAX_QUERIES = 10_000
_LONGEST = 2_000
"""What is said of one packet: a flight has many messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Swimlanes:
    """The lanes of a page and what had to be left out."""

    data: dict[str, Any]
    blocks: dict[str, str]
    """The tables, as they travel."""
    limits: tuple[str, ...]
    """What is not on the page, one sentence each; empty when everything is."""
    links: int


def swimlanes(tables: Tables, options: DrawOptions) -> Swimlanes:
    """Collect the lanes, in the order of the servers; within a server, of time.

    Packets that tell of trouble are always there, all of them if the options ask for it; names only if they do.
    """
    total = tables.count("connections")
    ((seen_from,),) = tables.fetch("SELECT any_value(seen_from) FROM captures")
    axis = time_axis(tables)
    have_queries, have_messages = queries.are_there(tables), are_there(tables)
    owned = options.names and owners.are_there(tables)
    noted = list(notes(tables))
    parts = {
        "phases": phase_rows(_PHASES),
        "stalls": stall_rows(_stalls(axis)),
        "exchanges": _exchanges(names=options.names, have_queries=have_queries, have_messages=have_messages),
        "links": link_rows(),
        "handshakes": _handshakes(names=options.names),
        "packets": _packets(axis, options),
        **({"queries": _QUERIES} if have_queries else {}),
        **({"races": _RACES} if any(note.title == RACE for note in noted) else {}),
        **({"notes": _NOTES_DRAWN} if noted else {}),
    }
    packer = Packer()
    limits: tuple[str, ...] = ()
    with drawn_lanes(tables), _shapes(tables, have_queries=have_queries), _lent(tables, noted):
        counts = {
            name: packer.add(name, tables, query)
            for name, query in {"lanes": _lanes(axis, names=options.names, owned=owned), **parts}.items()
        }
        if counts["lanes"] < total:
            for name, query in left_out(axis).items():
                packer.add(name, tables, query)
        # A ladder tells packets as captured, and works out itself when they were at both ends.
        if not seen_from:
            with ladders(tables, axis, options) as (ladder_queries, left):
                for name, query in ladder_queries.items():
                    packer.add(name, tables, query, longest=_LONGEST)
                limits = left
        limits = (*_limits(tables, total, counts), *limits)
    return Swimlanes(
        limits=limits,
        links=counts["links"],
        blocks=packer.blocks(),
        data={
            "start_at": str(axis.origin),
            "folds": [{"at": fold.at, "ns": str(fold.left_out_ns), "says": fold.says} for fold in axis.folds],
            "seen_from": seen_from,
            "span_ns": max(1, axis.span),
            "routed_ns": ROUTED_NS,
            "kinds": [
                {
                    "name": kind.name,
                    "title": kind.title,
                    "colour": kind.colour,
                    "waited": kind.waited,
                    "hatched": kind.hatched,
                }
                for kind in PHASES
            ],
            "stall_kinds": kinds_of_stalls(),
            "facts": facts.FACTS,
            "panel": facts.PANEL,
            "linked": facts.LINKED,
            "steps": [{"name": step.name, "word": step.word, "colour": step.colour} for step in STEPS],
            "groups": groups(tables, names=options.names),
            "clocks_differ": WHY,
            "explained": options.explained,
            "tables": packer.layouts,
        },
    )


def kinds_of_stalls() -> list[dict[str, Any]]:
    """Give what scripts need to know of each of ``STALLS``."""
    return [
        {
            "name": kind.name,
            "word": kind.word,
            "meaning": kind.meaning,
            "doing": kind.doing,
            "colour": kind.colour,
            "owed": kind.detail not in ("ack", "spurious"),
        }
        for kind in STALLS
    ]


def _lanes(axis: TimeAxis, *, names: bool, owned: bool = False) -> str:
    """The connections, from the top. Where nothing says who owns their sockets, there are no columns for that."""
    owner = f", {owners.who('client')} AS client_who, {owners.who('server')} AS server_who" if owned else ""
    name = "server_name" if names else "NULL::VARCHAR"
    number = counted_from("stream", "transport_stream", "transport_stream", "stream")
    last = counted_from("first_frame", "last_frame", "last_frame", "connections.first_frame")
    syn = counted_from("opened", "syn", "syn_at", "opened_at")
    return f"""
        SELECT stream, "group", transport, {number}, client_ip, client_port, server_ip, server_port,
            {name} AS name, app, connections.state, {axis.place("opened_at")} AS opened,
            closed_at - opened_at AS duration,
            opened_by = 'client' AS opened_up, closed_by = 'client' AS closed_up,
            connections.waited_ns, connections.first_frame, {last}, packets_client, packets_server,
            bytes_client, bytes_server, retransmits_client, retransmits_server, syn_retransmits,
            out_of_order_client, out_of_order_server,
            zero_windows_client, zero_windows_server, missing_client, missing_server,
            rtt_client_ns, rtt_server_ns, least_rtt_client_ns, least_rtt_server_ns,
            fin_by, rst_by, {syn}{owner}
        FROM connections JOIN drawn USING (stream) ORDER BY lane"""


_PHASES = f"""
    end_by = 'client' AS end_up, start_frame, {counted_from("start_frame", "end_frame", "end_frame", "start_frame")},
    coalesce(inferred, false) AS inferred, exchange"""


def _stalls(axis: TimeAxis) -> str:
    return f"""
        side, {axis.place("start_at")} AS start, end_at - start_at AS duration,
        start_by = 'client' AS start_up, end_by = 'client' AS end_up,
        start_frame, released_frame, end_frame, round(100 * confidence)::UTINYINT AS confidence,
        {facts.STALL_COLUMNS}"""


_RACES = f"""
    SELECT lane, won, packets FROM ({races.OF_STREAMS}) JOIN drawn USING (stream) ORDER BY lane, other"""
_NOTES = {"place": "BIGINT", "stream": "BIGINT", "number": "BIGINT", "title": "VARCHAR", "says": "VARCHAR"}
_NOTES_DRAWN = f"""
    SELECT lane, number, title, says FROM page_notes JOIN drawn USING (stream)
    ORDER BY lane, place LIMIT {MAX_EXCHANGES}"""


_QUERIES = f"""
    SELECT lane, server_ip, server_port, protocol, shape, count, waits, total_ns, p50_ns, p95_ns, worst_ns, errors,
        fronts, linked, frame
    FROM query_shapes LEFT JOIN drawn USING (stream) ORDER BY place LIMIT {MAX_QUERIES}"""


def _lent(tables: Tables, noted: Sequence[Note]) -> AbstractContextManager[None]:
    """Keep notes as ``page_notes``, as long as a block lasts; nothing where there are none."""
    placed = ((place, *note) for place, note in enumerate(noted))
    return tables.lent("page_notes", _NOTES, placed) if noted else nullcontext()


@contextmanager
def _shapes(tables: Tables, *, have_queries: bool) -> Iterator[None]:
    """Keep what stores were asked as ``query_shapes``, as long as the block lasts; nothing where there are none."""
    if have_queries:
        tables.execute(f"CREATE TEMP TABLE query_shapes AS {BY_SHAPE}")
    try:
        yield
    finally:
        if have_queries:
            tables.execute("DROP TABLE query_shapes")


def _exchanges(*, names: bool, have_queries: bool, have_messages: bool) -> str:
    """Requests, with the row of ``queries`` of each where stores are asked, and counts of its messages.

    Few captures have messages of gRPC or WebSocket: the others have no column for them.
    """
    column = ", query" if have_queries else ""
    column += ", counts.* EXCLUDE (stream, number)" if have_messages else ""
    counted = f"LEFT JOIN ({BY_EXCHANGE}) AS counts USING (stream, number)" if have_messages else ""
    joined = f"""LEFT JOIN (
            SELECT stream, number, place::INTEGER AS query
            FROM (
                SELECT stream, number, server_ip, server_port, protocol, shape
                FROM exchanges JOIN connections USING (stream) WHERE {IS_QUERY})
            JOIN (SELECT server_ip, server_port, protocol, shape, place FROM query_shapes WHERE place < {MAX_QUERIES})
                USING (server_ip, server_port, protocol, shape)) USING (stream, number)"""
    host = "host" if names else "NULL::VARCHAR AS host"
    request = counted_from("lanes.opened", "request", "request_at", "lane_opened_at")
    request_frame = counted_from("lanes.first_frame", "request_frame", "request_frame", "lane_first_frame")
    response_frame = counted_from("request_frame", "response_frame", "response_frame", "request_frame")
    service = counted_from("wait_ns", "service_ns", "service_ns", "wait_ns")
    answered = counted_from("wait_ns", "answered", "(response_at - request_at)", "wait_ns")
    return f"""
        SELECT lane, number, {request}, protocol, method, {host}, target, status_text AS answer, from_log,
            {facts.request_columns(names=names)},
            request_bytes, response_bytes, {request_frame}, {response_frame},
            request_ns, wait_ns, transfer_ns, {service}, {answered},
            coalesce(inferred, false) AS inferred, round(100 * confidence)::UTINYINT AS confidence,
            coalesce({UNFINISHED}, false) AS unfinished, coalesce({TURNS}, false) AS is_turn{column}
        FROM exchanges JOIN drawn USING (stream) {joined if have_queries else ""} {counted}
        ORDER BY lane, number LIMIT {MAX_EXCHANGES}"""


def _handshakes(*, names: bool) -> str:
    sni = "sni" if names else "NULL::VARCHAR AS sni"
    hello = counted_from("lanes.opened", "hello", "hello_at", "lane_opened_at")
    return f"""
        SELECT lane, number, {hello}, ready_at - hello_at AS ready_ns,
            coalesce(hello_by, 'client') = 'client' AS hello_up, coalesce(ready_by, 'client') = 'client' AS ready_up,
            version, cipher, named_group, {sni}, alpn, {facts.KIND} AS kind, outcome, {facts.RESULT},
            hello_retry, client_auth, early_data, false_start, alert, certificates, certificate_bytes,
            bytes_client + bytes_server AS bytes, round_trips, coalesce(inferred, false) AS inferred
        FROM handshakes JOIN drawn USING (stream) ORDER BY lane, number LIMIT {MAX_EXCHANGES}"""


def _packets(axis: TimeAxis, options: DrawOptions) -> str:
    mark = "mark" if options.retransmits else "nullif(mark, 'retransmit')"
    return f"""
        SELECT lane, frame, {axis.place("seen_at")} AS "at", sender = 'client' AS up, flags, bytes, shown AS mark
        FROM (SELECT *, {mark} AS shown FROM packets) JOIN drawn USING (stream)
        WHERE {"true" if options.packets else "shown IS NOT NULL"} ORDER BY lane, frame LIMIT {MAX_PACKETS}"""


def _limits(tables: Tables, total: int, counts: dict[str, int]) -> Iterator[str]:
    if counts["lanes"] < total:
        yield (
            f"{format_count(counts['lanes'])} of {format_count(total)} connections are drawn and listed: the first of "
            "each finding, the worst of each server, and those whose users waited the longest. The strip above the "
            "lanes and the distributions also count the others, unless you search or choose. The summary and the "
            "findings count all. The others: conchart query CAPTURE 'FROM connections ORDER BY waited_ns DESC'."
        )
    for name, limit in (
        ("phases", drawn.MAX_PHASES),
        ("stalls", drawn.MAX_STALLS),
        ("exchanges", MAX_EXCHANGES),
        ("links", drawn.MAX_LINKS),
        ("packets", MAX_PACKETS),
    ):
        if counts.get(name) == limit:
            stream = "front_stream" if name == "links" else "stream"
            ((count,),) = tables.fetch(f"SELECT count(*) FROM {name} WHERE {stream} IN (SELECT stream FROM drawn)")
            if count > limit:
                what = "requests" if name == "exchanges" else name
                yield (
                    f"The drawn connections have {format_count(count)} {what}; "
                    f"the page holds the first {format_count(limit)}."
                )
    if counts.get("queries") == MAX_QUERIES:
        ((count,),) = tables.fetch("SELECT count(*) FROM query_shapes")
        if count > MAX_QUERIES:
            yield (
                f"Stores were asked queries of {format_count(count)} shapes; the page lists the "
                f"{format_count(MAX_QUERIES)} that were waited for longest. The others: conchart query CAPTURE "
                f"'{ALL}'."
            )
