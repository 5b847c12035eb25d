"""The packets of a large connection that are shown: its beginning, its end, and what matters between them.

In: the connection's packets and pauses. Out: an :class:`Excerpt`, before anything is said of any packet: what is left
out costs nothing more.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from conchart.questions.explain.pauses import Pause
from conchart.report.rows import Row

_LAST = 10
"""Packets of the end that are shown."""
_BESIDE = 2
"""Packets that are shown before and after one that matters."""
_MOST_MARKED = 100
"""Packets that are shown because TCP did something with them: of a bad path, thousands were sent again."""
_LEAST_LEFT_OUT = 3
"""Packets: to say that fewer are left out takes as much room as they do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """What is shown."""

    frames: frozenset[int]
    left_out: dict[int, int]
    """How many packets are left out behind a frame."""


def excerpt(frames: Sequence[int], matter: frozenset[int], most: int | None) -> Excerpt | None:
    """Choose the first ``most`` packets, those that matter and the last; None where all are shown.

    Args:
        frames: Of all packets, in their order.
        matter: Those that are shown in any case, with their neighbours.
        most: At least one; None for all.
    """
    if most is None or len(frames) < most + _LAST + _LEAST_LEFT_OUT:
        return None
    shown = {*range(most), *range(len(frames) - _LAST, len(frames))}
    for place, frame in enumerate(frames):
        if frame in matter:
            shown.update(range(max(place - _BESIDE, 0), min(place + _BESIDE + 1, len(frames))))
    left_out: dict[int, int] = {}
    for before, after in list(pairwise(sorted(shown))):
        if 0 < (missing := after - before - 1) < _LEAST_LEFT_OUT:
            shown.update(range(before + 1, after))
        elif missing:
            left_out[frames[before]] = missing
    return Excerpt(frames=frozenset(frames[place] for place in shown), left_out=left_out)


def mattering(packets: Iterable[Row], pauses: Iterable[Pause]) -> frozenset[int]:
    """Give the frames at both ends of pauses, and the first in which TCP begins, ends, or repairs something."""
    ends = {frame for pause in pauses for frame in (pause.start_frame, pause.end_frame)}
    return frozenset(ends.union(islice(_marked(packets), _MOST_MARKED)))


def _marked(packets: Iterable[Row]) -> Iterator[int]:
    for packet in packets:
        flags = packet["flags"]
        if packet["mark"] is not None or "S" in flags or "F" in flags or "R" in flags:
            yield packet["frame"]
