"""What was read at each place, as views of its files.

In: the surveyed places. Out: ``all_connections`` and so on: the rows of all places with ``part``, the number of the
place.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from conchart.reading.parts.model import CORE, Surveyed, files_of
from conchart.store.sql import literal
from conchart.store.tables import Tables

_MADE = ("stream_packets", "loose", "again", "apart", "nearer", "members", "twins", "routes")
"""Tables that the steps hand to each other."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place, and what was read there."""

    number: int
    """From 0, in the order of the command line: the first one's clock is the reference."""
    name: str
    surveyed: Surveyed
    place_packets: list[object]
    """The batches of that table, as the core gave them; none where they were given away."""


@contextmanager
def read_files(tables: Tables, places: Sequence[Place]) -> Iterator[None]:
    """Have a view of each table of all places as long as the block lasts."""
    names = [table.name for table in CORE if table.name != "place_packets"]
    for name in names:
        rows = (
            f"SELECT {place.number}::BIGINT AS part, * FROM read_parquet([{files}])"
            for place in places
            for files in [", ".join(map(literal, files_of(place.surveyed.folder, name)))]
        )
        tables.execute(f"CREATE TEMP VIEW all_{name} AS {' UNION ALL BY NAME '.join(rows)}")
    with tables.uniting():
        yield
        for name in names:
            tables.execute(f"DROP VIEW all_{name}")
        for name in _MADE:
            tables.execute(f"DROP TABLE IF EXISTS {name}")
