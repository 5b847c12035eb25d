"""Every committed capture tells its story: `exact.txt` has its rows, to the letter; its first screen keeps the laws.

A few captures have the first screen in `expected.txt`, those that `python -m tests.phrases` chooses: they show every
phrase that the screens of all captures show. `pytest tests/test_stories.py --update-golden` writes the texts anew; a
person reads the difference.
"""

import re
from functools import cache
from pathlib import Path

import pytest
from rich.cells import cell_len

import conchart
from conchart import DrawOptions, Trace
from conchart.outputs.terminal.screen import LINES, first_screen
from conchart.outputs.terminal.sheet import PLAIN_WIDTH
from conchart.report.report import Report
from tests.conftest import CASES, IN_PLACES, ROOT, T0, capture_of, name_of, read_story
from tests.exact import COLUMNS, MOST_ROWS, exact
from tests.hops.comparison import assert_no_circle
from tests.phrases import EXPECTED, LABELS, LEGEND, phrases_of

SHOWN = {name_of(case): case / EXPECTED for case in (*CASES, *IN_PLACES) if (case / EXPECTED).exists()}


def test_there_are_stories() -> None:
    assert {case.parent.name for case in CASES} >= {"reverse-proxy", "crafted", "h2c"}


def test_capture_tells_its_story(
    every_case: Path, every_trace: Trace, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    assert_no_circle(every_trace)
    compare(every_case / "exact.txt", exact(every_trace), pytestconfig)
    screen = screen_of(every_trace, tmp_path)
    is_one_screen_with_an_answer(screen)
    fits([line.plain for line in first_screen(Report(every_trace), 80, colours=True, options=DrawOptions())], 80)
    assert_shown(every_case, screen, pytestconfig)


def test_several_places_tell_their_story(
    every_place: Path, placed_trace: Trace, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    screen = screen_of(placed_trace, tmp_path)
    says_who_waited(screen)
    assert_shown(every_place, screen, pytestconfig)


def screen_of(trace: Trace, folder: Path) -> str:
    """Give what the terminal shows, as a file."""
    trace.write(folder / "story.txt")
    return (folder / "story.txt").read_text(encoding="utf-8")


def compare(golden: Path, text: str, pytestconfig: pytest.Config) -> None:
    """Compare a text with what it was, or write it anew."""
    if pytestconfig.getoption("--update-golden"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def assert_shown(case: Path, screen: str, pytestconfig: pytest.Config) -> None:
    """Check that the capture's own text is this one, or those of others show all that it shows."""
    if golden := SHOWN.get(name_of(case)):
        compare(golden, screen, pytestconfig)
    elif not pytestconfig.getoption("--update-golden"):  # other processes may be writing just now
        assert phrases_of(screen) <= shown(), f"no {EXPECTED} shows it: python -m tests.phrases"


@cache
def shown() -> set[str]:
    """Give the phrases of all texts that are kept."""
    return set().union(*(phrases_of(path.read_text(encoding="utf-8")) for path in SHOWN.values()))


def test_the_texts_that_are_kept_show_each_label_phase_and_stall() -> None:
    assert shown() >= {*LABELS, *LEGEND}


def test_few_texts_are_kept() -> None:
    assert 10 * len(SHOWN) <= len(CASES)


def says_who_waited(screen: str) -> list[str]:
    """Check the answer, that each line fits and that nothing is empty where a value belongs; give the lines."""
    lines = screen.splitlines()
    assert max(cell_len(line) for line in lines if not TYPED.fullmatch(line)) <= PLAIN_WIDTH
    answer = lines[: lines.index("")]
    entries = [line for line in answer if line.startswith(("serious ", "warning ", "wait "))]
    assert entries or answer[0].startswith("Nobody ")
    assert not re.search(r"\b(None|nan|inf)\b| \(\)| [,;]", screen)
    return lines


def is_one_screen_with_an_answer(screen: str) -> None:
    fits(says_who_waited(screen), PLAIN_WIDTH)


def test_several_captures_have_one_screen(tmp_path: Path) -> None:
    captures = [capture_of(ROOT / "captures/crafted" / name) for name in ("gap", "zero-window")]
    with conchart.read(*captures) as trace:
        screen = screen_of(trace, tmp_path)
    is_one_screen_with_an_answer(screen)
    assert f"{captures[0]} and 1 more file: " in " ".join(screen.split())


TYPED = re.compile(r" +(.*; )?see: conchart explain .+|in full  conchart findings .+")
"""What is to be typed is whole: a terminal wraps it."""


def fits(lines: list[str], width: int) -> None:
    """Check that a terminal of so many columns shows these lines on one screen."""
    assert max((cell_len(line) for line in lines if not TYPED.fullmatch(line)), default=0) <= width
    assert sum(max(1, -(-cell_len(line) // width)) for line in lines) <= LINES


@pytest.mark.parametrize("width", [80, 160])
@pytest.mark.parametrize("case", ["loss", "queue"])
def test_several_places_have_one_screen_of_any_width(case: str, width: int) -> None:
    """Three findings with long changes, and lines about the places."""
    with read_story(ROOT / "captures/places" / case) as trace:
        screen = first_screen(Report(trace), width, colours=False, options=DrawOptions())
    fits([line.plain for line in screen], width)


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
