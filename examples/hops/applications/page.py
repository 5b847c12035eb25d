"""A shop's pages in Python: threads that share a pool of connections (SQLAlchemy, psycopg), and one of Redis.

The cookie's number is repeated in a comment of each statement, and in a second key of each command: no table of
conchart shows it.
"""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Callable, Iterable

import redis
import sqlalchemy

HOST, PORT = os.environ["DATABASE"], os.environ["DATABASE_PORT"]
SHOP = sqlalchemy.create_engine(
    f"postgresql+psycopg://shop:hunter2@{HOST}:{PORT}/postgres", pool_size=8, max_overflow=0
)
CACHE = redis.Redis(host=os.environ["CACHE"], port=int(os.environ["CACHE_PORT"]))


def think(milliseconds: float) -> None:
    """Take a time of one's own."""
    time.sleep(random.expovariate(1_000 / milliseconds))


def application(environ: dict[str, str], start_response: Callable[..., object]) -> Iterable[bytes]:
    """Make a page."""
    number = re.search(r"n=\d{6}", environ["HTTP_COOKIE"])
    assert number
    label = f"{number[0]};"
    _, kind, item = environ["PATH_INFO"].split("/")
    at = int(item)
    think(2)

    def ask(connection: sqlalchemy.Connection, text: str) -> None:
        connection.execute(sqlalchemy.text(f"{text} /* {label} */"), {"id": at})

    if kind == "item":
        CACHE.mget([f"page:{at}", label])
        if at % 3:
            with SHOP.connect() as connection:
                ask(connection, "SELECT name, price, pg_sleep(0.003) FROM product WHERE id = :id")
                think(1)
                ask(connection, "SELECT count(*) FROM stock WHERE product = :id")
            think(1)
            CACHE.mset({f"page:{at}": "x", label: "x"})
    elif kind == "list":
        with SHOP.connect() as connection:
            ask(connection, "SELECT id FROM product WHERE id > :id ORDER BY id LIMIT 6")
            for _ in range(3 + at % 5):
                ask(connection, "SELECT name FROM product WHERE id = :id")
                think(0.5)
    else:
        with SHOP.begin() as connection:
            ask(connection, "INSERT INTO stock VALUES (:id, 1)")
            think(1)
            ask(connection, "UPDATE product SET price = price + 1 WHERE id = :id")
        CACHE.unlink(f"page:{at}", label)
    think(1)
    body = b"x" * (300 + 100 * (at % 7))
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
