"""Clocks that were set while they captured: at which frame, and by how much.

In: what the core found of packets. Out: :data:`conchart.reading.places.clocks.Step` of each place, with which it is
read again.

``native/src/correlate/clocks/clues.rs`` finds those that show between the frames of a place itself, and
``native/src/correlate/clocks/steps.rs`` the others, of each pair of places. Where both may have been set, because no
packet was under way, another pair decides, or where less time would have passed.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from conchart import _native
from conchart.reading.places.clocks import Step
from conchart.reading.places.views import Place

_LEAST_LEFT_NS = 100_000_000
"""Where steps are known, less than that is no other one: they are as uncertain as packets were delayed."""


@dataclass(frozen=True, slots=True)
class Found:
    """A clock that was set between two frames, as far as a pair of places tells."""

    part: int
    before: int
    after: int
    ns: int

    def is_same(self, other: "Found") -> bool:
        """Is it the step that another pair found?"""
        meets = self.part == other.part and self.before < other.after and other.before < self.after
        return meets and abs(self.ns - other.ns) * 4 < abs(self.ns + other.ns)

    def and_also(self, other: "Found") -> "Found":
        """Give what both tell."""
        return replace(self, before=max(self.before, other.before), after=min(self.after, other.after))


def find_steps(
    crossings: _native.Crossings,
    places: Sequence[Place],
    trusted: Collection[str],
    earlier: Mapping[int, Sequence[Step]],
) -> dict[int, list[Step]]:
    """Give the steps of each place whose clock was set, in the order of frames.

    Args:
        crossings: The packets of all places.
        places: Read without the steps that are known.
        trusted: Names of those whose clocks are right.
        earlier: Steps that were found before. What is left of them is added.
    """
    sure = [Found(*clue) for clue in crossings.clues(len(places))]
    clued: dict[int, list[tuple[int, int]]] = {}
    for one in sure:
        clued.setdefault(one.part, []).append((one.after, one.ns))
    unsure: list[tuple[Found, Found]] = []
    for here, there in combinations([place.number for place in places], 2):
        for of, before, after, ns in crossings.steps(here, there, [clued.get(here, []), clued.get(there, [])]):
            both = (Found(here, before[0], after[0], -ns), Found(there, before[1], after[1], ns))
            if of is None:
                unsure.append(both)
            else:
                sure = _joined(sure, both[of])
    for both in unsure:
        seen = next((one for one in both if any(one.is_same(other) for other in sure)), None)
        others = [one for pair in unsure if pair is not both for one in pair]
        sure = _joined(sure, seen or min(both, key=lambda one: (
            not any(one.is_same(other) for other in others), not _earlier_frames(earlier, one),
            _silence(crossings, one), -one.part,
        )))  # fmt: skip
    steps = {part: dict(found) for part, found in earlier.items()}
    for one in sure:
        earlier_frame = next(iter(_earlier_frames(earlier, one)), None)
        is_rest = bool(earlier) and earlier_frame is None and abs(one.ns) < _LEAST_LEFT_NS
        if places[one.part].name not in trusted and not is_rest:
            at = one if earlier_frame is None else replace(one, before=earlier_frame - 1, after=earlier_frame)
            frame, passed_ns = _gap(crossings, at)
            mine = steps.setdefault(one.part, {})
            # Frames are captured one after the other: no less than nothing passed since the one before.
            mine[frame] = mine.get(frame, 0) + min(one.ns, passed_ns)
    return {part: sorted(found.items()) for part, found in steps.items()}


def _earlier_frames(earlier: Mapping[int, Sequence[Step]], found: Found) -> list[int]:
    """Give the frames at which the same clock is known to have been set, where a step may be what is left of it."""
    return [frame for frame, _ in earlier.get(found.part, ()) if found.before < frame <= found.after]


def _joined(found: Iterable[Found], new: Found) -> list[Found]:
    same = [one for one in found if one.is_same(new)]
    for one in same:
        new = new.and_also(one)
    return [*(one for one in found if one not in same), new]


def _silence(crossings: _native.Crossings, found: Found) -> int:
    """Give how long the place saw nothing, if its clock was set: half a round trip more or less."""
    return abs(_gap(crossings, found)[1] - found.ns)


def _gap(crossings: _native.Crossings, found: Found) -> tuple[int, int]:
    """Give the frame before which the clock was set, and how much time passed since the frame before, as it shows."""
    return crossings.gap(found.part, (found.before, found.after), found.ns > 0) or (found.after, 0)
