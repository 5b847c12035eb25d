"""Something unrelated beside it changes nothing: every finding stays, and users waited no less."""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import CASES, ON_ALL, capture_of, is_sample, keys_of, name_of
from tests.laws import messy, tier_of
from tests.laws.messy import Capture, Found
from tests.laws.talk import Packet

Beside = Callable[[Capture], Sequence[Packet]]

BESIDE: dict[str, tuple[Beside, ...]] = {
    "logins": (messy.logins,),
    "logins-midstream": (lambda capture: messy.logins(capture, sees_open=False),),
    "monitoring": (messy.scrapes, messy.health_checks),
    "own": (messy.to_themselves, messy.lookups),
}
"""What is put beside each capture: at every host of it, so that no role of a host may matter."""
EXCEPTIONS: dict[tuple[str, str, str], str] = {
    (
        "findings/path-outage",
        kind,
        "path-outage",
    ): "packets of these hosts pass during the outage: it is none of the path"
    for kind in BESIDE
}
"""Capture, what is beside it and the rule that may vanish: the reason for which it is right to."""
CARRIED = {"wild/hsr-prp", "wild/l2tpv3-udp1701", "wild/lt-pktap149-user2", "wild/tzsp-mikrotik"}
"""Their packets lie inside others, which the transformations do not open."""
OURS = [
    case
    for case in CASES
    if case.parent.name in ("findings", "hops", "stores", "wild") and name_of(case) not in CARRIED
]
OFTEN = {
    "findings/early-data-unused", "findings/gap-before-first-request", "findings/keepalive-request-cap",
    "findings/large-result", "findings/path-outage", "findings/repeated-queries-mysql", "findings/server-crypto-slow",
    "findings/slow-requests", "findings/slow-server", "findings/slow-tunnel-far", "hops/nginx-close-http-https-16",
    "wild/dns-conntrack-race",
}  # fmt: skip
"""Where other traffic was once linked with the capture's own, or hid it: always in the thorough tier."""
LEAST = 0.9
"""Of what a finding cost, this remains: where users wait elsewhere too, a second request may count instead."""


def is_tried(name: str) -> bool:
    return ON_ALL or name in OFTEN or is_sample(name, 24)


@cache
def alone(case: Path) -> tuple[dict[Found, int], int]:
    """Give what is found in a capture as it is, and what users waited, in nanoseconds."""
    with messy.read_by_conchart(messy.read(capture_of(case)), keylog=keys_of(case)) as trace:
        return messy.findings_of(trace), messy.waited_of(trace)


EACH = [
    pytest.param(case, marks=tier_of(name), id=name)
    for name, case in zip(map(name_of, OURS), OURS, strict=True)
    if is_tried(name)
]


@pytest.mark.parametrize("kind", BESIDE)
@pytest.mark.parametrize("case", EACH)
def test_something_unrelated_beside_it_changes_nothing(case: Path, kind: str) -> None:
    capture = messy.read(capture_of(case))
    before, waited_ns = alone(case)
    others = (make(capture) for make in BESIDE[kind])
    with messy.read_by_conchart(messy.beside(capture, *others), keylog=keys_of(case)) as trace:
        together = messy.findings_of(trace)
        assert messy.waited_of(trace) >= waited_ns
    gone = [found for found, ns in before.items() if together.get(found, -1) < LEAST * ns]
    assert [found for found in gone if (name_of(case), kind, found.rule) not in EXCEPTIONS] == []
