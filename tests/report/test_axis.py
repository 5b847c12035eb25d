"""Where instants stand on the time axis: silences of years are left out of it, and nothing else."""

import duckdb
from hypothesis import given, settings
from hypothesis import strategies as st

from conchart.report.axis import YEAR_NS, Fold, TimeAxis, captured_ns, first_instant, time_axis
from tests.by_hand import Row, connection, tables_of

S = 1_000_000_000
BEGAN = 1_700_000_000 * S


def lives(*spans: tuple[int, int]) -> list[Row]:
    """Give connections that are open from and to these instants after the beginning."""
    return [
        connection(stream, opened_at=BEGAN + opened, closed_at=BEGAN + closed)
        for stream, (opened, closed) in enumerate(spans)
    ]


def axis_of(*spans: tuple[int, int]) -> TimeAxis:
    return time_axis(tables_of(connections=lives(*spans), captures=[{"first_at": BEGAN}]))


def test_without_a_silence_of_a_year_the_axis_counts_from_the_first_packet() -> None:
    axis = axis_of((0, 100 * S), (YEAR_NS - 1, YEAR_NS - 1))
    assert (axis.origin, axis.span, axis.folds) == (BEGAN, YEAR_NS - 1, ())
    assert axis.at(BEGAN + 7) == 7


def test_of_a_silence_of_years_a_twentieth_of_the_rest_is_left() -> None:
    two_years = 2 * YEAR_NS
    axis = axis_of((0, 100 * S), (two_years, two_years + 100 * S))
    silent_ns = two_years - 100 * S
    assert axis.folds == (
        Fold(until_at=BEGAN + two_years, at=105 * S, left_out_ns=silent_ns - 10 * S, silent_ns=silent_ns),
    )
    assert axis.folds[0].says == "2 years left out"
    assert axis.span == 210 * S
    assert axis.at(BEGAN + 100 * S) == 100 * S
    assert axis.at(BEGAN + two_years) == 110 * S


def test_a_connection_that_lasts_through_it_breaks_the_silence() -> None:
    assert axis_of((0, 2 * YEAR_NS), (5, 6), (2 * YEAR_NS, 2 * YEAR_NS)).folds == ()


def test_what_is_silent_from_the_first_packet_on_is_left_out_too() -> None:
    axis = axis_of((YEAR_NS, YEAR_NS + 20 * S))
    assert [(fold.silent_ns, fold.at) for fold in axis.folds] == [(YEAR_NS, S // 2)]
    assert axis.span == 21 * S


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 10**15), st.integers(0, 10**15)), max_size=3), st.integers(0, 10**16))
def test_sql_places_instants_where_python_does(folds: list[tuple[int, int]], instant: int) -> None:
    ends = [sum(lasts for lasts, _ in folds[: number + 1]) for number in range(len(folds))]
    axis = TimeAxis(
        origin=3,
        span=0,
        folds=tuple(
            Fold(until_at=end, at=0, left_out_ns=left_out, silent_ns=0)
            for end, (_, left_out) in zip(ends, folds, strict=True)
        ),
    )
    for at in (instant, *ends):
        assert duckdb.sql(f"SELECT {axis.place(f'{at}::BIGINT')}").fetchall() == [(axis.at(at),)]


def test_pictures_count_from_what_comes_first() -> None:
    captures = [{"first_at": 50, "last_at": 90}, {"first_at": 40, "last_at": 60}, {}]
    assert first_instant(tables_of(captures=captures, connections=[connection(0, opened_at=45)])) == 40
    assert first_instant(tables_of(captures=captures, connections=[connection(0, opened_at=35)])) == 35
    assert first_instant(tables_of()) == 0
    assert captured_ns(tables_of(captures=captures)) == 50
    assert captured_ns(tables_of(captures=captures[2:])) == 0
