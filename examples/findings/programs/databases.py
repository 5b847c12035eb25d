"""PostgreSQL on port 5432 and Redis on port 6379, with the goods of a shop; READY listens when both do.

    python3 databases.py ADDRESS READY [NAME=VALUE…]

NAME=VALUE is a setting of PostgreSQL. Role, password and database: shop. What they keep is in a folder that goes with
them.
"""

import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psycopg2
import redis

ADDRESS, READY, *SETTINGS = sys.argv[1:]
BIN = max(Path("/usr/lib/postgresql").glob("*/bin"))
GOODS = """
CREATE TABLE sold (id int PRIMARY KEY, buyer int, what text);
CREATE TABLE line (sold int, place int, name text, price int, PRIMARY KEY (sold, place));
CREATE TABLE review (id int PRIMARY KEY, stars int, words text);
INSERT INTO sold SELECT n, n % 5, 'order ' || n FROM generate_series(0, 59) n;
INSERT INTO line SELECT n, p, 'thing ' || p, 100 * p FROM generate_series(0, 59) n, generate_series(1, 3) p;
INSERT INTO review SELECT n, n % 6, repeat('very good ', 20) FROM generate_series(1, 500) n;
ANALYZE;
"""
"""Each of five buyers has twelve orders; 500 reviews are 0.1 MB."""


def as_postgres(*words: str) -> list[str]:
    """PostgreSQL does not run as root."""
    return ["runuser", "-u", "postgres", "--", *words]


def connect(database: str) -> "psycopg2.extensions.connection":
    """Connect as soon as PostgreSQL lets in."""
    for _ in range(100):
        with suppress(psycopg2.OperationalError):
            return psycopg2.connect(host=ADDRESS, user="shop", password="shop", dbname=database, sslmode="disable")
        time.sleep(0.1)
    raise TimeoutError("PostgreSQL does not let in")


def leave(*_: object) -> None:
    """End as if somebody had pressed Ctrl-C: servers and folder go."""
    raise SystemExit


signal.signal(signal.SIGTERM, leave)
running = []
with tempfile.TemporaryDirectory() as folder:
    Path(folder).chmod(0o777)
    secret, data = Path(folder, "password"), Path(folder, "data")
    secret.write_text("shop")
    made = as_postgres(str(BIN / "initdb"), "-D", str(data), "-U", "shop", "-A", "scram-sha-256", f"--pwfile={secret}")
    subprocess.run([*made, "--no-sync"], check=True, stdout=subprocess.DEVNULL, cwd="/")
    with (data / "pg_hba.conf").open("a") as rules:
        rules.write("host all all 10.98.0.0/16 scram-sha-256\n")
    try:
        served = [str(BIN / "postgres"), "-D", str(data), "-h", ADDRESS, "-k", "", "-F"]
        served += [word for setting in SETTINGS for word in ("-c", setting)]
        running.append(subprocess.Popen(as_postgres(*served), cwd="/"))
        command = ["redis-server", "--bind", ADDRESS, "--save", "", "--dir", folder, "--protected-mode", "no"]
        running.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))
        first = connect("postgres")
        first.autocommit = True
        first.cursor().execute("CREATE DATABASE shop")
        with connect("shop") as connection:
            connection.cursor().execute(GOODS)
        cache = redis.Redis(ADDRESS)
        cache.mset({f"price:{number}": 100 * number for number in range(60)})
        with socket.create_server((ADDRESS, int(READY))):
            signal.pause()
    finally:
        for server in running:
            server.send_signal(signal.SIGINT)
            server.wait(10)
