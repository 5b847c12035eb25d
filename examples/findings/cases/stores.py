"""How an application asks its database and its cache: too often, on new connections, from afar, for too much."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from avenue import BACKEND, FRONT, Scene, record

TWIN = "- The twin of `{}`."
PORTS = "- On the backend, PostgreSQL is at port 5432 and Redis at port 6379."


def shop(way: str, title: str, see: str, back_ms: float = 0.2, pages: int = 6) -> Scene:
    """A shop that asks its stores in a way; a client looks at some pages."""
    return Scene(
        title=title, see=f"{see}\n{PORTS}", back_ms=back_ms,
        middle=f"python3 shop.py {FRONT} {BACKEND} {way}", backends=[f"python3 databases.py {BACKEND} 8080"],
        clients=[f"python3 asks.py {FRONT} 80" + "".join(f" /{n % 5} rest-60" for n in range(pages))],
    )  # fmt: skip


SCENES: dict[str, Scene] = {
    "repeated-queries": shop(
        "each",
        "The lines of twelve orders, each with a statement of its own",
        "- Twelve statements of the same shape, one after the other, within one request.",
    ),
    "repeated-queries-clean": shop("join", "The lines of twelve orders with one join", TWIN.format("repeated-queries")),
    "store-connection-per-query": shop(
        "connect",
        "A new connection to PostgreSQL for each page",
        "- Before each statement: TCP, the start-up message, and two round trips of SCRAM-SHA-256.",
    ),
    "store-connection-per-query-clean": shop(
        "keep", "One connection to PostgreSQL for all pages", TWIN.format("store-connection-per-query")
    ),
    "store-far-away": shop(
        "page",
        "Two statements for each page, to a database 5 ms away",
        "- The database needs less than 1 ms for each.",
        back_ms=5,
    ),
    "store-far-away-clean": shop(
        "page", "Two statements for each page, to a database nearby", TWIN.format("store-far-away")
    ),
    "redis-no-pipeline": shop(
        "get", "Twenty prices from Redis, one GET after the other", "- Each GET waits for the reply to the one before."
    ),
    "redis-no-pipeline-clean": shop(
        "pipeline", "Twenty prices from Redis in one pipeline", TWIN.format("redis-no-pipeline")
    ),
    "statement-not-prepared": shop(
        "prepare",
        "asyncpg without its cache of prepared statements",
        "- Each statement is prepared (Parse) and then executed: two round trips.",
    ),
    "statement-not-prepared-clean": shop(
        "prepared", "asyncpg with its cache of prepared statements", TWIN.format("statement-not-prepared")
    ),
    "large-result": shop(
        "all",
        "500 rows, of which a page shows ten",
        "- The rows take longer than the database does.",
        back_ms=1,
        pages=2,
    ),
    "large-result-clean": shop("ten", "Ten rows, which a page shows", TWIN.format("large-result"), back_ms=1, pages=2),
}
CASES: dict[str, Callable[[Path], None]] = {name: partial(record, scene) for name, scene in SCENES.items()}
