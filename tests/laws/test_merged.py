"""Captures merged whose hosts share nothing: what is found and waited in the whole is what is in the parts."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path

import pytest

from conchart import Trace
from tests.conftest import ON_ALL, capture_of, keys_of, name_of
from tests.laws import messy
from tests.laws.test_beside import OURS

EVERY = 12
"""Of so many pairs, one is merged always."""
LATER_NS = 137_731_000
"""The second begins so much later: captures that the same script made do the same at the same times."""
WAITS = """
    SELECT server_ip, server_port, phase::VARCHAR, owner::VARCHAR, sum(waited_ns)::BIGINT
    FROM wait_owners GROUP BY ALL HAVING sum(waited_ns) > 0 ORDER BY ALL
"""


def elsewhere(address: str) -> str:
    """Give the same host of another network: as long when written, and as private as before."""
    found = ip_address(address)
    packed = bytearray(found.packed)
    if found.version == 6:
        packed[5] ^= 1
    else:
        place = 2 if found.is_private and packed[0] != 10 else 1
        packed[place] = {1: 9, 2: 109, 3: 355}[len(str(packed[place]))] - packed[place]
    return str(ip_address(bytes(packed)))


def link_of(case: Path) -> int:
    """Give the link type of a capture's first interface."""
    data = capture_of(case).read_bytes()[:512]
    if data[:4] == b"\n\r\r\n":
        order = "<" if data[8:12] == b"\x4d\x3c\x2b\x1a" else ">"
        (section,) = struct.unpack_from(f"{order}I", data, 4)
        return int(struct.unpack_from(f"{order}H", data, section + 8)[0])
    order = "<" if data[0] in b"\xd4\x4d" else ">"
    return int(struct.unpack_from(f"{order}I", data, 20)[0] & 0xFFFF)


def pairs() -> Iterator[object]:
    """Neighbours of the same link type: each capture is in one pair."""
    cases = sorted(OURS, key=link_of)
    for number, (one, other) in enumerate(zip(cases[::2], cases[1::2], strict=False)):
        if link_of(one) == link_of(other) and (ON_ALL or not number % EVERY):
            yield pytest.param(one, other, id=f"{name_of(one)}+{name_of(other)}", marks=pytest.mark.thorough)


def addresses(trace: Trace) -> set[str]:
    """Give the addresses of all connections, also of those inside tunnels."""
    rows = trace.sql("SELECT client_ip FROM connections UNION SELECT server_ip FROM connections").fetchall()
    return {address for (address,) in rows}


def is_loopback(address: str) -> bool:
    """Tell whether the address is that of the capturing host itself."""
    return ip_address(address).is_loopback


def summary_of(trace: Trace) -> tuple[Counter[object], int, Counter[object]]:
    """Give the findings with their costs, what users waited in all, and for what."""
    findings: Counter[object] = Counter(messy.findings_of(trace))
    waits: Counter[object] = Counter({tuple(row[:4]): row[4] for row in trace.sql(WAITS).fetchall()})
    return findings, messy.waited_of(trace), waits


@pytest.mark.parametrize(("one", "other"), [*pairs()])
def test_the_whole_is_its_parts(one: Path, other: Path) -> None:
    try:
        first, second = (messy.read(capture_of(case)) for case in (one, other))
    except ValueError as error:
        pytest.skip(str(error))
    second = messy.with_other_cards(messy.renumbered(second, elsewhere))
    keys = [keys for case in (one, other) if (keys := keys_of(case))]
    parts, addresses_of = [], []
    for capture in (first, second):
        with messy.read_by_conchart(capture, keylog=keys) as trace:
            parts.append(summary_of(trace))
            addresses_of.append(addresses(trace))
    if addresses_of[0] & addresses_of[1] or any(map(is_loopback, addresses_of[1])):
        pytest.skip("both have the same hosts: in a tunnel, or the host that captured")
    second = messy.moved(second, first.first_at + LATER_NS - second.first_at)
    with messy.read_by_conchart(messy.beside(first, second), keylog=keys) as trace:
        findings, waited_ns, waits = summary_of(trace)
    (findings_one, waited_one, waits_one), (findings_other, waited_other, waits_other) = parts
    assert findings == findings_one + findings_other
    assert waited_ns == waited_one + waited_other
    assert waits == waits_one + waits_other
