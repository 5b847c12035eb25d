"""MariaDB on port 3306, with the goods of a shop; READY listens when it does.

    python3 mariadb_goods.py ADDRESS READY

Role, password and database: shop. What it keeps is in a folder that goes with it.
"""

import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ADDRESS, READY = sys.argv[1:]
GOODS = """
CREATE DATABASE shop;
CREATE USER shop@'%' IDENTIFIED BY 'shop';
GRANT ALL ON shop.* TO shop@'%';
USE shop;
CREATE TABLE sold (id int PRIMARY KEY, buyer int, what text);
CREATE TABLE line (sold int, place int, name text, price int, PRIMARY KEY (sold, place));
CREATE TABLE review (id int PRIMARY KEY, stars int, words text);
INSERT INTO sold SELECT seq, seq % 5, concat('order ', seq) FROM seq_0_to_59;
INSERT INTO line SELECT n.seq, p.seq, concat('thing ', p.seq), 100 * p.seq FROM seq_0_to_59 n JOIN seq_1_to_3 p;
INSERT INTO review SELECT seq, seq % 6, repeat('very good ', 20) FROM seq_1_to_500;
"""
"""Those of `databases.py`."""


def leave(*_: object) -> None:
    """End as if somebody had pressed Ctrl-C: server and folder go."""
    raise SystemExit


signal.signal(signal.SIGTERM, leave)
with tempfile.TemporaryDirectory() as folder:
    Path(folder).chmod(0o777)
    data, local = Path(folder, "data"), Path(folder, "socket")
    made = ["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--user=mysql", "--skip-test-db"]
    subprocess.run(made, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    settings = {
        "datadir": data, "socket": local, "bind-address": ADDRESS, "port": 3306, "user": "mysql",
        "pid-file": data / "pid", "skip-name-resolve": 1, "innodb-flush-log-at-trx-commit": 0,
        "performance-schema": "OFF",
    }  # fmt: skip
    server = subprocess.Popen(["mariadbd", "--no-defaults", *(f"--{name}={value}" for name, value in settings.items())])
    try:
        while not local.exists():
            time.sleep(0.05)
        subprocess.run(
            ["mariadb", "--no-defaults", f"--socket={local}", "-u", "root"], input=GOODS.encode(), check=True
        )
        with socket.create_server((ADDRESS, int(READY))):
            signal.pause()
    finally:
        server.terminate()
        server.wait(10)
