"""What was captured and how good the capture is. In: a trace. Out: labelled lines."""

from collections.abc import Iterable, Iterator

from conchart.report.axis import captured_ns
from conchart.report.overview import Overview, overview
from conchart.report.remarks import remarks
from conchart.store.sql import TO_GROUP
from conchart.store.tables import Tables
from conchart.words.printable import printable
from conchart.words.units import count_of, format_bytes, format_count, format_instant, format_ns

_TIMESTAMPS = {1: "ns", 1_000: "µs", 1_000_000: "ms", 1_000_000_000: "s"}

_STATE = f"""CASE WHEN transport = 'tcp' THEN state WHEN {TO_GROUP} THEN 'UDP to a group'
    WHEN state IN ('abandoned', 'unanswered') THEN 'UDP unanswered' ELSE 'UDP' END"""
"""SQL: how a connection ended; UDP has no end."""

RENEGOTIATION = "CASE WHEN version IS NULL AND number > 0 THEN 'encrypted renegotiation' END"
"""SQL: what to call a handshake of which only the times are known."""
_HANDSHAKE = f"concat_ws(' ', version, kind, {RENEGOTIATION}, nullif(outcome, 'complete'))"
_MOST_KINDS = 3


def facts(tables: Tables) -> Iterator[tuple[str, str]]:
    """Give label and text of each fact; the label is empty where a line continues the one before."""
    for path, form, links, resolution in tables.fetch(
        "SELECT path, format, link_types, resolution_ns FROM captures ORDER BY capture"
    ):
        stamps = f"{_TIMESTAMPS.get(resolution, format_ns(resolution))} timestamps" if resolution else None
        yield "Capture", f"{_path(path)} ({_joined((form, links, stamps))})"
    counted = overview(tables)
    yield "Packets", _packets(tables, counted) + "".join(f" {began}" for began in _began(counted))
    yield "Connections", _tally(tables, "connections", _STATE)
    if handshakes := _tally(tables, "handshakes", _HANDSHAKE):
        yield "TLS", handshakes
    for remark in remarks(tables):
        if remark.kind == "keys":
            yield "Keys", remark.title
    if requests := _tally(tables, "exchanges", "protocol"):
        yield "Requests", requests
    if trouble := network(tables):
        yield "Network", ", ".join(trouble)
    if nothing := _nothing_selected(counted):
        yield "Selection", nothing
    else:
        yield from quality(tables)


def brief_facts(tables: Tables, quality: str) -> Iterator[tuple[str, str]]:
    """Give label and text: what was captured, what is in it, how good it is (``quality``) and when it was."""
    counted = overview(tables)
    paths = counted.paths
    more = f" and {count_of(len(paths) - 1, 'more file')}" if len(paths) > 1 else ""
    yield "capture", f"{_path(paths[0])}{more}: {_packets(tables, counted)}" if paths else _packets(tables, counted)
    told = (
        _counted(tables, "connections", "connection", _STATE),
        _counted(tables, "handshakes", "TLS handshake", _HANDSHAKE),
        _counted(tables, "exchanges", "request", "protocol"),
        *network(tables),
    )
    yield "", "; ".join(filter(None, told)) or "no connection"
    if nothing := _nothing_selected(counted):
        yield "selected", nothing
    else:
        beside = [remark.title for remark in remarks(tables) if remark.kind in ("keys", "translated", "checks")]
        yield "", "; ".join((quality, *beside, *_began(counted)))


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


def _packets(tables: Tables, counted: Overview) -> str:
    """``265 packets, 199 kB, 337 ms``."""
    number = count_of(counted.packets, "packet")
    if counted.selected != counted.packets:
        number = f"{format_count(counted.selected)} of {number} selected"
    if counted.first_at is None:
        return number
    return f"{number}, {format_bytes(counted.bytes)}, {format_ns(captured_ns(tables))}"


def _began(counted: Overview) -> list[str]:
    return [] if counted.first_at is None else [f"from {format_instant(counted.first_at)}"]


def _nothing_selected(counted: Overview) -> str:
    """Say that a choice of packets chose none; empty where it did not."""
    if not counted.packets or counted.selected:
        return ""
    return f"nothing: none of {count_of(counted.packets, 'packet')} fits {printable(counted.selection or 'it')}"


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


def _kinds(tables: Tables, table: str, kind: str) -> list[tuple[str | None, int]]:
    return tables.fetch(f"SELECT {kind} AS kind, count(*) AS n FROM {table} GROUP BY ALL ORDER BY n DESC, kind")


def _counted(tables: Tables, table: str, noun: str, kind: str) -> str:
    """``3 connections (2 complete, 1 reset)``, the most frequent kinds; empty where there is none."""
    rows = _kinds(tables, table, kind)
    if not rows:
        return ""
    told = [f"{format_count(count)} {printable(name or 'unknown')}" for name, count in rows[:_MOST_KINDS]]
    if len(rows) == 1:
        told = [printable(rows[0][0] or "unknown")]
    elif len(rows) > _MOST_KINDS:
        told.append(count_of(sum(count for _, count in rows[_MOST_KINDS:]), "other"))
    return f"{count_of(sum(count for _, count in rows), noun)} ({', '.join(told)})"


def _tally(tables: Tables, table: str, kind: str) -> str:
    """Count rows in all and by kind: ``3: 2 complete, 1 reset``."""
    rows = _kinds(tables, table, kind)
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
