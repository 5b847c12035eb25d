"""The blocks of a page, unpacked as ``decode.js`` does it, but in Python: what a page says and carries, for tests."""

import base64
import json
import zlib
from html.parser import HTMLParser
from typing import Any


def inflate(text: str) -> bytes:
    """Undo base64 and DEFLATE."""
    return zlib.decompress(base64.b64decode(text, validate=True), -15)


def column(layout: dict[str, Any], data: bytes, rows: int) -> list[Any]:
    """Read a column that begins where ``data`` does."""
    width, values, before = layout["width"], [], 0
    for row in range(rows):
        code = sum(data[plane * rows + row] << 8 * plane for plane in range(width))
        before = before + (-(code + 1) // 2 if code % 2 else code // 2) if layout["delta"] else layout["least"] + code
        is_valid = data[width * rows + row] if layout["valid"] else 1
        values.append(None if not is_valid else before if layout["texts"] is None else layout["texts"][before])
    return values


def table(layout: dict[str, Any], data: bytes, lanes: dict[str, list[Any]] | None = None) -> dict[str, list[Any]]:
    """Read a table as lists by the names of its columns; some are counted from others, or from those of the lanes."""
    columns: dict[str, list[Any]] = {}
    rows, at = layout["rows"], 0
    for one in layout["columns"]:
        values = column(one, data[at:], rows)
        if one["base"]:
            _, of_lanes, name = one["base"].rpartition("lanes.")
            base = [(lanes or {})[name][lane] for lane in columns["lane"]] if of_lanes else columns[name]
            values = [None if v is None else v + (b or 0) for v, b in zip(values, base, strict=True)]
        columns[one["name"]] = values
        at += (one["width"] + one["valid"]) * rows
    assert at == len(data)
    return columns


class Page(HTMLParser):
    """What a browser would see: elements with their attributes, text outside of scripts and styles, and the blocks."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.blocks: list[str] = []
        self._raw = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._raw = tag in {"script", "style"}
        if self._raw:
            self.blocks.append("")

    def handle_endtag(self, tag: str) -> None:
        self._raw = False

    def handle_data(self, data: str) -> None:
        if self._raw:
            self.blocks[-1] += data
        else:
            self.text += data

    def block(self, name: str) -> bytes:
        """Unpack the block of an id."""
        raw = [attributes for tag, attributes in self.elements if tag in {"script", "style"}]
        (index,) = [i for i, attributes in enumerate(raw) if attributes.get("id") == name]
        return inflate(self.blocks[index])

    @property
    def data(self) -> dict[str, Any]:
        """What scripts are told, with the tables as columns; what belongs to a lane names its stream, too."""
        data: dict[str, Any] = json.loads(self.block("data"))
        tables: dict[str, dict[str, list[Any]]] = {}
        for name, layout in data.pop("tables", {}).items():
            tables[name] = table(layout, self.block(f"data-{name}"), tables.get("lanes"))
        for columns in tables.values():
            if "lane" in columns:
                columns["stream"] = [tables["lanes"]["stream"][lane] for lane in columns["lane"]]
        return data | tables
