"""memcached, asked over a socket: commands one by one and many at once, meta commands loud and quiet, without reply.

In: a folder to work in. Out: `commands.txt`, the line of each command that the server read (`memcached -vv`).
"""

from __future__ import annotations

import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PORT = 11311
BY_ONE = [
    (b"version\r\n", b"VERSION 1"),
    (b"set session:7 0 60 7\r\nhunter2\r\n", b"STORED\r\n"),
    (b"get session:7\r\n", b"END\r\n"),
    (b"get session:8\r\n", b"END\r\n"),
    (b"add session:7 0 60 7\r\nhunter2\r\n", b"NOT_STORED\r\n"),
    (b"set seen 0 0 1\r\n1\r\n", b"STORED\r\n"),
    (b"incr seen 2\r\n", b"3\r\n"),
    (b"gets session:7 seen session:8\r\n", b"END\r\n"),
    (b"cas session:7 0 60 7 999\r\nhunter2\r\n", b"EXISTS\r\n"),
    (b"touch seen 60\r\n", b"TOUCHED\r\n"),
    (b"delete seen\r\n", b"DELETED\r\n"),
    (b"incr session:7 1\r\n", b"non-numeric value\r\n"),
    (b"nosuch\r\n", b"ERROR\r\n"),
    (b"get " + b"k" * 251 + b"\r\n", b"line format\r\n"),
]
"""What a shop asks, and how the reply ends; the last three are errors."""
PRODUCTS = 100
WARMING = b"".join(b"set product:%03d 0 0 200 noreply\r\n%s\r\n" % (number, b"x" * 200) for number in range(PRODUCTS))
MANY = b"get " + b" ".join(b"product:%03d" % number for number in range(PRODUCTS)) + b"\r\n"
LOUD = (
    b"ms cart:7 7 T60\r\nhunter2\r\nmg cart:7 v t\r\nmg cart:8 v\r\nma seen N0 J1 v\r\nmd cart:8\r\nme cart:7\r\nmn\r\n"
)
QUIET = b"".join(b"mg product:%03d v q O%d\r\n" % (number, number) for number in range(PRODUCTS - 5, PRODUCTS + 5))


def run(folder: Path, output: Path) -> None:
    """Start the server, ask it, and write down what it wrote down."""
    log = folder / "log"
    with server(log):
        with connected() as shop:
            for command, end in BY_ONE:
                say(shop, command, end)
        with connected() as shop:
            say(shop, WARMING + MANY, b"END\r\n")
            say(shop, b"stats\r\n", b"END\r\n")
            shop.sendall(b"quit\r\n")
        with connected() as shop:
            say(shop, LOUD, b"MN\r\n")
            say(shop, QUIET + b"mn\r\n", b"MN\r\n")
        time.sleep(0.1)
    (output / "commands.txt").write_text("".join(f"{line}\n" for line in lines(log.read_bytes().decode())))


def lines(log: str) -> Iterator[str]:
    """Give the line of each command, which the log has behind the number of its connection: `<28 get k`."""
    for line in re.findall(r"^<\d+ (.*)$", log, re.MULTILINE):
        if not line.startswith(("new ", "connection ", "server ")):
            yield line


@contextmanager
def server(log: Path) -> Iterator[None]:
    """Run a memcached with one thread, which says each command that it reads."""
    words = ["memcached", "-vv", "-u", "nobody", "-t", "1", "-U", "0", "-l", "127.0.0.1", "-p", str(PORT)]
    with log.open("wb") as verbose:
        running = subprocess.Popen(words, stdout=verbose, stderr=verbose)
    try:
        time.sleep(0.5)
        yield
    finally:
        running.terminate()
        running.wait()


@contextmanager
def connected() -> Iterator[socket.socket]:
    """Open a connection."""
    with socket.create_connection(("127.0.0.1", PORT), timeout=10) as shop:
        yield shop


def say(shop: socket.socket, commands: bytes, end: bytes) -> None:
    """Send commands, and read up to the end of the last reply."""
    shop.sendall(commands)
    received = b""
    while not received.endswith(end) and not (
        end.startswith(b"VERSION") and received.startswith(end) and received.endswith(b"\n")
    ):
        more = shop.recv(65536)
        if not more:
            raise ConnectionError(commands[:40])
        received += more
