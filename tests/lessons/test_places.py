"""The lab of several places stands where it can, and what it writes is true."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.lessons.running import make_captures, skip_unless_root_with
from tests.places.truth import Truth

LESSON = ROOT / "examples/places"
PROGRAMS = ("ip", "tcpdump", "openssl", "nginx", "haproxy", "dnsmasq", "dig", "curl", "sysctl")


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("case", "tools"), [("loss", ()), ("nat", ("nft",)), ("one-host", ())])
def test_a_case_is_made_and_every_packet_is_accounted_for(case: str, tools: tuple[str, ...], tmp_path: Path) -> None:
    skip_unless_root_with([*PROGRAMS, *tools])
    make_captures("places", "--to", str(tmp_path / "out"), "--right", case, temporary=tmp_path / "temporary")
    truth = Truth(tmp_path / "out" / case)
    assert bool(truth.losses) == (case != "one-host")
    for here, there in pairwise(truth.captures):
        assert not truth.unaccounted(here, there)
        assert bool(truth.sightings(here, there)) == ((here, there) != ("client", "bridge"))


def test_the_lesson_s_table_is_that_of_its_results() -> None:
    results = json.loads((LESSON / "results.json").read_text())
    rows = [line for line in (LESSON / "README.md").read_text().splitlines() if line.endswith(" ms |")]
    for leg, row in zip(("client", "lb, from the client", "lb, to the app", "app"), rows, strict=True):
        waits = [f"{results[case][leg]} ms" for case in results]
        assert [cell.strip() for cell in row.split("|")[2:-1]] == waits
