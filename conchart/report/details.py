"""The facts of each connection, for ``-v``. In: tables. Out: :class:`Details` of each, ordered by stream."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from conchart.labels.printable import endpoint, printable
from conchart.labels.stalls import DETAIL, LISTED, stall_kind
from conchart.labels.units import count_of, format_bytes, format_ns
from conchart.report import logs, messages, races, spans, tunnels
from conchart.report.kinds import RENEGOTIATION
from conchart.report.owners import who
from conchart.report.splits import STEPS
from conchart.store.sql import MISSING
from conchart.store.tables import Tables

_CONNECTIONS = f"""
    SELECT stream, transport, transport_stream, client_ip, client_port, server_ip, server_port, state, app,
           first_frame, last_frame,
           closed_at - opened_at AS lifetime, opened_at - min(opened_at) OVER () AS after,
           bytes_client, bytes_server, rtt_client_ns, rtt_server_ns,
           coalesce(syn_retransmits, 0) + coalesce(retransmits_client, 0) + coalesce(retransmits_server, 0)
               AS retransmits,
           coalesce(out_of_order_client, 0) + coalesce(out_of_order_server, 0) AS out_of_order,
           coalesce(zero_windows_client, 0) + coalesce(zero_windows_server, 0) AS zero_windows,
           {MISSING} AS missing, {who("client")} AS client_who, {who("server")} AS server_who
    FROM connections ORDER BY stream
"""
_HANDSHAKES = f"""
    SELECT stream, coalesce(version, {RENEGOTIATION}) AS version, cipher, kind, outcome, sni, alpn, alert,
        ready_at - hello_at AS took, inferred
    FROM handshakes ORDER BY stream, number
"""
_EXCHANGES = f"""
    SELECT stream, number, protocol, method, host, target, status_text AS answer, request_ns, wait_ns, transfer_ns,
           response_bytes, inferred, from_log, {tunnels.COLUMNS}
    FROM exchanges ORDER BY stream, number
"""
_STALLS = f"""
    SELECT stream, kind, detail, {DETAIL} AS telling_detail, side, end_at - start_at AS took,
           start_frame, released_frame, end_frame, confidence
    FROM {LISTED} ORDER BY stream, start_at
"""
_MESSAGES = f"FROM ({messages.BY_EXCHANGE}) ORDER BY stream, number"
_RACES = f"FROM ({races.OF_STREAMS}) ORDER BY stream, other"
_NAMED = "concat(transport, '.stream eq ', transport_stream)"
_LINKS = f"""
    SELECT links.*,
        concat(back, ' #' || back_exchange) AS caused, concat(front, ' #' || front_exchange) AS caused_by
    FROM links
    JOIN (SELECT stream AS front_stream, {_NAMED} AS front FROM connections) USING (front_stream)
    JOIN (SELECT stream AS back_stream, {_NAMED} AS back FROM connections) USING (back_stream)
    ORDER BY front_stream, front_exchange, back_stream, back_exchange
