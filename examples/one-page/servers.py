"""nginx, PHP-FPM and MariaDB on the hosts of the office, and the rows of the shop."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from office import APPLICATION, STORE, WEB, Office

HERE = Path(__file__).resolve().parent
WEB_PORT, FPM_PORT, STORE_PORT = 80, 9000, 3306
SOCKET = "socket"
"""In the folder of MariaDB's data, which is its working directory: a whole path may be longer than the 107 bytes of a
socket's name (unix(7))."""
NEEDED = ("nginx", "php-fpm8.2", "mariadbd", "mariadb-install-db", "mariadb")
PAGE = "orders.php"
ORDERS, BUYERS = 1_000, 200
"""Rows. The page shows 24 orders, each of another buyer."""
SCHEMA = f"""
CREATE DATABASE shop;
CREATE USER shop@'%' IDENTIFIED BY 'hunter2';
GRANT SELECT ON shop.* TO shop@'%';
USE shop;
CREATE TABLE buyer (id int PRIMARY KEY, name varchar(40), town varchar(40));
CREATE TABLE orders (id int PRIMARY KEY, buyer int, placed datetime, INDEX (placed));
INSERT INTO buyer SELECT seq, concat('Buyer ', seq), concat('Town ', seq % 17) FROM seq_1_to_{BUYERS};
INSERT INTO orders SELECT seq, 1 + seq % {BUYERS}, '2026-01-01' + INTERVAL seq MINUTE FROM seq_1_to_{ORDERS};
SELECT count(*) FROM orders JOIN buyer ON buyer.id = orders.buyer;
"""
"""The last statement reads every row once, so that no page waits for the disk."""


def start_store(office: Office) -> None:
    """Start MariaDB with the shop's rows."""
    data = office.folder / "data"
    run_quietly("mariadb-install-db", "--no-defaults", f"--datadir={data}", "--user=root", "--skip-test-db")
    settings = {
        "datadir": data, "socket": SOCKET, "port": STORE_PORT, "bind-address": STORE, "user": "root",
        "pid-file": data / "pid", "log-error": data / "log", "skip-name-resolve": 1, "skip-ssl": 1,
    }  # fmt: skip
    words = ["mariadbd", "--no-defaults", *(f"--{name}={value}" for name, value in settings.items())]
    office.start_server(office.store, STORE_PORT, words)
    client = ["mariadb", "--no-defaults", f"--socket={SOCKET}", "-u", "root"]
    subprocess.run(client, input=SCHEMA, check=True, text=True, stdout=subprocess.DEVNULL, cwd=data)


def start_application(office: Office, page: str, workers: int) -> None:
    """Start PHP-FPM with a page of the folder ``pages`` and so many workers."""
    root = office.folder / "pages"
    root.mkdir()
    shutil.copyfile(HERE / "pages" / f"{page}.php", root / PAGE)
    shutil.copyfile(HERE / "pages" / "compile.php", root / "compile.php")
    text = (HERE / "php-fpm.conf").read_text()
    values = {"RUN": office.folder, "LISTEN": f"{APPLICATION}:{FPM_PORT}", "WORKERS": workers}
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    (office.folder / "php-fpm.conf").write_text(text)
    words = ["php-fpm8.2", "--nodaemonize", "--allow-to-run-as-root", "--fpm-config", office.folder / "php-fpm.conf"]
    office.start_server(office.application, FPM_PORT, words)


def start_web(office: Office) -> None:
    """Start nginx, which asks PHP-FPM."""
    run = office.folder / "nginx"
    run.mkdir()
    text = (HERE / "nginx.conf").read_text()
    values = {
        "RUN": run, "LISTEN": f"{WEB}:{WEB_PORT}", "APPLICATION": f"{APPLICATION}:{FPM_PORT}",
        "PAGES": office.folder / "pages",
    }  # fmt: skip
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    (run / "nginx.conf").write_text(text)
    words = ["nginx", "-p", run, "-e", run / "error.log", "-c", run / "nginx.conf"]
    office.start_server(office.web, WEB_PORT, words)


def run_quietly(*words: str) -> None:
    """Run a program that says nothing of use."""
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
