"""The tasks that processes or machines run: survey a part, spill the flows that it shares, stitch those.

In: files. Out: files, and a small description. Every task is a pure function: to run it again does no harm. It writes
into a folder of its own, which gets its name when it is complete.
"""

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path

import duckdb

from conchart import _native
from conchart.reading import core
from conchart.reading.options import ReadOptions
from conchart.reading.parts.cutting import Part
from conchart.reading.parts.model import CORE, File, Flow, FlowSelection, Surveyed, Torn, file_of, files_of
from conchart.reading.parts.reuse import remember
from conchart.reading.selection import Selection
from conchart.store.memory import table_limit
from conchart.store.sql import literal
from conchart.store.tables import Tables


def survey(
    part: Part,
    options: ReadOptions,
    work: Path,
    sighted: Callable[[object], None] | None = None,
    *,
    keylog: Sequence[str] = (),
    steps: Sequence[tuple[int, int]] = (),
) -> Surveyed:
    """Read a part into Parquet files.

    Args:
        part: The part.
        options: How to read, as ``ReadOptions.of_task`` gives it.
        work: The folder of all parts.
        sighted: Takes the batches of ``place_packets``, which then have no file.
        keylog: Files with secrets.
        steps: Where the clock was set: from which frame on it shows how much more. That is taken away.

    Raises:
        CaptureError: Nothing could be read.
    """
    with _new_folder(work / f"part-{part.number:05}") as (folder, made), part.opened() as paths:
        with _tables(options, made) as tables:
            written = Counter[str]()

            def take(table: str, batch: object) -> None:
                if table == "place_packets" and sighted:
                    sighted(batch)
                elif table == "captures":
                    tables.insert(table, batch)
                else:
                    tables.put_aside(table, batch, file_of(str(made), table, written[table]))
                    written[table] += 1

            with tables.filling():
                frames, torn = core.read_captures(
                    paths,
                    take,
                    options,
                    names=part.paths,
                    detailed=0,
                    keylog=keylog,
                    steps=steps,
                    place_packets=sighted is not None,
                )
            files = _files(tables)
            about = "SELECT sum(packets)::BIGINT, sum(selected)::BIGINT, bool_or(truncated) FROM captures"
            ((packets, selected, truncated),) = tables.stored(about).fetchall()
            _write(tables, made)
        surveyed = Surveyed(
            part=part,
            folder=str(folder),
            frames=frames,
            packets=packets,
            selected=selected,
            files=files,
            truncated=truncated,
            torn=_torn(torn),
        )
        remember(surveyed, options, made)
    return surveyed


def spill(
    surveyed: Surveyed,
    flows: Sequence[tuple[Flow, int]],
    files: int,
    first_frame: int,
    options: ReadOptions,
    work: Path,
) -> list[tuple[str, str]]:
    """Copy the packets of shared flows out of a part.

    Args:
        surveyed: The part.
        flows: The flows, each with the number of the file that it goes into.
        files: How many files there are.
        first_frame: The number of the first frame of the part, counted over all parts.
        options: How to read.
        work: The folder of all parts.

    Returns:
        Of each file its path, and that of a Parquet file with the numbers of its frames.
    """
    bounds = options.selection.bounds
    name = f"spill-{surveyed.part.number:05}"
    with _new_folder(work / name) as (folder, made), surveyed.part.opened() as paths:
        outputs = [made / f"{file}.pcapng" for file in range(files)]
        ends = [
            (transport, ip_address(one), port, ip_address(other), its_port, file)
            for (transport, one, port, other, its_port), file in flows
        ]
        batches = _native.spill_flows(
            paths,
            ends,
            [str(output) for output in outputs],
            compile_filter=options.selection.compiler(),
            start=bounds["start"],
            end=bounds["end"],
        )
        database = duckdb.connect(":memory:")
        for file, batch in enumerate(batches):  # noqa: B007  (DuckDB reads the variable)
            target = literal(str(made / f"{file}.parquet"))
            database.execute(f"COPY (SELECT frame + {first_frame - 1} AS frame FROM batch) TO {target}")
        database.close()
    return [(f"{folder}/{file}.pcapng", f"{folder}/{file}.parquet") for file in range(files)]


