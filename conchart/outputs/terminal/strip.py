"""One line of a chart in text: phases on a common axis, a character cell wide at a time.

In: stretches of time with their phase. Out: rich ``Text``: block characters in the phases' colours, exact to an
eighth of a cell, or one letter per cell where there are no colours.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.style import Style
from rich.text import Text

from conchart.labels.phases import PHASE_BY_NAME, PHASES, PhaseKind
from conchart.report.lanes import Stretch

_LEFT_BLOCKS = " ▏▎▍▌▋▊▉█"
_HATCH = "▒"
_INSTANT = "|"
_RANK = {phase: -index for index, phase in enumerate(PHASES)}


@dataclass(frozen=True, slots=True)
class Axis:
    """What the cells of a strip stand for."""

    start: int
    end: int
    cells: int
    colours: bool
    """False: letters."""

    @property
    def span(self) -> int:
        """Length of the axis; never 0."""
        return max(1, self.end - self.start)

    @property
    def slots(self) -> int:
        """How many parts of it are told apart: eighths of cells, or cells with a letter each."""
        return self.cells * (8 if self.colours else 1)


def draw_strip(stretches: Sequence[Stretch], axis: Axis) -> Text:
    """Draw stretches on an axis: the phase that fills most of a slot takes it, and no connection is invisible."""
    slots = _slots(stretches, axis)
    if not any(slots):
        return _mark_instant(stretches, axis)
    if not axis.colours:
        return Text("".join(phase.letter if phase else " " for phase in slots))
    blocks = [_block(slots[8 * cell : 8 * cell + 8]) for cell in range(axis.cells)]
    runs = groupby(blocks, key=lambda block: block[1])
    return Text.assemble(*(("".join(character for character, _ in run), style) for style, run in runs))


def swatch(phase: PhaseKind, *, colours: bool) -> tuple[str, Style]:
    """Give the sign of a phase for a legend, and its style."""
    if not colours:
        return phase.letter, Style()
    return (_HATCH if phase.hatched else "█"), Style(color=phase.colour)


def _slots(stretches: Sequence[Stretch], axis: Axis) -> list[PhaseKind | None]:
    """For each slot of the axis the phase that fills most of it; the earlier in ``PHASES`` wins a tie."""
    count = axis.slots
    filled: list[Counter[PhaseKind]] = [Counter() for _ in range(count)]
    for stretch in stretches:
        # In units of 1/count of a nanosecond, a slot is `span` long: integers throughout.
        start, end = (stretch.start - axis.start) * count, (stretch.end - axis.start) * count
        for slot in range(max(0, start // axis.span), min(count, -(-end // axis.span))):
            overlap = min(end, (slot + 1) * axis.span) - max(start, slot * axis.span)
            if overlap > 0:
                filled[slot][PHASE_BY_NAME[stretch.kind]] += overlap
    return [max(slot, key=lambda phase: (slot[phase], _RANK[phase])) if slot else None for slot in filled]


def _mark_instant(stretches: Sequence[Stretch], axis: Axis) -> Text:
    """A connection of a single packet has no length, but was there."""
    if not stretches:
        return Text(" " * axis.cells)
    cell = min(axis.cells - 1, (stretches[0].start - axis.start) * axis.cells // axis.span)
    return Text(" " * cell + _INSTANT + " " * (axis.cells - cell - 1))


def _block(eighths: list[PhaseKind | None]) -> tuple[str, Style]:
    """One character that shows at most two phases: the split that misplaces the fewest eighths."""
    best, best_hits = (eighths[0], eighths[0], 8), -1
    for split in range(8, 0, -1):
        (left, left_hits), *_ = Counter(eighths[:split]).most_common(1)
        right, right_hits = Counter(eighths[split:]).most_common(1)[0] if split < 8 else (left, 0)
        if left_hits + right_hits > best_hits:
            best, best_hits = (left, right, split), left_hits + right_hits
    left, right, split = best
    if left is right:
        if left is None:
            return " ", Style()
        return (_HATCH if left.hatched else "█"), Style(color=left.colour)
    if left is None:
        # No block character fills the right side by eighths: swap the colours of one that fills the left.
        return _LEFT_BLOCKS[split], Style(color=right.colour if right else None, reverse=True)
    return _LEFT_BLOCKS[split], Style(color=left.colour, bgcolor=right.colour if right else None)
