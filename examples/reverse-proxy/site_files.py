"""The three objects of the shop's page, the same bytes on every run: a page of 4 kB and pictures of 20 kB and 60 kB."""

from __future__ import annotations

import random
import struct
import zlib
from pathlib import Path

PAGE_BYTES = 4_000


def write_site(folder: Path) -> None:
    """Write ``index.html``, ``logo.png`` and ``shelf.png`` to ``folder``."""
    folder.mkdir()
    (folder / "index.html").write_bytes(_page())
    (folder / "logo.png").write_bytes(_noise_png(80, 83))
    (folder / "shelf.png").write_bytes(_noise_png(160, 125))


def _page() -> bytes:
    head = (
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8><title>The shop</title></head><body>\n"
        '<p><img src="logo.png" alt="The shop"></p>\n<p><img src="shelf.png" alt="A full shelf"></p>\n'
    )
    tail = "</body></html>\n"
    line = "<p>One more line of the catalogue, so that the page has the size of a page.</p>\n"
    lines = (PAGE_BYTES - len(head) - len(tail)) // len(line)
    return (head + line * lines + tail).encode()


def _noise_png(width: int, height: int) -> bytes:
    """Return an RGB picture of noise: like a photograph, it does not compress."""
    noise = random.Random(width)
    rows = b"".join(b"\0" + noise.randbytes(3 * width) for _ in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )
