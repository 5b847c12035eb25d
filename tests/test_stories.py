"""Every committed capture tells its story: the terminal's summary is `expected.txt`, to the letter.

`pytest tests/test_stories.py --update-golden` writes the texts anew; a person reads the difference.
"""

from pathlib import Path

import pytest

import conchart
from tests.conftest import ROOT

CASES = sorted(path.parent for path in (ROOT / "captures").glob("*/*/input.pcap*"))


def test_there_are_stories() -> None:
    assert {case.parent.name for case in CASES} >= {"reverse-proxy", "crafted", "h2c"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.name}")
def test_capture_tells_its_story(
    case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    monkeypatch.chdir(ROOT)
    (capture,) = case.relative_to(ROOT).glob("input.pcap*")
    with conchart.read(capture) as trace:
        trace.write(tmp_path / "story.txt")
    told = (tmp_path / "story.txt").read_text()
    if pytestconfig.getoption("--update-golden"):
        (case / "expected.txt").write_text(told)
    assert told == (case / "expected.txt").read_text()


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.name}")
def test_phases_of_a_story_tile_every_connection(case: Path) -> None:
    (capture,) = case.glob("input.pcap*")
    with conchart.read(capture) as trace:
        wrong = trace.sql(
            """
            SELECT stream FROM connections LEFT JOIN (
                SELECT stream, min(start_at) AS first, max(end_at) AS last, sum(end_at - start_at) AS total
                FROM phases GROUP BY stream
            ) USING (stream)
            WHERE closed_at > opened_at AND (first, last, total) IS DISTINCT FROM
                (opened_at, closed_at, closed_at - opened_at)
            """
        )
        assert wrong.fetchall() == []
