"""What is shown of a large connection: its beginning, its end, and what matters between them."""

from hypothesis import given
from hypothesis import strategies as st

from conchart.questions.explain.excerpt import excerpt, mattering
from conchart.questions.explain.pauses import Pause
from conchart.report.rows import Row

FRAMES = range(1, 1_001)


def shown(*matter: int, most: int = 100) -> list[int]:
    chosen = excerpt(FRAMES, frozenset(matter), most)
    assert chosen is not None
    return sorted(chosen.frames)


def test_without_a_limit_and_below_it_all_is_told() -> None:
    assert excerpt(FRAMES, frozenset(), None) is None
    assert excerpt(FRAMES, frozenset(), 990) is None
    assert excerpt(range(0), frozenset(), 100) is None


def test_the_first_and_the_last_packets_are_told() -> None:
    assert shown() == [*range(1, 101), *range(991, 1_001)]


def test_what_matters_is_told_with_its_neighbours() -> None:
    assert shown(500) == [*range(1, 101), *range(498, 503), *range(991, 1_001)]
    chosen = excerpt(FRAMES, frozenset({500}), 100)
    assert chosen is not None
    assert chosen.left_out == {100: 397, 502: 488}


def test_no_line_says_that_a_packet_or_two_are_left_out() -> None:
    assert shown(500, 507) == [*range(1, 101), *range(498, 510), *range(991, 1_001)]
    assert shown(500, 508) == [*range(1, 101), *range(498, 503), *range(506, 511), *range(991, 1_001)]


@given(st.integers(1, 300), st.sets(st.integers(1, 300)), st.integers(1, 300))
def test_every_packet_is_told_or_counted(count: int, matter: set[int], most: int) -> None:
    chosen = excerpt(range(1, count + 1), frozenset(matter), most)
    if chosen is not None:
        assert len(chosen.frames) + sum(chosen.left_out.values()) == count
        assert chosen.left_out.keys() <= chosen.frames
        assert matter & set(range(1, count + 1)) <= chosen.frames


def packet(frame: int, flags: str = "A", mark: str | None = None) -> Row:
    return {"frame": frame, "flags": flags, "mark": mark}


def test_ends_of_pauses_resets_and_losses_matter() -> None:
    pause = Pause(start_at=0, end_at=1, start_frame=4, end_frame=6, says="")
    packets = [packet(1, "S"), packet(2), packet(3, mark="retransmit"), packet(4), packet(5), packet(6), packet(7, "R")]
    assert mattering(packets, [pause]) == {1, 3, 4, 6, 7}


def test_of_very_many_losses_the_first_matter() -> None:
    assert mattering([packet(frame, mark="gap") for frame in FRAMES], []) == set(range(1, 101))
