"""Something unrelated beside it changes nothing: every finding stays, and users waited no less."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.conftest import CASES, capture_of, is_sample, keys_of, name_of, quick_cases
from tests.laws import ON_ALL, messy
from tests.laws.messy import Capture
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
QUICK = [case for case in OURS if name_of(case) in quick_cases() and is_sample(name_of(case), 12)]
OFTEN = {
    "findings/early-data-unused", "findings/gap-before-first-request", "findings/keepalive-request-cap",
    "findings/large-result", "findings/path-outage", "findings/repeated-queries-mysql", "findings/server-crypto-slow",
    "findings/slow-requests", "findings/slow-server", "findings/slow-tunnel-far", "hops/nginx-close-http-https-16",
    "wild/dns-conntrack-race",
}  # fmt: skip
"""Where other traffic was once linked with the capture's own, or hid it: always in the thorough tier."""
LEAST = 0.9
"""Of what a finding cost, this remains: where users wait elsewhere too, a second request may count instead."""


def marks_of(case: Path) -> tuple[pytest.MarkDecorator, ...]:
    if case in QUICK:
        return ()
    return (pytest.mark.thorough,) if name_of(case) in OFTEN else ON_ALL


@pytest.mark.parametrize("kind", BESIDE)
@pytest.mark.parametrize("case", [pytest.param(case, marks=marks_of(case), id=name_of(case)) for case in OURS])
def test_something_unrelated_beside_it_changes_nothing(case: Path, kind: str) -> None:
    capture = messy.read(capture_of(case))
    keys = {"keylog": keys_of(case)}
    with messy.told(capture, **keys) as trace:
        alone, waited_ns = messy.findings_of(trace), messy.waited_of(trace)
    with messy.told(messy.beside(capture, *(make(capture) for make in BESIDE[kind])), **keys) as trace:
        together = messy.findings_of(trace)
        assert messy.waited_of(trace) >= waited_ns
    gone = [found for found, ns in alone.items() if together.get(found, -1) < LEAST * ns]
    assert [found for found in gone if (name_of(case), kind, found.rule) not in EXCEPTIONS] == []
