"""What one reading gives, and what reading in parts gives, to be compared.

In: captures. Out: rows of every table of the core.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import duckdb

from conchart import Trace
from conchart.analysis.waiting import wait_on
from conchart.reading.options import ReadOptions
from conchart.reading.parts import read_parts
from conchart.reading.parts.model import CORE

HEADER = 24
MAGIC = {b"\xa1\xb2\xc3\xd4": ">", b"\xa1\xb2\x3c\x4d": ">", b"\xd4\xc3\xb2\xa1": "<", b"\x4d\x3c\xb2\xa1": "<"}

Tables = dict[str, list[tuple[Any, ...]]]


class Here(Executor):
    """Runs each task at once, in this process."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ANN401
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:  # the caller asks for it
            future.set_exception(error)
        return future


def records(capture: Path) -> tuple[bytes, list[bytes]]:
    """Give the header of a pcap file, and each record."""
    data = capture.read_bytes()
    order, place, found = MAGIC[data[:4]], HEADER, []
    while place + 16 <= len(data):
        (captured,) = struct.unpack_from(f"{order}I", data, place + 8)
        found.append(data[place : place + 16 + captured])
        place += 16 + captured
    return data[:HEADER], found


def cut_into(capture: Path, ends: Sequence[int], folder: Path) -> list[Path]:
    """Cut a capture into files: after so many packets each time."""
    head, packets = records(capture)
    files = []
    for number, (start, end) in enumerate(zip([0, *ends], [*ends, len(packets)], strict=True)):
        if start < end:
            files.append(folder / f"{number:04}.pcap")
            files[-1].write_bytes(head + b"".join(packets[start:end]))
    return files


def rows(trace: Trace) -> Tables:
    """Give the rows of every table that the core fills.

    Not compared: what notes say, and in which of several files copies of a packet are counted.
    """
    captures = "* EXCLUDE (notes, duplicates, vantage, seen_from, selection, statements)"
    return {
        table.name: trace.stored(
            f"SELECT {captures if table.name == 'captures' else ', '.join(table.from_core)} "
            f"FROM {table.name} ORDER BY ALL"
        ).fetchall()
        for table in CORE
    }


def in_parts(paths: Sequence[Path], *, pieces: int = 2, folder: Path | None = None) -> Tables:
    """Read captures in parts, all packets of them."""
    with Trace(duckdb.connect(":memory:")) as trace:
        trace.create()
        with trace.filling():
            options = ReadOptions(packets=True, workers=pieces, parts=str(folder) if folder else None)
            read_parts(trace, list(map(str, paths)), options, Here())
            wait_on(trace)  # as ``conchart.read`` does: nothing else changes what the core filled
        return rows(trace)
