"""Captures of the same traffic, taken at several places: one trace, on one clock.

In: the files of each place. Out: rows in a trace's tables. A connection that several places saw has one row; the tables
``places``, ``clocks`` and ``sightings`` say what each place saw of it, and when.

Each place is read by itself into Parquet files (``parts.survey``), all side by side; its packets stay in memory, for
the core. ``matching`` finds the connections and packets that
places share, ``steps`` which clocks were set: such a place is read once more, without its steps. ``clocks`` says how
far clocks are apart, ``joining`` fills the tables. ``docs/places.md`` explains the steps.
"""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event

from conchart import _native
from conchart.errors import UsageError
from conchart.files.paths import temporary_folder
from conchart.reading.parts.cutting import Part
from conchart.reading.parts.model import Wanted
from conchart.reading.parts.survey import survey
from conchart.reading.places.clocks import Step, order_places, set_clocks
from conchart.reading.places.joining import join_places
from conchart.reading.places.matching import match_flows, match_packets
from conchart.reading.places.steps import find_steps
from conchart.reading.places.views import Place, read_files
from conchart.store.tables import Tables

__all__ = ["read_places"]

_ROUNDS = 4
"""Two clocks that were set close to each other look like one: what the first round leaves is found by the next one."""


def read_places(
    tables: Tables,
    places: Mapping[str, Sequence[str]],
    wanted: Wanted,
    *,
    trusted: Collection[str] = (),
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Read the captures of several places.

    Args:
        tables: Empty ones, which are being filled.
        places: The files of each place, in the order of their times. The clock of the first place tells all times.
        wanted: Which packets, and how.
        trusted: Places whose clocks show the right time: it is taken as it is.
        progress: Called after each place with the bytes and packets read so far.

    Raises:
        UsageError: There are fewer than two places, none has a trusted name, or a file is named twice.
        CaptureError: Nothing could be read of a place.
    """
    if len(places) < 2:  # noqa: PLR2004
        raise UsageError("places: name two places at least: --at client=a.pcap --at server=b.pcap")
    if unknown := sorted(set(trusted) - places.keys()):
        raise UsageError(f"clock: there is no place {unknown[0]}; --at names {', '.join(places)}")
    _check_files(places)
    with temporary_folder(None) as work, ExitStack() as stack:
        named = _surveyed(places, wanted, work, progress)
        crossings = stack.enter_context(_matched(tables, named))
        steps: dict[int, list[Step]] = {}
        for _ in range(_ROUNDS):
            found = find_steps(crossings, named, trusted, steps)
            if found == steps:
                break
            stack.close()
            del crossings
            named = [
                _read(
                    place.number,
                    place.name,
                    place.surveyed.part,
                    replace(wanted, steps=tuple(found[place.number])),
                    work,
                )
                if found.get(place.number) != steps.get(place.number)
                else place
                for place in named
            ]
            steps = found
            crossings = stack.enter_context(_matched(tables, named))
        clocks = set_clocks(tables, crossings, named, trusted, steps)
        for place in named:
            place.sightings.clear()  # the core gives them away as they become rows
        join_places(tables, crossings, named, clocks)


def _check_files(places: Mapping[str, Sequence[str]]) -> None:
    """A file that two places have would look like a path that takes no time."""
    of_place: dict[Path, str] = {}
    for place, paths in places.items():
        for path in paths:
            other = of_place.setdefault(Path(path).resolve(), place)
            if other != place:
                raise UsageError(
                    f"places: {path} is named for {other} and for {place}: each place has files of its own"
                )


def _read(number: int, name: str, part: Part, wanted: Wanted, work: Path, stop: Event | None = None) -> Place:
    sightings: list[object] = []

    def sighted(batch: object) -> None:
        if stop and stop.is_set():
            raise CancelledError
        sightings.append(batch)

    return Place(number, name, survey(part, wanted, work, sighted), sightings)


@contextmanager
def _matched(tables: Tables, places: Sequence[Place]) -> Iterator[_native.Crossings]:
    """Have the views of what was read, and what is the same in them."""
    with read_files(tables, places):
        crossings = _native.Crossings([place.sightings for place in places])
        match_flows(tables, crossings, places)
        match_packets(tables, crossings)
        order_places(tables, crossings)
        yield crossings


def _surveyed(
    places: Mapping[str, Sequence[str]],
    wanted: Wanted,
    work: Path,
    progress: Callable[[int, int], None] | None,
) -> list[Place]:
    """Read all places side by side: a place is read by the core and by DuckDB, which need no other thread's leave."""
    parts, capture = [], 0
    for number, paths in enumerate(places.values()):
        size = sum(Path(path).stat().st_size for path in paths if Path(path).is_file())
        parts.append(Part(capture=capture, paths=tuple(paths), size=size, number=number))
        capture += len(paths)
    read: list[Place] = []
    stop = Event()
    with ThreadPoolExecutor(min(len(parts), os.cpu_count() or 1)) as threads:
        try:
            begun = [
                threads.submit(_read, number, name, part, wanted, work, stop)
                for number, (name, part) in enumerate(zip(places, parts, strict=True))
            ]
            for one in begun:
                read.append(one.result())
                if progress:
                    progress(
                        sum(place.surveyed.part.size for place in read), sum(place.surveyed.packets for place in read)
                    )
        except BaseException:
            # Of the others, nothing is wanted any more.
            stop.set()
            threads.shutdown(cancel_futures=True)
            raise
    return read
