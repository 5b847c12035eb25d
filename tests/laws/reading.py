"""Reads captures for the laws: bytes in, tables as plain rows out.

The laws are about the native core, so this takes its batches at its one door; making a database for each of thousands
of examples would cost more than everything else. ``conchart.read`` has tests of its own.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from conchart import _native
from conchart._native import CaptureError

Row = dict[str, Any]
ORDER = {
    "captures": ("capture",),
    "connections": ("stream",),
    "handshakes": ("stream", "number"),
    "exchanges": ("stream", "number"),
    "phases": ("stream", "start_at", "start_frame", "end_at", "end_frame"),
    "stalls": ("stream", "start_at"),
    "packets": ("frame",),
    "records": ("stream", "number"),
    "messages": ("stream", "number"),
    "exchange_messages": ("stream", "exchange", "sender", "number"),
    "lost_packets": ("stream", "sender", "space", "number"),
    "client_moves": ("stream", "moved_at"),
    "quic_frames": ("stream", "frame", "packet", "number"),
    "http3_frames": ("stream", "stream_id", "sender", "start_byte", "kind"),
}
RESULTS = (
    "connections",
    "handshakes",
    "exchanges",
    "phases",
    "stalls",
    "packets",
    "records",
    "messages",
    "exchange_messages",
    "lost_packets",
    "client_moves",
    "quic_frames",
    "http3_frames",
)
"""The tables that depend on the packets alone, not on the file that holds them."""

LINK_LAYER = ("mac_client", "mac_server", "local_end")
"""Columns of ``connections`` that depend on how the packets were captured."""

__all__ = ["CaptureError", "Row", "Scratch", "Tables", "read"]


@dataclass(slots=True)
class Tables:
    """All rows of a trace, each table in a stable order."""

    captures: list[Row] = field(default_factory=list)
    connections: list[Row] = field(default_factory=list)
    handshakes: list[Row] = field(default_factory=list)
    exchanges: list[Row] = field(default_factory=list)
    phases: list[Row] = field(default_factory=list)
    stalls: list[Row] = field(default_factory=list)
    packets: list[Row] = field(default_factory=list)
    records: list[Row] = field(default_factory=list)
    messages: list[Row] = field(default_factory=list)
    exchange_messages: list[Row] = field(default_factory=list)
    lost_packets: list[Row] = field(default_factory=list)
    client_moves: list[Row] = field(default_factory=list)
    quic_frames: list[Row] = field(default_factory=list)
    http3_frames: list[Row] = field(default_factory=list)

    def results(self) -> dict[str, list[Row]]:
        """The tables that depend on the packets alone: without what the link layer says."""
        return {
            name: [{column: value for column, value in row.items() if column not in LINK_LAYER} for row in rows]
            for name, rows in ((name, getattr(self, name)) for name in RESULTS)
        }


@functools.cache
def _database() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(":memory:", config={"threads": 1})


def read(*paths: Path) -> Tables:
    """Read captures as one, with the table of packets.

    Raises:
        CaptureError: Nothing could be read.
    """
    tables = Tables()

    def take(table: str, batch: Any) -> None:  # noqa: ANN401
        relation = _database().from_arrow(batch)
        # Of a column of words the core gives numbers: from 1, and 0 for none.
        words = [[None, *batch.words[name]] if name in batch.words else None for name in relation.columns]
        rows: list[Row] = getattr(tables, table)
        rows += [
            {
                name: texts[value] if texts else value
                for name, texts, value in zip(relation.columns, words, row, strict=True)
            }
            for row in relation.fetchall()
        ]

    _native.read_capture(
        [str(path) for path in paths],
        take,
        compile_filter=None,
        start=None,
        end=None,
        start_relative=False,
        end_relative=False,
        count=None,
        detailed=None,
        explained=None,
        statements="shape",
        keylogs=[],
        progress=None,
        watch=None,
    )
    for table, columns in ORDER.items():
        getattr(tables, table).sort(key=lambda row: tuple(row[column] for column in columns))
    return tables


@dataclass(frozen=True, slots=True)
class Scratch:
    """A place for a few captures at a time."""

    folder: Path

    def read(self, *files: bytes) -> Tables:
        """Read captures, given as bytes, as one."""
        paths = [self.folder / f"input-{number}" for number in range(len(files))]
        for path, data in zip(paths, files, strict=True):
            path.write_bytes(data)
        return read(*paths)
