"""A shop with a pool of connections to PostgreSQL; each page is one statement of some 10 ms.

python3 pooled_shop.py ADDRESS STORE SIZE
"""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import sqlalchemy

ADDRESS, STORE, SIZE = sys.argv[1:]
STARS = sqlalchemy.text("SELECT stars, pg_sleep(0.01) FROM review WHERE id = :order + 1")
pool = sqlalchemy.create_engine(
    f"postgresql+psycopg2://shop:shop@{STORE}/shop?sslmode=disable",
    pool_size=int(SIZE), max_overflow=0, isolation_level="AUTOCOMMIT",
)  # fmt: skip


def stars(number: int) -> list[object]:
    """Ask PostgreSQL for what a page has; the connection goes back to the pool before the answer is written."""
    with pool.connect() as connection:
        return list(connection.execute(STARS, {"order": number}).fetchall())


def fill() -> None:
    """Open all connections."""
    opened = [pool.connect() for _ in range(int(SIZE))]
    for connection in opened:
        connection.close()


class Shop(BaseHTTPRequestHandler):
    """Answers when PostgreSQL has answered both."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Ask for the stars of an order; the path is its number, or /all: open all connections meanwhile."""
        if self.path == "/all":
            Thread(target=fill).start()
        body = str([] if self.path == "/all" else stars(int(self.path.strip("/")))).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        """Say nothing."""


ThreadingHTTPServer((ADDRESS, 80), Shop).serve_forever()
