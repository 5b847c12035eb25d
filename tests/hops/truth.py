"""What is true of the captures of ``examples/hops``, in the words of conchart's tables.

``truth.csv`` has ends of connections, numbers and times, as client and servers wrote them down; here they become
streams and numbers of exchanges. Exchanges that conchart does not see (in TLS, without keys) are
told apart.
"""

from __future__ import annotations

import csv
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import conchart

Link = tuple[int, int, int, int]
"""Front stream, front exchange, back stream, back exchange."""
Ends = tuple[str, int, str, int]
AT = "at+"
"""Begins the number of an exchange whose instant is exact: of those that begin then, it is this one."""
SLACK_NS = 2_000_000
"""A proxy's own log counts milliseconds: what it wrote down may seem to be older than its connection."""


@dataclass(frozen=True)
class Truth:
    """The links of a capture."""

    links: set[Link] = field(default_factory=set)
    """Both exchanges are in the tables."""
    unseen: list[dict[str, str]] = field(default_factory=list)
    """Lines of truth.csv: one exchange or both are not in the tables, or it is not known which they are.

    The latter where conchart infers exchanges inside TLS and their number is not that of the requests.
    """
    unjudged: set[int] = field(default_factory=set)
    """Streams with such exchanges: of what is linked to them, nobody knows whether it is right."""
    attributed: set[tuple[int, int]] | None = None
    """The only back exchanges of which it is known whose they are; None: of all."""


def truth_of(case: Path) -> set[Link]:
    """Return the links of a capture both of whose exchanges conchart sees."""
    with open_case(case) as trace:
        return read_truth(case, trace).links


def open_case(case: Path) -> conchart.Trace:
    """Read a case's capture, with its keys where they are kept."""
    keys = case / "keys.log"
    return conchart.read(case / "input.pcap", keylog=[keys] if keys.exists() else [])


def read_truth(case: Path, trace: conchart.Trace) -> Truth:
    """Say what is true of a capture that ``trace`` has.

    Raises:
        ValueError: the capture lacks a connection of the truth.
    """
    streams: dict[Ends, list[tuple[int, int]]] = defaultdict(list)
    for stream, opened_at, *ends in trace.sql(
        "SELECT stream, opened_at, client_ip, client_port, server_ip, server_port FROM connections ORDER BY opened_at"
    ).fetchall():
        streams[tuple(ends)].append((opened_at, stream))
    # What announces the client (PROXY protocol) is no request, but has a number of its own.
    seen = {
        stream: (numbers, counts, inferred)
        for stream, numbers, counts, inferred in trace.sql(
            """
            SELECT stream, list(number ORDER BY number), [count(*), count(response_at)], bool_or(inferred)
            FROM exchanges WHERE protocol <> 'proxy' GROUP BY stream
            """
        ).fetchall()
    }
    found = list(rows(case / "truth.csv"))
    if found and found[0]["front_exchange"].startswith(AT):
        return _at_instants(found, streams, trace)
    ends = [(row, _place(row, "front", streams), _place(row, "back", streams)) for row in found]
    request_counts: dict[int, int] = defaultdict(int)
    for _, *places in ends:
        for stream, place in places:
            request_counts[stream] = max(request_counts[stream], place + 1)

    def number(stream: int, place: int) -> int | None:
        numbers, counts, inferred = seen.get(stream, ([], [], False))
        # A last request may stay without response, and then without a link.
        miscounted = inferred and request_counts[stream] not in counts
        return None if miscounted or place >= len(numbers) else numbers[place]

    truth = Truth()
    for row, front, back in ends:
        front_exchange, back_exchange = number(*front), number(*back)
        if front_exchange is None or back_exchange is None:
            truth.unseen.append(row)
            truth.unjudged.update((front[0], back[0]))
        else:
            truth.links.add((front[0], front_exchange, back[0], back_exchange))
    return truth


def _at_instants(
    found: Iterable[dict[str, str]], streams: dict[Ends, list[tuple[int, int]]], trace: conchart.Trace
) -> Truth:
    """Say what is true where exchanges are named by the packets in which they begin, and their place in these."""
    begun: dict[tuple[int, int], list[int]] = defaultdict(list)
    for stream, number, at in trace.sql("SELECT stream, number, request_at FROM exchanges ORDER BY ALL").fetchall():
        begun[stream, at].append(number)

    def exchange(row: dict[str, str], side: str) -> tuple[int, int] | None:
        stream, _ = _place(row, side, streams)
        numbers = begun[stream, int(row[f"{side}_at"])]
        place = int(row[f"{side}_exchange"].removeprefix(AT))
        return (stream, numbers[place]) if place < len(numbers) else None

    truth = Truth(attributed=set())
    for row in found:
        front, back = exchange(row, "front"), exchange(row, "back")
        if front is None or back is None:
            truth.unseen.append(row)
        else:
            truth.links.add((*front, *back))
    assert truth.attributed is not None
    truth.attributed.update(link[2:] for link in truth.links)
    return truth


def rows(path: Path) -> Iterator[dict[str, str]]:
    """Yield the lines of a truth.csv."""
    with path.open(newline="") as file:
        yield from csv.DictReader(file)


def _place(row: dict[str, str], side: str, streams: dict[Ends, list[tuple[int, int]]]) -> tuple[int, int]:
    """Return the stream of one side's exchange, the last one open by then, and how many requests came before on it."""
    ip, port, server_ip, server_port, number, at = (
        row[f"{side}_{name}"] for name in ("client_ip", "client_port", "server_ip", "server_port", "exchange", "at")
    )
    candidates = streams[ip, int(port), server_ip, int(server_port)]
    before = bisect_right(candidates, (int(at) + SLACK_NS, -1))
    if not before:
        raise ValueError(f"no connection from {ip}:{port} to {server_ip}:{server_port} at {at}")
    return candidates[before - 1][1], int(number.removeprefix(AT))
