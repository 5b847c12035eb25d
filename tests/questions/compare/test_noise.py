"""The rank-sum test against worked examples, and what is concluded from it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conchart.questions.compare.noise import CHANCE, Verdict, can_tell, chance, count_larger, judge, spread

# Hollander and Wolfe, Nonparametric Statistical Methods, p. 69: permeability of membranes, in hundredths; R's example
# of wilcox.test, where W = 35 and p = 0.1272 one-sided.
AT_TERM = [80, 83, 189, 104, 145, 138, 191, 164, 73, 146]
EARLIER = [115, 88, 90, 74, 121]
# The same page of R: ozone in New York, May against August 1973, many ties; W = 127.5, p-value = 0.0001208.
MAY = [41, 36, 12, 18, 28, 23, 19, 8, 7, 16, 11, 14, 18, 14, 34, 6, 30, 11, 1, 11, 4, 32, 23, 45, 115, 37]
AUGUST = [39, 9, 16, 78, 35, 66, 122, 89, 110, 44, 28, 65, 22, 59, 23, 31, 44, 21, 9, 45, 168, 73, 76, 118, 84, 85]
# SciPy's example of mannwhitneyu: ages at which diabetes was diagnosed; U = 17, p = 0.1111 exactly.
MALES, FEMALES = [19, 22, 16, 29, 24], [20, 11, 17, 12]


@pytest.mark.parametrize(
    ("one", "other", "u", "p"),
    [
        (EARLIER, AT_TERM, 35, 2 * 0.1272061),
        (AUGUST, MAY, 127.5, 0.0001208078),
        (FEMALES, MALES, 17, 1 / 9),
    ],
)
def test_worked_examples(one: list[int], other: list[int], u: float, p: float) -> None:
    larger, ties = count_larger(sorted(one), sorted(other))
    assert larger == u
    assert chance(larger, len(one), len(other), ties) == pytest.approx(p, rel=1e-5)


def test_without_any_order_all_orders_of_few_numbers_are_counted() -> None:
    """Seven before seven: one order of 3432, and its mirror image."""
    larger, ties = count_larger(range(7), range(10, 17))
    assert chance(larger, 7, 7, ties) == pytest.approx(2 / 3432)


def test_large_samples_are_approximated_as_scipy_does() -> None:
    """``mannwhitneyu(range(1, 161, 2), range(0, 120), method="asymptotic")`` of SciPy 1.17."""
    larger, ties = count_larger(range(120), range(1, 161, 2))
    assert larger == 6030
    assert chance(larger, 120, 80, ties) == pytest.approx(0.0021682484965448, rel=1e-12)


def test_numbers_that_are_all_the_same_differ_by_nothing() -> None:
    assert chance(*_judged([5] * 9, [5] * 12)) == 1


def _judged(before: list[int], after: list[int]) -> tuple[float, int, int, list[int]]:
    larger, ties = count_larger(before, after)
    return larger, len(before), len(after), ties


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ([*range(20)], [*range(50, 70)], Verdict.MORE),
        ([*range(50, 70)], [*range(20)], Verdict.LESS),
        ([*range(0, 40, 2)], [*range(1, 41, 2)], Verdict.NOISE),
        ([*range(20)], [*range(20)], Verdict.SAME),
        ([1], [1], Verdict.SAME),
        ([1, 2, 3], [100, 200, 300], Verdict.TOO_FEW),
        ([], [3], Verdict.ONLY_AFTER),
        ([3], [], Verdict.ONLY_BEFORE),
    ],
)
def test_verdicts(before: list[int], after: list[int], verdict: Verdict) -> None:
    assert judge(before, after)[0] is verdict


def test_seven_of_each_are_enough_and_six_are_not() -> None:
    assert can_tell(7, 7)
    assert not can_tell(6, 6)
    assert can_tell(10**6, 10**6)
    assert not can_tell(1, 100)


numbers = st.lists(st.integers(0, 50), min_size=1, max_size=60).map(sorted)


@given(numbers, numbers)
def test_swapped_samples_are_as_likely_and_the_other_way_round(one: list[int], other: list[int]) -> None:
    forth, p = judge(one, other)
    back, q = judge(other, one)
    mirror = {Verdict.LESS: Verdict.MORE, Verdict.MORE: Verdict.LESS}
    assert back is mirror.get(forth, forth)
    assert p == (None if q is None else pytest.approx(q))


@given(numbers, numbers)
def test_every_pair_is_counted_once(one: list[int], other: list[int]) -> None:
    pairs = sum((b > a) + (a == b) / 2 for a in one for b in other)
    larger, ties = count_larger(one, other)
    assert larger == pairs
    assert sum(ties) == len(one) + len(other)


def test_like_samples_are_seldom_called_different() -> None:
    """All orders of seven and eight numbers: as often as was asked for, and no oftener."""
    from itertools import combinations

    wrong = total = 0
    for chosen in combinations(range(15), 7):
        rest = [number for number in range(15) if number not in chosen]
        wrong += judge(chosen, rest)[0].differs
        total += 1
    assert 0 < wrong / total < CHANCE


def test_quantiles_are_members_of_the_sample() -> None:
    assert spread([]).n == 0
    assert (spread([4]).median, spread([4]).p95) == (4, 4)
    assert (spread([1, 2]).median, spread([1, 2, 3]).median) == (1, 2)
    assert (spread([*range(1, 101)]).median, spread([*range(1, 101)]).p95) == (50, 95)
