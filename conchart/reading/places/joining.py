"""The tables of all places: each connection once, all instants on one clock.

In: views of what was read, ``routes``, the clocks. Out: the core's tables, filled, and ``places``, ``clocks``,
``paths``.

Of a connection that several places saw, the place nearest to the client tells, where it saw the beginning and missed no
bytes that another one has. Frames count on from place to place, and streams are numbered in the order of their first
packets on the reference's clock.
"""

from collections.abc import Sequence

from conchart import _native
from conchart.reading.parts.model import CORE
from conchart.reading.parts.survey import frame_columns
from conchart.reading.places.clocks import Clock
from conchart.reading.places.views import Place
from conchart.store.schema import Table
from conchart.store.tables import Rows, Tables

_DURATIONS = {
    "exchanges": {
        "request_ns": ("request_at", "request_done_at"),
        "wait_ns": ("request_done_at", "response_at"),
        "transfer_ns": ("response_at", "response_done_at"),
    },
}
"""Durations between two instants of the same row: on a clock that drifts, they change as the instants do."""


def join_places(tables: Tables, crossings: _native.Crossings, places: Sequence[Place], clocks: Sequence[Clock]) -> None:
    """Fill the tables."""
    befores, before, captures = [], 0, []
    for place in places:
        befores.append((place.number, place.name, before))
        captures += [
            (place.number, local, place.surveyed.part.capture + local, file.first_frame + before, path)
            for local, (file, path) in enumerate(zip(place.surveyed.files, place.surveyed.part.paths, strict=True))
        ]
        before += place.surveyed.frames
    with (
        tables.lent("parts", {"part": "BIGINT", "place": "VARCHAR", "before": "BIGINT"}, befores),
        tables.lent(
            "files",
            {"part": "BIGINT", "local": "INTEGER", "capture": "INTEGER", "first_frame": "BIGINT", "path": "VARCHAR"},
            captures,
        ),
    ):
        _number(tables, clocks)
        for table in CORE:
            if table.name == "place_packets":
                streams = Rows(tables.stored("SELECT path, stream, turned FROM streams"))
                packets = crossings.place_packets(
                    streams, [before for _, _, before in befores], [clock.stretches for clock in clocks]
                )
                tables.unite(table.name, packets, {"place": [place.name for place in places]})
            else:
                rows = _captures(clocks) if table.name == "captures" else _union(table, clocks)
                tables.execute(f"INSERT INTO {table.name} BY NAME {rows}")
        tables.lend_batch("shares", crossings.shares())
        tables.execute(_PATHS)
        tables.execute(_PLACES)
        if tables.fetch(f"FROM all_connections WHERE {_owned('client')} OR {_owned('server')} LIMIT 1"):
            for side, peer in (("client", "server"), ("server", "client")):
                tables.execute(_owners(side, peer))
        tables.execute("DROP TABLE streams; DROP TABLE shares")
    tables.add("clocks", [row for clock in clocks for row in _rows(clock, places[0].name)])


def _rows(clock: Clock, reference: str) -> list[tuple[object, ...]]:
    return [
        (
            clock.place.name, reference, piece.from_at + piece.reference_ns, piece.to_at + piece.reference_ns,
            piece.offset_ns + piece.own_ns - piece.reference_ns, piece.drift_ppb,
            piece.uncertainty_ns, clock.method, clock.through, clock.through_ns, piece.packets,
        )
        for piece in clock.pieces
    ]  # fmt: skip


def _moved(at: str, clocks: Sequence[Clock], part: str = "rows.part") -> str:
    """Give SQL for an instant, as the reference has it."""
    if all(clock.reference_sql("x") == "x" for clock in clocks):
        return at
    return (
        f"CASE {part} {' '.join(f'WHEN {clock.place.number} THEN {clock.reference_sql(at)}' for clock in clocks)} END"
    )


def _number(tables: Tables, clocks: Sequence[Clock]) -> None:
    """Make ``streams``: which row of a connection tells, and its numbers."""
    tables.execute(f"""
        CREATE TEMP TABLE streams AS
        WITH rows AS (
            SELECT routes.*, {_moved("opened_at", clocks)} AS opened_at, rows.* EXCLUDE (part, opened_at),
                max(bytes_client + bytes_server) OVER (PARTITION BY path) AS most
            FROM routes JOIN all_connections rows ON rows.part = routes.part AND rows.stream = routes.local),
        chosen AS (
            FROM rows QUALIFY row_number() OVER (PARTITION BY path ORDER BY
                state = 'midstream', isn_client IS NULL AND isn_server IS NULL,
                missing_client + missing_server, bytes_client + bytes_server < 0.9 * most, position) = 1)
        SELECT path, part, local, turned, (row_number() OVER (ORDER BY opened_at, path) - 1)::INTEGER AS stream
        FROM chosen
    """)


