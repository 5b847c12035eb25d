"""A shop with many visits that asks PostgreSQL or MariaDB for each page, in one of several ways.

    python3 stock.py ADDRESS STORE DATABASE WAY

DATABASE    postgresql or mysql
scan        the visits of a buyer, from a table that has no index for that, and a statement that is fast
index       the same with an index
serial      five different statements, one after the other (asyncpg)
together    the same five on five connections at once (asyncpg)
"""

import asyncio
import sys
from collections.abc import Iterator
from functools import cache
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import asyncpg
import psycopg2
import pymysql

ADDRESS, STORE, DATABASE, WAY = sys.argv[1:]
ACCESS = {"host": STORE, "user": "shop", "password": "shop"}
MANY = {"postgresql": "generate_series(1, 400000) seq", "mysql": "seq_1_to_200000"}
VISITS = [f"CREATE TABLE visit AS SELECT seq AS id, seq % 1000 AS buyer, seq % 7 AS page FROM {MANY[DATABASE]}"]
VISITS += ["CREATE INDEX visits ON visit (buyer)"] * (WAY == "index")
PAGE = (
    "SELECT what FROM sold WHERE buyer = %s ORDER BY id DESC LIMIT 1",
    "SELECT id, page FROM visit WHERE buyer = %s ORDER BY id DESC LIMIT 10",
)
FRONT = (
    "SELECT what FROM sold WHERE buyer = $1 ORDER BY id DESC LIMIT 3",
    "SELECT name, price FROM line WHERE sold = $1 ORDER BY place",
    "SELECT stars FROM review WHERE id = $1 + 1",
    "SELECT avg(stars) FROM review WHERE id % 5 = $1",
    "SELECT count(*) FROM line WHERE price > 100 * $1",
)


def connect() -> Any:  # noqa: ANN401  (a connection of either driver)
    """Open a connection, without TLS so that the capture can be read."""
    if DATABASE == "mysql":
        return pymysql.connect(**ACCESS, database="shop", autocommit=True)
    connection = psycopg2.connect(**ACCESS, dbname="shop", sslmode="disable")
    connection.autocommit = True
    return connection


class Pool:
    """Connections of asyncpg: five, or the one that is enough for one statement after the other."""

    def __init__(self) -> None:
        """Open them."""
        self.loop = asyncio.new_event_loop()
        self.run(self.open())

    def run(self, task: Any) -> Any:  # noqa: ANN401  (what the task gives)
        """Wait for a task."""
        return self.loop.run_until_complete(task)

    async def open(self) -> None:
        """Connect. A pool of asyncpg's own would reset a connection after each use, by one more query."""
        many = FRONT if WAY == "together" else FRONT[:1]
        self.connections = [await asyncpg.connect(**ACCESS, database="shop", ssl=False) for _ in many]

    async def serial(self, buyer: int) -> list[object]:
        """Ask one thing after the other."""
        return [await self.connections[0].fetch(statement, buyer) for statement in FRONT]

    async def together(self, buyer: int) -> list[object]:
        """Ask everything at once."""
        pairs = zip(self.connections, FRONT, strict=True)
        return list(await asyncio.gather(*(connection.fetch(statement, buyer) for connection, statement in pairs)))


def stock() -> None:
    """Fill the table."""
    connection = connect()
    with connection.cursor() as cursor:
        for statement in VISITS:
            cursor.execute(statement)
    connection.close()


@cache
def shared_connection() -> Any:  # noqa: ANN401  (a connection of either driver)
    """Give the connection for all pages."""
    return connect()


@cache
def pool() -> Pool:
    """Give the pool for all pages."""
    return Pool()


def found(buyer: int) -> Iterator[object]:
    """Ask for everything that a page needs."""
    if WAY in ("serial", "together"):
        yield from pool().run(pool().serial(buyer) if WAY == "serial" else pool().together(buyer))
        return
    for statement in PAGE:
        with shared_connection().cursor() as cursor:
            cursor.execute(statement, (buyer,))
            yield from cursor.fetchall()


class Shop(BaseHTTPRequestHandler):
    """Answers when the database has answered everything."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Ask the database; the path is the number of a buyer."""
        body = "\n".join(map(str, found(int(self.path.strip("/"))))).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        """Say nothing."""


stock()
HTTPServer((ADDRESS, 80), Shop).serve_forever()
