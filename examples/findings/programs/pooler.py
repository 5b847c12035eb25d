"""PgBouncer on port 6432, in front of PostgreSQL; READY listens when it does.

    python3 pooler.py ADDRESS DATABASE READY [NAME=VALUE…]

NAME=VALUE is a setting of PgBouncer. It asks the database DATABASE as the role shop, and lets everybody in.
"""

import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

ADDRESS, DATABASE, READY, *SETTINGS = sys.argv[1:]
PORT = 6432


def leave(*_: object) -> None:
    """End as if somebody had pressed Ctrl-C: pooler and folder go."""
    raise SystemExit


def wait() -> None:
    """Return when it lets in."""
    for _ in range(100):
        with suppress(OSError), socket.create_connection((ADDRESS, PORT)):
            return
        time.sleep(0.1)
    raise TimeoutError("PgBouncer does not let in")


signal.signal(signal.SIGTERM, leave)
with tempfile.TemporaryDirectory() as folder:
    Path(folder).chmod(0o755)
    users, configuration = Path(folder, "users.txt"), Path(folder, "pgbouncer.ini")
    users.write_text('"shop" "shop"\n')
    lines = [
        "[databases]", f"shop = host={DATABASE} dbname=shop",
        "[pgbouncer]", f"listen_addr = {ADDRESS}", f"listen_port = {PORT}", "unix_socket_dir =", "auth_type = trust",
        f"auth_file = {users}", "ignore_startup_parameters = extra_float_digits", "admin_users = shop",
        *(setting.replace("=", " = ", 1) for setting in SETTINGS),
    ]  # fmt: skip
    configuration.write_text("\n".join(lines) + "\n")
    pooler = subprocess.Popen(["pgbouncer", "--user", "nobody", str(configuration)])
    try:
        wait()
        with socket.create_server((ADDRESS, int(READY))):
            signal.pause()
    finally:
        pooler.send_signal(signal.SIGTERM)
        pooler.wait(10)
