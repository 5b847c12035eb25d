"""Captures of the same traffic, taken at several places: one trace, on one clock.

In: the files of each place. Out: rows in a trace's tables. A connection that several places saw has one row; the tables
``places``, ``clocks`` and ``place_packets`` say what each place saw of it, and when.

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
from conchart.reading.knowledge import Knowledge
from conchart.reading.options import Progress, ReadOptions
from conchart.reading.parts.cutting import Part
from conchart.reading.parts.survey import survey
from conchart.reading.places.clocks import Step, order_places, set_clocks
from conchart.reading.places.joining import join_places
from conchart.reading.places.matching import match_flows, match_packets
from conchart.reading.places.steps import find_steps
from conchart.reading.places.views import Place, read_files
from conchart.reading.source import Source
from conchart.store.tables import Tables

_FEW_BYTES = 32 << 20
"""Of captures that are no larger, all details are read; what is too many is left out afterwards."""
_ROUNDS = 4
"""Two clocks that were set close to each other look like one: what the first round leaves is found by the next one."""


def read(tables: Tables, source: Source, options: ReadOptions, knowledge: Knowledge) -> None:
    """Fill tables from the captures of several places; the clock of the first place tells all times.

    Raises:
        UsageError: There are fewer than two places, none has a trusted name, a file is named twice, packets are chosen
            by number or by time after the first one, or the filter does not compile.
        CaptureError: Nothing could be read of a place.
    """
    places, trusted = source.places, knowledge.trusted_clocks
    if not options.selection.is_by_packet:
        raise UsageError("places: choose packets by a filter or by dates; each place has a clock of its own")
    options.selection.compiler()  # a wrong filter starts no thread
    if len(places) < 2:  # noqa: PLR2004
        raise UsageError("places: name two places at least: --at client=a.pcap --at server=b.pcap")
    if unknown := sorted(set(trusted) - places.keys()):
        raise UsageError(f"clock: there is no place {unknown[0]}; --at names {', '.join(places)}")
    _check_files(places)
    with temporary_folder(None) as work, ExitStack() as stack:
        parts = _parts(places)
        sizes = sum(part.size for part in parts)
        details = options.packets or options.explain is not None or sizes <= _FEW_BYTES
        task = replace(options.of_task(len(places)), packets=details, explain=None)

        def survey_place(number: int, name: str, stop: Event, steps: Sequence[Step] = ()) -> Place:
            place_packets: list[object] = []

            def sighted(batch: object) -> None:
                if stop.is_set():
                    raise CancelledError
                place_packets.append(batch)

            part = parts[number]
            surveyed = survey(part, task, work, sighted, keylog=knowledge.keylog, steps=tuple(steps))
            return Place(number, name, surveyed, place_packets)

        named = _side_by_side(survey_place, places, options.progress)
        crossings = stack.enter_context(_matched(tables, named))
        steps: dict[int, list[Step]] = {}
        for _ in range(_ROUNDS):
            found = find_steps(crossings, named, trusted, steps)
            if found == steps:
                break
            stack.close()
            del crossings
            named = [
                survey_place(place.number, place.name, Event(), found[place.number])
                if found.get(place.number) != steps.get(place.number)
                else place
                for place in named
            ]
            steps = found
            crossings = stack.enter_context(_matched(tables, named))
        clocks = set_clocks(tables, crossings, named, trusted, steps)
        for place in named:
            place.place_packets.clear()  # the core gives them away as they become rows
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


@contextmanager
def _matched(tables: Tables, places: Sequence[Place]) -> Iterator[_native.Crossings]:
    """Have the views of what was read, and what is the same in them."""
    with read_files(tables, places):
        crossings = _native.Crossings([place.place_packets for place in places])
        match_flows(tables, crossings, places)
        match_packets(tables, crossings)
        order_places(tables, crossings)
        yield crossings


def _parts(places: Mapping[str, Sequence[str]]) -> list[Part]:
    """Give the captures of each place as one part."""
    parts, capture = [], 0
    for number, paths in enumerate(places.values()):
        size = sum(Path(path).stat().st_size for path in paths if Path(path).is_file())
        parts.append(Part(capture=capture, paths=tuple(paths), size=size, number=number))
        capture += len(paths)
    return parts


def _side_by_side(
    survey_place: Callable[[int, str, Event], Place], names: Collection[str], progress: Progress | None
) -> list[Place]:
    """Read all places at once: a place is read by the core and by DuckDB, which need no other thread's leave."""
    read: list[Place] = []
    stop = Event()
    with ThreadPoolExecutor(min(len(names), os.cpu_count() or 1)) as threads:
        try:
            begun = [threads.submit(survey_place, number, name, stop) for number, name in enumerate(names)]
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
