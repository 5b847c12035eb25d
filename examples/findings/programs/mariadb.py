"""MariaDB on port 3306 with the reviews of a shop; READY listens when it does.

    python3 mariadb.py ADDRESS READY

User, password and database: shop. What it keeps is in a folder that goes with it.
"""

import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pymysql

ADDRESS, READY = sys.argv[1:]
SETUP = """
CREATE DATABASE shop;
USE shop;
CREATE TABLE shop.review (id int PRIMARY KEY, stars int, words text) ENGINE=InnoDB;
INSERT INTO shop.review SELECT seq, seq % 6, repeat('very good ', 20) FROM seq_1_to_500;
CREATE USER shop@'%' IDENTIFIED BY 'shop';
GRANT ALL ON shop.* TO shop@'%';
"""


def leave(*_: object) -> None:
    """End as if somebody had pressed Ctrl-C: server and folder go."""
    raise SystemExit


def wait() -> None:
    """Return when it lets in."""
    for _ in range(200):
        with suppress(pymysql.Error):
            pymysql.connect(host=ADDRESS, user="shop", password="shop", database="shop").close()
            return
        time.sleep(0.1)
    raise TimeoutError("MariaDB does not let in")


signal.signal(signal.SIGTERM, leave)
with tempfile.TemporaryDirectory() as folder:
    Path(folder).chmod(0o777)
    data, setup = Path(folder, "data"), Path(folder, "setup.sql")
    setup.write_text("\n".join(" ".join(line.split()) for line in SETUP.strip().splitlines()) + "\n")
    made = ["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--user=mysql", "--skip-test-db"]
    subprocess.run(made, check=True, stdout=subprocess.DEVNULL)
    served = ["mariadbd", "--no-defaults", f"--datadir={data}", "--user=mysql", f"--bind-address={ADDRESS}"]
    served += [f"--socket={folder}/socket", f"--init-file={setup}", "--skip-name-resolve", "--skip-ssl"]
    server = subprocess.Popen(served)
    try:
        wait()
        with socket.create_server((ADDRESS, int(READY))):
            signal.pause()
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(20)
