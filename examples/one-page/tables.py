"""The tables of the README, from results.json."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from cases import CASES
from lab.lesson import machine_named, table

ALONE = [name for name, case in CASES.items() if case.visitors == 1]
TOGETHER = ["n-plus-one-1ms", "pool-of-one", "pool-of-four"]
TITLES = {
    "n-plus-one": "25 queries", "join": "a join", "join-kept": "a join, connection kept",
    "n-plus-one-kept": "25 queries, connection kept",
    "prepared": "25 queries, prepared by the server",
}  # fmt: skip


def tables(results: Mapping[str, Any]) -> dict[str, str]:
    """Make the tables, and the words that name the machine, by their names in README.md."""
    return {
        "machine": f"Measured on {machine_named(results['machine'])}.",
        "pages": pages_table(results),
        "crowd": crowd_table(results),
    }


def typical(rows: list[Mapping[str, Any]], figure: str) -> float:
    """Give the median of all pages but the first, for which a persistent connection is opened."""
    return float(median(row[figure] for row in rows[1:]))


def ms(ns: float) -> str:
    """Write nanoseconds as milliseconds."""
    return f"{ns / 1e6:.1f}"


def pages_table(results: Mapping[str, Any]) -> str:
    """Predicted and measured, of visitors who are alone."""
    rows = []
    for name in ALONE:
        case, found = CASES[name], results[name]
        trips = typical(found, "round_trips")
        rows.append([
            TITLES[case.page], f"{case.rtt_ms:g}", f"{trips:.0f}", f"{trips * case.rtt_ms:.1f}",
            *(ms(typical(found, figure)) for figure in ("fastcgi_ns", "store_ns")),
            ms(typical(found, "own_ns") + typical(found, "queue_ns")),
            ms(typical(found, "web_ns") - typical(found, "fastcgi_ns")),
        ])  # fmt: skip
    heads = [
        "a page", "round trip, ms", "round trips", "predicted, ms", "FastCGI waits, ms", "of it the store, ms",
        "PHP itself, ms", "nginx, ms",
    ]  # fmt: skip
    return table(heads, rows)


def crowd_table(results: Mapping[str, Any]) -> str:
    """Visitors who come at once."""
    rows = []
    for name in TOGETHER:
        case, found = CASES[name], results[name]
        waits = [row["web_ns"] for row in found]
        rows.append([
            str(case.visitors), str(case.workers), ms(median(waits)), ms(max(waits)),
            ms(median(row["queue_ns"] for row in found)), ms(median(row["store_ns"] for row in found)),
            f"{median(row['page_ms'] for row in results['php'][name]):.1f}",
        ])  # fmt: skip
    heads = [
        "visitors", "workers", "a page, ms", "the longest, ms", "before the store, ms", "the store, ms",
        "PHP's own clock, ms",
    ]  # fmt: skip
    return table(heads, rows)
