"""Every committed capture tells its story: `expected.txt` is the summary, `exact.txt` the rows, to the letter.

`pytest tests/test_stories.py --update-golden` writes the texts anew; a person reads the difference.
"""

import re
from pathlib import Path

import pytest
from rich.cells import cell_len

from conchart import DrawOptions, Trace
from conchart.outputs.terminal.screen import LINES, first_screen
from conchart.outputs.terminal.sheet import PLAIN_WIDTH
from conchart.report.report import Report
from tests.conftest import CASES, T0
from tests.exact import COLUMNS, MOST_ROWS, exact
from tests.hops.comparison import assert_no_circle


def test_there_are_stories() -> None:
    assert {case.parent.name for case in CASES} >= {"reverse-proxy", "crafted", "h2c"}


def test_capture_tells_its_story(
    every_case: Path, every_trace: Trace, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    every_trace.write(tmp_path / "story.txt")
    told = {"expected.txt": (tmp_path / "story.txt").read_text(), "exact.txt": exact(every_trace)}
    assert_no_circle(every_trace)
    if pytestconfig.getoption("--update-golden"):
        for name, text in told.items():
            (every_case / name).write_text(text)
    assert told == {name: (every_case / name).read_text() for name in told}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.name}")
def test_a_story_is_one_screen_with_an_answer(case: Path) -> None:
    lines = (case / "expected.txt").read_text().splitlines()
    fits(lines, PLAIN_WIDTH)
    answer = lines[: lines.index("")]
    said = [line for line in answer if line.startswith(("serious ", "warning ", "wait "))]
    assert said or answer[0].startswith("Nobody ")


TYPED = re.compile(r" +(.*; )?see: conchart explain .+|in full  conchart findings .+")
"""What is to be typed is whole: a terminal wraps it."""


def fits(lines: list[str], width: int) -> None:
    """Check that a terminal of so many columns shows these lines on one screen."""
    assert max((cell_len(line) for line in lines if not TYPED.fullmatch(line)), default=0) <= width
    assert sum(max(1, -(-cell_len(line) // width)) for line in lines) <= LINES


@pytest.mark.thorough
def test_a_terminal_of_80_columns_shows_one_screen(every_trace: Trace) -> None:
    lines = [line.plain for line in first_screen(Report(every_trace), 80, colours=True, options=DrawOptions())]
    fits(lines, 80)


def test_a_nanosecond_a_name_and_a_frame_change_the_exact_text(story: Trace) -> None:
    before = exact(story)
    assert "0 825000000 925000000 826 926 wait 0 false" in before.splitlines()
    for change in (
        "UPDATE handshakes SET ready_at = ready_at + 1",
        "UPDATE handshakes SET sni = 'shop.example.'",
        "UPDATE exchanges SET target = '/'",
        "UPDATE exchanges SET target = '/ -'",
        "UPDATE phases SET end_frame = end_frame + 1 WHERE kind = 'wait'",
        "UPDATE stalls SET end_at = end_at - 1 WHERE kind = 'rto'",
    ):
        story.execute(change)
        assert exact(story) != before, change
        before = exact(story)


def test_the_exact_text_counts_instants_from_the_first_packet(story: Trace) -> None:
    assert str(T0)[:8] not in exact(story)


def test_what_is_beyond_the_most_rows_is_pinned_too(story: Trace) -> None:
    story.execute(f"INSERT INTO stalls BY NAME SELECT 7 AS stream, {T0} + i AS start_at FROM range({MOST_ROWS}) r(i)")
    before = exact(story).splitlines()
    (rest,) = (line for line in before if line.startswith("…"))
    assert rest.startswith("… 4 more, SHA-256 ")
    assert len(before) == len(COLUMNS) + 3 + 1 + 1 + 8 + MOST_ROWS + 1 + 3
    story.execute(f"UPDATE stalls SET end_frame = 1 WHERE start_at = {T0 + MOST_ROWS - 1}")
    assert exact(story).splitlines() != before
