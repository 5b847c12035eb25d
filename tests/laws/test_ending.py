"""Law: where the end is missing, what keeps somebody waiting at the last packet is told up to there."""

from pathlib import Path

import pytest

from conchart.labels.phases import UNDER_WAY
from conchart.outputs.options import DrawOptions
from conchart.outputs.terminal.screen import first_screen
from conchart.questions.explain import connections, ladder
from conchart.report.report import Report
from tests.conftest import ROOT, capture_of
from tests.laws.messy import read, read_by_conchart, until

CASES = [ROOT / "captures" / "stalls" / name for name in ("zero-window-download-client", "zero-window-upload-server")]
WILD = ROOT / "captures" / "wild" / "zero-window-ends-rst"
STALLS = "SELECT kind, side, start_at, end_at, unfinished FROM stalls WHERE kind = 'zero-window' ORDER BY start_at"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_closed_window_is_told_up_to_the_last_packet(case: Path) -> None:
    capture = read(capture_of(case))
    with read_by_conchart(capture) as trace:
        whole = trace.sql(STALLS).fetchall()
    kind, side, start_at, end_at, unfinished = max(whole, key=lambda row: row[3] - row[2])
    assert not unfinished
    with read_by_conchart(until(capture, end_at)) as trace:
        last_at = trace.sql("SELECT max(closed_at) FROM connections").fetchall()[0][0]
        assert (kind, side, start_at, last_at, True) in trace.sql(STALLS).fetchall()


def test_a_window_that_is_closed_until_the_reset_is_a_stall() -> None:
    with read_by_conchart(read(capture_of(WILD))) as trace:
        rows = trace.sql(STALLS).fetchall()
    assert [(side, round((end_at - start_at) / 1e9), unfinished) for _, side, start_at, end_at, unfinished in rows] == [
        ("server", 30, True)
    ] * 3


@pytest.mark.parametrize(
    ("name", "until_ns", "owed"),
    [
        ("giveup-noack", 5_000_000_000, "the server has owed the response"),
        ("zero-window-ends-rst", 9_000_000_000, "the server has owed the rest of its response"),
    ],
)
def test_what_is_under_way_at_the_last_packet_is_called_unfinished(name: str, until_ns: int, owed: str) -> None:
    capture = read(capture_of(ROOT / "captures" / "wild" / name))
    with read_by_conchart(until(capture, capture.first_at + until_ns), explain=0) as trace:
        shown = " ".join(
            line.plain.strip() for line in first_screen(Report(trace), 100, colours=False, options=DrawOptions())
        )
        facts = dict(ladder(next(iter(connections(trace, 0)))).facts)
        assert trace.fetch("SELECT bool_and(unfinished = count) FROM findings") in ([(True,)], [(None,)])
    assert owed in facts["unfinished"]
    assert UNDER_WAY in shown
