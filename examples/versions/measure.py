"""What a capture says of each visit.

In: a capture of several visits, the secrets, and what each browser measured. Out: a row for each visit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lab.lesson import ask_conchart

PARTS = """
SELECT stream, target, opened_at, request_at, response_done_at FROM exchanges JOIN connections USING (stream)
WHERE response_done_at IS NOT NULL AND (target LIKE '%.png' OR target = '/')
ORDER BY request_at
"""


def measure(capture: Path, keys: Path, visits: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give the row of each visit; times in nanoseconds.

    ``wire_ns``: from the first packet of the page's connection to the last byte of the last picture. ``ready_ns``:
    from that packet to the request for the page. ``half_ns``: from it until half of the pictures were there.
    ``connections``: those with requests. ``browser_ms``: what the
    browser measured, from when it turned to the page to the end of the last picture.
    """
    parts = ask_conchart(capture, PARTS, "--keylog", str(keys))
    starts = [visit["began_ms"] * 1e6 for visit in visits]
    rows = []
    for visit, since, until in zip(visits, starts, [*starts[1:], float("inf")], strict=True):
        mine = [part for part in parts if since <= part["request_at"] < until]
        ends = sorted(part["response_done_at"] for part in mine if part["target"] != "/")
        rows.append({
            "wire_ns": ends[-1] - mine[0]["opened_at"],
            "half_ns": ends[len(ends) // 2 - 1] - mine[0]["opened_at"],
            "ready_ns": mine[0]["request_at"] - mine[0]["opened_at"],
            "connections": len({part["stream"] for part in mine}),
            "exchanges": len(mine), "browser_ms": round(visit["took_ms"], 1),
        })  # fmt: skip
    return rows
