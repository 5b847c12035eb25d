"""How far the clocks of places are apart: pieces in which a clock keeps its rate, one clock against another."""

from typing import Any

import duckdb
from hypothesis import given, settings
from hypothesis import strategies as st

from conchart.reading.places.clocks import Clock, Piece, _composed, _is_near, _lasting, _points
from conchart.reading.places.views import Place

S = 1_000_000_000
BEGAN = 1_700_000_000 * S
PLACE = Place(1, "app", None, [])  # type: ignore[arg-type]


def piece(from_s: int, to_s: int, offset: int = 0, drift: int = 0, doubt: int | None = 0, **facts: Any) -> Piece:  # noqa: ANN401
    return Piece(BEGAN + from_s * S, BEGAN + to_s * S, offset, drift, doubt, 1, **facts)


def clock(*pieces: Piece) -> Clock:
    return Clock(PLACE, "packets", pieces)


def test_a_clock_shows_its_offset_and_what_it_gained_since() -> None:
    """40 ppm are 400 µs in ten seconds."""
    one = piece(0, 100, offset=7, drift=40_000)
    assert one.shown(BEGAN) == BEGAN + 7
    assert one.shown(BEGAN + 10 * S) == BEGAN + 10 * S + 7 + 400_000


def test_a_clock_that_is_right_has_no_stretches_and_tells_instants_as_they_are() -> None:
    right = clock(piece(0, 10), piece(10, 20))
    assert right.stretches == []
    assert right.reference_sql("x") == "x"
    assert right.axis_at(BEGAN + 3) == BEGAN + 3


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-5 * S, 5 * S), st.integers(-500_000, 500_000)), min_size=1, max_size=3),
    st.integers(0, 299 * S),
)
def test_what_a_clock_shows_is_told_back(pieces: list[tuple[int, int]], after: int) -> None:
    """In any stretch, by Python and by SQL, but for the nanosecond that is cut off."""
    one = clock(*(piece(100 * number, 100 * number + 100, *facts) for number, facts in enumerate(pieces)))
    at = BEGAN + after % (100 * len(pieces) * S)
    inside = one.pieces[(at - BEGAN) // (100 * S)]
    shown = inside.shown(at)
    later = [other.shown(other.from_at) for other in one.pieces if other.from_at > inside.from_at]
    earlier = [other.shown(other.from_at) for other in one.pieces if other.from_at <= inside.from_at]
    if any(shown >= start for start in later) or any(shown < start for start in earlier[1:]):
        return  # a clock that was set shows an instant twice, or never
    assert abs(one.axis_at(shown) - at) <= 1
    ((converted,),) = duckdb.sql(f"SELECT {one.reference_sql(f'{shown}::BIGINT')}").fetchall()
    assert abs(converted - at) <= 1


def test_where_a_clock_is_set_back_the_earlier_stretch_has_what_both_show() -> None:
    """It is set back by a second after ten."""
    back = clock(piece(0, 10, offset=5), piece(10, 20, offset=5 - S))
    assert back.axis_at(BEGAN + 8 * S) == BEGAN + 8 * S - 5
    assert back.axis_at(BEGAN + 11 * S) == BEGAN + 12 * S - 5


def test_a_clock_lasts_to_the_end_of_the_reference() -> None:
    assert _lasting(clock(piece(0, 10), piece(10, 20)), BEGAN + 30 * S).pieces[-1].to_at == BEGAN + 30 * S
    assert _lasting(clock(piece(0, 40)), BEGAN + 30 * S).pieces == (piece(0, 40),)


def test_offsets_drifts_and_doubts_of_two_clocks_add_up() -> None:
    """The known clock is 100 ahead and gains 1,000 ppb; the other one is 10 ahead of that, and gains 2,000."""
    middle = clock(piece(0, 100, offset=100, drift=1_000, doubt=3))
    (found,) = _composed(middle, [Piece(BEGAN + 100, BEGAN + 50 * S + 100, 10, 2_000, 4, 7)])
    assert (found.from_at, found.offset_ns, found.uncertainty_ns, found.packets) == (BEGAN, 110, 7, 7)
    assert found.drift_ppb == 3_000
    assert abs(found.to_at - (BEGAN + 50 * S)) <= 50_000, "as the known clock shows it"


def test_where_one_is_not_known_nothing_is_known_of_both() -> None:
    middle = clock(piece(0, 100, doubt=None))
    (found,) = _composed(middle, [piece(0, 50, doubt=4)])
    assert found.uncertainty_ns is None
    assert list(_composed(middle, [])) == []


def test_pieces_are_cut_where_either_clock_is_set() -> None:
    middle = clock(piece(0, 40, doubt=1), piece(40, 100, offset=S, doubt=2, reference_ns=9))
    own = [piece(0, 20, offset=5, own_ns=0), Piece(BEGAN + 20 * S, BEGAN + 81 * S, 6, 0, 0, 1, own_ns=4)]
    found = list(_composed(middle, own))
    assert [((one.from_at - BEGAN) // S, (one.to_at - BEGAN) // S) for one in found] == [(0, 20), (20, 40), (40, 80)]
    assert [(one.offset_ns, one.uncertainty_ns, one.reference_ns, one.own_ns) for one in found] == [
        (5, 1, 0, 0),
        (6, 1, 0, 4),
        (S + 6, 2, 9, 4),
    ]
    assert all(before.to_at == after.from_at for before, after in zip(found, found[1:], strict=False))


def test_of_uncertainties_those_within_two_percent_are_as_good() -> None:
    assert _is_near((False, 102), (False, 100))
    assert not _is_near((False, 103), (False, 100))
    assert not _is_near((True, 100), (False, 100))


def test_coarse_clocks_cut_off_what_they_do_not_show() -> None:
    """What leaves at most 9 before it is shown, and comes at most 99 after: bounds are as far apart."""
    of = """SELECT * FROM (VALUES (1000, 1500, true, 1, 2, 0, 0), (2000, 2100, false, 3, 4, 0, 1))
        AS t(here_at, there_at, outward, here_frame, there_frame, here_set, there_set)"""
    assert duckdb.sql(_points((10, 100), of)).fetchall() == [
        (1000, 500 + 99, True, 1, 2, 0),
        (2000, 100 - 9, False, 3, 4, 1),
    ]
    assert duckdb.sql(_points((1, 1), of)).fetchall()[0][1] == 500
