"""Which packets have a gap before them, held against tshark.

tshark also marks packets without data, and of several behind one gap the first, with data or not: only those with data
are compared.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import conchart
from tests.conftest import ROOT, sampled
from tests.tshark import ask, needs_tshark

CORPUS = os.environ.get("CONCHART_CORPUS")
OURS = ("crafted/gap", "crafted/reordering", "stalls/fast-retransmit-*", "stalls/pmtu-*", "stalls/rto-*")
OF_OTHERS = (
    "suricataverify__http-gap-double.pcap",
    "suricataverify__http-gap-simple.pcap",
    "zeek__http-entity_gap.pcap",
    "zeek__http-zero-length-bodies-with-drops.pcap",
)

pytestmark = needs_tshark


def captures() -> Iterator[Path]:
    for pattern in OURS:
        yield from sorted(ROOT.glob(f"captures/{pattern}/input.pcap"))
    yield from (path for name in OF_OTHERS if CORPUS and (path := Path(CORPUS) / name).exists())


def marked(capture: Path) -> list[int]:
    with conchart.read(capture) as trace:
        rows = trace.sql("SELECT frame FROM packets WHERE mark = 'gap' ORDER BY frame").fetchall()
    return [frame for (frame,) in rows]


def missed(capture: Path) -> list[int]:
    selected = "tcp.analysis.lost_segment && tcp.len > 0"
    text = ask(["-n", "-r", str(capture), "-Y", selected, "-T", "fields", "-e", "frame.number"])
    return [int(line) for line in text.splitlines()]


def test_there_are_gaps_to_compare() -> None:
    assert sum(len(marked(capture)) for capture in captures()) >= 12


@pytest.mark.timeout(60)
@pytest.mark.parametrize("capture", sampled(captures(), 3), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_gap_is_where_tshark_misses_the_previous_segment(capture: Path) -> None:
    assert marked(capture) == missed(capture)
