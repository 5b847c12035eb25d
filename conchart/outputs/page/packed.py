"""Data of a page as it travels: tables of typed columns, compressed, in base64.

In: relations of whole numbers, truth values and texts. Out: what scripts are told of them (JSON) and a block for each.
Texts are made harmless to read; what base64 and JSON hold cannot end the block that they stand in.
"""

import base64
import json
import zlib
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from conchart._native import pack_columns
from conchart.labels.printable import printable
from conchart.report.rows import MAX_TEXT
from conchart.store.tables import Tables

_RAW = -15
"""DEFLATE without a header (RFC 1951), which browsers call deflate-raw."""
_LEVEL = 4
"""A third faster than zlib's own choice, and a few per cent larger."""


def counted_from(base: str, name: str, value: str, start: str) -> str:
    """SQL: a column that travels as what is added to another one of its row, which is often nothing, or next to it.

    Args:
        base: The other column, as the page has it; one of the lanes, ``lanes.opened`` say, is that of the row's lane.
        name: Of the column.
        value: What it is, as SQL.
        start: What the other one is, as SQL.
    """
    return f'{value} - coalesce({start}, 0) AS "{name}@{base}"'


class Packer:
    """Packs tables while the next ones are still being asked for; compressing needs no GIL."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.layouts: dict[str, Any] = {}
        """Of each table: its rows and columns, as ``decode.js`` wants them."""
        self._pool = ThreadPoolExecutor(max_workers=2)
        self._blocks: dict[str, Future[str]] = {}

    def add(self, name: str, tables: Tables, query: str, *, longest: int = MAX_TEXT) -> int:
        """Take the rows that ``query`` selects, with so much of each text; return how many they are."""
        relation = tables.sql(query)
        rows, packed = pack_columns(relation)
        columns: list[dict[str, Any]] = []
        parts: list[bytes] = []
        for title, width, delta, least, planes, valid, texts in packed:
            named, _, base = title.partition("@")
            columns.append(
                {
                    "name": named,
                    "base": base or None,
                    "width": width,
                    "delta": delta,
                    "least": least,
                    "valid": bool(valid),
                    "texts": texts and [printable(text, longest) for text in texts],
                }
            )
            parts += (planes, valid)
        self.layouts[name] = {"rows": rows, "columns": columns}
        self._blocks[name] = self._pool.submit(compress, parts)
        return rows

    def blocks(self) -> dict[str, str]:
        """Return the block of each table, when all are compressed."""
        with self._pool:
            return {name: block.result() for name, block in self._blocks.items()}


def compress(parts: Iterable[bytes]) -> str:
    """Compress bytes, one after the other, and write them as base64."""
    deflate = zlib.compressobj(_LEVEL, zlib.DEFLATED, _RAW)
    pieces = [deflate.compress(part) for part in parts]
    return base64.b64encode(b"".join((*pieces, deflate.flush()))).decode()


def compress_json(value: object) -> str:
    """Compress JSON (RFC 8259)."""
    return compress([json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()])
