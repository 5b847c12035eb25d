"""Other names, same answer: addresses and clients' ports say nothing about what is wrong."""

from pathlib import Path

import pytest

from tests.conftest import ON_ALL, capture_of, is_sample, keys_of, name_of
from tests.laws import messy, tier_of
from tests.laws.messy import Found
from tests.laws.test_beside import OURS, alone


def _renamed(found: Found) -> Found:
    server, colon, port = found.server.rpartition(":") if found.server.count(".") else (found.server, "", "")
    return Found(
        found.rule,
        f"{messy.other_address(server)}{colon}{port}" if server else found.server,
        messy.other_address(found.client) if found.client else "",
    )


EACH = [
    pytest.param(case, marks=tier_of(name), id=name)
    for name, case in zip(map(name_of, OURS), OURS, strict=True)
    if ON_ALL or is_sample(name, 12)
]


@pytest.mark.parametrize("case", EACH)
def test_other_addresses_and_ports_change_nothing(case: Path) -> None:
    before, waited_ns = alone(case)
    with messy.read_by_conchart(messy.renumbered(messy.read(capture_of(case))), keylog=keys_of(case)) as trace:
        assert messy.findings_of(trace) == {_renamed(found): ns for found, ns in before.items()}
        assert messy.waited_of(trace) == waited_ns
