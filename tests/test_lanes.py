"""What does not overlap shares a lane, and no lane is one too many."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from conchart.outputs.packing import Lanes

STRETCHES = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8)), max_size=40)


@given(STRETCHES)
def test_no_lane_holds_two_at_once_and_none_is_one_too_many(stretches: list[tuple[int, int]]) -> None:
    spans = [(start, start + length) for start, length in sorted(stretches)]
    shared = Lanes()
    lanes: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for start, end in spans:
        lane = shared.place(start, end)
        assert all(before < start for _, before in lanes[lane])
        lanes[lane].append((start, end))
    most = max((sum(start <= at <= end for start, end in spans) for at, _ in spans), default=0)
    assert sorted(lanes) == list(range(most))


def test_the_first_lane_that_is_free_is_taken() -> None:
    shared = Lanes()
    assert [shared.place(*span) for span in ((0, 10), (5, 8), (9, 12), (11, 30))] == [0, 1, 1, 0]
