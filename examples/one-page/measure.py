"""What a capture says of each page: waits at the web server, in the application and for the store, round trips.

In: a capture, and the response headers that the visitors kept. Out: a row for each page, in the order of their ends,
and what PHP measured itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lab.lesson import ask_conchart

PAGES = """
SELECT web.request_at, web.response_done_at, back.request_done_at AS asked_at, back.response_at AS answered_at
FROM (SELECT *, row_number() OVER (ORDER BY response_at) AS place FROM exchanges WHERE protocol = 'fastcgi') back
JOIN (SELECT *, row_number() OVER (ORDER BY response_at) AS place FROM exchanges WHERE protocol = 'http/1.1') web
    USING (place)
ORDER BY answered_at
"""
"""nginx passes a response on as soon as it comes: the order of responses is the same on both sides."""
STEPS = """
SELECT stream, 'query' AS what, request_at AS begins_at, response_done_at AS ends_at
FROM exchanges WHERE protocol = 'mysql' AND method <> 'Greeting' AND response_done_at IS NOT NULL
UNION ALL
SELECT stream, 'open', syn_at, ack_at FROM connections WHERE app = 'mysql'
UNION ALL
SELECT stream, 'open', ack_at, response_at FROM exchanges JOIN connections USING (stream) WHERE method = 'Greeting'
ORDER BY begins_at
"""
"""Round trips: each query, the login, and before it the TCP handshake and the server's greeting."""
TIMING = re.compile(r"^Server-Timing: store;dur=([\d.]+), page;dur=([\d.]+)", re.MULTILINE)


def measure(capture: Path) -> list[dict[str, Any]]:
    """Give the row of each page; times in nanoseconds.

    ``web_ns``: from the visitor's request to the last byte of the response. ``fastcgi_ns``: what nginx waited for PHP.
    ``queue_ns``: until PHP turned to the store. ``store_ns``: while PHP waited for the store. ``own_ns``: the rest.
    """
    pages, steps, rows = ask_conchart(capture, PAGES), ask_conchart(capture, STEPS), []
    for page, mine in zip(pages, shares(pages, steps), strict=True):
        waited_ns = page["answered_at"] - page["asked_at"]
        queue_ns = mine[0]["begins_at"] - page["asked_at"]
        store_ns = sum(step["ends_at"] - step["begins_at"] for step in mine)
        rows.append({
            "web_ns": page["response_done_at"] - page["request_at"], "fastcgi_ns": waited_ns, "queue_ns": queue_ns,
            "store_ns": store_ns, "own_ns": waited_ns - queue_ns - store_ns, "round_trips": len(mine),
        })  # fmt: skip
    return rows


def shares(pages: list[dict[str, Any]], steps: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Give the steps of each page: on its own connection, or on that of a single worker since the page before.

    A connection of its own ends with its page, so that the order of their ends is that of the pages.
    """
    streams = sorted({step["stream"] for step in steps}, key=lambda stream: ended_at(steps, stream))
    if len(streams) > 1:
        return [[step for step in steps if step["stream"] == stream] for stream in streams]
    ends = [page["answered_at"] for page in pages]
    return [
        [step for step in steps if since < step["ends_at"] <= until]
        for since, until in zip([0, *ends], ends, strict=False)
    ]


def ended_at(steps: list[dict[str, Any]], stream: int) -> int:
    """Say when the last step of a connection ended."""
    return max(int(step["ends_at"]) for step in steps if step["stream"] == stream)


def timings(headers: Iterable[str]) -> list[dict[str, float]]:
    """Read what PHP measured of each page: for the store, and in all. Milliseconds."""
    return [
        {"store_ms": float(store), "page_ms": float(page)} for text in headers for store, page in TIMING.findall(text)
    ]
