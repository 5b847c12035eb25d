"""Clients that change rows of a table in PostgreSQL or MariaDB; one of them keeps a row in a long transaction.

    python3 locks.py PRODUCT ADDRESS PORT CONFLICT

PRODUCT is postgresql or mariadb. Four clients change the stars of a review, each change a transaction of its own. A
fifth one changes a row, rests for 40 ms, and commits: a row that the others change, too (CONFLICT is same), or one of
its own (other).
"""

import random
import sys
import time
from threading import Event, Thread

PRODUCT, ADDRESS, PORT, CONFLICT = sys.argv[1:]
CHANGE = "UPDATE review SET stars = stars + 1 WHERE id = %s"
CLIENTS, TURNS, LONG = 4, 25, 5
done = Event()


def connect() -> "object":
    """Connect, without TLS."""
    if PRODUCT == "mariadb":
        import pymysql  # noqa: PLC0415  (only one of both is needed)

        return pymysql.connect(
            host=ADDRESS, port=int(PORT), user="shop", password="shop", database="shop", autocommit=True,
            ssl_disabled=True,
        )  # fmt: skip
    import psycopg2  # noqa: PLC0415

    connection = psycopg2.connect(
        host=ADDRESS, port=PORT, user="shop", password="shop", dbname="shop", sslmode="disable"
    )
    connection.autocommit = True
    return connection


def run(connection: "object", *statements: tuple[str, tuple[int, ...]]) -> None:
    """Send statements."""
    cursor = connection.cursor()  # type: ignore[attr-defined]
    for text, values in statements:
        cursor.execute(text, values or None)


def change(number: int) -> None:
    """Change rows 1 to 4, one after the other."""
    chance = random.Random(number)  # noqa: S311
    connection = connect()
    for turn in range(TURNS):
        run(connection, (CHANGE, (1 + (number + turn) % CLIENTS,)))
        time.sleep(chance.uniform(0.01, 0.03))


def keep() -> None:
    """Change a row and keep it for a while."""
    connection = connect()
    for turn in range(LONG):
        time.sleep(0.06)
        row = 1 + turn % CLIENTS if CONFLICT == "same" else 100
        run(connection, ("BEGIN", ()), (CHANGE, (row,)))
        time.sleep(0.04)
        run(connection, ("COMMIT", ()))


threads = [*(Thread(target=change, args=(number,)) for number in range(CLIENTS)), Thread(target=keep)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
