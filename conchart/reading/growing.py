"""A source that is still growing, read until it ends: who watches is shown now and then what there is so far."""

from time import monotonic_ns

from conchart.labels.units import SECOND
from conchart.reading.core import read_captures
from conchart.reading.knowledge import Knowledge
from conchart.reading.options import ReadOptions
from conchart.reading.selection import DETAILED
from conchart.reading.source import Source
from conchart.store.tables import Tables

_SHARE = 5
"""A fifth of the time at most goes into showing what was read so far."""


def read(tables: Tables, source: Source, options: ReadOptions, knowledge: Knowledge) -> None:
    """Fill tables; what ``options.watch`` does to them is undone.

    Raises:
        CaptureError: Nothing could be read.
    """
    watch = options.watch
    with source.opened() as opened:

        def show(rest: list[tuple[str, object]]) -> int:
            began = monotonic_ns()
            with tables.filled_so_far(rest):
                source.name_captures(tables, opened)
                if watch:
                    watch(tables)
            return max((monotonic_ns() - began) * (_SHARE - 1), SECOND)

        read_captures(
            opened,
            tables.insert,
            options,
            names=source.names,
            detailed=DETAILED,
            keylog=knowledge.keylog,
            show=show if watch else None,
        )
    source.name_captures(tables, opened)
