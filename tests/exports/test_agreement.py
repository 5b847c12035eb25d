"""What is written for the viewers of other tools is what the tables say, capture by capture."""

from pathlib import Path

import pytest

import conchart
from tests.conftest import ROOT
from tests.exports.test_har import har_agrees
from tests.exports.test_otlp import spans_agree
from tests.exports.test_perfetto import events_agree

CASES = sorted(
    path.parent
    for lesson in ("hops", "reverse-proxy", "multiplexed", "udp")
    for path in (ROOT / "captures" / lesson).glob("*/input.pcap*")
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.name}")
@pytest.mark.thorough
def test_formats_say_what_the_tables_say(case: Path, tmp_path: Path) -> None:
    (capture,) = case.glob("input.pcap*")
    keys = case / "keys.log"
    with conchart.read(capture, keylog=[keys] if keys.exists() else []) as trace:
        events_agree(trace, tmp_path)
        spans_agree(trace, tmp_path)
        har_agrees(trace, tmp_path)
