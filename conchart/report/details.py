"""The facts of each connection, for ``-v``. In: tables. Out: :class:`Details` of each, ordered by stream."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from conchart.labels.filling import Fact
from conchart.labels.printable import endpoint, printable
from conchart.labels.stalls import DETAIL, LISTED, stall_kind
from conchart.labels.units import format_ns
from conchart.report import facts, logs, messages, races, spans, tunnels
from conchart.report.axis import TimeAxis
from conchart.report.owners import who
from conchart.report.splits import STEPS
from conchart.store.sql import UNFINISHED
from conchart.store.tables import Tables

_CONNECTIONS = f"""
    SELECT *, {{opened}} AS opened, closed_at - opened_at AS duration,
        coalesce(syn_retransmits, 0) + coalesce(retransmits_client, 0) + coalesce(retransmits_server, 0)
            AS retransmits,
        {who("client")} AS client_who, {who("server")} AS server_who
    FROM connections ORDER BY stream
"""
_HANDSHAKES = f"SELECT *, {facts.RESULT}, ready_at - hello_at AS took FROM handshakes ORDER BY stream, number"
_EXCHANGES = f"""
    SELECT stream, number, method, target, {{columns}}, status_text AS answer, request_bytes, response_bytes,
        request_ns, wait_ns, transfer_ns, service_ns, {UNFINISHED} AS unfinished, inferred, confidence, from_log,
        {tunnels.COLUMNS}
    FROM exchanges ORDER BY stream, number
"""
_STALLS = f"""
    SELECT * REPLACE ({facts.STALL_COLUMNS}), {DETAIL} AS named_detail, end_at - start_at AS duration
    FROM {LISTED} ORDER BY stream, start_at
"""
_TIMES = Fact("", ("request {request_ns}", "wait {wait_ns}", "transfer {transfer_ns}"))
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


def details(tables: Tables, axis: TimeAxis, *, names: bool) -> Iterator[Details]:
    """Give those of each connection. What encryption hides and was inferred is marked ``~``."""
    handshakes = _by_stream(tables, _HANDSHAKES)
    exchanges = _by_stream(tables, _EXCHANGES.format(columns=facts.request_columns(names=names)))
    stalls = _by_stream(tables, _STALLS)
    links = _links(tables)
    raced = _by_stream(tables, _RACES)
    beside: dict[tuple[int, int], list[str]] = {}
    for row in _rows(tables, _MESSAGES):
        beside.setdefault((row["stream"], row["number"]), []).append(facts.MESSAGES.of(row))
    for row in _rows(tables, spans.BY_EXCHANGE):
        beside.setdefault((row["stream"], row["number"]), []).extend(spans.describe(row))
    for place, lines in _logged(tables).items():
        beside.setdefault(place, []).extend(lines)
    for row in _rows(tables, _CONNECTIONS.format(opened=axis.place("opened_at"))):
        stream = row["stream"]
        stalled = [_named(stall) for stall in stalls.get(stream, ())]
        lines = [
            _transport(row, stalled),
            *(races.describe(race) for race in raced.get(stream, ())),
            *(_handshake(handshake, names=names) for handshake in handshakes.get(stream, ())),
            *links.get((stream, None), ()),
        ]
        for exchange in exchanges.get(stream, ()):
            place = (stream, exchange["number"])
            lines.append(_exchange(exchange))
            inner = [tunnels.describe(exchange)] if exchange["tunnel"] is not None else []
            lines += (f"  {line}" for line in (*inner, *beside.get(place, ()), *links.get(place, ())))
        lines += map(_stall, stalled)
        yield Details(title=_connection(row, names=names), lines=tuple(lines))


def _connection(row: Row, *, names: bool) -> str:
    row |= {side: endpoint(row[f"{side}_ip"], row[f"{side}_port"]) for side in ("client", "server")}
    if not names:
        row |= {"client_who": None, "server_who": None}
    number = f"{row['transport']}.stream eq {row['transport_stream']}"
    return f"{number}  {facts.CLIENT.of(row, 80)} → {facts.SERVER.of(row, 80)}  {facts.BRIEF.of(row)}"


def _transport(row: Row, stalled: list[Row]) -> str:
    sums: Counter[str] = Counter()
    for stall in stalled:
        sums[stall["word"]] += stall["duration"]
    row["stalled"] = ", ".join(facts.AMOUNT.of({"word": word, "duration": ns}) for word, ns in sums.most_common())
    texts = ((fact.label, fact.of(row)) for fact in facts.CONNECTION)
    return "; ".join(f"{label.lower()} {text}" for label, text in texts if text)


def _handshake(row: Row, *, names: bool) -> str:
    took = "not finished" if row["took"] is None else format_ns(row["took"])
    return f"TLS {_guess(row)}{took}: {facts.HANDSHAKE.of(row if names else row | {'sni': None})}"


def _exchange(row: Row) -> str:
    text = "; ".join(filter(None, (_TIMES.of(row), facts.EXCHANGE.of(row))))
    return f"{_guess(row)}{facts.REQUEST.of(row, 80)}{f': {text}' if text else ''}"


def _links(tables: Tables) -> dict[tuple[int, int | None], list[str]]:
    """Say of each exchange which it caused and by which it was caused; of a connection under no exchange."""
    links: dict[tuple[int, int | None], list[str]] = {}
    for row in _rows(tables, _LINKS):
        front, back = ((row[f"{end}_stream"], row[f"{end}_exchange"]) for end in ("front", "back"))
        on, by = facts.LINKED[row["front_exchange"] is None]
        steps = ((step.word, row[f"{step.name}_ns"]) for step in STEPS)
        times = ", ".join(facts.AMOUNT.of({"word": word, "duration": ns}) for word, ns in steps if ns)
        links.setdefault(front, []).append(
            f"{on} {row['caused']}{f': {times}' if times else ''} ({facts.LINK.of(row)})"
        )
        links.setdefault(back, []).insert(0, f"{by} {row['caused_by']} ({facts.LINK.of(row)})")
    return links


def _logged(tables: Tables) -> dict[tuple[int, int], list[str]]:
    """Say of each exchange which line of a log is about it."""
    lines: dict[tuple[int, int], list[str]] = {}
    if logs.are_there(tables):
        for row in _rows(tables, f"FROM ({logs.BY_EXCHANGE}) ORDER BY log, line"):
            lines.setdefault((row["stream"], row["exchange"]), []).append(f"{logs.where(row)}: {logs.says(row)}")
    return lines


def _named(row: Row) -> Row:
    kind = stall_kind(row["kind"], row["named_detail"])
    return row | {"word": kind.word, "meaning": kind.meaning, "doing": kind.doing}


def _stall(row: Row) -> str:
    named = ", ".join(printable(name) for name in (row["kind"], row["detail"]) if name)
    return f"{facts.AMOUNT.of(row)} ({named}), frames {facts.STALL_FRAMES.of(row)}: {facts.STALL.of(row)}"


def _guess(row: Row) -> str:
    return "~" if row["inferred"] else ""


def _by_stream(tables: Tables, query: str) -> dict[int, list[Row]]:
    return {stream: list(group) for stream, group in groupby(_rows(tables, query), key=lambda row: row["stream"])}


def _rows(tables: Tables, query: str) -> Iterator[Row]:
    relation = tables.sql(query)
    names = relation.columns
    return (dict(zip(names, row, strict=True)) for row in relation.fetchall())
