"""Who reads a source: the only place that knows all ways."""

from collections.abc import Callable

from conchart.reading import growing, one_process
from conchart.reading.knowledge import Knowledge
from conchart.reading.options import ReadOptions
from conchart.reading.source import Source
from conchart.store.tables import Tables

Strategy = Callable[[Tables, Source, ReadOptions, Knowledge], None]
"""Fills tables, which are empty, in the middle of ``Tables.filling``; patterns of the source are expanded."""


def strategy_for(source: Source, options: ReadOptions, knowledge: Knowledge) -> Strategy:
    """Choose who reads."""
    if source.places:
        from conchart.reading import places  # not above: few captures are of several places, or read in parts

        return places.read
    if source.growing or options.watch:
        return growing.read
    is_divisible = options.selection.is_by_packet and options.explain is None and not knowledge.keylog
    if (options.workers > 1 or options.scheduler) and is_divisible and not source.is_read_once:
        from conchart.reading import parts

        return parts.read
    return one_process.read
