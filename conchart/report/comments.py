"""What is said of single packets: where phases, handshakes and stalls begin and end, and what findings point at.

In: tables. Out: comments in the order of their frames. No comment names a frame: where only some packets
were copied, numbers are others.
"""

from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from conchart.labels.phases import PHASE_BY_NAME
from conchart.labels.printable import printable
from conchart.labels.stalls import DETAIL, stall_kind
from conchart.labels.units import format_ns
from conchart.store.tables import Tables

_AT_A_TIME = 10_000
_LONGEST = 400
_LONGEST_NOTE = 120
"""Characters of a text from the capture: a request target may have 64 kB."""

_SPOKEN = "concat_ws(', ', version, CASE WHEN handshakes.outcome = 'complete' THEN handshakes.kind END)"


class _Event(NamedTuple):
    frame: int
    stream: int | None
    place: int
    """Phases that end, those that begin, and then the others."""
    what: str
    kind: str
    detail: str | None
    ns: int | None
    """How long it took, where it ends."""
    inferred: bool
    note: str | None


def comments(tables: Tables, *, names: bool) -> Iterator[list[tuple[int, str]]]:
    """Give frames with what is said of each, some at a time; a frame may come several times.

    Args:
        tables: Of the trace.
        names: Whether names and paths that were found in the capture are told.
    """
    relation = tables.sql(_events(names=names))
    # Told together, so that no frame's events are told in two pieces.
    left: list[_Event] = []
    while rows := relation.fetchmany(_AT_A_TIME):
        left += [_Event(*row) for row in rows]
        last = left[-1].frame
        whole = [event for event in left if event.frame < last]
        left = left[len(whole) :]
        if whole:
            yield list(_by_frame(whole))
    if left:
        yield list(_by_frame(left))


def _by_frame(events: list[_Event]) -> Iterator[tuple[int, str]]:
    for (frame, stream, _), same in groupby(events, key=lambda event: (event.frame, event.stream, max(1, event.place))):
        where = "" if stream is None else f"connection {stream}: "
        yield frame, printable(f"conchart: {where}{'; '.join(map(_words, same))}", _LONGEST)


def _words(event: _Event) -> str:
    note = printable(event.note, _LONGEST_NOTE) if event.note else ""
    remarks = ", ".join(filter(None, (note, "inferred" if event.inferred else "")))
    inside = f" ({remarks})" if remarks else ""
    took = "" if event.ns is None else format_ns(event.ns)
    if event.what == "phase":
        title = PHASE_BY_NAME[event.kind].title
        return f"{title} ends here: {took}{inside}" if took else f"{title} begins here{inside}"
    if event.what == "stall":
        kind = stall_kind(event.kind, event.detail)
        return (
            f"stall ends here: {kind.word} for {took}{inside}" if took else f"stall begins here: {kind.meaning}{inside}"
        )
    if event.what == "handshake":
        return f"{event.kind}{f': {took}' if took else ''}{inside}"
    return f"finding {event.kind}{inside}: {event.detail}"


def _events(*, names: bool) -> str:
    target, sni = ("target", "sni") if names else ("NULL", "NULL")
    return f"""
        WITH described AS (
            SELECT phases.*,
                CASE WHEN phases.kind IN ('request', 'wait') THEN concat_ws(' ', method, {target}) END AS request,
                CASE phases.kind WHEN 'tls' THEN {_SPOKEN} WHEN 'wait' THEN status_text WHEN 'transfer' THEN status_text
                END AS came
            FROM phases
            LEFT JOIN exchanges ON exchanges.stream = phases.stream AND exchanges.number = phases.exchange
            LEFT JOIN handshakes ON handshakes.stream = phases.stream AND handshakes.number = phases.handshake),
        words AS (SELECT * REPLACE ({DETAIL} AS detail), side || '''s data' AS note FROM stalls),
        listed AS (SELECT *, unnest(frames) AS frame FROM findings)
        SELECT frame, stream, place, what, kind, detail, ns, inferred, note FROM (
            SELECT end_frame AS frame, stream, 0 AS place, 'phase' AS what, kind, NULL::VARCHAR AS detail,
                end_at - start_at AS ns, inferred, came AS note FROM described
            UNION ALL SELECT start_frame, stream, 1, 'phase', kind, NULL, NULL, inferred, request FROM described
            UNION ALL SELECT hello_frame, stream, 2, 'handshake', 'ClientHello', NULL, NULL, false, {sni}
                FROM handshakes
            UNION ALL SELECT server_hello_frame, stream, 3, 'handshake', 'ServerHello', NULL, NULL, false,
                concat_ws(', ', version, cipher, named_group) FROM handshakes
            UNION ALL SELECT ready_frame, stream, 4, 'handshake', 'from here on the client may send its first request',
                NULL, ready_at - hello_at, inferred, {_SPOKEN} FROM handshakes
            UNION ALL SELECT failed_frame, stream, 5, 'handshake', 'the TLS handshake fails here', NULL, NULL, false,
                concat_ws(' by the ', alert, alert_by) FROM handshakes
            UNION ALL SELECT end_frame, stream, 6, 'stall', kind, detail, end_at - start_at, false, note FROM words
            UNION ALL SELECT start_frame, stream, 7, 'stall', kind, detail, NULL, false, note FROM words
            UNION ALL SELECT frame, NULL, 8 + number, 'finding', finding, title, NULL, false, severity FROM listed)
        WHERE frame IS NOT NULL ORDER BY frame, greatest(place, 1), stream, place, ns, kind"""
