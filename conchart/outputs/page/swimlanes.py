"""What the swimlanes and the tables of the page show: every connection, grouped by server, and what happened on it.

In: a trace. Out: columns, packed. Times are whole nanoseconds since the capture's first packet: as a number in a
browser they stay exact for 104 days, which nanoseconds since the epoch would not.

Nothing is left out of a page that a browser can hold. Beyond :data:`MAX_LANES` connections, :data:`MAX_PHASES` phases,
:data:`MAX_EXCHANGES` requests, :data:`MAX_LINKS` links, :data:`MAX_STALLS` stalls, :data:`MAX_PACKETS` packets and
:data:`MAX_QUERIES` shapes of queries the page says what it lacks. Of more connections, it draws the first ones of each
finding and the worst ones of each server, and then those whose users waited the longest. The others are sums
(:mod:`conchart.outputs.page.left_out`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from conchart.analysis.vantage import ROUTED_NS
from conchart.outputs.options import DrawOptions
from conchart.outputs.page.ladders import ladders
from conchart.outputs.page.left_out import left_out
from conchart.outputs.page.packed import Packer, counted_from
from conchart.questions.explain.clocks import WHY
from conchart.report import logs, owners, races, spans, tunnels
from conchart.report.axis import TimeAxis, time_axis
from conchart.report.messages import BY_EXCHANGE, are_there
from conchart.report.queries import ALL, ASKED, BY_SHAPE, are_asked
from conchart.report.servers import groups
from conchart.report.splits import STEPS
from conchart.store.sql import COSTLIEST, GOES_ON, SHAPE, TURNS, UNFINISHED, literal
from conchart.store.tables import Tables
from conchart.words.phases import PHASES
from conchart.words.stalls import DETAIL, LISTED, STALLS
from conchart.words.units import format_count

MAX_LANES = 250_000
MAX_PHASES = 2_000_000
MAX_EXCHANGES = 1_000_000
MAX_LINKS = 2_000_000
MAX_STALLS = 1_000_000
MAX_PACKETS = 1_000_000
MAX_QUERIES = 10_000
_OF_EACH = 100
"""Connections that every server and every finding shows, whatever else the page has to leave out."""
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
    asked, said = are_asked(tables), are_there(tables)
    owned = options.names and owners.are_known(tables)
    parts = {
        "phases": phase_rows(),
        "stalls": stall_rows(axis),
        "exchanges": _exchanges(
            names=options.names,
            asked=asked,
            said=said,
            tunnelled=tunnels.are_there(tables),
            traced=spans.are_there(tables),
            logged=logs.are_there(tables),
        ),
        "links": link_rows(),
        "handshakes": _handshakes(names=options.names),
        "packets": _packets(axis, options),
        **({"queries": _QUERIES} if asked else {}),
        **({"races": _RACES} if races.are_there(tables) else {}),
    }
    packer = Packer()
    limits: tuple[str, ...] = ()
    with drawn_lanes(tables), _shapes(tables, asked=asked):
        counts = {
            name: packer.add(name, tables, query)
            for name, query in {"lanes": lane_rows(axis, names=options.names, owned=owned), **parts}.items()
        }
        if counts["lanes"] < total:
            for name, query in left_out(axis).items():
                packer.add(name, tables, query)
        # A ladder tells packets as captured, and works out itself when they were at both ends.
        if not seen_from:
            with ladders(tables, axis, options) as (told, left):
                for name, query in told.items():
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
            "steps": [{"name": step.name, "word": step.word, "colour": step.colour} for step in STEPS],
            "groups": groups(tables, names=options.names),
            "clocks_differ": WHY,
            "explained": options.explained,
            "tables": packer.told,
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


@contextmanager
def drawn_lanes(tables: Tables) -> Iterator[None]:
    """Number the lanes from the top: ``drawn`` has their ``stream``, ``lane``, ``group``, as long as the block lasts.

    A lane is kept while the phases of all that cost more leave room, so that one long-lived connection with millions of
    requests cannot blow up the page; its own phases beyond the limit are cut.
    """
    count, phases = tables.count("connections"), tables.count("phases")
    # Where everything is drawn, the order does not matter, and nobody has to know what findings there are.
    named = "false"
    if count > MAX_LANES or phases > MAX_PHASES:
        named = f"stream IN (SELECT unnest(streams[:{_OF_EACH}]) FROM findings)"
    tables.execute(
        f"""
        CREATE TEMP TABLE ranked AS
        WITH counted AS (SELECT stream, count(*) AS parts FROM phases GROUP BY stream),
        placed AS (
            SELECT server_ip, server_port, row_number() OVER (ORDER BY rank, server_ip, server_port) - 1 AS "group"
            FROM servers),
        of_servers AS (
            SELECT *, {named} OR row_number() OVER (
                PARTITION BY server_ip, server_port ORDER BY {COSTLIEST}) <= {_OF_EACH} AS is_first
            FROM connections)
        SELECT stream, "group"::INTEGER AS "group", opened_at, first_frame, row_number() OVER costly AS cost_rank,
            coalesce(sum(parts) OVER (costly ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS parts_before
        FROM of_servers JOIN placed USING (server_ip, server_port) LEFT JOIN counted USING (stream)
        WINDOW costly AS (ORDER BY is_first DESC, {COSTLIEST});
        CREATE TEMP TABLE drawn AS
        SELECT stream, "group", opened_at AS lane_opened_at, first_frame AS lane_first_frame,
            (row_number() OVER (ORDER BY "group", opened_at, stream) - 1)::INTEGER AS lane
        FROM ranked WHERE cost_rank <= {MAX_LANES} AND parts_before < {MAX_PHASES}
        """
    )
    try:
        yield
    finally:
        tables.execute("DROP TABLE drawn; DROP TABLE ranked")


def lane_rows(axis: TimeAxis, *, names: bool, owned: bool = False) -> str:
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


def phase_rows() -> str:
    """They touch: where one begins is where the one before ended, and the first where its connection opened."""
    kinds = " ".join(f"WHEN '{kind.name}' THEN {number}" for number, kind in enumerate(PHASES))
    end = counted_from("start_frame", "end_frame", "end_frame", "start_frame")
    return f"""
        SELECT lane, (CASE kind {kinds} END)::UTINYINT AS kind, end_at - start_at AS duration,
            end_by = 'client' AS end_up, start_frame, {end}, coalesce(inferred, false) AS inferred, exchange
        FROM phases JOIN drawn USING (stream) ORDER BY lane, start_at, end_at, start_frame LIMIT {MAX_PHASES}"""


def stall_rows(axis: TimeAxis) -> str:
    """Where bytes were kept from coming."""
    kinds = " ".join(
        f"WHEN kind = '{kind.name}' {'' if kind.detail is None else f'AND detail = {literal(kind.detail)}'} THEN {n}"
        for n, kind in sorted(enumerate(STALLS), key=lambda told: told[1].detail is None)
    )
    return f"""
        SELECT lane, (CASE {kinds} END)::UTINYINT AS kind, side, {axis.place("start_at")} AS start,
            end_at - start_at AS duration, start_by = 'client' AS start_up, end_by = 'client' AS end_up,
            start_frame, released_frame, end_frame, ack_delay_ns,
            round(100 * confidence)::UTINYINT AS confidence,
            coalesce(unfinished, false) AND stream IN (SELECT stream FROM connections WHERE {GOES_ON}) AS unfinished
        FROM (SELECT * REPLACE ({DETAIL} AS detail) FROM {LISTED}) JOIN drawn USING (stream)
        ORDER BY lane, start_at LIMIT {MAX_STALLS}"""


_RACES = f"""
    SELECT lane, other, kind::VARCHAR AS kind, won, against, decided_ns, answered_ns, refused, delay_ns, packets, bytes
    FROM ({races.OF_STREAMS}) JOIN drawn USING (stream) ORDER BY lane, other"""


_QUERIES = f"""
    SELECT lane, server_ip, server_port, protocol, shape, count, waits, total_ns, p50_ns, p95_ns, worst_ns, errors,
        fronts, linked, frame
    FROM query_shapes LEFT JOIN drawn USING (stream) ORDER BY place LIMIT {MAX_QUERIES}"""


@contextmanager
def _shapes(tables: Tables, *, asked: bool) -> Iterator[None]:
    """Keep what stores were asked as ``query_shapes``, as long as the block lasts; nothing where there are none."""
    if asked:
        tables.execute(f"CREATE TEMP TABLE query_shapes AS {BY_SHAPE}")
    try:
        yield
    finally:
        if asked:
            tables.execute("DROP TABLE query_shapes")


def _exchanges(*, names: bool, asked: bool, said: bool, tunnelled: bool, traced: bool, logged: bool) -> str:
    """Requests, with the row of ``queries`` of each where stores are asked, and what is told of its messages.

    Few captures have messages of gRPC or WebSocket, tunnels, spans or a log beside them: the others have no column for
    them.
    """
    column = ", query" if asked else ""
    column += (
        """, said_client, said_server, said_bytes_client, said_bytes_server, controls, gap_ns,
        gap_start_frame, gap_end_frame"""
        if said
        else ""
    )
    column += f", {tunnels.COLUMNS}" if tunnelled else ""
    column += f", {spans.COLUMNS}" if traced else ""
    told = f"LEFT JOIN ({spans.BY_EXCHANGE}) USING (stream, number)" if traced else ""
    column += f", coalesce(from_log, false) AS from_log, {logs.COLUMNS}" if logged else ""
    of_log = f"LEFT JOIN ({logs.ONE_BY_EXCHANGE}) USING (stream, number)" if logged else ""
    messages = f"LEFT JOIN ({BY_EXCHANGE}) USING (stream, number)" if said else ""
    joined = f"""LEFT JOIN (
            SELECT stream, number, place::INTEGER AS query
            FROM (
                SELECT stream, number, server_ip, server_port, protocol, {SHAPE} AS shape
                FROM exchanges JOIN connections USING (stream) WHERE {ASKED})
            JOIN (SELECT server_ip, server_port, protocol, shape, place FROM query_shapes WHERE place < {MAX_QUERIES})
                USING (server_ip, server_port, protocol, shape)) USING (stream, number)"""
    host = "host" if names else "NULL::VARCHAR AS host"
    request = counted_from("lanes.opened", "request", "request_at", "lane_opened_at")
    request_frame = counted_from("lanes.first_frame", "request_frame", "request_frame", "lane_first_frame")
    response_frame = counted_from("request_frame", "response_frame", "response_frame", "request_frame")
    service = counted_from("wait_ns", "service_ns", "service_ns", "wait_ns")
    answered = counted_from("wait_ns", "answered", "(response_at - request_at)", "wait_ns")
    return f"""
        SELECT lane, number, {request}, protocol, method, {host}, target, status_text AS answer,
            request_bytes, response_bytes, {request_frame}, {response_frame},
            request_ns, wait_ns, transfer_ns, {service}, {answered},
            coalesce(inferred, false) AS inferred, round(100 * confidence)::UTINYINT AS confidence,
            coalesce({UNFINISHED}, false) AS unfinished, coalesce({TURNS}, false) AS is_turn{column}
        FROM exchanges JOIN drawn USING (stream) {joined if asked else ""} {messages} {told} {of_log}
        ORDER BY lane, number LIMIT {MAX_EXCHANGES}"""


def link_rows() -> str:
    """What one front caused is in the order in which it was charged with the front's wait."""
    return f"""
        SELECT drawn.lane, front_exchange AS exchange, backs.lane AS back_lane, back_stream, back_exchange, method,
            round(100 * confidence)::UTINYINT AS confidence, {", ".join(f"{step.name}_ns" for step in STEPS)}
        FROM links JOIN drawn ON drawn.stream = front_stream
        LEFT JOIN drawn backs ON backs.stream = back_stream
        LEFT JOIN (SELECT stream AS front_stream, number AS front_exchange, response_at AS until_at FROM exchanges)
            USING (front_stream, front_exchange)
        LEFT JOIN (SELECT stream AS back_stream, number AS back_exchange, response_at FROM exchanges)
            USING (back_stream, back_exchange)
        ORDER BY drawn.lane, front_exchange, CASE WHEN response_at <= until_at THEN response_at END NULLS FIRST,
            back_stream, back_exchange
        LIMIT {MAX_LINKS}"""


def _handshakes(*, names: bool) -> str:
    sni = "sni" if names else "NULL::VARCHAR AS sni"
    hello = counted_from("lanes.opened", "hello", "hello_at", "lane_opened_at")
    return f"""
        SELECT lane, number, {hello}, ready_at - hello_at AS ready_ns,
            coalesce(hello_by, 'client') = 'client' AS hello_up, coalesce(ready_by, 'client') = 'client' AS ready_up,
            version, cipher, named_group, {sni}, alpn, kind, outcome, hello_retry, client_auth, early_data, false_start,
            alert, certificates, certificate_bytes, bytes_client + bytes_server AS bytes, round_trips,
            coalesce(inferred, false) AS inferred
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
        ("phases", MAX_PHASES),
        ("stalls", MAX_STALLS),
        ("exchanges", MAX_EXCHANGES),
        ("links", MAX_LINKS),
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
