"""Chrome's trace events, as JSON: for ui.perfetto.dev, and the performance panel of Chromium's DevTools.

In: a trace. Out: one event per connection, phase and exchange, one pair of flow events per link. The format:
https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU

A process is a server, a thread a lane: connections that do not overlap share one. Events of a thread must lie inside
each other. An exchange does so where nothing overlaps it; where exchanges overlap (HTTP/2, pipelining, early data) they
get lanes below their connection's, and parts of their own: its phases tell of all of them.

Viewers add instants and durations as floats, and drop what then ends a trifle after what it lies in: instants are whole
microseconds, from the first packet on. ``duration_ns`` is exact.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from typing import IO, Any

from conchart.analysis.sights import once
from conchart.labels.printable import endpoint
from conchart.outputs.formats.exchanges import TIMED_EXCHANGES, parts
from conchart.outputs.formats.json import fetched, lines
from conchart.outputs.packing import Lanes
from conchart.report.axis import first_instant
from conchart.store.tables import Tables
from conchart.version import version

_INSIDE = """
    SELECT stream, number FROM (
        SELECT stream, number, start_at, end_at, max(end_at) OVER earlier AS before, min(start_at) OVER later AS after
        FROM timed
        WINDOW earlier AS (ordered ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
            later AS (ordered ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING),
            ordered AS (PARTITION BY stream ORDER BY start_at, number))
    SEMI JOIN (SELECT stream, unnest([start_at, end_at]) AS start_at FROM phases) USING (stream, start_at)
    SEMI JOIN (SELECT stream, unnest([start_at, end_at]) AS end_at FROM phases) USING (stream, end_at)
    WHERE coalesce(before <= start_at, true) AND coalesce(end_at <= after, true)
"""
"""Exchanges that lie inside their connection's phases, side by side with the others."""

_EVENTS = f"""
    WITH placed AS (FROM timed JOIN lane_of USING (stream, number)),
    lanes AS (SELECT stream, pid, tid FROM lane_of WHERE number IS NULL),
    slices AS (
        SELECT pid, tid, stream, NULL AS number, opened_at AS start_at, closed_at AS end_at, 0 AS depth,
            'connection' AS cat, printf('%s:%d', client_ip, client_port) AS name,
            json_object('stream', stream, 'wireshark', printf('%s.stream eq %d', transport, transport_stream),
                'app', app, 'state', state, 'first_frame', first_frame, 'last_frame', last_frame,
                'bytes_client', bytes_client, 'bytes_server', bytes_server) AS args
        FROM connections JOIN lanes USING (stream)
        UNION ALL
        SELECT pid, tid, stream, number, start_at, end_at, 2,
            'exchange', concat_ws(' ', coalesce(method, protocol), target),
            json_object('stream', stream, 'exchange', number, 'protocol', protocol, 'host', host, 'answer', status_text,
                'request_bytes', request_bytes, 'response_bytes', response_bytes,
                'request_frame', request_frame, 'response_frame', response_frame,
                'inferred', inferred, 'confidence', confidence)
        FROM placed
        UNION ALL
        SELECT pid, tid, stream, exchange, start_at, end_at, 4, 'phase', kind,
            json_object('stream', stream, 'exchange', exchange, 'handshake', handshake,
                'start_frame', start_frame, 'end_frame', end_frame, 'inferred', inferred)
        FROM phases JOIN lanes USING (stream)
        UNION ALL
        SELECT pid, tid, stream, number, part_at, part_done_at, 4, 'part', part,
            json_object('stream', stream, 'exchange', number)
        FROM ({parts("placed")}) WHERE beside AND coalesce(request_done_at <= response_at, true)),
    measured AS (SELECT *, (start_at - $origin) // 1000 AS ts, (end_at - $origin) // 1000 AS until FROM slices),
    caused AS (
        SELECT *, row_number() OVER (ORDER BY front_stream, front_exchange, back_stream, back_exchange) AS id,
            CASE WHEN front_exchange IS NULL OR back_exchange IS NULL THEN 'connection' ELSE 'exchange' END AS cat
        FROM links),
    ends AS (
        SELECT id, cat, 's' AS ph, front_stream AS stream, front_exchange AS exchange FROM caused
        UNION ALL
        SELECT id, cat, 'f', back_stream, back_exchange FROM caused),
    flows AS (
        SELECT measured.*, id, ph FROM ends JOIN measured ON measured.cat = ends.cat AND measured.stream = ends.stream
            AND number IS NOT DISTINCT FROM CASE ends.cat WHEN 'exchange' THEN exchange END),
    written AS (
        SELECT start_at, end_at, depth, pid, tid, to_json({{
            ph: 'X', pid: pid, tid: tid, ts: ts, dur: until - ts, cat: cat, name: name,
            args: json_merge_patch(json_object('duration_ns', end_at - start_at), args)}}) AS event
        FROM measured
        UNION ALL
        SELECT start_at, end_at, depth + 1, pid, tid, to_json({{
            ph: ph, bp: 'e', pid: pid, tid: tid, ts: ts, cat: cat, name: 'caused', id: id}})
        FROM flows)
    SELECT event FROM written ORDER BY start_at, end_at DESC, depth, pid, tid, event
"""
"""In the order in which they begin, the outer before the inner one: a flow event belongs to what began last."""


Place = tuple[int, int, int]
"""A lane: its process, its number among lanes of connections, and 0, or its number among lanes of exchanges below."""


@once
def dump_perfetto(tables: Tables, sink: IO[str]) -> None:
    """Write the events, in the order of their instants."""
    origin = first_instant(tables)
    head = {"displayTimeUnit": "ns", "otherData": {"producer": f"conchart {version()}", "start_at": str(origin)}}
    sink.write(f'{json.dumps(head)[:-1]}, "traceEvents": [')
    tables.execute(f"CREATE TEMP TABLE timed AS {TIMED_EXCHANGES}")
    try:
        names = map(json.dumps, _names(tables, _place(tables)))
        events = fetched(tables.sql(_EVENTS, {"origin": origin}))
        sink.writelines(lines(chain(names, (event for (event,) in events))))
    finally:
        tables.execute("DROP TABLE timed; DROP TABLE IF EXISTS inside; DROP TABLE IF EXISTS lane_of")
    sink.write("]}\n")


def _place(tables: Tables) -> list[Place]:
    """Give everything its lane: ``lane_of`` says which.

    Returns:
        The lanes; their threads are numbered from 1.
    """
    tables.execute(f"CREATE TEMP TABLE inside AS {_INSIDE}")
    connections = tables.sql(
        """
        SELECT opened_at, closed_at, rank + 1, stream FROM connections JOIN servers USING (server_ip, server_port)
        ORDER BY opened_at, stream
        """
    )
    processes: defaultdict[int, Lanes] = defaultdict(Lanes)
    own = {
        stream: (pid, 1 + processes[pid].place(opened_at, closed_at))
        for opened_at, closed_at, pid, stream in fetched(connections)
    }
    others = tables.sql(
        """
        SELECT start_at, end_at, stream, number FROM timed ANTI JOIN inside USING (stream, number)
        ORDER BY start_at, stream, number
        """
    )
    below: defaultdict[tuple[int, int], Lanes] = defaultdict(Lanes)
    places: dict[tuple[int, int | None], Place] = {(stream, None): (*lane, 0) for stream, lane in own.items()}
    places |= {
        (stream, number): (*own[stream], 1 + below[own[stream]].place(start_at, end_at))
        for start_at, end_at, stream, number in fetched(others)
    }
    threads = sorted(set(places.values()))
    tids = {place: tid for tid, place in enumerate(threads, 1)}
    entries = [
        {"stream": stream, "number": number, "pid": place[0], "tid": tids[place], "beside": place[2] > 0}
        for (stream, number), place in places.items()
    ]
    shape = '[{"stream": "INTEGER", "number": "INTEGER", "pid": "INTEGER", "tid": "INTEGER", "beside": "BOOLEAN"}]'
    tables.execute(
        f"CREATE TEMP TABLE lane_of AS SELECT unnest(from_json(?, '{shape}'), max_depth := 2)", [json.dumps(entries)]
    )
    tables.execute(
        """
        INSERT INTO lane_of SELECT stream, inside.number, pid, tid, false
        FROM lane_of JOIN inside USING (stream) WHERE lane_of.number IS NULL
        """
    )
    return threads


def _names(tables: Tables, places: list[Place]) -> Iterator[dict[str, Any]]:
    """Say what processes and threads are called, and in which order they stand."""
    rows = tables.sql("SELECT rank + 1, names, server_ip, server_port, role FROM servers ORDER BY rank")
    for pid, names, server_ip, server_port, role in rows.fetchall():
        title = " ".join([*names[:1], endpoint(server_ip, server_port), f"({role})"])
        yield _meta("process_name", {"name": title}, pid)
        yield _meta("process_sort_index", {"sort_index": pid}, pid)
    for tid, (pid, lane, beside) in enumerate(places, 1):
        title = f"connections {lane}" + (f", requests {beside}" if beside else "")
        yield _meta("thread_name", {"name": title}, pid, tid)
        yield _meta("thread_sort_index", {"sort_index": tid}, pid, tid)


def _meta(name: str, args: dict[str, Any], pid: int, tid: int = 0) -> dict[str, Any]:
    return {"ph": "M", "cat": "__metadata", "name": name, "pid": pid, "tid": tid, "ts": 0, "args": args}
