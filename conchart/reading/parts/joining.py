"""The union of all parts, numbered as one reading numbers streams and frames.

In: the surveyed parts, the stitched flows, empty tables. Out: the core's tables, filled.

A stream of a part is replaced where its flow was stitched. Streams are numbered in the order of their first frames, and
frames count on from part to part (``docs/tables.md``).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from conchart.reading.parts.model import CORE, Surveyed, Torn, files_of
from conchart.reading.parts.sharing import Shared
from conchart.reading.parts.survey import frame_columns
from conchart.store.schema import Table
from conchart.store.sql import literal
from conchart.store.tables import Tables

_STITCHED = 1_000_000_000
"""Added to the numbers of stitched files, beside those of parts."""


def join(tables: Tables, surveyed: Sequence[Surveyed], stitched: Sequence[Surveyed], shared: Shared) -> None:
    """Fill the core's tables. Each thread of DuckDB reads its share of the files."""
    files = [
        (one.part.number, local, one.part.capture + local, file.first_frame + place.first_frame - 1)
        for one, place in zip(surveyed, shared.placed, strict=True)
        for local, file in enumerate(one.files)
    ]
    parts: list[tuple[int, int | None, int]] = [
        (one.part.number, one.part.capture, place.first_frame - 1)
        for one, place in zip(surveyed, shared.placed, strict=True)
    ]
    parts += [(_STITCHED + one.part.number, None, 0) for one in stitched]
    with (
        tables.lent("parts", {"part": "BIGINT", "capture": "INTEGER", "before": "BIGINT"}, parts),
        tables.lent(
            "files",
            {"part": "BIGINT", "local": "INTEGER", "capture": "INTEGER", "first_frame": "BIGINT"},
            files,
        ),
        tables.uniting(),
    ):
        _list_files(tables, surveyed, stitched)
        _number(tables, shared)
        for table in CORE:
            rows = _captures(tables, surveyed, stitched, shared) if table.name == "captures" else _union(table)
            tables.execute(f"INSERT INTO {table.name} BY NAME {rows}")
            tables.execute(f"DROP VIEW all_{table.name}")
        tables.execute("DROP TABLE streams; DROP TABLE adjusted; DROP TABLE parquet")


def _list_files(tables: Tables, surveyed: Sequence[Surveyed], stitched: Sequence[Surveyed]) -> None:
    """Make a view of each table of all parts, with the number of the part."""
    numbers = [(one.part.number, one) for one in surveyed]
    numbers += [(_STITCHED + one.part.number, one) for one in stitched]
    files = {
        table: [(number, path) for number, one in numbers for path in files_of(one.folder, table.name)]
        for table in CORE
    }
    every = [file for of_table in files.values() for file in of_table]
    tables.lend("parquet", {"part": "BIGINT", "filename": "VARCHAR"}, every)
    for table, of_table in files.items():
        names = ", ".join(literal(path) for _, path in of_table)
        tables.execute(
            f"CREATE TEMP VIEW all_{table.name} AS SELECT * EXCLUDE (filename) "
            f"FROM read_parquet([{names}], filename = true) JOIN parquet USING (filename)"
        )


def _number(tables: Tables, shared: Shared) -> None:
    """Make the table of streams: of each one that stays, its numbers."""
    tables.execute(f"""
        CREATE TEMP TABLE streams AS
        WITH all_streams AS (
            SELECT part, stream AS local, transport::VARCHAR AS transport,
                rows.first_frame + before AS first_frame,
                parts.capture + rows.capture AS capture, client_ip, client_port, server_ip, server_port
            FROM all_connections rows JOIN parts USING (part)),
        remaining AS (
            SELECT * FROM all_streams
            WHERE NOT EXISTS (
                FROM read_parquet({literal(shared.listed)}) replaced
                WHERE replaced.part = all_streams.part AND replaced.transport = all_streams.transport
                    AND ((one = client_ip AND port = client_port AND other = server_ip AND its_port = server_port)
                        OR (other = client_ip AND its_port = client_port AND one = server_ip AND port = server_port)))),
        -- Each TCP connection has a number; conversations over UDP share one if they have the same two ends.
        conversations AS (
            SELECT part, local, min(first_frame) OVER (
                PARTITION BY least(client, server), greatest(client, server)) AS of_flow
            FROM (SELECT *, (client_ip, client_port) AS client, (server_ip, server_port) AS server FROM remaining)
            WHERE transport = 'udp'),
        numbers AS (
            SELECT part, local, dense_rank() OVER (ORDER BY of_flow) AS number FROM conversations
            UNION ALL
            SELECT part, local, row_number() OVER (ORDER BY first_frame, part, local)
            FROM remaining WHERE transport = 'tcp')
        SELECT part, local, (row_number() OVER (ORDER BY first_frame, part, local) - 1)::INTEGER AS stream,
            (number - 1)::INTEGER AS transport_stream,
            coalesce(remaining.capture, (
                SELECT arg_max(files.capture, files.first_frame) FROM files
                WHERE files.first_frame <= remaining.first_frame)) AS capture
        FROM remaining JOIN numbers USING (part, local)
    """)


