"""What the swimlanes and the table of connections show: one lane per connection, grouped by server.

In: a trace. Out: columns of plain values, ready for JSON. Times are whole nanoseconds since the capture's first packet:
as a number in a browser they stay exact for 104 days, which nanoseconds since the epoch would not.

Limits, all reported on the page: :data:`MAX_LANES` connections, :data:`MAX_PHASES` phases, :data:`MAX_EXCHANGES`
requests, :data:`MAX_LINKS` links, :data:`MAX_STALLS` stalls and :data:`MAX_PACKETS` packets. Of more connections, those
are kept whose users waited the longest.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from conchart.options import DrawOptions
from conchart.phases import PHASES
from conchart.printable import endpoint
from conchart.sql import ANSWER, COSTLIEST
from conchart.stalls import DETAIL, STALLS, stall_kind
from conchart.tables import Tables
from conchart.telling.rows import Columns, columns
from conchart.telling.servers import Server
from conchart.telling.splits import STEPS
from conchart.units import format_count

MAX_LANES = 2_000
MAX_PHASES = 150_000
MAX_EXCHANGES = 50_000
MAX_LINKS = 50_000
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


def swimlanes(tables: Tables, listed: list[Server], options: DrawOptions) -> Swimlanes:
    """Collect the lanes, in the order of the servers listed; within a server the longest wait comes first.

    Packets are there if the options ask for them; names only if they do.
    """
    ((start_at, end_at, total),) = tables.sql(
        "SELECT min(opened_at), max(closed_at), count(*) FROM connections"
    ).fetchall()
    ((first_at,),) = tables.sql("SELECT min(first_at) FROM captures").fetchall()
    origin = min((at for at in (start_at, first_at) if at is not None), default=0)
    with _drawn(tables):
        lanes = _lanes(tables, origin, names=options.names)
        parts = {
            "phases": _phases(tables, origin),
            "stalls": _stalls(tables, origin),
            "exchanges": _exchanges(tables, origin, names=options.names),
            "links": _links(tables),
        }
        if options.packets:
            parts["packets"] = _packets(tables, origin, retransmits=options.retransmits)
        handshakes = _handshakes(tables, origin, names=options.names)
        drawn = len(lanes["stream"])
        limits = tuple(_limits(tables, total, drawn, parts))
    return Swimlanes(
        connections=total,
        drawn=drawn,
        limits=limits,
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
            "steps": [{"name": step.name, "word": step.word, "colour": step.colour} for step in STEPS],
            "groups": {
                "endpoint": [server.endpoint for server in listed],
                "title": [server.title for server in listed],
                "role": [server.role for server in listed],
            },
            "lanes": lanes,
            "handshakes": handshakes,
            **parts,
        },
    )


@contextmanager
def _drawn(tables: Tables) -> Iterator[None]:
    """Choose the connections to draw: ``drawn`` has their ``stream`` and ``cost_rank``, as long as the block lasts.

    A lane is kept while the phases of all lanes before it leave room, so that one long-lived connection with a hundred
    thousand requests cannot blow up the page; its own phases beyond the limit are cut.
    """
    tables.execute(
        f"""
        CREATE TEMP TABLE drawn AS
        WITH ranked AS (
            SELECT stream, row_number() OVER costly AS cost_rank,
                coalesce(sum(parts) OVER (costly ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS parts_before
            FROM connections LEFT JOIN (SELECT stream, count(*) AS parts FROM phases GROUP BY stream) USING (stream)
            WINDOW costly AS (ORDER BY {COSTLIEST}))
        SELECT stream, cost_rank FROM ranked WHERE cost_rank <= {MAX_LANES} AND parts_before < {MAX_PHASES}
        """
    )
    try:
        yield
    finally:
        tables.execute("DROP TABLE drawn")


def _lanes(tables: Tables, origin: int, *, names: bool) -> Columns:
    name = "server_name" if names else "NULL::VARCHAR"
    table = columns(
        tables,
        f"""
        SELECT stream, transport, transport_stream, client_ip, client_port, server_ip, server_port, {name} AS name, app,
            connections.state, opened_at - {origin} AS opened, closed_at - opened_at AS duration, connections.waited_ns,
            first_frame, last_frame, packets_client, packets_server, bytes_client, bytes_server,
            retransmits_client, retransmits_server, syn_retransmits, out_of_order_client, out_of_order_server,
            zero_windows_client, zero_windows_server, missing_client, missing_server,
            rtt_client_ns, rtt_server_ns, fin_by, rst_by, coalesce(asked, 0) AS requests,
            coalesce(stalled_ns, 0)::BIGINT AS stalled_ns, "group"
        FROM connections JOIN drawn USING (stream)
        JOIN (
            SELECT server_ip, server_port, row_number() OVER (ORDER BY rank, server_ip, server_port) - 1 AS "group"
            FROM servers) USING (server_ip, server_port)
        LEFT JOIN (SELECT stream, count(*) AS asked FROM exchanges GROUP BY stream) USING (stream)
        LEFT JOIN (SELECT stream, sum(end_at - start_at) AS stalled_ns FROM stalls GROUP BY stream) USING (stream)
        ORDER BY "group", cost_rank""",
    )
    for side in ("client", "server"):
        table[side] = list(map(endpoint, table.pop(f"{side}_ip"), table.pop(f"{side}_port")))
    return table


def _phases(tables: Tables, origin: int) -> Columns:
    order = {kind.name: i for i, kind in enumerate(PHASES)}
    table = columns(
        tables,
        f"""
        SELECT stream, kind, start_at - {origin} AS start, end_at - start_at AS duration,
            start_frame, end_frame, coalesce(inferred, false)::INTEGER AS inferred, exchange
        FROM phases JOIN drawn USING (stream) ORDER BY cost_rank, start_at, end_at, start_frame LIMIT {MAX_PHASES}""",
    )
    table["kind"] = [order[kind] for kind in table["kind"]]
    return table


def _stalls(tables: Tables, origin: int) -> Columns:
    order = {kind: i for i, kind in enumerate(STALLS)}
    table = columns(
        tables,
        f"""
        SELECT stream, kind, {DETAIL} AS detail, side, start_at - {origin} AS start, end_at - start_at AS duration,
            start_frame, released_frame, end_frame, ack_delay_ns, confidence
        FROM stalls JOIN drawn USING (stream) ORDER BY cost_rank, start_at LIMIT {MAX_STALLS}""",
    )
    table["kind"] = [order[stall_kind(*told)] for told in zip(table["kind"], table.pop("detail"), strict=True)]
    return table


def _exchanges(tables: Tables, origin: int, *, names: bool) -> Columns:
    host = "host" if names else "NULL::VARCHAR AS host"
    return columns(
        tables,
        f"""
        SELECT stream, number, request_at - {origin} AS request, protocol, method, {host}, target, {ANSWER} AS answer,
            request_bytes, response_bytes, request_frame, response_frame, request_ns, wait_ns, transfer_ns, service_ns,
            coalesce(inferred, false)::INTEGER AS inferred, confidence
        FROM exchanges JOIN drawn USING (stream) ORDER BY cost_rank, number LIMIT {MAX_EXCHANGES}""",
    )


def _links(tables: Tables) -> Columns:
    """Of the fronts that are drawn; what one caused is in the order in which it was charged with the front's wait."""
    return columns(
        tables,
        f"""
        SELECT front_stream AS stream, front_exchange AS exchange, back_stream, back_exchange, method,
            round(confidence, 2) AS confidence, {", ".join(f"{step.name}_ns" for step in STEPS)}
        FROM links JOIN drawn ON drawn.stream = front_stream
        LEFT JOIN (SELECT stream AS front_stream, number AS front_exchange, response_at AS until_at FROM exchanges)
            USING (front_stream, front_exchange)
        LEFT JOIN (SELECT stream AS back_stream, number AS back_exchange, response_at FROM exchanges)
            USING (back_stream, back_exchange)
        ORDER BY cost_rank, front_exchange, CASE WHEN response_at <= until_at THEN response_at END NULLS FIRST,
            back_stream, back_exchange
        LIMIT {MAX_LINKS}""",
    )


def _handshakes(tables: Tables, origin: int, *, names: bool) -> Columns:
    sni = "sni" if names else "NULL::VARCHAR AS sni"
    return columns(
        tables,
        f"""
        SELECT stream, number, hello_at - {origin} AS hello, ready_at - hello_at AS ready_ns, version, cipher,
            named_group, {sni}, alpn, kind, outcome, hello_retry, client_auth, early_data, false_start, alert,
            certificates, certificate_bytes, bytes_client + bytes_server AS bytes, round_trips,
            coalesce(inferred, false)::INTEGER AS inferred
        FROM handshakes JOIN drawn USING (stream) ORDER BY cost_rank, number LIMIT {MAX_EXCHANGES}""",
    )


def _packets(tables: Tables, origin: int, *, retransmits: bool) -> Columns:
    mark = "mark" if retransmits else "nullif(mark, 'retransmit') AS mark"
    return columns(
        tables,
        f"""
        SELECT stream, frame, seen_at - {origin} AS "at", (sender = 'client')::INTEGER AS up, flags, bytes, {mark}
        FROM packets JOIN drawn USING (stream) ORDER BY frame LIMIT {MAX_PACKETS}""",
    )


def _limits(tables: Tables, total: int, drawn: int, parts: dict[str, Columns]) -> list[str]:
    said = []
    if drawn < total:
        said.append(
            f"{format_count(drawn)} of {format_count(total)} connections are drawn and listed: those whose "
            "users waited the longest. Everything else on this page counts all of them."
        )
    for name, limit in (
        ("phases", MAX_PHASES),
        ("stalls", MAX_STALLS),
        ("exchanges", MAX_EXCHANGES),
        ("links", MAX_LINKS),
        ("packets", MAX_PACKETS),
    ):
        if name in parts and len(parts[name]["stream"]) == limit:
            stream = "front_stream" if name == "links" else "stream"
            ((count,),) = tables.sql(
                f"SELECT count(*) FROM {name} WHERE {stream} IN (SELECT stream FROM drawn)"
            ).fetchall()
            if count > limit:
                what = "requests" if name == "exchanges" else name
                said.append(
                    f"The drawn connections have {format_count(count)} {what}; "
                    f"the page holds the first {format_count(limit)}."
                )
    return said
