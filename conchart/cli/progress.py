"""Progress of reading a large capture: a bar on standard error, if that is a terminal."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from conchart.files.unfinished import Undone
from conchart.reading.options import Progress

_CLEAR_LINE = b"\r\x1b[K\x1b[?25h"
"""Erase the line, show the cursor (ECMA-48; DEC private mode 25)."""


@contextmanager
def progress_bar(total: int) -> Iterator[Progress | None]:
    """Give what ``read`` tells of its progress through ``total`` bytes; None where there is no terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TextColumn("{task.fields[frames]:,} packets"))
    with Undone(clear_line), Bar(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task("", total=total, frames=0)
        yield lambda done, frames: bar.update(task, completed=done, frames=frames)


@contextmanager
def progress_lines(total: int) -> Iterator[Progress]:
    """Give what writes progress to standard error for programs: a JSON object per line, one per second at most."""
    began = last = monotonic()

    def report(done: int, frames: int) -> None:
        nonlocal last
        if done >= total or monotonic() - last >= 1:
            last = monotonic()
            seconds = last - began
            about = {"bytes": done, "of": total, "packets": frames, "seconds": round(seconds, 3)}
            print(json.dumps(about), file=sys.stderr, flush=True)  # noqa: T201

    yield report


def clear_line() -> None:
    """Take the line away and show the cursor that rich hides: not by rich, which a signal may find at work."""
    with suppress(OSError):
        os.write(2, _CLEAR_LINE)
