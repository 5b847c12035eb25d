#!/usr/bin/env python3
"""Measure how long each place of the lesson's captures waited for its responses; writes results.json.

    python3 examples/places/results.py

A wait lasts from the last packet of a request to the first of its response, as one place saw both: by one clock, so
that no clock has to be right. Needs dpkt.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import dpkt

HERE = Path(__file__).resolve().parent
CAPTURES = HERE.parents[1] / "captures" / "places"
CASES = ("whose-fault-1", "whose-fault-2", "whose-fault-3")
LEGS = {
    "client": ("client", 443),
    "lb, from the client": ("lb", 443),
    "lb, to the app": ("lb", 8080),
    "app": ("app", 8080),
}
LONGEST_HANDSHAKE_MS = 25
"""Turns of TLS handshakes are not longer here, and waits are."""


def main() -> None:
    """Measure and write."""
    results = {case: {leg: middle_ms(case, *where) for leg, where in LEGS.items()} for case in CASES}
    (HERE / "results.json").write_text(json.dumps(results, indent=2) + "\n")


def middle_ms(case: str, place: str, port: int) -> float:
    """Return the median wait, in milliseconds."""
    waits = [wait / 1e6 for wait in waits_ns(CAPTURES / case / f"{place}.pcap", port)]
    return round(median(wait for wait in waits if port != 443 or wait > LONGEST_HANDSHAKE_MS), 1)


def waits_ns(capture: Path, port: int) -> Iterator[int]:
    """Yield the time between a client's last packet with data and the server's next one."""
    last: dict[tuple[bytes, int], int] = {}
    with capture.open("rb") as file:
        reader = dpkt.pcap.Reader(file)
        cooked = reader.datalink() == dpkt.pcap.DLT_LINUX_SLL2
        for at, raw in reader:
            ip = dpkt.sll2.SLL2(raw).data if cooked else dpkt.ip.IP(raw)
            tcp = ip.data
            if not isinstance(tcp, dpkt.tcp.TCP) or not tcp.data or port not in (tcp.sport, tcp.dport):
                continue
            if tcp.dport == port:
                last[ip.src, tcp.sport] = int(at * 10**9)
            elif (ip.dst, tcp.dport) in last:
                yield int(at * 10**9) - last.pop((ip.dst, tcp.dport))


if __name__ == "__main__":
    main()