"""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """What is known of one connection; every text is safe to print."""

    title: str
    lines: tuple[str, ...]
    """What is said of a part of one above it begins with more blanks."""


def details(tables: Tables, *, names: bool) -> Iterator[Details]:
    """Give those of each connection. What encryption hides and was inferred is marked ``~``."""
    handshakes, exchanges = _by_stream(tables, _HANDSHAKES), _by_stream(tables, _EXCHANGES)
    stalls = _by_stream(tables, _STALLS)
    links = _links(tables)
    raced = _by_stream(tables, _RACES)
    beside: dict[tuple[int, int], list[str]] = {}
    for row in _rows(tables, _MESSAGES):
        beside.setdefault((row["stream"], row["number"]), []).append(messages.describe(row))
    for row in _rows(tables, spans.BY_EXCHANGE):
        beside.setdefault((row["stream"], row["number"]), []).extend(spans.describe(row))
    for place, lines in _logged(tables).items():
        beside.setdefault(place, []).extend(lines)
    for row in _rows(tables, _CONNECTIONS):
        stream = row["stream"]
        lines = [
            _transport(row),
            *(races.describe(race) for race in raced.get(stream, ())),
            *(_handshake(handshake, names=names) for handshake in handshakes.get(stream, ())),
            *links.get((stream, None), ()),
        ]
        for exchange in exchanges.get(stream, ()):
            place = (stream, exchange["number"])
            lines.append(_exchange(exchange, names=names))
            inner = [tunnels.describe(exchange)] if exchange["tunnel"] is not None else []
            lines += (f"  {line}" for line in (*inner, *beside.get(place, ()), *links.get(place, ())))
        lines += map(_stall, stalls.get(stream, ()))
        yield Details(title=_connection(row, names=names), lines=tuple(lines))


def _connection(row: Row, *, names: bool) -> str:
    client, server = (
        endpoint(row[f"{side}_ip"], row[f"{side}_port"])
        + (f" ({printable(row[f'{side}_who'], limit=80)})" if names and row[f"{side}_who"] else "")
        for side in ("client", "server")
    )
    number = f"{row['transport']}.stream eq {row['transport_stream']}"
    return f"{number}  {client} → {server}  {row['state']}, {format_ns(row['lifetime'])}"


def _transport(row: Row) -> str:
    parts = [
        f"frames {row['first_frame']}–{row['last_frame']}",
        f"after {format_ns(row['after'])}",
        f"sent {format_bytes(row['bytes_client'] or 0)}, received {format_bytes(row['bytes_server'] or 0)}",
    ]
    rtts = [f"{side} {format_ns(rtt)}" for side in ("client", "server") if (rtt := row[f"rtt_{side}_ns"]) is not None]
    if rtts:
        parts.append(f"round trip to {', '.join(rtts)}")
    parts += [
        count_of(row[column], noun)
        for column, noun in (
            ("retransmits", "retransmission"),
            ("out_of_order", "segment out of order"),
            ("zero_windows", "zero window"),
        )
        if row[column]
    ]
    if row["missing"]:
        parts.append(f"{format_bytes(row['missing'])} missing")
    return "; ".join(parts)


def _handshake(row: Row, *, names: bool) -> str:
    parts = [row["version"], row["kind"], row["cipher"], row["sni"] if names else None, row["alpn"], row["alert"]]
    took = "not finished" if row["took"] is None else format_ns(row["took"])
    outcome = "" if row["outcome"] in (None, "complete") else f" {row['outcome']}"
    return f"TLS {_guess(row)}{took}{outcome}: {', '.join(printable(part) for part in parts if part)}"


def _exchange(row: Row, *, names: bool) -> str:
    request = " ".join(
        printable(part, limit=80) for part in (row["method"], row["host"] if names else None, row["target"]) if part
    )
    times = ", ".join(
        f"{name} {format_ns(row[column])}"
        for name, column in (("request", "request_ns"), ("wait", "wait_ns"), ("transfer", "transfer_ns"))
        if row[column] is not None
    )
    answer = row["answer"] or ("answer" if row["response_bytes"] else "no answer")
    size = f", {format_bytes(row['response_bytes'])}" if row["response_bytes"] else ""
    if row["from_log"]:
        request += " (from the log)"
    return f"{_guess(row)}{request or printable(row['protocol'] or 'unknown')} → {answer}{size}: {times or 'unseen'}"


def _links(tables: Tables) -> dict[tuple[int, int | None], list[str]]:
    """Say of each exchange which it caused and by which it was caused; of a connection under no exchange."""
    links: dict[tuple[int, int | None], list[str]] = {}
    for row in _rows(tables, _LINKS):
        front, back = ((row[f"{end}_stream"], row[f"{end}_exchange"]) for end in ("front", "back"))
        why = f"{printable(row['method'])}, {row['confidence']:.2f}"
        on = "handed on as" if row["front_exchange"] is None else "caused"
        times = ", ".join(f"{step.word} {format_ns(ns)}" for step in STEPS if (ns := row[f"{step.name}_ns"]))
        links.setdefault(front, []).append(f"{on} {row['caused']}{f': {times}' if times else ''} ({why})")
        by = "handed on from" if row["front_exchange"] is None else "caused by"
        links.setdefault(back, []).insert(0, f"{by} {row['caused_by']} ({why})")
    return links


def _logged(tables: Tables) -> dict[tuple[int, int], list[str]]:
    """Say of each exchange which line of a log is about it."""
    lines: dict[tuple[int, int], list[str]] = {}
    if logs.are_there(tables):
        for row in _rows(tables, f"FROM ({logs.BY_EXCHANGE}) ORDER BY log, line"):
            lines.setdefault((row["stream"], row["exchange"]), []).append(f"{logs.where(row)}: {logs.says(row)}")
    return lines


def _stall(row: Row) -> str:
    kind = stall_kind(row["kind"], row["telling_detail"])
    facts = (row["kind"], row["detail"], row["side"], f"confidence {row['confidence']:.2f}")
    named = ", ".join(printable(fact) for fact in facts if fact)
    frames = " → ".join(str(row[f"{end}_frame"]) for end in ("start", "released", "end") if row[f"{end}_frame"])
    took = f"{kind.word} {format_ns(row['took'])}"
    return f"{took} ({named}), frames {frames}: {kind.meaning}"


def _guess(row: Row) -> str:
    return "~" if row["inferred"] else ""


def _by_stream(tables: Tables, query: str) -> dict[int, list[Row]]:
    return {stream: list(group) for stream, group in groupby(_rows(tables, query), key=lambda row: row["stream"])}


def _rows(tables: Tables, query: str) -> Iterator[Row]:
    relation = tables.sql(query)
    names = relation.columns
    return (dict(zip(names, row, strict=True)) for row in relation.fetchall())
