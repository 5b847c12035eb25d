"""Other names, same answer: addresses and clients' ports say nothing about what is wrong."""

from pathlib import Path

import pytest

from tests.conftest import capture_of, keys_of, name_of
from tests.laws import ON_ALL, messy
from tests.laws.messy import Found
from tests.laws.test_beside import OURS, QUICK


def _renamed(found: Found) -> Found:
    server, colon, port = found.server.rpartition(":") if found.server.count(".") else (found.server, "", "")
    return Found(
        found.rule,
        f"{messy.other_address(server)}{colon}{port}" if server else found.server,
        messy.other_address(found.client) if found.client else "",
    )


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=() if case in QUICK else ON_ALL, id=name_of(case)) for case in OURS],
)
def test_other_addresses_and_ports_change_nothing(case: Path) -> None:
    capture = messy.read(capture_of(case))
    keys = {"keylog": keys_of(case)}
    with messy.told(capture, **keys) as trace:
        alone, waited_ns = messy.findings_of(trace), messy.waited_of(trace)
    with messy.told(messy.renumbered(capture), **keys) as trace:
        assert messy.findings_of(trace) == {_renamed(found): ns for found, ns in alone.items()}
        assert messy.waited_of(trace) == waited_ns