def _union(table: Table) -> str:
    """Give a query for the rows of a table."""
    replaced = {name: f"rows.{name} + before" for name in frame_columns(table.types)}
    replaced["stream"] = "streams.stream"
    if table.name == "connections":
        replaced |= {"capture": "streams.capture", "transport_stream": "streams.transport_stream"}
    values = ", ".join(f"{replaced.get(name, f'rows.{name}')} AS {name}" for name in table.from_core)
    return f"""
        SELECT {values} FROM all_{table.name} rows
        JOIN parts USING (part) JOIN streams ON streams.part = rows.part AND streams.local = rows.stream
    """


def _captures(tables: Tables, surveyed: Sequence[Surveyed], stitched: Sequence[Surveyed], shared: Shared) -> str:
    """Give a query for the rows of ``captures``: one for each file, whatever parts it was read in."""
    named = _notes_name_streams(surveyed)
    numbered = tables.fetch("SELECT part, local, stream FROM streams") if named else []
    streams = {(part, local): stream for part, local, stream in numbered}
    rows: list[tuple[object, ...]] = []
    # Every file of a part has the pieces of fragmented packets: the first one of each series tells.
    torn = [each for one, (_, file) in zip(stitched, shared.stitches, strict=True) if file == 0 for each in one.torn]
    for one, place in zip(surveyed, shared.placed, strict=True):
        before, number = place.first_frame - 1, one.part.number
        # Pieces of fragmented packets that are missing in a part may lie in the next one: the stitched files know.
        mine = [replace(each, frame=each.frame + before) for each in one.torn]
        left = torn if number in shared.flows else mine
        ends = [file.first_frame + before for file in one.files[1:]] + [place.first_frame + one.frames]
        for local, (file, end) in enumerate(zip(one.files, ends, strict=True)):
            inside = range(file.first_frame + before, end)
            now, was = _lost(left, inside), _lost(mine, inside)
            notes = _renumbered(file.notes, number, before, streams)
            path = one.part.paths[local]
            rows.append((number, local, path, notes, now[0] - was[0], now[1] - was[1]))
    types = {"part": "BIGINT", "local": "INTEGER", "path": "VARCHAR", "own_notes": "VARCHAR[]"}
    tables.lend("adjusted", types | {"lost": "BIGINT", "other": "BIGINT"}, rows)
    return """
        SELECT files.capture, any_value(adjusted.path) AS path, arg_min(format, part) AS format,
            arg_min(link_types, part) AS link_types,
            sum(packets)::BIGINT AS packets, sum(selected)::BIGINT AS selected, sum(bytes)::BIGINT AS bytes,
            min(files.first_frame) AS first_frame, min(first_at) AS first_at, max(last_at) AS last_at,
            max(resolution_ns) AS resolution_ns, bool_or(truncated) AS truncated,
            sum(rows.undecodable + adjusted.lost)::BIGINT AS undecodable,
            sum(rows.other + adjusted.other)::BIGINT AS other,
            sum(snapped)::BIGINT AS snapped, sum(dropped)::BIGINT AS dropped, sum(duplicates)::BIGINT AS duplicates,
            flatten(list(own_notes ORDER BY part)) AS notes
        FROM (SELECT * RENAME (capture AS local) FROM all_captures) rows
        JOIN files USING (part, local) JOIN adjusted USING (part, local)
        GROUP BY files.capture ORDER BY files.capture
    """


def _notes_name_streams(surveyed: Sequence[Surveyed]) -> bool:
    return any("stream " in note for one in surveyed for file in one.files for note in file.notes)


def _lost(torn: Sequence[Torn], frames: range) -> tuple[int, int]:
    """Give how many frames of fragmented packets count as undecodable, and as neither TCP nor UDP."""
    inside = [one for one in torn if one.frame in frames]
    return sum(one.frames for one in inside if not one.is_udp), sum(one.frames for one in inside if one.is_udp)


def _renumbered(notes: Sequence[str], part: int, before: int, streams: Mapping[tuple[int, int], int]) -> list[str]:
    """Number the frames and streams in notes as all parts are numbered."""

    def frame(found: re.Match[str]) -> str:
        return f"frame {int(found[1]) + before}"

    def stream(found: re.Match[str]) -> str:
        return f"stream {streams.get((part, int(found[1])), found[1])}"

    return [re.sub(r"\bstream (\d+)", stream, re.sub(r"\bframe (\d+)", frame, note)) for note in notes]