def _union(table: Table, clocks: Sequence[Clock]) -> str:
    """Give a query for the rows of a table."""
    replaced = {name: f"rows.{name} + before" for name in frame_columns(table.types)}
    replaced |= {name: _moved(f"rows.{name}", clocks) for name in table.from_core if name.endswith("_at")}
    for name, (start, end) in _DURATIONS.get(table.name, {}).items():
        replaced[name] = (
            f"if(rows.{name} = rows.{end} - rows.{start}, {replaced[end]} - {replaced[start]}, rows.{name})"
        )
    replaced["stream"] = "streams.stream"
    if table.name == "connections":
        replaced["capture"] = """(
            SELECT arg_max(files.capture, files.first_frame) FROM files
            WHERE files.part = rows.part AND files.first_frame <= rows.first_frame + before)"""
    columns = table.from_core
    values = ", ".join(f"{replaced.get(name, f'rows.{name}')} AS {name}" for name in columns)
    return f"""
        SELECT {values} FROM all_{table.name} rows
        JOIN parts USING (part) JOIN streams ON streams.part = rows.part AND streams.local = rows.stream
    """


def _captures(clocks: Sequence[Clock]) -> str:
    """Give a query for the rows of ``captures``."""
    return _CAPTURES.format(first_at=_moved("first_at", clocks), last_at=_moved("last_at", clocks))


_CAPTURES = """
    SELECT files.capture, files.path, format, link_types, packets, selected, bytes, files.first_frame,
        {first_at} AS first_at, {last_at} AS last_at,
        resolution_ns, truncated, undecodable, other, snapped, dropped, duplicates, notes, parts.place
    FROM (SELECT * EXCLUDE (path, first_frame) RENAME (capture AS local) FROM all_captures) rows
    JOIN files USING (part, local) JOIN parts USING (part) ORDER BY files.capture
"""


def _sides(columns: Sequence[str], turned: str) -> str:
    """Give SQL for columns of client and server, where a place may take them the other way round."""
    pairs = (
        (f"{before}client{after}", f"{before}server{after}")
        for before, after in (column.split("*") for column in columns)
    )
    return ", ".join(
        f"if({turned}, {server}, {client}) AS {client.split('.')[1]}, "
        f"if({turned}, {client}, {server}) AS {server.split('.')[1]}"
        for client, server in pairs
    )


_OF_OWNER = ("pid", "process", "container", "container_id", "pod")


def _owned(side: str) -> str:
    return f"coalesce({side}_pid::VARCHAR, {side}_process, {side}_container_id, {side}_pod) IS NOT NULL"


def _owners(side: str, peer: str) -> str:
    """Give SQL that takes who owns an end from another place, where the one that tells does not know: most know one."""
    one = ", ".join(
        f"'{name}': if(routes.turned <> streams.turned, rows.{peer}_{name}, rows.{side}_{name})" for name in _OF_OWNER
    )
    is_owned = "coalesce(owner.pid::VARCHAR, owner.process, owner.container_id, owner.pod) IS NOT NULL"
    return f"""
        UPDATE connections SET {", ".join(f"{side}_{name} = owner.{name}" for name in _OF_OWNER)}
        FROM (
            SELECT stream AS of_stream, first(owner ORDER BY position) FILTER ({is_owned}) AS owner
            FROM (
                SELECT streams.stream, position, {{{one}}} AS owner
                FROM routes JOIN streams USING (path)
                JOIN all_connections rows ON rows.part = routes.part AND rows.stream = routes.local)
            GROUP BY ALL)
        WHERE of_stream = stream AND owner IS NOT NULL AND NOT ({_owned(side)})
    """


_OWN = ("rows.*_ip", "rows.*_port", "rows.mss_*", "rows.ttl_*", "rows.tunnel_*", "rows.isn_*")
_PATHS = f"""
    INSERT INTO paths BY NAME
    SELECT streams.stream,
        if(streams.turned, count(*) OVER (PARTITION BY streams.path) - 1 - position, position) AS position,
        parts.place, rows.stream AS place_stream, rows.first_frame + parts.before AS first_frame,
        rows.last_frame + parts.before AS last_frame, {_sides(_OWN, "routes.turned <> streams.turned")},
        lacking, overtaken, late, varies,
        {_sides(("shares.packets_*", "shares.*_frame", "shares.tos_*"), "streams.turned")}
    FROM routes JOIN streams USING (path) JOIN parts ON parts.part = routes.part
    JOIN all_connections rows ON rows.part = routes.part AND rows.stream = routes.local
    LEFT JOIN (SELECT * REPLACE (client_frame + before AS client_frame, server_frame + before AS server_frame)
        FROM shares JOIN parts USING (part)) shares ON shares.path = routes.path AND shares.part = routes.part
"""

_PLACES = """
    INSERT INTO places BY NAME
    SELECT part AS number, place, part = 0 AS reference,
        (SELECT sum(packets)::BIGINT FROM all_captures WHERE all_captures.part = parts.part) AS packets,
        (SELECT count(*) FROM routes WHERE routes.part = parts.part) AS connections,
        (SELECT count(*) FROM routes JOIN twins USING (path) WHERE routes.part = parts.part) AS shared
    FROM parts
"""
