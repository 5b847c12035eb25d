"""Whether two samples differ by more than noise: the rank-sum test, which needs no distribution.

In: two lists of numbers. Out: :class:`Spread` of each, :class:`Verdict` of both. Nothing here knows what is measured.

H. B. Mann, D. R. Whitney, "On a Test of Whether one of Two Random Variables is Stochastically Larger than the Other",
Annals of Mathematical Statistics 18 (1947): U counts the pairs in which the one is larger. Two-sided; exact where no
two numbers are equal and both samples are small, otherwise by the normal distribution, corrected for ties and
continuity.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby

CHANCE = 0.001
"""With this probability a measure of two like captures is called different. Small: a dozen are compared per server."""
_LEAST_WAYS = round(2 / CHANCE)
"""Of so many orders that both samples together may have, the two most extreme ones are as rare as that."""
_EXACT_BELOW = 50
"""Numbers in each sample; as in R."""


class Verdict(Enum):
    """What is to be said of two samples; the value is what people read."""

    LESS = "less"
    MORE = "more"
    NOISE = "no more than noise"
    SAME = "no difference"
    TOO_FEW = "too few to tell"
    ONLY_BEFORE = "only before"
    ONLY_AFTER = "only after"

    @property
    def differs(self) -> bool:
        """By more than noise."""
        return self in (Verdict.LESS, Verdict.MORE)

    @property
    def brief(self) -> str:
        """In a column: what most rows of a small capture would say is a dash, and said once below."""
        return "–" if self is Verdict.TOO_FEW else self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A sample in three numbers; the quantiles are members of it (nearest rank), None of an empty one."""

    n: int
    median: int | None
    p95: int | None


def spread(ordered: Sequence[int]) -> Spread:
    """Describe a sample that is sorted."""
    n = len(ordered)
    if not n:
        return Spread(n=0, median=None, p95=None)
    return Spread(n=n, median=ordered[-(-n // 2) - 1], p95=ordered[-(-95 * n // 100) - 1])


def judge(before: Sequence[int], after: Sequence[int]) -> tuple[Verdict, float | None]:
    """Compare two sorted samples; gives the verdict on ``after``, and p where it was worked out."""
    if before == after:
        return Verdict.SAME, None
    if not before or not after:
        return (Verdict.ONLY_BEFORE if before else Verdict.ONLY_AFTER), None
    if not can_tell(len(before), len(after)):
        return Verdict.TOO_FEW, None
    larger, ties = count_larger(before, after)
    p = chance(larger, len(before), len(after), ties)
    if p >= CHANCE:
        return Verdict.NOISE, p
    return (Verdict.MORE if 2 * larger > len(before) * len(after) else Verdict.LESS), p


def can_tell(before: int, after: int) -> bool:
    """Tell whether samples of these sizes could differ by more than noise: all of one beyond all of the other."""
    few = min(before, _LEAST_WAYS)  # more than enough, and quickly computed
    return math.comb(few + min(after, _LEAST_WAYS), few) >= _LEAST_WAYS


def count_larger(before: Sequence[int], after: Sequence[int]) -> tuple[float, list[int]]:
    """Count U, the pairs in which ``after`` is larger, equal ones half; and how many numbers share each value."""
    marked = sorted([2 * value for value in before] + [2 * value + 1 for value in after])
    larger, smaller, ties = 0.0, 0, []
    for _, group in groupby(marked, key=lambda mark: mark >> 1):
        marks = list(group)
        mine = sum(mark & 1 for mark in marks)
        larger += mine * (smaller + (len(marks) - mine) / 2)
        smaller += len(marks) - mine
        ties.append(len(marks))
    return larger, ties


def chance(larger: float, before: int, after: int, ties: Sequence[int]) -> float:
    """Give p: how often like samples of these sizes give a U as far from the middle as this one, or farther.

    Args:
        larger: U.
        before: Size of the one sample.
        after: Size of the other.
        ties: How many numbers share each value; they add up to both sizes.
    """
    most = before * after
    extreme = max(larger, most - larger)
    if max(ties) == 1 and before < _EXACT_BELOW and after < _EXACT_BELOW:
        ways = _ways(before, after)
        return min(1.0, 2 * sum(ways[math.ceil(extreme) :]) / math.comb(before + after, before))
    total = before + after
    tied = sum(tie**3 - tie for tie in ties) / (total * (total - 1))
    variance = most / 12 * (total + 1 - tied)
    if variance <= 0:
        return 1.0
    return min(1.0, math.erfc((extreme - most / 2 - 0.5) / math.sqrt(2 * variance)))


def _ways(before: int, after: int) -> list[int]:
    """Count the orders of all numbers by the U they give: the coefficients of the Gaussian binomial."""
    most = before * after
    ways = [1] + [0] * most
    for place in range(1, before + 1):
        for u in range(most, after + place - 1, -1):
            ways[u] -= ways[u - after - place]
        for u in range(place, most + 1):
            ways[u] += ways[u - place]
    return ways
