"""What was captured and how good the capture is. In: a trace. Out: labelled lines."""

from collections.abc import Iterable, Iterator

from conchart.printable import printable
from conchart.tables import Tables
from conchart.telling.remarks import remarks
from conchart.units import count_of, format_bytes, format_count, format_instant, format_ns

_TIMESTAMPS = {1: "ns", 1_000: "µs", 1_000_000: "ms", 1_000_000_000: "s"}

_STATE = "CASE WHEN transport = 'tcp' THEN state WHEN state = 'unanswered' THEN 'UDP unanswered' ELSE 'UDP' END"
"""SQL: how a connection ended; UDP has no end."""

RENEGOTIATION = "CASE WHEN version IS NULL AND number > 0 THEN 'encrypted renegotiation' END"
"""SQL: what to call a handshake of which only the times are known."""


def facts(tables: Tables) -> Iterator[tuple[str, str]]:
    """Give label and text of each fact; the label is empty where a line continues the one before."""
    for path, form, links, resolution in tables.fetch(
        "SELECT path, format, link_types, resolution_ns FROM captures ORDER BY capture"
    ):
        stamps = f"{_TIMESTAMPS.get(resolution, format_ns(resolution))} timestamps" if resolution else None
        yield "Capture", f"{_path(path)} ({_joined((form, links, stamps))})"
    packets, selected, size, first_at, last_at = _row(
        tables, "SELECT sum(packets), sum(selected), sum(bytes), min(first_at), max(last_at) FROM captures"
    )
    number = count_of(packets or 0, "packet")
    if selected != packets:
        number = f"{format_count(selected or 0)} of {number} selected"
    if first_at is None:
        yield "Packets", number
    else:
        lasted = f"{format_ns(last_at - first_at)} from {format_instant(first_at)}"
        yield "Packets", f"{number}, {format_bytes(size or 0)}, {lasted}"
    yield "Connections", _tally(tables, "connections", _STATE)
    if handshakes := _tally(
        tables, "handshakes", f"concat_ws(' ', version, kind, {RENEGOTIATION}, nullif(outcome, 'complete'))"
    ):
        yield "TLS", handshakes
    for remark in remarks(tables):
        if remark.kind == "keys":
            yield "Keys", remark.title
    if requests := _tally(tables, "exchanges", "protocol"):
        yield "Requests", requests
    if trouble := network(tables):
        yield "Network", ", ".join(trouble)
    if packets and not selected:
        ((chosen,),) = tables.fetch("SELECT any_value(selection) FROM captures")
        yield "Selection", f"nothing: none of {count_of(packets, 'packet')} fits {printable(chosen or 'it')}"
    else:
        yield from quality(tables)


def network(tables: Tables) -> list[str]:
    """Count what the network, not the capture, did to packets; empty when nothing."""
    syns, retransmits, out_of_order, zero_windows = _row(
        tables,
        """
        SELECT sum(syn_retransmits), sum(retransmits_client + retransmits_server),
            sum(out_of_order_client + out_of_order_server), sum(zero_windows_client + zero_windows_server)
        FROM connections
        """,
    )
    counts = (
        (syns, "SYN sent again", "SYNs sent again"),
        (retransmits, "segment sent again", "segments sent again"),
        (out_of_order, "segment out of order", "segments out of order"),
        (zero_windows, "full receive window", "full receive windows"),
    )
    return [count_of(count, one, many) for count, one, many in counts if count]


def quality(tables: Tables) -> Iterator[tuple[str, str]]:
    """Say what limits the capture; what is said of keys has a place of its own.

    The advice of a note is left out: the command line warns of damage in full.
    """
    label = "Quality"
    for remark in remarks(tables):
        if remark.warning and remark.kind != "keys":
            advice = f": {remark.advice}" if remark.advice and remark.kind != "note" else ""
            yield label, remark.title + advice
            label = ""
    if label:
        yield label, "no packet lost, cut or unreadable"


def hints(tables: Tables) -> Iterator[tuple[str, str]]:
    """Say in a line what is good to know of the capture, and changes no number."""
    if said := [remark.title for remark in remarks(tables) if not remark.warning and remark.kind != "keys"]:
        yield "Note", ". ".join(said)


def _tally(tables: Tables, table: str, kind: str) -> str:
    """Count rows in all and by kind: ``3: 2 complete, 1 reset``."""
    rows = tables.fetch(f"SELECT {kind} AS kind, count(*) AS n FROM {table} GROUP BY ALL ORDER BY n DESC, kind")
    total = sum(count for _, count in rows)
    if not total and table != "connections":
        return ""
    parts = ", ".join(f"{format_count(count)} {printable(kind or 'unknown')}" for kind, count in rows)
    return f"{format_count(total)}: {parts}" if rows else "none"


def _row(tables: Tables, query: str) -> tuple[int, ...]:
    row: tuple[int, ...] = tables.fetch(query)[0]
    return row


def _path(path: str) -> str:
    return "standard input" if path == "-" else printable(path)


def _joined(parts: Iterable[str | None]) -> str:
    return ", ".join(printable(part) for part in parts if part)
