"""How databases answer statements, and how an application asks MariaDB, PHP-FPM and a Redis that it shares."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from avenue import BACKEND, FRONT, Scene, record

TWIN = "- The twin of `{}`."
BACKENDS = {"postgresql": f"python3 databases.py {BACKEND} 8080", "mysql": f"python3 mariadb_goods.py {BACKEND} 8080"}
PORTS = {
    "postgresql": "- On the backend, PostgreSQL is at port 5432 and Redis at port 6379.",
    "mysql": "- On the backend, MariaDB is at port 3306.",
}


def visitor(pages: int) -> list[str]:
    """A client that looks at some pages."""
    return [f"python3 asks.py {FRONT} 80" + "".join(f" /{n % 5} rest-60" for n in range(pages))]


def stock(database: str, way: str, title: str, see: str, back_ms: float = 0.2) -> Scene:
    """A shop with many visits."""
    return Scene(
        title=title, see=f"{see}\n{PORTS[database]}", back_ms=back_ms,
        middle=f"python3 stock.py {FRONT} {BACKEND} {database} {way}", backends=[BACKENDS[database]],
        clients=visitor(8),
    )  # fmt: skip


def php(way: str, title: str, see: str, back_ms: float = 0.2, pages: int = 6) -> Scene:
    """A shop of PHP behind nginx, with MariaDB."""
    return Scene(
        title=title, see=f"{see}\n{PORTS['mysql']}", back_ms=back_ms,
        middle=f"python3 php_shop.py {FRONT} {BACKEND} {way}", backends=[BACKENDS["mysql"]], clients=visitor(pages),
    )  # fmt: skip


def fastcgi(keep_alive: bool) -> Scene:
    """PHP-FPM behind nginx, with connections that are kept or not."""
    return Scene(
        title="nginx asks PHP-FPM "
        + ("over connections that it keeps" if keep_alive else "on a new connection each time"),
        see=TWIN.format("fastcgi-no-keepalive")
        if keep_alive
        else "- A connection to PHP-FPM for each request, because `fastcgi_keep_conn` is not set.",
        nginx=f"""\
    upstream php {{ server {BACKEND}:8080;{" keepalive 2;" * keep_alive} }}
    server {{
        listen {FRONT}:80;
        location / {{
            include /etc/nginx/fastcgi_params;
            fastcgi_param SCRIPT_FILENAME /page.php;
            fastcgi_pass php;{" fastcgi_keep_conn on;" * keep_alive}
        }}
    }}
""",
        back_ms=0.5, backends=[f"python3 fpm.py {BACKEND} 8080"], clients=visitor(8),
    )  # fmt: skip


def multiplexing(way: str, see: str) -> Scene:
    """A shop whose pages and whose worker ask Redis."""
    connection = "the connection that the pages use" if way == "shared" else "a connection of its own"
    return Scene(
        title=f"A worker that waits for orders with BLPOP, on {connection}", see=f"{see}\n{PORTS['postgresql']}",
        middle=f"python3 multiplexing.py {FRONT} {BACKEND} {way}", backends=[BACKENDS["postgresql"]],
        clients=[f"python3 asks.py {FRONT} 80" + "".join(f" /{n} rest-130" for n in range(12))],
    )  # fmt: skip


SCANS = "- One of the two statements of a page reads a table of {} rows, as there is no index on `buyer`."
SCENES: dict[str, Scene] = {
    "slow-query": stock("postgresql", "scan", "A statement without an index", SCANS.format("400,000")),
    "slow-query-clean": stock("postgresql", "index", "The same statement with an index", TWIN.format("slow-query")),
    "slow-query-mysql": stock("mysql", "scan", "A statement without an index, in MariaDB", SCANS.format("200,000")),
    "slow-query-mysql-clean": stock(
        "mysql", "index", "The same statement with an index, in MariaDB", TWIN.format("slow-query-mysql")
    ),
    "serial-queries": stock(
        "postgresql",
        "serial",
        "Five different statements for each page, one after the other",
        "- None of them needs the answer to another one.",
        back_ms=1,
    ),
    "serial-queries-clean": stock(
        "postgresql",
        "together",
        "Five different statements for each page, on five connections at once",
        TWIN.format("serial-queries"),
        back_ms=1,
    ),
    "blocking-command": multiplexing("shared", "- A GET that is sent while BLPOP waits is answered after it."),
    "blocking-command-clean": multiplexing("own", TWIN.format("blocking-command")),
    "fastcgi-no-keepalive": fastcgi(keep_alive=False),
    "fastcgi-no-keepalive-clean": fastcgi(keep_alive=True),
    "repeated-queries-mysql": php(
        "each",
        "The lines of twelve orders, each with a statement of its own, in MariaDB",
        "- Twelve statements of the same shape, one after the other, within one request.",
    ),
    "repeated-queries-mysql-clean": php(
        "join", "The lines of twelve orders with one join, in MariaDB", TWIN.format("repeated-queries-mysql")
    ),
    "store-connection-per-query-mysql": php(
        "connect",
        "A new connection to MariaDB for each page",
        "- Before each statement: TCP, the greeting, and a round trip of authentication.",
    ),
    "store-connection-per-query-mysql-clean": php(
        "keep", "One connection to MariaDB for all pages", TWIN.format("store-connection-per-query-mysql")
    ),
    "store-far-away-mysql": php(
        "keep",
        "One statement for each page, to a MariaDB 5 ms away",
        "- The database needs less than 1 ms for each.",
        back_ms=5,
    ),
    "statement-not-prepared-mysql": php(
        "prepare",
        "PDO, which prepares each statement again",
        "- Each statement is prepared (Prepare), executed and closed.",
    ),
    "statement-not-prepared-mysql-clean": php(
        "emulate", "PDO with ATTR_EMULATE_PREPARES", TWIN.format("statement-not-prepared-mysql")
    ),
    "large-result-mysql": php(
        "all", "500 rows of MariaDB, of which a page shows ten", "- The rows take longer than the database does.",
        back_ms=1, pages=2,
    ),
    "large-result-mysql-clean": php(
        "ten", "Ten rows of MariaDB, which a page shows", TWIN.format("large-result-mysql"), back_ms=1, pages=2
    ),
}  # fmt: skip
CASES: dict[str, Callable[[Path], None]] = {name: partial(record, scene) for name, scene in SCENES.items()}
