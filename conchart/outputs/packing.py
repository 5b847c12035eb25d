"""Lanes: connections that do not overlap in time share one, as in trace viewers.

In: stretches of time, in the order in which they start. Out: the lane of each. The page does the
same (``tree.js``): a test compares the two over all captures.
"""

import heapq


class Lanes:
    """As few lanes as are needed: each stretch goes to the first one that is free."""

    def __init__(self) -> None:
        """Begin with none."""
        self._busy: list[tuple[int, int]] = []
        self._free: list[int] = []

    def place(self, start: int, end: int) -> int:
        """Give the lane of the next stretch, from 0: what ends where it starts does not share with it."""
        while self._busy and self._busy[0][0] < start:
            heapq.heappush(self._free, heapq.heappop(self._busy)[1])
        lane = heapq.heappop(self._free) if self._free else len(self._busy)
        heapq.heappush(self._busy, (end, lane))
        return lane
