"""What was captured and how good the capture is. In: a trace. Out: labelled lines."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from conchart.coverage import coverage
from conchart.printable import printable
from conchart.sql import HOLED, MISSING, ONE_SIDED
from conchart.units import count_of, format_bytes, format_count, format_instant, format_ns

if TYPE_CHECKING:
    from conchart.trace import Trace

_TIMESTAMPS = {1: "ns", 1_000: "µs", 1_000_000: "ms", 1_000_000_000: "s"}

_STATE = "CASE WHEN transport = 'tcp' THEN state WHEN state = 'unanswered' THEN 'UDP unanswered' ELSE 'UDP' END"
"""SQL: how a connection ended; UDP has no end."""

RENEGOTIATION = "CASE WHEN version IS NULL AND number > 0 THEN 'encrypted renegotiation' END"
"""SQL: what to call a handshake of which only the times are known."""


def facts(trace: "Trace") -> Iterator[tuple[str, str]]:
    """Give label and text of each fact; the label is empty where a line continues the one before."""
    for path, form, links, resolution in trace.sql(
        "SELECT path, format, link_types, resolution_ns FROM captures ORDER BY capture"
    ).fetchall():
        stamps = f"{_TIMESTAMPS.get(resolution, format_ns(resolution))} timestamps" if resolution else None
        yield "Capture", f"{_path(path)} ({_joined((form, links, stamps))})"
    packets, selected, size, first_at, last_at = _row(
        trace, "SELECT sum(packets), sum(selected), sum(bytes), min(first_at), max(last_at) FROM captures"
    )
    number = count_of(packets or 0, "packet")
    if selected != packets:
        number = f"{format_count(selected or 0)} of {number} selected"
    if first_at is None:
        yield "Packets", number
    else:
        yield "Packets", f"{number}, {format_bytes(size or 0)}, {format_ns(last_at - first_at)}"
        yield "Started", format_instant(first_at)
    yield "Connections", _tally(trace, "connections", _STATE)
    if handshakes := _tally(
        trace, "handshakes", f"concat_ws(' ', version, kind, {RENEGOTIATION}, nullif(outcome, 'complete'))"
    ):
        yield "TLS", handshakes
    if keys := coverage(trace):
        yield "Keys", str(keys)
    if requests := _tally(trace, "exchanges", "protocol"):
        yield "Requests", requests
    if trouble := network(trace):
        yield "Network", ", ".join(trouble)
    if packets and not selected:
        ((chosen,),) = trace.sql("SELECT any_value(selection) FROM captures").fetchall()
        yield "Selection", f"nothing: none of {count_of(packets, 'packet')} fits {printable(chosen or 'it')}"
    label = "Quality"
    for line in quality(trace) or (["no packet lost, cut or unreadable"] if selected or not packets else []):
        yield label, line
        label = ""


def network(trace: "Trace") -> list[str]:
    """Count what the network, not the capture, did to packets; empty when nothing."""
    syns, retransmits, out_of_order, zero_windows = _row(
        trace,
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


def quality(trace: "Trace") -> list[str]:
    """Say what is wrong with the capture itself, worst first; empty when nothing is.

    Notes name their file and frame; of those with several lines the first says what, and the others what to do.
    """
    lines = [
        printable(note.split("\n")[0], limit=300)
        for (notes,) in trace.sql("SELECT notes FROM captures WHERE len(notes) > 0 ORDER BY capture").fetchall()
        for note in notes
    ]
    dropped, undecodable, snapped, duplicates, other = _row(
        trace, "SELECT sum(dropped), sum(undecodable), sum(snapped), sum(duplicates), sum(other) FROM captures"
    )
    missing, incomplete, one_sided, midstream = _row(
        trace,
        f"""
        SELECT
            sum({MISSING}) FILTER ({HOLED}),
            count(*) FILTER ({HOLED}),
            count(*) FILTER ({ONE_SIDED}),
            count(*) FILTER (state = 'midstream')
        FROM connections
        """,
    )
    if dropped:
        lines.append(f"{count_of(dropped, 'packet')} lost by the capturing machine: use a larger buffer (tcpdump -B)")
    if missing:
        lines.append(f"{format_bytes(missing)} acknowledged but not captured, in {count_of(incomplete, 'connection')}")
    if one_sided:
        lines.append(
            f"{count_of(one_sided, 'connection')} in one direction only: capture both (of a mirror port, rx and tx)"
        )
    if midstream:
        lines.append(f"{count_of(midstream, 'connection')} began before the capture: their handshakes are unseen")
    if undecodable:
        lines.append(f"{count_of(undecodable, 'frame')} with unreadable headers")
    if snapped:
        lines.append(f"{count_of(snapped, 'frame')} cut by the snap length: capture whole packets (tcpdump -s 0)")
    if duplicates:
        lines.append(f"{count_of(duplicates, 'copy', 'copies')} of packets already seen, left out")
    if other:
        lines.append(f"{count_of(other, 'frame')} neither TCP nor UDP, left out")
    return lines


def _tally(trace: "Trace", table: str, kind: str) -> str:
    """Count rows in all and by kind: ``3: 2 complete, 1 reset``."""
    rows = trace.sql(f"SELECT {kind} AS kind, count(*) AS n FROM {table} GROUP BY ALL ORDER BY n DESC, kind").fetchall()
    total = sum(count for _, count in rows)
    if not total and table != "connections":
        return ""
    parts = ", ".join(f"{format_count(count)} {printable(kind or 'unknown')}" for kind, count in rows)
    return f"{format_count(total)}: {parts}" if rows else "none"


def _row(trace: "Trace", query: str) -> tuple[int, ...]:
    row: tuple[int, ...] = trace.sql(query).fetchall()[0]
    return row


def _path(path: str) -> str:
    return "standard input" if path == "-" else printable(path)


def _joined(parts: Iterable[str | None]) -> str:
    return ", ".join(printable(part) for part in parts if part)