def stitch(
    number: int, spilled: Sequence[tuple[str, str]], selected: FlowSelection, options: ReadOptions, work: Path
) -> Surveyed:
    """Read shared flows in one piece, from the packets that were copied out of every part.

    Args:
        number: Of the file among those of each part.
        spilled: Packets and numbers of their frames, part by part.
        selected: The flows that are wanted of it.
        options: How to read.
        work: The folder of all parts.
    """
    with _new_folder(work / f"stitch-{number:05}") as (folder, made), _tables(options, made) as tables:
        whole = made / "packets.pcapng"
        with whole.open("wb") as into:
            for path, _ in spilled:
                with Path(path).open("rb") as piece:
                    shutil.copyfileobj(piece, into)
        names = ", ".join(literal(frames) for _, frames in spilled)
        tables.execute(
            "SET VARIABLE frames = (SELECT list(frame ORDER BY filename, file_row_number) FROM "
            f"read_parquet([{names}], filename = true, file_row_number = true))"
        )
        ((count,),) = tables.stored("SELECT coalesce(len(getvariable('frames')), 0)").fetchall()
        frames, torn_packets, files = 0, list[core.Torn](), tuple[File, ...]()
        if count:
            chosen = replace(options, selection=Selection())  # what was spilled is what was wanted
            with tables.filling():
                paths = [str(whole)]
                frames, torn_packets = core.read_captures(paths, tables.insert, chosen, names=paths, detailed=0)
            files = _files(tables)
        whole.unlink()
        _keep(tables, selected)
        _number_frames(tables)
        torn = tuple(replace(one, frame=_numbered(tables, one.frame)) for one in _torn(torn_packets))
        _write(tables, made)
    part = Part(capture=-1, paths=(), number=number)
    return Surveyed(part, str(folder), frames, 0, 0, files, False, torn)


def _files(tables: Tables) -> tuple[File, ...]:
    found = tables.stored("SELECT first_frame, first_at, last_at, notes FROM captures ORDER BY capture").fetchall()
    return tuple(File(first, first_at, last_at, tuple(notes)) for first, first_at, last_at, notes in found)


def _torn(torn_packets: Sequence[core.Torn]) -> tuple[Torn, ...]:
    return tuple(
        Torn(str(source), str(to), frame, frames, is_udp) for source, to, frame, frames, is_udp in torn_packets
    )


def _keep(tables: Tables, selected: FlowSelection) -> None:
    """Leave what is not wanted out of the tables."""
    types = {"transport": "VARCHAR", "one": "VARCHAR", "port": "INTEGER", "other": "VARCHAR", "other_port": "INTEGER"}
    ends = {"one": "VARCHAR", "other": "VARCHAR"}
    with (
        tables.lent("selected", types, selected.flows),
        tables.lent("everywhere", types, selected.everywhere),
        tables.lent("torn", ends, selected.torn),
    ):
        tables.execute(f"""
            CREATE TEMP TABLE foreign_streams AS
            SELECT stream FROM connections
            WHERE NOT ({_IS_IN.format("selected")}) AND ({_IS_IN.format("everywhere")}
                OR (least(client_ip, server_ip), greatest(client_ip, server_ip)) NOT IN (SELECT (one, other) FROM torn))
        """)
    for table in CORE:
        if table.name != "captures":
            tables.execute(f"DELETE FROM {table.name} WHERE stream IN (FROM foreign_streams)")


_IS_IN = """(transport::VARCHAR, client_ip, client_port, server_ip, server_port) IN (
    SELECT (transport, one, port, other, other_port) FROM {0}
    UNION ALL SELECT (transport, other, other_port, one, port) FROM {0})"""


def _number_frames(tables: Tables) -> None:
    """Number frames as they are numbered over all parts."""
    for table in CORE:
        if table.name != "captures" and (columns := frame_columns(table.types)):
            changed = ", ".join(f"{name} = getvariable('frames')[{name}]" for name in columns)
            tables.execute(f"UPDATE {table.name} SET {changed}")


def _numbered(tables: Tables, frame: int) -> int:
    """Give the number of a frame over all parts."""
    ((number,),) = tables.stored(f"SELECT getvariable('frames')[{frame}]").fetchall()
    return int(number)


def frame_columns(types: dict[str, str]) -> list[str]:
    """Give the columns that number frames."""
    return [name for name in types if name == "frame" or name.endswith("_frame")]


@contextmanager
def _tables(options: ReadOptions, folder: Path) -> Iterator[Tables]:
    """Give empty tables in memory, beyond a limit in a folder."""
    database = duckdb.connect(":memory:")
    try:
        tables = Tables(database)
        spilled = literal(str(folder / "spilled"))
        tables.execute(f"SET memory_limit = '{table_limit(options.memory)}B'; SET temp_directory = {spilled}")
        tables.create()
        yield tables
    finally:
        database.close()


def _write(tables: Tables, folder: Path) -> None:
    """Write the tables that have no file yet; empty ones, too."""
    for table in CORE:
        if files_of(str(folder), table.name):
            continue
        columns = ", ".join(table.from_core)
        target = literal(file_of(str(folder), table.name))
        tables.execute(f"COPY (SELECT {columns} FROM {table.name}) TO {target} (COMPRESSION lz4)")


@contextmanager
def _new_folder(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Give the name of a folder, and a new one that gets this name when the block ends well."""
    made = folder.with_name(f".{folder.name}-{os.urandom(4).hex()}")
    made.mkdir(parents=True)
    try:
        yield folder, made
        shutil.rmtree(folder, ignore_errors=True)
        made.rename(folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)
