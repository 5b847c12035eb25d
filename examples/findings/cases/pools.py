"""Pools of connections to a database that are too small, and rows that somebody else keeps locked."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from avenue import BACKEND, FRONT, Scene, record

TWIN = "- The twin of `{}`."
PORTS = "- PgBouncer is at port 6432 of the middle, PostgreSQL at port 5432 of the backend."


def pooler(size: int, way: str, title: str, see: str) -> Scene:
    """Eight clients, PgBouncer, PostgreSQL."""
    settings = f"pool_mode=transaction default_pool_size={size} min_pool_size={size}"
    return Scene(
        title=title, see=f"{see}\n{PORTS}", front_ms=0.1, back_ms=0.1, middle_program="PgBouncer",
        middle=f"python3 pooler.py {FRONT} {BACKEND} 80 {settings}", backends=[f"python3 databases.py {BACKEND} 8080"],
        clients=[f"python3 asks_sql.py {FRONT} 6432 1 1 rest", f"python3 asks_sql.py {FRONT} 6432 8 5 {way}"],
        heard="tcp port 6432 or tcp port 5432",
    )  # fmt: skip


def shop(size: int, title: str, see: str) -> Scene:
    """Eight clients, an application with a pool, PostgreSQL."""
    paths = " ".join(f"/{number} rest-3" for number in range(6))
    return Scene(
        title=title, see=see, front_ms=0.1, back_ms=0.1, middle=f"python3 pooled_shop.py {FRONT} {BACKEND} {size}",
        backends=[f"python3 databases.py {BACKEND} 8080"],
        clients=[
            f"python3 asks.py {FRONT} 80 /all rest-1500",
            *(f"python3 asks.py {FRONT} 80 rest-{3 * number} {paths} &" for number in range(8)),
        ],
        heard="tcp port 80 or tcp port 5432",
    )  # fmt: skip


def locks(product: str, conflict: str, title: str, see: str) -> Scene:
    """Five clients, a database in the middle."""
    program, port = ("mariadb.py", 3306) if product == "mariadb" else ("databases.py", 5432)
    return Scene(
        title=title, see=see, front_ms=0.1, middle_program="the database",
        middle=f"python3 {program} {FRONT} 80", clients=[f"python3 locks.py {product} {FRONT} {port} {conflict}"],
        heard=f"tcp port {port}",
    )  # fmt: skip


SCENES: dict[str, Scene] = {
    "pool-exhausted": pooler(
        2,
        "both",
        "PgBouncer with two connections for eight clients",
        "- BEGIN and single statements wait at PgBouncer; inside a transaction, statements do not.",
    ),
    "pool-exhausted-clean": pooler(
        8, "both", "PgBouncer with eight connections for eight clients", TWIN.format("pool-exhausted")
    ),
    "pool-exhausted-idle": pooler(
        2,
        "idle",
        "PgBouncer with two connections, which clients keep in transactions that do nothing",
        "- Before COMMIT each client rests for 15 ms, while others wait for its connection.",
    ),
    "pool-exhausted-application": shop(
        2,
        "An application with a pool of two connections for eight pages at a time",
        "- A page's statement leaves when another page's was answered.",
    ),
    "pool-exhausted-application-clean": shop(
        8, "An application with a pool of eight connections", TWIN.format("pool-exhausted-application")
    ),
    "lock-wait": locks(
        "postgresql",
        "same",
        "A row in PostgreSQL that a long transaction keeps",
        "- An UPDATE takes 1 ms, or as long as another connection's transaction still has to go.",
    ),
    "lock-wait-clean": locks("postgresql", "other", "The same changes to other rows", TWIN.format("lock-wait")),
    "lock-wait-mariadb": locks(
        "mariadb",
        "same",
        "A row in MariaDB (InnoDB) that a long transaction keeps",
        "- An UPDATE takes 1 ms, or as long as another connection's transaction still has to go.",
    ),
    "lock-wait-mariadb-clean": locks(
        "mariadb", "other", "The same changes to other rows", TWIN.format("lock-wait-mariadb")
    ),
}
CASES: dict[str, Callable[[Path], None]] = {name: partial(record, scene) for name, scene in SCENES.items()}
