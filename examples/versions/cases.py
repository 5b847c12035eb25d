"""The grid: versions of HTTP, distances, losses; and which visits are kept as captures.

In: nothing. Out: ``GRID`` and ``CASES``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

VERSIONS = {"h1": "http/1.1", "h2": "h2", "h3": "h3"}
"""Names of cases, and what the browser calls the protocol (ALPN)."""
RTTS_MS = (0, 20, 80)
"""The same room, another city, another continent."""
LOSSES = (0.0, 0.01, 0.03)
"""Shares of the packets, in each direction."""
VISITS = 9
"""Of each cell of the grid."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One way to visit the page."""

    version: str
    rtt_ms: float
    loss: float

    @property
    def name(self) -> str:
        """What captures and results call it."""
        return f"{self.version}-{self.rtt_ms:g}ms" + (f"-{self.loss:.0%}" if self.loss else "").removesuffix("%")


GRID = [Cell(version=version, rtt_ms=rtt_ms, loss=loss) for rtt_ms, loss, version in product(RTTS_MS, LOSSES, VERSIONS)]
CASES = {cell.name: cell for cell in GRID if cell.rtt_ms == max(RTTS_MS) and cell.loss in (0, max(LOSSES))}
"""Of these, one visit is kept as a capture."""
