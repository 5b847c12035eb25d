"""Which back exchange came of which front exchange: a join of what both ends of each leg wrote down, by the id.

In: a folder with ``leg-N*.csv``, the first leg being the client's. Out: ``truth.csv``. Nothing of conchart's is used,
and the capture only to check that it has every connection.
"""

from __future__ import annotations

import csv
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

END = ("client_ip", "client_port", "server_ip", "server_port", "exchange", "at")
COLUMNS = ("tier", *(f"{side}_{name}" for side in ("front", "back") for name in END))


class UnfitRunError(Exception):
    """The capture does not have what the logs have."""


@dataclass(frozen=True)
class Request:
    """A request on one leg."""

    connection: tuple[str, str, str, str]
    exchange: int
    at: int
    """Nanoseconds since the Unix epoch: when the end that wrote it down sent it, or was sent its head."""

    @property
    def row(self) -> tuple[object, ...]:
        """What truth.csv has of it."""
        return (*self.connection, self.exchange, self.at)


def write_truth(folder: Path, capture: Path, truth: Path) -> int:
    """Join the logs in ``folder`` and write ``truth``; returns how many links there are.

    Raises:
        UnfitRunError: a connection of the logs is not in the capture.
    """
    legs = list(read_legs(folder))
    opened = connections(capture)
    rows = []
    for tier, (fronts, backs) in enumerate(zip(legs, legs[1:], strict=False)):
        for number, requests in fronts.items():
            for front in requests:
                rows += [(tier, *front.row, *back.row) for back in backs[number] if back.connection != front.connection]
                if front.connection not in opened:
                    raise UnfitRunError(f"{capture.name} lacks {front}")
        if missing := {each.connection for found in backs.values() for each in found} - opened:
            raise UnfitRunError(f"{capture.name} lacks {missing}")
    with truth.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(sorted(rows, key=lambda row: (row[0], row[6])))
    return len(rows)


def read_legs(folder: Path) -> Iterator[dict[str, list[Request]]]:
    """Yield of each leg what was asked on it, by id."""
    for number in range(10):
        found = defaultdict(list)
        logs = sorted(folder.glob(f"leg-{number}*.csv"))
        for log in logs:
            for *connection, exchange, identifier, at in csv.reader(log.open()):
                if identifier:
                    found[identifier].append(Request(tuple(connection), int(exchange), int(at)))
        if not logs:
            return
        yield found


def from_nginx(diary: Path, leg: Path) -> None:
    """Turn what nginx wrote down into the form of the other ends' logs: it counts from 1, and in milliseconds."""
    with leg.open("w") as file:
        for line in diary.read_text().splitlines():
            *connection, requests, cookie, done, taken = line.split(",")
            at = (int(done.replace(".", "")) - int(taken.replace(".", ""))) * 1_000_000
            file.write(",".join([*connection, str(int(requests) - 1), cookie.partition(".")[0], str(at)]) + "\n")


def connections(capture: Path) -> set[tuple[str, str, str, str]]:
    """Return the ends of every connection that the capture has a SYN of."""
    words = ["tcpdump", "-nn", "-t", "-r", str(capture), "tcp[tcpflags] & (tcp-syn|tcp-ack) == tcp-syn"]
    output = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    found = set()
    for line in output.splitlines():
        words = line[line.index("IP ") :].split()
        ends = [word.rstrip(":").rpartition(".") for word in (words[1], words[3])]
        found.add((ends[0][0], ends[0][2], ends[1][0], ends[1][2]))
    return found
