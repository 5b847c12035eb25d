"""Time spans of one side's messages. In: the exchanges of a connection. Out: the messages that a packet is part of.

A connection may carry 100,000 exchanges, many of them open at once: each question costs a search, not a walk over all.
"""

from bisect import bisect_right
from collections import defaultdict
from heapq import heappop, heappush
from itertools import accumulate

from conchart.report.rows import Row

SIDES = {"request": "client", "response": "server"}
"""Who sends what."""
_FOREVER = 1 << 63


class Spans:
    """The requests of a connection, or its responses, each from its first byte to its last."""

    def __init__(self, exchanges: list[Row], name: str) -> None:
        """Take the exchanges in their order; ``name``: a key of :data:`SIDES`."""
        self._exchanges = exchanges
        spans = []
        self._bounded: dict[int, list[int]] = defaultdict(list)
        """By instant: the places of the exchanges that begin or end then."""
        for place, exchange in enumerate(exchanges):
            first, last = exchange[f"{name}_at"], exchange[f"{name}_done_at"]
            if first is None or (last is not None and last < first):
                continue
            spans.append((first, _FOREVER if last is None else last, place))
            self._bounded[first].append(place)
            if last is not None and last != first:
                self._bounded[last].append(place)
        for places in self._bounded.values():
            places.sort()
        spans.sort()
        self._spans = spans
        self._firsts = [first for first, _, _ in spans]
        self._lasts = sorted(last for _, last, _ in spans)
        self._latest = list(accumulate((last for _, last, _ in spans), max))
        """The latest end of the spans up to each."""
        self._begun = 0
        self._open: list[tuple[int, int]] = []
        """Place and end of those that have begun, the first exchange first; what is over leaves when it is met."""

    def any_between(self, start_at: int, end_at: int) -> bool:
        """Say whether one of them was going on in a stretch of time, ends included."""
        begun = bisect_right(self._firsts, end_at)
        return begun > 0 and self._latest[begun - 1] >= start_at

    def touching(self, at: int, most: int) -> tuple[list[Row], int]:
        """Give the first ``most`` exchanges that begin or end at an instant, and how many there are.

        Where none does, those that go on. Instants are asked in their order.
        """
        bounded = self._bounded.get(at)
        if bounded:
            return [self._exchanges[place] for place in bounded[:most]], len(bounded)
        begun = bisect_right(self._firsts, at)
        for _, last, place in self._spans[self._begun : begun]:
            heappush(self._open, (place, last))
        self._begun = begun
        found: list[tuple[int, int]] = []
        while self._open and len(found) < most:
            one = heappop(self._open)
            if one[1] >= at:
                found.append(one)
        for one in found:
            heappush(self._open, one)
        over = bisect_right(self._lasts, at - 1)
        return [self._exchanges[place] for place, _ in found], begun - over
