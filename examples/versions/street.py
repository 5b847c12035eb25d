"""The visitor and the site, on a line that takes its time and loses packets.

visitor 10.97.0.10 ──half a round trip── 10.97.0.20 site
"""

from __future__ import annotations

import random
import struct
import zlib
from pathlib import Path

from lab.network import Network, wait_until

VISITOR, SITE, NAME, PORT = "10.97.0.10", "10.97.0.20", "shop.example", 443
PICTURES, PICTURE_SIDE = 24, 52
"""A picture is a square of noise: 3 bytes a pixel, which no compression makes smaller."""
HERE = Path(__file__).resolve().parent


class Street(Network):
    """The two hosts, half of ``rtt_ms`` apart; a share of ``loss`` of the packets gets lost either way."""

    def __init__(self, rtt_ms: float, loss: float, seed: int) -> None:
        """Name the hosts."""
        super().__init__("visitor", "site")
        self.visitor, self.site = self.hosts
        self._rtt_ms, self._loss, self._seed = rtt_ms, loss, seed

    def build(self) -> None:
        """Lay the cable and tell the visitor where the site is."""
        self.long_cable(
            self.visitor, VISITOR, self.site, SITE, self._rtt_ms / 2, loss=self._loss, loss_back=self._loss,
            seed=self._seed,
        )  # fmt: skip
        self.name_the_site(self.visitor, SITE, NAME)

    def start_caddy(self, keys: Path) -> None:
        """Start Caddy with the page, and wait until it listens to TCP and UDP."""
        pages = self.folder / "pages"
        pages.mkdir()
        write_page(pages)
        words = ["caddy", "run", "--config", HERE / "Caddyfile", "--adapter", "caddyfile"]
        environment = {
            "HOME": str(self.folder), "LAB_FRONT": SITE, "LAB_KEYS": str(keys), "LAB_SITE": str(pages),
        }  # fmt: skip
        self.start_server(self.site, PORT, words, environment)
        wait_until(lambda: self.site.has_bound(PORT), "Caddy listens to UDP")


def write_page(folder: Path) -> None:
    """Write the page and its pictures; the same ones each time."""
    chance = random.Random(1)
    for number in range(PICTURES):
        (folder / f"{number}.png").write_bytes(picture(chance))
    pictures = "\n".join(f'<img src="{number}.png">' for number in range(PICTURES))
    text = (HERE / "page.html").read_text().replace("<!-- pictures -->", pictures)
    (folder / "index.html").write_text(text)


def picture(chance: random.Random) -> bytes:
    """Give a PNG of noise."""
    rows = b"".join(b"\0" + chance.randbytes(3 * PICTURE_SIDE) for _ in range(PICTURE_SIDE))
    header = struct.pack(">IIBBBBB", PICTURE_SIDE, PICTURE_SIDE, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )
