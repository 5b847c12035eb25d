"""Redis, asked by redis-cli: commands one by one and in a pipeline, a transaction, a queue that is waited at, channels.

In: a folder to work in. Out: `commands.txt`, what the server counted of each command (INFO commandstats).
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

PORT = 16379
WAITED_S = 0.3
"""How long the worker waits at an empty queue."""

SHOP = """
AUTH default hunter2
SET session:7 hunter2
GET session:7
GET session:8
HSET cart:7 tea 2 cup 1
HGETALL cart:7
INCR cart:7
MULTI
DECR stock:tea
LPUSH orders 7
EXEC
LRANGE orders 0 -1
EVAL "return KEYS[1]" 1 session:7
NOSUCH
"""
"""What a shop asks; `INCR` of a hash and `NOSUCH` are errors."""
WARMING = "".join(f"*3\r\n$3\r\nSET\r\n$11\r\nproduct:{number:03}\r\n$200\r\n{'x' * 200}\r\n" for number in range(100))
"""Commands as redis-cli takes them for a pipeline."""


def run(folder: Path, output: Path) -> None:
    """Start the server, ask it, and write down what it counted."""
    with server(folder):
        client("-3", lines=SHOP)
        client("--pipe", lines=WARMING)
        client("PING")
        worker = subprocess.Popen(words("BLPOP", "queue", "5"), stdout=subprocess.DEVNULL)
        time.sleep(WAITED_S)
        client("RPUSH", "queue", "job")
        worker.wait(timeout=10)
        listener = subprocess.Popen(words("SUBSCRIBE", "news", "weather"), stdout=subprocess.DEVNULL)
        time.sleep(WAITED_S)
        client("PUBLISH", "weather", "rain")
        time.sleep(0.1)
        listener.terminate()
        listener.wait()
        counters = subprocess.run(
            ["redis-cli", "-s", str(folder / "socket"), "INFO", "commandstats"], check=True, capture_output=True
        )
    (output / "commands.txt").write_text("".join(sorted(counted(counters.stdout.decode().splitlines()))))


def counted(lines: Iterable[str]) -> Iterator[str]:
    """Give each command and how often it was called, also in vain. A name that Redis does not know is not counted."""
    for line in lines:
        name, _, figures = line.removeprefix("cmdstat_").partition(":")
        numbers = dict(figure.split("=") for figure in figures.split(",") if "=" in figure)
        if numbers:
            yield f"{name.replace('|', ' ')} {int(numbers['calls']) + int(numbers['rejected_calls'])}\n"


@contextmanager
def server(folder: Path) -> Iterator[None]:
    """Run a Redis that keeps nothing."""
    socket = folder / "socket"
    options = ["--port", str(PORT), "--unixsocket", str(socket), "--save", "", "--dir", str(folder)]
    running = subprocess.Popen(["redis-server", *options, "--bind", "127.0.0.1"], stdout=subprocess.DEVNULL)
    try:
        while not socket.exists():
            time.sleep(0.05)
        yield
    finally:
        running.terminate()
        running.wait()


def words(*options: str) -> list[str]:
    """Give the client's command line."""
    return ["redis-cli", "-h", "127.0.0.1", "-p", str(PORT), *options]


def client(*options: str, lines: str | None = None) -> None:
    """Let redis-cli ask."""
    commands = None if lines is None else lines.lstrip("\n").encode()
    subprocess.run(words(*options), input=commands, stdout=subprocess.DEVNULL, check=False, timeout=30)
