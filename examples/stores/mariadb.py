"""MariaDB, asked by mariadb and PHP: two kinds of passwords, statements simple and prepared, errors, a file, TLS.

In: a folder to work in. Out: `statements.txt`, the commands that the server measured itself (performance schema), in
the order of connections and commands, each with the number of its error and its time in microseconds.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PORT = 13306
PASSWORD = "hunter2"  # noqa: S105  (of a server that lives for seconds, and what must not be told)
HISTORY = "performance_schema.events_statements_history_long"

ROLES = f"""
INSTALL SONAME 'auth_ed25519';
CREATE USER shop@'127.0.0.1' IDENTIFIED BY '{PASSWORD}';
CREATE USER shelf@'127.0.0.1' IDENTIFIED VIA ed25519 USING PASSWORD('{PASSWORD}');
CREATE DATABASE shop;
GRANT ALL ON shop.* TO shop@'127.0.0.1', shelf@'127.0.0.1';
UPDATE performance_schema.setup_consumers SET enabled = 'YES' WHERE name LIKE 'events_statements_%';
"""
SHOP = """
CREATE TABLE product (id int PRIMARY KEY, name text);
INSERT INTO product VALUES (1, 'tea'), (2, "cup"), (3, 'it''s a pot');
SELECT name FROM product WHERE id = 2;
SELECT name FROM product WHERE id = 3 /* who asks */;
INSERT INTO product VALUES (1, 'tea again');
SELECT colour FROM product;
SELECT SLEEP(0.2);
DELIMITER //
CREATE PROCEDURE everything() BEGIN SELECT * FROM product; SELECT count(*) FROM product; END//
DELIMITER ;
CALL everything();
LOAD DATA LOCAL INFILE 'more.txt' INTO TABLE product;
SET PASSWORD = PASSWORD('hunter2');
"""
"""What a shop asks; a duplicate key and an unknown column are errors."""
MORE = "10\tspoon\n11\tfork\n"
LOOKUPS = 20
PHP = f"""<?php
mysqli_report(MYSQLI_REPORT_OFF);
$shop = new mysqli('127.0.0.1', 'shop', '{PASSWORD}', 'shop', {PORT});
$lookup = $shop->prepare('SELECT name FROM product WHERE id = ?');
for ($id = 1; $id <= {LOOKUPS}; $id++) {{
    $lookup->bind_param('i', $id);
    $lookup->execute();
    $lookup->get_result()->fetch_all();
}}
$lookup->close();
$add = $shop->prepare('INSERT INTO product VALUES (?, ?)');
$id = 20;
$name = null;
$add->bind_param('ib', $id, $name);
$add->send_long_data(1, str_repeat('hunter2', 1000));
$add->send_long_data(1, 'hunter2');
$add->execute();
$add->execute();
$shelf = $shop->prepare('SELECT id FROM product ORDER BY id');
$shelf->attr_set(MYSQLI_STMT_ATTR_CURSOR_TYPE, MYSQLI_CURSOR_TYPE_READ_ONLY);
$shelf->attr_set(MYSQLI_STMT_ATTR_PREFETCH_ROWS, 4);
$shelf->execute();
$shelf->bind_result($found);
while ($shelf->fetch()) {{
}}
$shelf->reset();
$shop->prepare('SELECT colour FROM product');
$shop->select_db('shop');
$shop->ping();
$shop->stat();
$shop->change_user('shop', '{PASSWORD}', 'shop');
$shop->query("SET sql_mode = 'NO_BACKSLASH_ESCAPES'");
$shop->query("SELECT id FROM product WHERE name = 'hunter2\\\\' OR name = 'hunter2'");
"""
"""What a program asks: prepared statements, long values, a cursor, another user."""


def run(folder: Path, output: Path) -> None:
    """Start the server, ask it, and write down what it measured."""
    with server(folder):
        (folder / "more.txt").write_text(MORE)
        (folder / "ask.php").write_text(PHP)
        ask(folder, "mariadb", "--force", "--local-infile=1", lines=SHOP)
        ask(folder, "mariadb", "-e", "SELECT 2", user="shelf")
        ask(folder, "mariadb", "-e", "SELECT 3", password="wrong")  # noqa: S106
        subprocess.run(["php", str(folder / "ask.php")], check=True, timeout=30)
        ask(folder, "mariadb", "--compress", "-e", "SELECT 4")
        ask(folder, "mariadb", "--ssl", "-e", "SELECT 5")
        (output / "statements.txt").write_text("".join(f"{line}\n" for line in measured(folder)))


def measured(folder: Path) -> Iterator[str]:
    """Give the command, the error's number and the time of each command that a client asked for over TCP."""
    text = as_root(
        folder,
        f"SELECT event_name, mysql_errno, timer_wait DIV 1000000 FROM {HISTORY} WHERE nesting_event_id IS NULL "
        "AND current_schema = 'shop' ORDER BY thread_id, event_id",
    )
    for line in text.splitlines():
        name, error, microseconds = line.split("\t")
        kind, _, what = name.removeprefix("statement/").partition("/")
        yield f"{what if kind == 'com' else 'Query'}\t{error}\t{microseconds}"


@contextmanager
def server(folder: Path) -> Iterator[None]:
    """Run a MariaDB with two users, and with TLS."""
    data, key, certificate = folder / "data", folder / "server.key", folder / "server.crt"
    folder.chmod(0o777)
    run_quietly(
        *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=localhost"),
        *("-keyout", str(key), "-out", str(certificate)),
    )
    key.chmod(0o644)
    run_quietly("mariadb-install-db", "--no-defaults", f"--datadir={data}", "--user=mysql", "--skip-test-db")
    settings = {
        "datadir": data, "socket": folder / "socket", "port": PORT, "bind-address": "127.0.0.1", "user": "mysql",
        "pid-file": folder / "data" / "pid", "ssl-key": key, "ssl-cert": certificate, "local-infile": 1,
        "performance-schema": "ON", "performance-schema-events-statements-history-long-size": 10_000,
        "log-error": folder / "data" / "log",
    }  # fmt: skip
    mariadbd = subprocess.Popen(
        ["mariadbd", "--no-defaults", *(f"--{name}={value}" for name, value in settings.items())],
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(100):
            time.sleep(0.1)
            if (folder / "socket").exists():
                break
        as_root(folder, ROLES)
        yield
        time.sleep(0.5)
    finally:
        mariadbd.terminate()
        mariadbd.wait(timeout=30)


def run_quietly(*words: str) -> None:
    """Run a program that says nothing of use."""
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def as_root(folder: Path, statements: str) -> str:
    """Ask over the Unix socket, which is not captured."""
    words = ["mariadb", "--no-defaults", f"--socket={folder / 'socket'}", "-u", "root", "-N", "-B"]
    return subprocess.run(words, input=statements, check=True, capture_output=True, text=True).stdout


def ask(
    folder: Path,
    *words: str,
    lines: str | None = None,
    user: str = "shop",
    password: str = PASSWORD,
) -> None:
    """Let a client ask."""
    program, *options = words
    subprocess.run(
        [
            *(program, "--no-defaults", "-h", "127.0.0.1", "-P", str(PORT), "-u", user, f"-p{password}"),
            *(options if "--ssl" in options else ("--skip-ssl", *options)),
            "shop",
        ],
        cwd=folder, input=None if lines is None else lines.encode(),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, timeout=30,
    )  # fmt: skip
