"""PostgreSQL, asked by psql and pgbench: SCRAM, simple and prepared statements, errors, COPY, a cursor, TLS.

In: a folder to work in. Out: `statements.txt`, the statements of the server's own log, in its order, each with its
SQLSTATE; `keys.log`, the secrets of TLS, is not there, because libpq does not tell them.
"""

from __future__ import annotations

import csv
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PORT = 15432
BIN = Path("/usr/lib/postgresql/15/bin")
PASSWORD = "hunter2"  # noqa: S105  (of a server that lives for seconds, and what must not be told)

SHOP = """
CREATE TABLE product (id int PRIMARY KEY, name text);
INSERT INTO product VALUES (1, 'tea'), (2, 'cup'), (3, 'it''s a pot');
SELECT name FROM product WHERE id = 2;
SELECT name FROM product WHERE id = 3 /* who asks */;
INSERT INTO product VALUES (1, 'tea again');
SELECT colour FROM product;
BEGIN;
DECLARE shelf CURSOR FOR SELECT * FROM product;
FETCH 2 FROM shelf;
COMMIT;
SELECT pg_sleep(0.2);
COPY product FROM STDIN;
10\tspoon
11\tfork
\\.
COPY product TO STDOUT;
ALTER ROLE shop PASSWORD 'hunter2';
"""
"""What a shop asks; a duplicate key and an unknown column are errors."""
LOOKUP = "\\set id random(1, 3)\nSELECT name FROM product WHERE id = :id;\n"
"""What pgbench asks, prepared once."""
LOOKUPS = 20
LOGGED = {"statement", "execute"}


def run(folder: Path, output: Path) -> None:
    """Start the server, ask it, and write down what it logged."""
    with server(folder):
        ask("psql", "-X", "-q", lines=SHOP)
        (folder / "lookup.sql").write_text(LOOKUP)
        ask("pgbench", "-n", "-M", "prepared", "-t", str(LOOKUPS), "-f", str(folder / "lookup.sql"))
        ask("psql", "-X", "-q", "-c", "SELECT 1", sslmode="require")
    (output / "statements.txt").write_text("".join(f"{line}\n" for line in logged(folder / "data" / "log")))


def logged(folder: Path) -> Iterator[str]:
    """Give the method and the SQLSTATE of each statement that a client asked for over TCP."""
    for file in sorted(folder.glob("*.csv")):
        for row in csv.reader(file.open(newline="")):
            severity, state, message = row[11], row[12], row[13]
            if severity == "LOG" and message.startswith("duration:"):
                what = message.partition(" ms  ")[2].split(" ")[0].rstrip(":")
                if what in LOGGED:
                    yield f"{'Query' if what == 'statement' else 'Execute'} {state}"
            elif severity == "ERROR":
                yield f"Query {state}"


@contextmanager
def server(folder: Path) -> Iterator[None]:
    """Run a PostgreSQL with a role that has a password, and with TLS."""
    data = folder / "data"
    key, certificate = data / "server.key", data / "server.crt"
    secret = folder / "password"
    secret.write_text(PASSWORD)
    folder.chmod(0o777)
    secret.chmod(0o644)
    as_user(str(BIN / "initdb"), "-D", str(data), "-U", "shop", "-A", "scram-sha-256", f"--pwfile={secret}")
    as_user(
        *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=localhost"),
        *("-keyout", str(key), "-out", str(certificate)),
    )
    settings = {
        "port": PORT, "listen_addresses": "127.0.0.1", "unix_socket_directories": "", "ssl": "on", "fsync": "off",
        "logging_collector": "on", "log_destination": "csvlog", "log_min_duration_statement": 0,
    }  # fmt: skip
    with (data / "postgresql.conf").open("a") as file:
        file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
    control = [str(BIN / "pg_ctl"), "-D", str(data), "-w", "-l", str(folder / "start.log")]
    as_user(*control, "start")
    try:
        yield
        time.sleep(0.5)
    finally:
        as_user(*control, "-m", "fast", "stop")


def as_user(*words: str) -> None:
    """Run a program as the user that PostgreSQL wants to run as."""
    subprocess.run(["runuser", "-u", "postgres", "--", *words], check=True, cwd="/", stdout=subprocess.DEVNULL)


def ask(program: str, *options: str, lines: str | None = None, sslmode: str = "disable") -> None:
    """Let a client ask."""
    connection = {"PGHOST": "127.0.0.1", "PGPORT": str(PORT), "PGUSER": "shop", "PGDATABASE": "postgres"}
    subprocess.run(
        [str(BIN / program), *options],
        env={**os.environ, **connection, "PGPASSWORD": PASSWORD, "PGSSLMODE": sslmode},
        input=None if lines is None else lines.lstrip("\n").encode(),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, timeout=30,
    )  # fmt: skip
