"""Lines of a chart in text: every stretch lands where its time is."""

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from conchart.labels.phases import PHASE_BY_NAME, PHASES
from conchart.outputs.terminal.strip import Axis, draw_strip
from conchart.outputs.terminal.words import both_ends, fit, flow
from conchart.report.lanes import Stretch

KINDS = st.sampled_from([phase.name for phase in PHASES])


def letters(*stretches: Stretch, end: int, cells: int = 10) -> str:
    return draw_strip(stretches, Axis(0, end, cells, colours=False)).plain


def colours_of(text: Text) -> list[tuple[str, str | None, str | None, bool]]:
    """Per cell: character, foreground, background, swapped."""
    cells = []
    for segment in text.render(Console(color_system="truecolor", width=400)):
        style = segment.style
        for character in segment.text.rstrip("\n"):
            front = style.color.name if style and style.color else None
            back = style.bgcolor.name if style and style.bgcolor else None
            cells.append((character, front, back, bool(style and style.reverse)))
    return cells


def test_letters_stand_where_their_time_is() -> None:
    assert letters(Stretch("syn", 0, 20), Stretch("tls", 20, 60), Stretch("wait", 60, 100), end=100) == "SSTTTTwwww"
    assert letters(Stretch("tls", 50, 70), end=100) == "     TT   "


def test_the_phase_that_fills_most_of_a_cell_takes_it() -> None:
    assert letters(Stretch("syn", 0, 4), Stretch("tls", 4, 10), end=100)[0] == "T"
    assert letters(Stretch("syn", 0, 5), Stretch("tls", 5, 10), end=100)[0] == "S", "the earlier phase wins a tie"


def test_what_has_any_length_is_seen() -> None:
    assert letters(Stretch("request", 999_999, 1_000_000), end=1_000_000) == " " * 9 + "q"


def test_what_has_no_length_is_marked() -> None:
    assert letters(Stretch("unseen", 50, 50), end=100) == "     |    "
    assert letters(Stretch("unseen", 100, 100), end=100) == " " * 9 + "|"
    assert letters(Stretch("unseen", 0, 0), end=0) == "|" + " " * 9


def test_cells_are_split_by_eighths_in_both_colours() -> None:
    strip = draw_strip([Stretch("tls", 0, 11), Stretch("wait", 11, 16)], Axis(0, 16, 2, colours=True))
    tls, wait = PHASE_BY_NAME["tls"].colour.lower(), PHASE_BY_NAME["wait"].colour.lower()
    assert colours_of(strip) == [("█", tls, None, False), ("▍", tls, wait, False)]


def test_a_lane_that_starts_inside_a_cell_swaps_colours() -> None:
    strip = draw_strip([Stretch("tls", 3, 8)], Axis(0, 8, 1, colours=True))
    assert colours_of(strip) == [("▍", PHASE_BY_NAME["tls"].colour.lower(), None, True)]


def test_unseen_is_hatched() -> None:
    assert draw_strip([Stretch("unseen", 0, 8)], Axis(0, 8, 1, colours=True)).plain == "▒"


@given(
    st.lists(st.tuples(KINDS, st.integers(0, 10**9)), max_size=20),
    st.integers(1, 60),
    st.booleans(),
    st.integers(0, 10**9),
)
def test_strips_are_as_wide_as_their_axis(parts: list[tuple[str, int]], cells: int, colours: bool, rest: int) -> None:
    stretches, at = [], 1_700_000_000_000_000_000
    start = at
    for kind, length in parts:
        stretches.append(Stretch(kind, at, at + length))
        at += length
    strip = draw_strip(stretches, Axis(start, at + rest, cells, colours=colours))
    assert strip.cell_len == cells
    assert not stretches or strip.plain.strip(), "no connection is invisible"


@given(st.text(max_size=80), st.integers(0, 40))
def test_fit_is_exact(text: str, width: int) -> None:
    assert Text(fit(text.replace("\n", " "), width)).cell_len == width


def test_fit_keeps_both_ends() -> None:
    assert fit("2001:db8:1234:5678::9abc:51344", 13) == "2001:d…:51344"
    assert fit("ab", 4) == "ab  "


def test_flow_breaks_between_parts() -> None:
    assert [line.plain for line in flow([Text("aaa"), Text("bbb"), Text("cc")], 9)] == ["aaa   bbb", "cc"]
    assert list(flow([], 9)) == []


def test_both_ends_meet_the_edges_and_the_left_one_gives_way() -> None:
    assert both_ends(Text("left"), "right", 15).plain == "left      right"
    assert both_ends(Text("a very long left side"), "right", 20).plain == "a very long …  right"
