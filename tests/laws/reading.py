"""Reads captures for the laws: bytes in, tables as plain rows out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import conchart

Row = dict[str, Any]
ORDER = {
    "captures": "capture",
    "connections": "stream",
    "handshakes": "stream, number",
    "exchanges": "stream, number",
    "phases": "stream, start_at, start_frame, end_at, end_frame",
    "packets": "frame",
}
RESULTS = ("connections", "handshakes", "exchanges", "phases", "packets")
"""The tables that depend on the packets alone, not on the file that holds them."""


@dataclass(frozen=True, slots=True)
class Tables:
    """All rows of a trace, each table in a stable order."""

    captures: list[Row]
    connections: list[Row]
    handshakes: list[Row]
    exchanges: list[Row]
    phases: list[Row]
    packets: list[Row]

    def results(self) -> dict[str, list[Row]]:
        """The tables that depend on the packets alone."""
        return {name: getattr(self, name) for name in RESULTS}


def read(path: Path, *, packets: bool = True) -> Tables:
    """Read one capture."""
    with conchart.read(path, packets=packets) as trace:
        rows = {}
        for table, order in ORDER.items():
            relation = trace.sql(f"FROM {table} ORDER BY {order}")
            rows[table] = [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]
    return Tables(**rows)


@dataclass(frozen=True, slots=True)
class Scratch:
    """A place for one capture at a time."""

    folder: Path

    def read(self, data: bytes, *, packets: bool = True) -> Tables:
        """Read a capture given as bytes."""
        path = self.folder / "input"
        path.write_bytes(data)
        return read(path, packets=packets)
