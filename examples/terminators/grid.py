"""What is measured: every terminator with either key, three kinds of user, and one core or two.

In: what the command line chose. Out: rows of ``results.json``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from load import KINDS, Step, most, offer
from rack import Rack

Row = dict[str, Any]
Cell = tuple[str, str, int, str]
"""Terminator, key, cores, kind of user."""

EXPECTED = 1_500.0
"""Requests a second, where neither this terminator nor another was measured before."""


def measure(
    terminators: Iterable[str],
    keys: Iterable[str],
    cores: Iterable[int],
    *,
    earlier: Mapping[Cell, float],
    seconds: float,
    precision: float,
    report: Callable[[str], None],
) -> list[Row]:
    """Find the most that each terminator bears; ``earlier`` is where to begin, an earlier result."""
    rows = []
    for key in keys:
        for count in cores:
            latest = dict.fromkeys(KINDS, EXPECTED)
            for name in terminators:
                report(f"{name}, {key}, {count} cores")
                with Rack(name, key, count) as rack:
                    for kind in KINDS:
                        expected = earlier.get((name, key, count, kind), latest[kind])
                        best = search(rack, kind, expected, seconds, precision)
                        latest[kind] = best.per_second
                        rows.append({"terminator": name, "key": key, "cores": count, "kind": kind, **as_row(best)})
    return rows


def search(rack: Rack, kind: str, expected: float, seconds: float, precision: float) -> Step:
    """Find the most of one kind of user."""

    def step(per_second: float) -> Step:
        return offer(rack, kind, per_second, seconds)

    return most(step, expected, precision)


def as_row(step: Step) -> Row:
    """Return a step as ``results.json`` has it."""
    return {"per_second": round(step.per_second), "mean_ms": round(step.mean_ms, 1), "cpu": round(step.cpu, 2)}


def cells(rows: Iterable[Row]) -> dict[Cell, float]:
    """Return the most of each cell, requests a second."""
    return {(row["terminator"], row["key"], row["cores"], row["kind"]): row["per_second"] for row in rows}
