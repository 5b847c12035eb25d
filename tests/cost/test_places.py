"""The law of cost for places: four times as many connections cost four times as much.

Of places that share no packets, and of places that share connections without a beginning which all look alike.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from random import Random

import dpkt
import pytest

from conchart import Trace
from conchart.analysis import plan
from conchart.analysis.findings.rule import chosen_thresholds
from conchart.reading import places as reading
from conchart.reading.knowledge import Knowledge
from conchart.reading.options import ReadOptions
from conchart.reading.source import Source
from tests.cost.meter import Costs, Metered

SIZE, TIMES = 150, 4
MOST_GROWTH = 1.1 * TIMES
LITTLE = 25 * SIZE
MS, SECOND = 10**6, 10**9
Make = Callable[[int, Path], dict[str, list[str]]]
AHEAD_NS = 3 * 3_600 * SECOND
RESET = 100
"""Requests have so many different targets at most, so that some look the same."""
_FLAGS = {"S": dpkt.tcp.TH_SYN, "A": dpkt.tcp.TH_ACK, "P": dpkt.tcp.TH_PUSH, "F": dpkt.tcp.TH_FIN}
CLIENT, FRONT, BACK, APP = (bytes([10, 9, one, 1]) for one in range(4))


def write(to: Path, ends: tuple[bytes, bytes], requests: list[tuple[int, int, str]], *, alike: bool = False) -> None:
    """Write a connection for each request: when it comes, how long the answer takes, its target.

    With ``alike``, they have no beginning, and the same sequence numbers.
    """
    packets: list[tuple[int, bytes]] = []
    for number, (at, lasts_ns, target) in enumerate(requests):
        request = f"GET {target} HTTP/1.1\r\nHost: a.example\r\n\r\n".encode()
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789"
        sent = (
            (-3, 0, "S", b""), (-2, 1, "SA", b""), (-1, 0, "A", b""), (0, 0, "PA", request),
            (lasts_ns, 1, "PA", answer), (lasts_ns + 1, 0, "A", b""),
            (lasts_ns + 2, 0, "FA", b""), (lasts_ns + 3, 1, "FA", b""), (lasts_ns + 4, 0, "A", b""),
        )  # fmt: skip
        ports, seqs = (
            (1024 + number % 60_000, 80),
            [7, 9] if alike else [1_000 * number + 7 + (ends[0][2] << 28), 2_000 * number + 9 + (ends[0][2] << 27)],
        )
        for after_ns, sender, flags, data in sent[3:] if alike else sent:
            tcp = dpkt.tcp.TCP(
                sport=ports[sender], dport=ports[1 - sender], seq=seqs[sender],
                ack=seqs[1 - sender] if "A" in flags else 0, flags=sum(_FLAGS[flag] for flag in flags), data=data,
            )  # fmt: skip
            ip = dpkt.ip.IP(src=ends[sender], dst=ends[1 - sender], p=dpkt.ip.IP_PROTO_TCP, data=tcp, id=len(packets))
            ip.len = 40 + len(data)
            packets.append((at + after_ns, bytes(ip)))
            seqs[sender] += len(data) + ("S" in flags) + ("F" in flags)
    packets.sort()
    with to.open("wb") as file:
        file.write(struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, dpkt.pcap.DLT_RAW))
        for at, raw in packets:
            file.write(struct.pack("<IIII", at // SECOND, at % SECOND, len(raw), len(raw)) + raw)


def made(size: int, folder: Path) -> dict[str, list[str]]:
    """Write what a client asks, and what a proxy that nobody captured asks an application."""
    chance, at = Random(size), 1_700_000_000 * SECOND
    here, there = [], []
    for number in range(size):
        at += chance.randint(5 * MS, 300 * MS)
        target = f"/{number}" if number % 3 else f"/often-{number % RESET}"
        lasts_ns = chance.randint(2 * MS, 20 * MS)
        here.append((at, lasts_ns + 20 * MS, target))
        there.append((at + 9 * MS + AHEAD_NS, lasts_ns, target))
    write(folder / "client.pcap", (CLIENT, FRONT), here)
    write(folder / "app.pcap", (BACK, APP), there)
    return {place: [str(folder / f"{place}.pcap")] for place in ("client", "app")}


def made_alike(size: int, folder: Path) -> dict[str, list[str]]:
    """Write connections of which both places saw the same packets, and which only their ports tell apart."""
    requests = [(1_700_000_000 * SECOND + number * 30 * MS, 5 * MS, "/page") for number in range(size)]
    for place in ("client", "app"):
        write(folder / f"{place}.pcap", (CLIENT, APP), requests, alike=True)
    return {place: [str(folder / f"{place}.pcap")] for place in ("client", "app")}


def cost_of(places: dict[str, list[str]], check: Callable[[Trace], None]) -> Costs:
    costs = Costs()
    with Trace(Metered(costs)) as trace:  # type: ignore[arg-type]  # a database but for its class
        trace.create()
        source = Source(places={place: tuple(files) for place, files in places.items()})
        reading.read(trace, source, ReadOptions(), Knowledge())
        check(trace)
    return costs


def link(trace: Trace) -> None:
    """Link the requests and say where their time was spent."""
    ((offset_ns, half_ns),) = trace.stored(
        "SELECT offset_ns, uncertainty_ns FROM clocks WHERE method = 'likeness'"
    ).fetchall()
    assert abs(offset_ns - AHEAD_NS) <= half_ns < 20 * MS
    steps = plan(trace, rules=(), thresholds=chosen_thresholds({}))
    trace.owe(steps)
    trace.provide("links", "phase_places")
    ((linked,),) = trace.stored("SELECT count(*) FROM links WHERE method = 'likeness'").fetchall()
    assert linked > SIZE // 2


def are_shared(trace: Trace) -> None:
    """Both places saw each connection."""
    ((connections, shared),) = trace.stored("SELECT connections, shared FROM places WHERE reference").fetchall()
    assert connections == shared >= SIZE


@pytest.mark.parametrize(("make", "check"), [(made, link), (made_alike, are_shared)], ids=["apart", "alike"])
def test_no_step_grows_faster_than_the_captures(make: Make, check: Callable[[Trace], None], tmp_path: Path) -> None:
    costs = []
    for size in (SIZE, TIMES * SIZE):
        (folder := tmp_path / str(size)).mkdir()
        costs.append(cost_of(make(size, folder), check))
    small, large = costs
    grown = {
        (what, place): (before[place], count)
        for what, before, after in (("rows", small.rows, large.rows), ("fetched", small.fetched, large.fetched))
        for place, count in after.items()
        if count > MOST_GROWTH * max(before[place], LITTLE)
    }
    assert not grown
