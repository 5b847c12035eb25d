"""What is known of parts. In: nothing. Out: plain values, which travel."""

from dataclasses import dataclass
from pathlib import Path

from conchart.reading.parts.cutting import Part
from conchart.store.schema import TABLES

Flow = tuple[str, str, int, str, int]
"""A transport, one end and the other one: addresses and ports."""

CORE = tuple(table for table in TABLES if table.from_core and table.name != "links")
"""The tables that the native core fills while it reads."""

_STEP = "clock"
"""A word of the notes that say that the clock steps."""
_STEP_NS = 315_576_000 * 10**9
"""Ten years: what the core takes for a step of the clock (``pipeline/clock_steps.rs``)."""
MOST_TORN = 4_096
"""So many fragmented packets the core tells of (``MAX_TORN``); there may be more."""


@dataclass(frozen=True, slots=True)
class Torn:
    """A fragmented packet that never became whole."""

    source: str
    destination: str
    frame: int
    frames: int
    is_udp: bool


@dataclass(frozen=True, slots=True)
class File:
    """What is known of one file of a part."""

    first_frame: int
    first_at: int | None
    last_at: int | None
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FlowSelection:
    """Which flows to keep of a file that is stitched; others may have come along with fragmented packets."""

    flows: list[Flow]
    everywhere: list[Flow]
    """Those of all files."""
    torn: list[tuple[str, str]]
    """Addresses between which flows are kept that are in no file."""


@dataclass(frozen=True, slots=True)
class Surveyed:
    """What a part holds."""

    part: Part
    folder: str
    """With Parquet files for each table."""
    frames: int
    """Number of its last frame."""
    packets: int
    selected: int
    files: tuple[File, ...]
    truncated: bool
    torn: tuple[Torn, ...]

    @property
    def first_at(self) -> int | None:
        """Its earliest packet."""
        return min((file.first_at for file in self.files if file.first_at is not None), default=None)

    @property
    def last_at(self) -> int | None:
        """Its latest packet."""
        return max((file.last_at for file in self.files if file.last_at is not None), default=None)

    @property
    def clock_steps(self) -> bool:
        """Does its clock step, so that what follows it stands elsewhere?"""
        return any(_STEP in note for file in self.files for note in file.notes)

    @property
    def overlaps(self) -> bool:
        """Does a file of it begin before the one before it ended?"""
        latest = None
        for file in self.files:
            if latest is not None and file.first_at is not None and file.first_at < latest:
                return True
            if file.last_at is not None:
                latest = max(latest or file.last_at, file.last_at)
        return False

    @property
    def torn_at_end(self) -> bool:
        """Does a range end inside a record?"""
        return self.truncated and self.part.end is not None


def file_of(folder: str, table: str, number: int = 0) -> str:
    """Give a Parquet file of a table: each batch of the core has one."""
    return f"{folder}/{table}-{number:05}.parquet"


def files_of(folder: str, table: str) -> list[str]:
    """Give the Parquet files of a table: one at least."""
    return sorted(str(path) for path in Path(folder).glob(f"{table}-*.parquet"))


def clock_steps_between(one: Surveyed, other: Surveyed) -> bool:
    """Does the clock step between two ranges of a file? A file may begin whenever it likes."""
    if not other.part.begin or one.last_at is None or other.first_at is None:
        return False
    return abs(other.first_at - one.last_at) >= _STEP_NS
