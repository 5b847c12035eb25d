"""Clients that ask PostgreSQL, or its pooler, side by side, each on a connection of its own.

    python3 asks_sql.py ADDRESS PORT CLIENTS TIMES WAY [DIARY]

single      one statement, which takes 2 to 12 ms
change      BEGIN, a statement, a change of a row of its own, COMMIT
both        half of either
bind        as both, with parameters
rest        one statement, and 5 s of rest, in which a pooler opens the connections that it shall always have
idle        as change, with 15 ms of rest before COMMIT

DIARY lists of each statement the client's port, its place on the connection, its number and its time.
"""

import csv
import random
import socket
import sys
import time
from pathlib import Path
from threading import Barrier, Thread

import psycopg

ADDRESS, PORT, CLIENTS, TIMES, WAY = sys.argv[1:6]
DIARY = Path(sys.argv[6]) if sys.argv[6:] else None
LOOK = "SELECT pg_sleep({ms} / 1000.0), name FROM line WHERE sold = {row} AND place = 1"
CHANGE = "UPDATE line SET price = price + 1 WHERE sold = {row} AND place = 1"
statements: list[tuple[int, int, int, int]] = []
ready = Barrier(int(CLIENTS))


class Client(Thread):
    """One of them."""

    def __init__(self, number: int) -> None:
        """Remember which."""
        super().__init__()
        self.number = number
        self.chance = random.Random(number)  # noqa: S311
        self.sent = 0

    def run(self) -> None:
        """Connect, then ask."""
        access = f"host={ADDRESS} port={PORT} user=shop password=shop dbname=shop sslmode=disable gssencmode=disable"
        with psycopg.connect(access, autocommit=True, prepare_threshold=None) as self.connection:
            ready.wait(30)
            for _ in range(int(TIMES)):
                time.sleep(self.chance.uniform(0, 0.01))
                self.turn()

    def turn(self) -> None:
        """Do one thing."""
        if WAY == "single" or (WAY in ("both", "bind") and self.chance.random() < 0.5):
            self.ask(LOOK)
            return
        if WAY == "rest":
            self.ask(LOOK)
            time.sleep(5)
            return
        self.ask("BEGIN")
        self.ask(LOOK)
        self.ask(CHANGE)
        if WAY == "idle":
            time.sleep(0.015)
        self.ask("COMMIT")

    def ask(self, statement: str) -> None:
        """Send a statement with a number that both sides of a pooler show."""
        identifier = self.number * 10_000 + self.sent
        values = {"ms": round(self.chance.uniform(2, 12), 1), "row": self.number}
        statements.append((port_of(self.connection.pgconn.socket), self.sent, identifier, time.time_ns()))
        self.sent += 1
        comment = f" /* id={identifier} */"
        if WAY == "bind" and "{" in statement:
            self.connection.execute(statement.format(ms="%(ms)s", row="%(row)s") + comment, values)
        else:
            self.connection.execute(statement.format(**values) + comment)


def port_of(descriptor: int) -> int:
    """Give the local port of a connection."""
    with socket.fromfd(descriptor, socket.AF_INET, socket.SOCK_STREAM) as connection:
        return int(connection.getsockname()[1])


clients = [Client(number) for number in range(int(CLIENTS))]
for client in clients:
    client.start()
for client in clients:
    client.join()
if DIARY:
    with DIARY.open("w", newline="") as file:
        csv.writer(file).writerows(statements)
