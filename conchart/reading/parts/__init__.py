"""Captures read in parts by several processes or machines, into the tables that one process would have filled.

In: paths or URLs, an executor. Out: rows in a trace's tables, and notes about what could not be read.

Each part of a capture is surveyed by itself: its tables become Parquet files (``survey``). A flow whose packets lie in
one part is complete. For flows that several parts share (``sharing``), their packets are copied out of each part and
read once more in one piece (``stitch``). The union numbers streams and frames as one reading does (``joining``).
``docs/scale.md`` explains the steps and the law behind them.
"""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future, as_completed
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from conchart.errors import ConchartError, TaskError
from conchart.files.paths import temporary_folder
from conchart.reading import one_process
from conchart.reading.knowledge import Knowledge
from conchart.reading.options import Progress, ReadOptions
from conchart.reading.parts.cutting import Part, cut, grouped
from conchart.reading.parts.executors import tasks_of
from conchart.reading.parts.joining import join
from conchart.reading.parts.model import MOST_TORN, Surveyed, clock_steps_between
from conchart.reading.parts.reuse import reusable_parts
from conchart.reading.parts.sharing import Shared, share
from conchart.reading.parts.survey import spill, stitch, survey
from conchart.reading.selection import DETAILED
from conchart.reading.source import Source
from conchart.store.tables import Tables

__all__ = ["NotInParts", "read", "read_parts"]

_GROUP_BYTES = 64 << 20
"""Small files are put together up to this size."""


class NotInParts(Exception):  # noqa: N818  (not an error: it is read in one piece then)
    """One process has to read these captures; the text says why."""


def read(tables: Tables, source: Source, options: ReadOptions, knowledge: Knowledge) -> None:
    """Fill tables by several processes or machines, or by one where that has to be.

    Raises:
        CaptureError: Nothing could be read.
        UsageError: The filter does not compile, or no scheduler answers.
    """
    options.selection.compiler()  # a wrong filter starts no process
    try:
        with tasks_of(options.workers, options.scheduler) as executor:
            read_parts(tables, source.names, options, executor)
    except NotInParts:
        one_process.read(tables, source, options, knowledge)


def read_parts(tables: Tables, paths: Sequence[str], options: ReadOptions, executor: Executor) -> None:
    """Read captures by the processes or machines behind an executor.

    Args:
        tables: Empty ones, which are being filled.
        paths: Files and URLs, in the order of their times.
        options: How to read. A single file may be cut into as many parts as there are ``workers``, and so many tasks
            stitch. ``progress`` is called after each part.
        executor: Runs tasks. Each task is a pure function of files: it may run twice.

    Raises:
        NotInParts: The captures need one process, because their clock steps, or because they are small.
        CaptureError: Nothing could be read.
    """
    pieces, task = options.workers, options.of_task(options.workers)
    with _folder(options.parts) as work:
        single = [part for number, path in enumerate(paths) for part in cut(number, path, pieces)]
        most = min(_GROUP_BYTES, sum(part.size for part in single) // (2 * pieces))
        surveyed = list(_surveyed(executor, grouped(single, most), task, work, options.progress))
        if any(one.overlaps for one in surveyed):  # flows of files that overlap are kept apart, part by part
            surveyed = list(_surveyed(executor, single, task, work, options.progress))
        if any(one.clock_steps for one in surveyed) or any(map(clock_steps_between, surveyed, surveyed[1:])):
            raise NotInParts("the clock steps in one of the captures")
        if not options.packets and sum(one.selected for one in surveyed) <= DETAILED:
            raise NotInParts("there are so few packets that all of their details are kept")
        if any(one.torn_at_end for one in surveyed):
            raise NotInParts("a capture could not be cut where a packet begins")
        if any(len(one.torn) >= MOST_TORN for one in surveyed):
            raise NotInParts("too many fragmented packets are not whole")
        shared = share(surveyed, pieces, work)
        if shared.moved:
            raise NotInParts("a QUIC client may have changed its port from one part to another")
        stitched = _stitched(executor, surveyed, shared, task, work) if shared.parts else []
        join(tables, surveyed, stitched, shared)


@contextmanager
def _folder(folder: str | None) -> Iterator[Path]:
    if folder is None:
        with temporary_folder(os.environ.get("TMPDIR")) as work:
            yield work
    else:
        (work := Path(folder)).mkdir(parents=True, exist_ok=True)
        yield work


def _surveyed(
    executor: Executor, parts: Sequence[Part], task: ReadOptions, work: Path, progress: Progress | None
) -> Iterator[Surveyed]:
    """Give what each part holds, in the order of the parts."""
    parts = [part.placed(place) for place, part in enumerate(parts)]
    surveyed = reusable_parts(parts, task, work)
    with _cancelled_on_error() as running:
        for part in parts:
            if part.number not in surveyed:
                running.append(executor.submit(survey, part, task, work))
        read = packets = 0
        for future in as_completed(running):
            one = future.result()
            surveyed[one.part.number] = one
            read, packets = read + one.part.size, packets + one.packets
            if progress:
                progress(read, packets)
    yield from (surveyed[number] for number in sorted(surveyed))


def _stitched(
    executor: Executor, surveyed: Sequence[Surveyed], shared: Shared, task: ReadOptions, work: Path
) -> list[Surveyed]:
    """Read the flows that parts share, each in one piece."""
    with _cancelled_on_error() as running:
        first_frames = {one.number: one.first_frame for one in shared.placed}
        for part in shared.parts:
            one = surveyed[part]
            flows = shared.flows_of(part)
            running.append(executor.submit(spill, one, flows, shared.files, first_frames[part], task, work))
        spilled = dict(zip(shared.parts, (future.result() for future in running), strict=True))
        running.clear()
        for number, (parts, file) in enumerate(shared.stitches):
            pieces = [spilled[part][file] for part in parts]
            running.append(executor.submit(stitch, number, pieces, shared.selected(parts, file), task, work))
        return [future.result() for future in running]


@contextmanager
def _cancelled_on_error() -> Iterator[list[Future[Any]]]:
    """Have a list of tasks that are called off when the block fails."""
    running: list[Future[Any]] = []
    try:
        yield running
    except BaseException as error:
        for future in running:
            with suppress(Exception):
                future.cancel()
        if isinstance(error, ConchartError) or not isinstance(error, Exception):
            raise
        # Whatever went wrong where the tasks run: a process was killed, a machine has another version.
        message = str(error) or type(error).__name__
        raise TaskError(f"a task that reads a part failed: {message}") from error
