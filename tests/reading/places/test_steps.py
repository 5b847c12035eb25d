"""Clocks that were set while they captured: what pairs of places tell of them, put together."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from conchart.reading.places.clocks import Step
from conchart.reading.places.steps import Found, find_steps
from conchart.reading.places.views import Place

MS, S = 1_000_000, 1_000_000_000


def found(before: int, after: int, ns: int, part: int = 0) -> Found:
    return Found(part, before, after, ns)


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (found(15, 25, S), True),
        (found(20, 25, S), False),
        (found(0, 10, S), False),
        (found(0, 11, S), True),
        (found(15, 25, S, part=1), False),
        (found(15, 25, 3 * S), False),
        (found(15, 25, -S), False),
        (found(15, 25, 1_600 * MS), True),
    ],
)
def test_two_pairs_tell_of_one_step_where_frames_meet_and_lengths_are_alike(other: Found, same: bool) -> None:  # noqa: FBT001
    one = found(10, 20, S)
    assert one.is_same(other) == other.is_same(one) == same


def test_together_they_tell_it_more_exactly() -> None:
    assert found(10, 20, S).and_also(found(15, 25, 2 * S)) == found(15, 20, S)


class Crossings:
    """What the core found: clues, steps of pairs, and how much time passed before which frame."""

    def __init__(
        self,
        clues: Sequence[Any] = (),
        steps: Mapping[tuple[int, int], Sequence[Any]] | None = None,
        gaps: Mapping[int, tuple[int, int]] | None = None,
    ) -> None:
        self._clues, self._steps, self._gaps = clues, steps or {}, gaps or {}
        self.calls: list[Any] = []

    def clues(self, _: int) -> Sequence[Any]:
        return self._clues

    def steps(self, here: int, there: int, recognised: list[Any]) -> Sequence[Any]:
        self.calls.append((here, there, recognised))
        return self._steps.get((here, there), ())

    def gap(self, part: int, frames: tuple[int, int], most: bool) -> tuple[int, int] | None:  # noqa: ARG002, FBT001
        return self._gaps.get(part)


def steps_of(
    crossings: Crossings,
    *,
    names: str = "ab",
    trusted: tuple[str, ...] = (),
    recognised: dict[int, list[Step]] | None = None,
) -> dict[int, list[Step]]:
    places: Any = [Place(number, name, None, []) for number, name in enumerate(names)]  # type: ignore[arg-type]
    anything: Any = crossings
    return find_steps(anything, places, trusted, recognised or {})


def test_a_step_between_the_frames_of_a_place_is_its_own() -> None:
    crossings = Crossings(clues=[(1, 10, 20, S)], gaps={1: (15, 5 * S)})
    assert steps_of(crossings) == {1: [(15, S)]}
    assert crossings.calls == [(0, 1, [[], [(20, S)]])], "pairs are told what is known"


def test_no_less_than_nothing_passes_between_two_frames() -> None:
    """The clock seems to be set by more than the time that it shows: what is left is the delay of packets."""
    assert steps_of(Crossings(clues=[(0, 10, 20, S)], gaps={0: (15, 900 * MS)})) == {0: [(15, 900 * MS)]}


GAPS = {0: (12, 9 * S), 1: (13, 9 * S), 2: (14, 9 * S)}


@pytest.mark.parametrize(("whose", "steps"), [(0, {0: [(12, -S)]}), (1, {1: [(13, S)]})])
def test_of_a_pair_it_may_be_known_whose_step_it_is(whose: int, steps: dict[int, list[Step]]) -> None:
    """The second one is ahead by more since then: either it was set on, or the first one back."""
    assert steps_of(Crossings(steps={(0, 1): [(whose, [10, 11], [20, 21], S)]}, gaps=GAPS)) == steps


def test_where_both_may_have_been_set_another_pair_decides() -> None:
    unsure = (None, [10, 11], [20, 21], S)
    first = Crossings(steps={(0, 1): [unsure], (0, 2): [(0, [10, 30], [20, 40], S)]}, gaps=GAPS)
    assert steps_of(first, names="abc") == {0: [(12, -S)]}
    second = Crossings(steps={(0, 1): [unsure], (1, 2): [(0, [12, 30], [20, 40], -S)]}, gaps=GAPS)
    assert steps_of(second, names="abc") == {1: [(13, S)]}


def test_else_the_one_decides_where_less_time_would_have_passed() -> None:
    unsure = (None, [10, 11], [20, 21], S)
    near = Crossings(steps={(0, 1): [unsure]}, gaps={0: (12, 9 * S), 1: (13, 1_100 * MS)})
    assert steps_of(near) == {1: [(13, S)]}
    far = Crossings(steps={(0, 1): [unsure]}, gaps={0: (12, -900 * MS), 1: (13, 9 * S)})
    assert steps_of(far) == {0: [(12, -S)]}


def test_clocks_that_are_right_were_not_set() -> None:
    assert steps_of(Crossings(clues=[(1, 10, 20, S)], gaps={1: (15, 5 * S)}), trusted=("b",)) == {}


def test_what_is_left_of_a_known_step_is_added_and_little_elsewhere_is_none() -> None:
    recognised: dict[int, list[Step]] = {0: [(15, S)]}
    rest = Crossings(clues=[(0, 10, 20, 5 * MS)], gaps={0: (15, 9 * S)})
    assert steps_of(rest, recognised=recognised) == {0: [(15, S + 5 * MS)]}
    elsewhere = Crossings(clues=[(0, 30, 40, 99 * MS)], gaps={0: (35, 9 * S)})
    assert steps_of(elsewhere, recognised=recognised) == recognised
    other = Crossings(clues=[(0, 30, 40, 100 * MS)], gaps={0: (35, 9 * S)})
    assert steps_of(other, recognised=recognised) == {0: [(15, S), (35, 100 * MS)]}


def test_where_no_gap_is_known_the_first_frame_after_it_is_taken() -> None:
    assert steps_of(Crossings(clues=[(0, 10, 20, -S)])) == {0: [(20, -S)]}
