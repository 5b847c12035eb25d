"""What the swimlanes and the table of connections show: one lane per connection, grouped by server.

In: a trace. Out: columns of plain values, ready for JSON. Times are whole nanoseconds since the capture's first packet:
as a number in a browser they stay exact for 104 days, which nanoseconds since the epoch would not.

Limits, all reported on the page: :data:`MAX_LANES` connections, :data:`MAX_PHASES` phases, :data:`MAX_EXCHANGES`
requests, :data:`MAX_STALLS` stalls and :data:`MAX_PACKETS` packets. Of more connections, those that cost the most time
without idling are kept; what was stalled is no idling.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from conchart.charts.servers import CONNECTION_NAMES, servers
from conchart.charts.tables import Columns, columns
from conchart.phases import PHASES
from conchart.sql import ANSWER, UNREAD
from conchart.stalled import OVERLAPS
from conchart.stalls import DETAIL, STALLS, stall_kind
from conchart.units import format_count

if TYPE_CHECKING:
    from conchart.options import DrawOptions
    from conchart.trace import Trace

MAX_LANES = 2_000
MAX_PHASES = 150_000
MAX_EXCHANGES = 50_000
MAX_STALLS = 50_000
MAX_PACKETS = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Swimlanes:
    """The lanes of a page and what had to be left out."""

    data: dict[str, Any]
    connections: int
    """In the capture."""
    drawn: int
    limits: tuple[str, ...]
    """What is not on the page, one sentence each; empty when everything is."""


def swimlanes(trace: "Trace", options: "DrawOptions") -> Swimlanes:
    """Collect the lanes. Packets are there if the options ask for them; names only if they do."""
    (start_at, end_at, total), *_ = trace.sql(
        "SELECT min(opened_at), max(closed_at), count(*) FROM connections"
    ).fetchall()
    (first_at,), *_ = trace.sql("SELECT min(first_at) FROM captures").fetchall()
    origin = min((at for at in (start_at, first_at) if at is not None), default=0)
    kept = _kept(trace)
    lanes = _lanes(trace, origin, kept)
    endpoints = servers(trace, names=options.names)
    rank = {(server.ip, server.port): i for i, server in enumerate(endpoints)}
    lanes["group"] = [rank[key] for key in zip(lanes["server_ip"], lanes["server_port"], strict=True)]
    if not options.names:
        lanes["name"] = [None] * len(lanes["stream"])
    order = sorted(
        range(len(lanes["stream"])), key=lambda i: (lanes["group"][i], lanes["opened"][i], lanes["stream"][i])
    )
    lanes = {name: [values[i] for i in order] for name, values in lanes.items()}
    tables = {
        "phases": _phases(trace, origin, kept),
        "stalls": _stalls(trace, origin, kept),
        "exchanges": _exchanges(trace, origin, kept, names=options.names),
    }
    if options.packets:
        tables["packets"] = _packets(trace, origin, kept, retransmits=options.retransmits)
    drawn = len(lanes["stream"])
    return Swimlanes(
        connections=total,
        drawn=drawn,
        limits=tuple(_limits(trace, kept, total, drawn, tables)),
        data={
            "start_at": str(origin),
            "span_ns": max(1, (end_at or origin) - origin),
            "kinds": [
                {"name": kind.name, "title": kind.title, "colour": kind.colour, "hatched": kind.hatched}
                for kind in PHASES
            ],
            "stall_kinds": [
                {"name": kind.name, "word": kind.word, "meaning": kind.meaning, "doing": kind.doing} for kind in STALLS
            ],
            "groups": {
                "endpoint": [server.endpoint for server in endpoints],
                "title": [server.title for server in endpoints],
                "role": [server.role for server in endpoints],
            },
            "lanes": lanes,
            "handshakes": _handshakes(trace, origin, kept, names=options.names),
            **tables,
        },
    )


def _kept(trace: "Trace") -> str:
    """Choose the connections to draw, and give them as a query: ``stream, rank``.

    A lane is kept while the phases of all lanes before it leave room, so that one long-lived connection with a hundred
    thousand requests cannot blow up the page; its own phases beyond the limit are cut.
    """
    chosen = columns(
        trace,
        f"""
        WITH charged AS (
            SELECT stream, count(*) AS parts, sum(end_at - start_at) FILTER (kind <> 'idle') AS busy_ns
            FROM phases GROUP BY stream),
        stalled AS (SELECT stream, sum(ns) AS idle_ns FROM ({OVERLAPS}) WHERE phase = 'idle' GROUP BY stream),
        ranked AS (
            SELECT stream, row_number() OVER costly AS rank,
                coalesce(sum(parts) OVER (costly ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS parts_before
            FROM connections LEFT JOIN charged USING (stream) LEFT JOIN stalled USING (stream)
            WINDOW costly AS (ORDER BY {UNREAD}, coalesce(busy_ns, 0) + coalesce(idle_ns, 0) DESC, stream))
        SELECT stream, rank FROM ranked WHERE rank <= {MAX_LANES} AND parts_before < {MAX_PHASES} ORDER BY rank""",
    )
    return f"SELECT {', '.join(f'unnest({values}::BIGINT[]) AS {name}' for name, values in chosen.items())}"


def _lanes(trace: "Trace", origin: int, kept: str) -> Columns:
    return columns(
        trace,
        f"""
        SELECT stream, transport, transport_stream, client_ip, client_port, server_ip, server_port, name, app, state,
            opened_at - {origin} AS opened, closed_at - opened_at AS duration,
            first_frame, last_frame, packets_client, packets_server, bytes_client, bytes_server,
            retransmits_client, retransmits_server, syn_retransmits, out_of_order_client, out_of_order_server,
            zero_windows_client, zero_windows_server, missing_client, missing_server,
            rtt_client_ns, rtt_server_ns, fin_by, rst_by,
            (SELECT count(*) FROM exchanges e WHERE e.stream = c.stream) AS requests,
            (SELECT coalesce(sum(end_at - start_at), 0)::BIGINT FROM stalls s WHERE s.stream = c.stream) AS stalled_ns
        FROM connections c JOIN ({kept}) USING (stream) JOIN ({CONNECTION_NAMES}) USING (stream) ORDER BY stream""",
    )


def _phases(trace: "Trace", origin: int, kept: str) -> Columns:
    order = {kind.name: i for i, kind in enumerate(PHASES)}
    table = columns(
        trace,
        f"""
        SELECT stream, kind, start_at - {origin} AS start, end_at - start_at AS duration,
            start_frame, end_frame, coalesce(inferred, false)::INTEGER AS inferred, exchange
        FROM phases JOIN ({kept}) USING (stream) ORDER BY rank, start_at, end_at, start_frame LIMIT {MAX_PHASES}""",
    )
    table["kind"] = [order[kind] for kind in table["kind"]]
    return table


def _stalls(trace: "Trace", origin: int, kept: str) -> Columns:
    order = {kind: i for i, kind in enumerate(STALLS)}
    table = columns(
        trace,
        f"""
        SELECT stream, kind, {DETAIL} AS detail, side, start_at - {origin} AS start, end_at - start_at AS duration,
            start_frame, released_frame, end_frame, ack_delay_ns, confidence
        FROM stalls JOIN ({kept}) USING (stream) ORDER BY rank, start_at LIMIT {MAX_STALLS}""",
    )
    table["kind"] = [order[stall_kind(*told)] for told in zip(table["kind"], table.pop("detail"), strict=True)]
    return table


def _exchanges(trace: "Trace", origin: int, kept: str, *, names: bool) -> Columns:
    host = "host" if names else "NULL::VARCHAR AS host"
    return columns(
        trace,
        f"""
        SELECT stream, number, request_at - {origin} AS request, protocol, method, {host}, target, {ANSWER} AS answer,
            request_bytes, response_bytes, request_frame, response_frame, request_ns, wait_ns, transfer_ns, service_ns,
            coalesce(inferred, false)::INTEGER AS inferred, confidence
        FROM exchanges JOIN ({kept}) USING (stream) ORDER BY rank, number LIMIT {MAX_EXCHANGES}""",
    )


def _handshakes(trace: "Trace", origin: int, kept: str, *, names: bool) -> Columns:
    sni = "sni" if names else "NULL::VARCHAR AS sni"
    return columns(
        trace,
        f"""
        SELECT stream, number, hello_at - {origin} AS hello, ready_at - hello_at AS ready_ns, version, cipher,
            named_group, {sni}, alpn, kind, outcome, hello_retry, client_auth, early_data, false_start, alert,
            certificates, certificate_bytes, bytes_client + bytes_server AS bytes, round_trips,
            coalesce(inferred, false)::INTEGER AS inferred
        FROM handshakes JOIN ({kept}) USING (stream) ORDER BY rank, number LIMIT {MAX_EXCHANGES}""",
    )


def _packets(trace: "Trace", origin: int, kept: str, *, retransmits: bool) -> Columns:
    mark = "mark" if retransmits else "nullif(mark, 'retransmit') AS mark"
    return columns(
        trace,
        f"""
        SELECT stream, frame, seen_at - {origin} AS "at", (sender = 'client')::INTEGER AS up, flags, bytes, {mark}
        FROM packets JOIN ({kept}) USING (stream) ORDER BY frame LIMIT {MAX_PACKETS}""",
    )


def _limits(trace: "Trace", kept: str, total: int, drawn: int, tables: dict[str, Columns]) -> list[str]:
    said = []
    if drawn < total:
        said.append(
            f"{format_count(drawn)} of {format_count(total)} connections are drawn and listed: those that cost "
            "the most time without idling. Everything else on this page counts all of them."
        )
    for name, limit in (
        ("phases", MAX_PHASES),
        ("stalls", MAX_STALLS),
        ("exchanges", MAX_EXCHANGES),
        ("packets", MAX_PACKETS),
    ):
        if name in tables and len(tables[name]["stream"]) == limit:
            (count,), *_ = trace.sql(f"SELECT count(*) FROM {name} JOIN ({kept}) USING (stream)").fetchall()
            if count > limit:
                what = "requests" if name == "exchanges" else name
                said.append(
                    f"The drawn connections have {format_count(count)} {what}; "
                    f"the page holds the first {format_count(limit)}."
                )
    return said
