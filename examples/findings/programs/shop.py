"""A shop that asks PostgreSQL and Redis for each page, in one of several ways.

    python3 shop.py ADDRESS STORE WAY

each        the orders of a buyer, then the lines of each order with a statement of its own
join        the same with one statement
page        two statements, one after the other
connect     one statement, on a connection that is opened for it
keep        the same on a connection that stays open
get         twenty prices from Redis, one GET after the other
pipeline    the same in one pipeline
prepare     one statement through asyncpg without its cache of prepared statements
prepared    the same with the cache
all         every review, of which ten are shown
ten         ten reviews
"""

import asyncio
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import local

import asyncpg
import psycopg2
import redis

ADDRESS, STORE, WAY = sys.argv[1:]
ACCESS = {"host": STORE, "user": "shop", "password": "shop"}
ORDERS = "SELECT id, what FROM sold WHERE buyer = %s ORDER BY id"
LINES = "SELECT name, price FROM line WHERE sold = %s ORDER BY place"
JOINED = "SELECT id, what, name, price FROM sold JOIN line ON sold = id WHERE buyer = %s ORDER BY id, place"
PAGE = (
    "SELECT what FROM sold WHERE buyer = %s ORDER BY id DESC LIMIT 1",
    "SELECT stars FROM review WHERE id = %s + 1",
)
LINE = "SELECT name, price FROM line WHERE sold = $1 ORDER BY place"
THREAD = local()


def connect() -> "psycopg2.extensions.connection":
    """Open a connection to PostgreSQL, without TLS so that the capture can be read."""
    connection = psycopg2.connect(**ACCESS, dbname="shop", sslmode="disable")
    connection.autocommit = True
    return connection


def thread_connection() -> "psycopg2.extensions.connection":
    """Give this thread's connection."""
    if not hasattr(THREAD, "connection"):
        THREAD.connection = connect()
    return THREAD.connection


def rows(connection: "psycopg2.extensions.connection", statement: str, *values: int) -> list[tuple[object, ...]]:
    """Ask PostgreSQL."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall()


def prices() -> list[bytes]:
    """Ask Redis."""
    if not hasattr(THREAD, "cache"):
        THREAD.cache = redis.Redis(STORE)
    if WAY == "get":
        return [THREAD.cache.get(f"price:{number}") for number in range(20)]
    with THREAD.cache.pipeline(transaction=False) as pipeline:
        for number in range(20):
            pipeline.get(f"price:{number}")
        return pipeline.execute()


def prepared(buyer: int) -> list[object]:
    """Ask PostgreSQL by way of asyncpg, which prepares every statement."""
    if not hasattr(THREAD, "loop"):
        THREAD.loop = asyncio.new_event_loop()
        size = 100 if WAY == "prepared" else 0
        access = asyncpg.connect(**ACCESS, database="shop", ssl=False, statement_cache_size=size)
        THREAD.database = THREAD.loop.run_until_complete(access)
    return THREAD.loop.run_until_complete(THREAD.database.fetch(LINE, buyer))


def found(buyer: int) -> Iterator[object]:
    """Ask for everything that a page needs."""
    if WAY == "each":
        for order, _ in rows(thread_connection(), ORDERS, buyer):
            yield from rows(thread_connection(), LINES, order)
    elif WAY == "join":
        yield from rows(thread_connection(), JOINED, buyer)
    elif WAY == "page":
        for statement in PAGE:
            yield from rows(thread_connection(), statement, buyer)
    elif WAY == "connect":
        connection = connect()
        yield from rows(connection, ORDERS, buyer)
        connection.close()
    elif WAY == "keep":
        yield from rows(thread_connection(), ORDERS, buyer)
    elif WAY in ("get", "pipeline"):
        yield from prices()
    elif WAY in ("prepare", "prepared"):
        yield from prepared(buyer)
    elif WAY == "all":
        yield from rows(thread_connection(), "SELECT * FROM review ORDER BY id")[:10]
    else:
        yield from rows(thread_connection(), "SELECT * FROM review ORDER BY id LIMIT 10")


class Shop(BaseHTTPRequestHandler):
    """Answers when the stores have answered everything."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Ask the stores; the path is the number of a buyer."""
        body = "\n".join(map(str, found(int(self.path.strip("/"))))).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        """Say nothing."""


ThreadingHTTPServer((ADDRESS, 80), Shop).serve_forever()
