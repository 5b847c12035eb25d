"""FerretDB, which speaks MongoDB's protocol, asked by pymongo: writes, queries, cursors, errors, a log that is tailed.

In: a folder to work in. Out: `commands.txt`, a line for each command as pymongo's listener saw it: the number of its
message, database, command, collection, microseconds, and the code of its error.

MongoDB is not part of Debian. Here, FerretDB 1.24 keeps documents in SQLite. Needs Go and a venv with pymongo:

    source=$(go mod download -json github.com/FerretDB/FerretDB@v1.24.0 | jq -r .Dir)
    cp -r "$source" ferretdb; chmod -R u+w ferretdb; echo v1.24.0 > ferretdb/build/version/version.txt
    (cd ferretdb && go build -o /usr/local/bin/ferretdb ./cmd/ferretdb)
    python3 -m venv tools; tools/bin/pip install pymongo==4.20.1
    sudo tools/bin/python examples/stores/make-captures mongodb
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pymongo.database import Database
    from pymongo.monitoring import CommandFailedEvent, CommandStartedEvent, CommandSucceededEvent

PORT = 27117
PASSWORD = "open sesame"
PRODUCTS = 120
CARTS = 25


def run(folder: Path, output: Path) -> None:
    """Start the server, ask it, and write down what the client saw."""
    # The other cases do without pymongo.
    from pymongo import MongoClient, monitoring

    class Listener(monitoring.CommandListener):
        """Writes down each command when it is over."""

        def __init__(self) -> None:
            self.about: dict[int, str] = {}
            self.lines: list[str] = []

        def started(self, event: CommandStartedEvent) -> None:
            value = event.command.get("collection", event.command.get(event.command_name))
            self.about[event.request_id] = value if isinstance(value, str) else "-"

        def succeeded(self, event: CommandSucceededEvent) -> None:
            errors = event.reply.get("writeErrors") or [{"code": 0}]
            self.over(event, errors[0]["code"])

        def failed(self, event: CommandFailedEvent) -> None:
            self.over(event, event.failure["code"])

        def over(self, event: CommandSucceededEvent | CommandFailedEvent, code: int) -> None:
            words = (event.request_id, event.database_name, event.command_name, self.about[event.request_id],
                     event.duration_micros, code)  # fmt: skip
            self.lines.append(" ".join(map(str, words)))

    listener = Listener()
    with server(folder):
        address = f"mongodb://shop:{PASSWORD.replace(' ', '%20')}@127.0.0.1:{PORT}/?authSource=admin"
        with MongoClient(address, event_listeners=[listener], maxPoolSize=1) as client:
            ask(client.get_database("shop"))
        time.sleep(0.1)
    (output / "commands.txt").write_text("".join(f"{line}\n" for line in listener.lines))


def ask(shop: Database[dict[str, Any]]) -> None:
    """Ask what a shop asks."""
    from pymongo import CursorType
    from pymongo.errors import DuplicateKeyError, OperationFailure

    items, carts = shop["items"], shop["carts"]
    items.insert_many([{"_id": n, "sku": f"sku-{n:03}", "price": n % 40, "text": "x" * 100} for n in range(PRODUCTS)])
    carts.insert_many([{"_id": n, "customer": "hunter2", "item": n} for n in range(CARTS)])
    # One query for the list, and one for each of its rows.
    for cart in carts.find({"customer": "hunter2"}, batch_size=CARTS + 1):
        items.find_one({"sku": f"sku-{cart['item']:03}"})
    list(items.find({"price": {"$gt": 10}}, batch_size=40))
    list(items.aggregate([{"$match": {"price": {"$lt": 5}}}, {"$group": {"_id": "$price", "n": {"$sum": 1}}}]))
    items.count_documents({"price": 7})
    items.distinct("price", {"sku": {"$ne": "sku-001"}})
    items.update_many({"price": 7, "sku": {"$exists": True}}, {"$set": {"price": 8}})
    items.find_one_and_update({"_id": 5}, {"$set": {"price": 1}})
    carts.delete_one({"_id": 3})
    with suppress(DuplicateKeyError):
        items.insert_one({"_id": 1, "sku": "hunter2"})
    with suppress(OperationFailure):
        items.find_one({"price": {"$nosuch": "hunter2"}})
    with suppress(OperationFailure):
        shop.command("nosuch", "hunter2")
    # Who reads what is appended waits for it, not for the server.
    news = shop.create_collection("news", capped=True, size=100_000)
    news.insert_one({"said": "hunter2"})
    for awaited_ms in (None, 400):
        tail = news.find({}, cursor_type=CursorType.TAILABLE_AWAIT, batch_size=1)
        tail.max_await_time_ms(awaited_ms)
        next(tail)
        next(tail, None)
        tail.close()


@contextmanager
def server(folder: Path) -> Iterator[None]:
    """Run FerretDB, which has one user."""
    user = ["--test-enable-new-auth", "--setup-database=admin", "--setup-username=shop", f"--setup-password={PASSWORD}"]
    quiet = ["--debug-addr=-", "--telemetry=disable", "--log-level=ERROR"]
    words = ["ferretdb", "--handler=sqlite", f"--sqlite-url=file:{folder}/", f"--state-dir={folder}",
             f"--listen-addr=127.0.0.1:{PORT}", *user, *quiet]  # fmt: skip
    with (folder / "log").open("wb") as log:
        running = subprocess.Popen(words, stdout=log, stderr=log)
    try:
        time.sleep(2)
        if running.poll() is not None:
            raise RuntimeError((folder / "log").read_text())
        yield
    finally:
        running.terminate()
        running.wait()
