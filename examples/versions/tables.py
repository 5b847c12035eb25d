"""The tables of the README, from results.json."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from cases import VERSIONS
from lab.lesson import machine_named, table

TITLES = {"h1": "HTTP/1.1", "h2": "HTTP/2", "h3": "HTTP/3"}


def tables(results: Mapping[str, Any]) -> dict[str, str]:
    """Make the tables, and the words that name the machine, by their names in README.md."""
    return {"machine": f"Measured on {machine_named(results['machine'])}.", **_grid(results["visits"])}


def _grid(visits: list[Mapping[str, Any]]) -> dict[str, str]:
    cells = sorted({(row["rtt_ms"], row["loss"]) for row in visits})
    pages, halves, ready = [], [], []
    for rtt_ms, loss in cells:
        found = {
            version: [row for row in visits if (row["version"], row["rtt_ms"], row["loss"]) == (version, rtt_ms, loss)]
            for version in VERSIONS
        }
        where = [f"{rtt_ms:g}", f"{100 * loss:g} %"]
        pages.append([*where, *(_spread([row["wire_ns"] for row in rows]) for rows in found.values())])
        if rtt_ms == max(row["rtt_ms"] for row in visits):
            halves.append([where[1], *(_spread([row["half_ns"] for row in rows]) for rows in found.values())])
        if not loss:
            before = [f"{median(row['ready_ns'] for row in rows) / 1e6:.1f}" for rows in found.values()]
            counted = [f"{median(row['connections'] for row in rows):g}" for rows in found.values()]
            ready.append([where[0], *before, *counted])
    names = list(TITLES.values())
    return {
        "pages": table(["round trip, ms", "loss", *names], pages),
        "halves": table(["loss", *names], halves),
        "ready": table(
            ["round trip, ms", *(f"{name}, ms" for name in names), *(f"{name}, connections" for name in names)], ready
        ),
    }


def _spread(times: list[int]) -> str:
    """The median, and the fastest and the slowest of the visits, in milliseconds."""
    return f"{median(times) / 1e6:.0f} ({min(times) / 1e6:.0f} – {max(times) / 1e6:.0f})"
