"""A source read by this process, in one streaming pass."""

from conchart.reading.core import read_captures
from conchart.reading.knowledge import Knowledge
from conchart.reading.options import ReadOptions
from conchart.reading.selection import DETAILED
from conchart.reading.source import Source
from conchart.store.tables import Tables


def read(tables: Tables, source: Source, options: ReadOptions, knowledge: Knowledge) -> None:
    """Fill tables.

    Raises:
        CaptureError: Nothing could be read.
    """
    with source.opened() as opened:
        read_captures(opened, tables.insert, options, names=source.names, detailed=DETAILED, keylog=knowledge.keylog)
    source.name_captures(tables, opened)
