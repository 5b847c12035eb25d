"""Seen twice is one: on both sides of an address translation, on a mirror port, on all interfaces of a router."""

from __future__ import annotations

import heapq
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from ipaddress import ip_address
from pathlib import Path

import pytest

from conchart import Trace
from tests.conftest import CASES, ON_ALL, capture_of, keys_of, name_of
from tests.laws import messy, tier_of
from tests.laws.messy import Capture, Found, Frame

FOLDERS = ("findings", "hops", "stores")
ALIKE = {
    "findings/dns-fails": "two resolvers are asked the same, as behind a translation",
    "findings/gap-before-first-request": "connections side by side are crafted with the same sequence numbers",
    "findings/gap-before-first-request-clean": "connections side by side are crafted with the same sequence numbers",
    "findings/nat-answer-bypass": "both sides of a translation are in it already",
    "findings/nat-answer-bypass-messy": "both sides of a translation are in it already",
}
"""Captures whose connections look like second sights of each other before anything is done to them: the reason."""
EACH = tuple(case for case in CASES if case.parent.name in FOLDERS and name_of(case) not in ALIKE)
LATER_NS = 5_000
"""When a copy comes, in both directions: on loopback, an answer comes sooner than a copy that is earlier."""

Endpoint = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Summary:
    """What conchart says of a capture, as far as it must not change."""

    findings: Mapping[Found, int]
    waited_ns: int
    requests: int
    connections: int
    flows: tuple[tuple[Endpoint, Endpoint], ...]
    """Client and server of each connection that was not captured before already."""


def summary_by_conchart(capture: Capture, case: Path) -> Summary:
    with messy.read_by_conchart(capture, keylog=keys_of(case)) as trace:
        return summary_of(trace)


def summary_of(trace: Trace) -> Summary:
    ((requests, connections),) = trace.sql("SELECT sum(requests), sum(connections) FROM servers").fetchall()
    flows = trace.sql(
        "SELECT client_ip, client_port, server_ip, server_port FROM connections WHERE same_as IS NULL ORDER BY ALL"
    ).fetchall()
    return Summary(
        findings=messy.findings_of(trace),
        waited_ns=messy.waited_of(trace),
        requests=requests,
        connections=connections,
        flows=tuple(((client, port), (server, at)) for client, port, server, at in flows),
    )


@cache
def plain(case: Path) -> tuple[Capture, Summary]:
    capture = messy.read(capture_of(case))
    return capture, summary_by_conchart(capture, case)


def translated(
    capture: Capture, flows: Mapping[frozenset[Endpoint], Endpoint], *, source: bool, server: bool
) -> Capture:
    """Capture every packet on the other side of a translation, too: of the client's end, the server's, or both.

    Args:
        capture: On the side of the clients.
        flows: The client of each pair of ends.
        source: Clients get another address and port.
        server: Servers get them.
    """

    def other(end: Endpoint) -> tuple[bytes, bytes]:
        address, port = end
        last = ip_address(address).packed
        elsewhere = ip_address("2001:db8:77::" if len(last) > 4 else "203.0.113.0").packed[:-1] + last[-1:]
        return elsewhere, struct.pack(">H", port ^ 0x0155)

    def copy(frame: Frame) -> Iterator[Frame]:
        found, place = messy.ends(capture.link, frame.data), messy.where(capture.link, frame.data)
        if found is None or place is None:
            return
        ends = ((found.source, found.source_port), (found.destination, found.destination_port))
        client = flows.get(frozenset(ends))
        if client is None:
            return
        data = bytearray(frame.data)
        for number, end in enumerate(ends):
            if source if end == client else server:
                address, port = other(end)
                data[place.addresses[number]] = address
                data[place.transport + 2 * number : place.transport + 2 * number + 2] = port
        data[place.ip + (7 if place.six else 8)] -= 1
        yield replace(frame, at=frame.at + LATER_NS, data=bytes(data))

    copies = sorted((one for frame in capture.frames for one in copy(frame)), key=lambda frame: frame.at)
    return replace(capture, frames=tuple(heapq.merge(capture.frames, copies, key=lambda frame: frame.at)))


def routed(capture: Capture) -> Capture:
    """Capture every packet before and behind a router."""

    def copy(frame: Frame) -> Frame:
        place = messy.where(capture.link, frame.data)
        if place is None:
            return replace(frame, at=frame.at + LATER_NS)
        data = bytearray(frame.data)
        data[place.ip + (7 if place.six else 8)] -= 1
        return replace(frame, at=frame.at + LATER_NS, data=bytes(data))

    return replace(
        capture,
        frames=tuple(heapq.merge(capture.frames, map(copy, capture.frames), key=lambda frame: frame.at)),
    )


def _translating(*, source: bool, server: bool) -> Callable[[Capture, Summary], Capture]:
    def transform(capture: Capture, summary: Summary) -> Capture:
        flows = {frozenset(ends): ends[0] for ends in summary.flows}
        return translated(capture, flows, source=source, server=server)

    return transform


WAYS: dict[str, Callable[[Capture, Summary], Capture]] = {
    "source": _translating(source=True, server=False),
    "destination": _translating(source=False, server=True),
    "both": _translating(source=True, server=True),
    "mirror": lambda capture, _: messy.twice(capture),
    "router": lambda capture, _: routed(capture),
}


def _cases() -> Iterator[object]:
    """Each capture in each way; of every twelfth capture, one way is tried."""
    for number, case in enumerate(EACH):
        for place, way in enumerate(WAYS):
            is_tried = number % 12 == 0 and number // 12 % len(WAYS) == place
            name = name_of(case)
            if ON_ALL or is_tried:
                yield pytest.param(case, way, id=f"{name}-{way}", marks=tier_of(name))


@pytest.mark.parametrize(("case", "way"), [*_cases()])
def test_what_is_captured_twice_is_told_once(case: Path, way: str) -> None:
    capture, expected = plain(case)
    twice = summary_by_conchart(WAYS[way](capture, expected), case)
    assert twice == expected
