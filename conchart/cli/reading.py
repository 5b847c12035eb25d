"""Options, progress bar and warnings of all commands that read captures."""

import math
import os
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import partial, wraps
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from conchart.cli.paths import FileCommand, Input
from conchart.errors import CaptureError, UsageError
from conchart.files.replacing import folder_files
from conchart.labels.printable import printable, printable_lines
from conchart.outputs import READ_AGAIN, SUFFIXES
from conchart.reading.knowledge import VANTAGES, Knowledge
from conchart.reading.live.growing import Followed, Growing, Piped
from conchart.reading.options import STATEMENTS, VIEWPOINTS, ReadOptions
from conchart.reading.selection import selection
from conchart.reading.source import Source
from conchart.store.saved import is_saved
from conchart.trace import Trace, read, read_source

_T = TypeVar("_T")
_MOST_PACKETS = (1 << 64) - 1
"""The core's counter has 64 bits: no capture has more."""
_PROGRESS_FROM = 50_000_000
_MANY_CORES = 4
"""From here on several processes are faster than one: together they take about twice its processor time."""
_LARGE_BYTES = 2 << 30
"""Of smaller captures, starting the processes takes longer than they save."""
_LONG_FILTER = 3_000
"""Characters: about 150 hosts."""

IN_PLACES = "(--at)"
"""Stands where the name of a capture would, if ``--at`` names the captures of several places."""


class ReadingCommand(FileCommand):
    """A command whose first argument is a capture, unless ``--at`` names captures."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put a name in front of the other arguments if ``--at`` names the captures."""
        options = args[: args.index("--")] if "--" in args else args
        named = any(arg == "--at" or arg.startswith("--at=") for arg in options)
        return super().parse_args(ctx, [IN_PLACES, *args] if named else args)


_OPTIONS = (
    click.option(
        "--at",
        "places",
        multiple=True,
        type=Input(lambda text: chain(*_named_places((text,)).values()), completed="plain"),
        metavar="NAME=FILE[,FILE…]",
        help="Captures taken at the place NAME, instead of CAPTURE. Repeat it for each place. A connection that "
        "several places saw is shown once, by the clock of the first place.",
    ),
    click.option(
        "--clock",
        "trusted_clocks",
        multiple=True,
        metavar="NAME=trusted",
        help="Take the clock of this place as right (PTP), instead of estimating it from the packets. Repeatable.",
    ),
    click.option("-f", "--filter", metavar="BPF", help="Read only the packets that match this tcpdump filter."),
    click.option(
        "-s",
        "--start",
        metavar="TIME",
        help="Skip packets before TIME. TIME is an offset from the first packet (2.5, 250ms, 1m30s), a date "
        "(2026-11-20T23:15:00Z; local time if it has no zone), or seconds since 1970 (@1700000000.5).",
    ),
    click.option("-e", "--end", metavar="TIME", help="Skip packets at TIME and later."),
    click.option("-c", "--count", type=click.IntRange(min=1), metavar="N", help="Stop after N matching packets."),
    click.option(
        "--vantage",
        type=click.Choice(VANTAGES),
        help="Position of the capture on the path.  [default: inferred from round trips and hop limits]",
    ),
    click.option(
        "--seen-from",
        type=click.Choice(VIEWPOINTS),
        help="Report all times as this end of each connection saw them.  [default: capture]",
    ),
    click.option(
        "--proxy",
        "proxies",
        multiple=True,
        metavar="IP,IP",
        help="Treat these addresses as one proxy. Repeatable.  [default: inferred from the packets]",
    ),
    click.option(
        "--memory",
        metavar="SIZE",
        help="Memory limit of the tables, for example 2GB. Larger tables are moved to a temporary folder.  "
        "[default: half of the memory of this machine]",
    ),
    click.option(
        "--keylog",
        multiple=True,
        type=Input(),
        metavar="FILE",
        help="Decrypt TLS with the secrets in this file, which SSLKEYLOGFILE makes clients write. Repeatable.",
    ),
    click.option(
        "--spans",
        multiple=True,
        type=Input(),
        metavar="FILE",
        help="Match the spans in this file (OTLP as JSON, as the OpenTelemetry collector's file exporter writes it) "
        "with the requests on the wire. Repeatable.",
    ),
    click.option(
        "--statements",
        type=click.Choice(STATEMENTS),
        help="How much to keep of what databases and caches are asked: SQL without its values, and keys (shape); the "
        "whole text of SQL, never with a password (full); neither (off).  [default: shape]",
    ),
    click.option(
        "--access-log",
        "access_logs",
        multiple=True,
        type=Input(lambda text: (text, text.partition("=")[2]), completed="plain"),
        metavar="PRODUCT=FILE",
        help="Put the lines of this access log beside the requests that they are about: nginx=access.log, or haproxy=, "
        "apache=, envoy=, json=. Repeatable.",
    ),
    click.option(
        "--log-format",
        "log_formats",
        multiple=True,
        metavar="FORMAT",
        help="The format of the log, as in the server's configuration. Repeatable.  [default: the usual formats]",
    ),
    click.option(
        "-j",
        "--workers",
        type=click.IntRange(min=1),
        metavar="N",
        help="Read parts of the captures in N processes. The tables are the same.  [default: 1; of captures beyond "
        "2 GiB the number of cores, from 4 cores on]",
    ),
    click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Read parts of the captures on the workers of this Dask scheduler (tcp://host:8786).",
    ),
    click.option(
        "--parts",
        type=Input(lambda folder: (folder, *folder_files(folder, "**/*")), completed="dir"),
        metavar="DIR",
        help="Keep the parts in this folder. A later run reads only files that changed.",
    ),
    click.option(
        "--progress",
        type=click.Choice(["bar", "json"]),
        default="bar",
        help="Progress on standard error: a bar on a terminal, or a line of JSON once per second.  [default: bar]",
    ),
    click.option(
        "--findings",
        multiple=True,
        type=Input(partial(folder_files, pattern="*.md"), completed="dir"),
        metavar="DIR",
        help="Also apply the rules (Markdown files) in this folder. Repeatable.",
    ),
    click.option(
        "--threshold",
        "thresholds",
        multiple=True,
        metavar="NAME=VALUE",
        help='Override the threshold of a rule; "conchart findings ID" lists them. Repeatable. A saved trace keeps its '
        "own findings, so it accepts neither this option nor --findings.",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What the options of a command say about reading."""

    options: ReadOptions = field(default_factory=ReadOptions)
    knowledge: Knowledge = field(default_factory=Knowledge)
    places: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The files of each place."""
    workers: int | None = None
    """How many processes were asked for."""
    progress: str = "bar"
    given: tuple[str, ...] = ()
    """Options that a saved trace cannot follow, as they were typed."""


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that choose packets; the command gets them as ``reading``, for ``read_captures``."""

    @wraps(command)
    def with_reading(**values: Any) -> Any:  # noqa: ANN401  (whatever the command's own options are)
        return command(reading=_reading({name: values.pop(name) for name in _PARAMETERS}), **values)

    return cast("Callable[..., Any]", _with_options(with_reading))


def _with_options(command: Any) -> Any:  # noqa: ANN401  (as click has it)
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_PARAMETERS = {parameter.name: parameter for parameter in reversed(_with_options(click.Command("")).params)}
"""By name: that of the field of ``ReadOptions`` or ``Knowledge``, where these have it."""
_ALSO_WHERE_SAVED = ("memory", "workers", "progress")


def _reading(values: dict[str, Any]) -> Reading:
    """Read what was typed.

    Raises:
        UsageError: It cannot be.
    """
    typed = {name: value for name, value in values.items() if value}
    given = tuple(max(_PARAMETERS[name].opts, key=len) for name in typed if name not in _ALSO_WHERE_SAVED)
    workers, progress = typed.pop("workers", None), typed.pop("progress", "bar")
    expression, start, end, count = (typed.pop(name, None) for name in ("filter", "start", "end", "count"))
    typed |= {
        "selection": selection(expression, start, end, count and min(count, _MOST_PACKETS)),
        "thresholds": dict(map(_threshold, values["thresholds"])),
        "trusted_clocks": _trusted(values["trusted_clocks"]),
    }
    return Reading(
        options=_made(ReadOptions, typed),
        knowledge=_made(Knowledge, typed),
        places=_named_places(values["places"]),
        workers=workers,
        progress=progress,
        given=given,
    )


def _made(kind: type[_T], values: dict[str, Any]) -> _T:
    """Make one of the values that are its fields."""
    return kind(**{one.name: values[one.name] for one in fields(cast("Any", kind)) if one.name in values})


def _named_places(texts: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Read ``NAME=FILE,FILE``; of one name given several times, all files."""
    places: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, _, files = text.partition("=")
        if not name or not files:
            raise UsageError(f"--at {text}: give a name and files (--at client=a.pcap,b.pcap)")
        # A file whose name has a comma is one file.
        places[name] = (*places.get(name, ()), *([files] if Path(files).exists() else files.split(",")))
    return places


def _trusted(texts: tuple[str, ...]) -> tuple[str, ...]:
    for text in texts:
        if not text.endswith("=trusted") or text == "=trusted":
            raise UsageError(f"--clock {text}: give a place whose clock is right (--clock lb=trusted)")
    return tuple(text.removesuffix("=trusted") for text in texts)


def _threshold(text: str) -> tuple[str, float]:
    """Read ``NAME=VALUE``; an integer stays one, since a float has no room for an instant."""
    name, _, value = text.partition("=")
    if name:
        with suppress(ValueError):
            return name, int(value)
        with suppress(ValueError):
            if math.isfinite(number := float(value)):
                return name, number
    raise UsageError(f"cannot read the threshold {text!r}: give a name and a number (reuse_least=5)")


def read_captures(
    paths: tuple[str, ...], reading: Reading, *, packets: bool = False, explain: int | None = None
) -> Trace:
    """Read captures, or open a saved trace, and warn about damage."""
    warn_of_filter(reading)
    if reading.places:
        if paths != (IN_PLACES,):
            raise UsageError(
                f"{paths[-1]}: --at names all captures; give this one a place, too (--at NAME={paths[-1]})"
            )
        paths = ()
    if len(paths) > 1:
        _refuse_outputs(paths)
    if saved := [path for path in paths if is_saved(Path(path))]:
        trace = _load(saved[0], paths, reading)
    else:
        options = replace(reading.options, packets=packets, explain=explain)
        trace = _read(Source(paths=paths, places=reading.places), options, reading)
    warn_of_damage(trace)
    return trace


def warn_of_filter(reading: Reading) -> None:
    """Say what a long filter costs."""
    if len(reading.options.selection.filter or "") > _LONG_FILTER:
        click.echo(
            "conchart: the filter is long: compiling it can take seconds, and matching a million packets takes as long "
            "again. Networks (net 10.0.0.0/8) are faster than lists of hosts.",
            err=True,
        )


def warn_of_damage(trace: Trace) -> None:
    """Say what was wrong with captures that did not end as they should."""
    for path, notes in trace.fetch("SELECT path, notes FROM captures WHERE truncated ORDER BY capture"):
        for note in notes:
            click.echo(f"conchart: warning: {printable(path)}: {printable_lines(note, limit=500)}", err=True)


def _refuse_outputs(paths: tuple[str, ...]) -> None:
    """Refuse a name that was meant as output: it is not a capture, and has a suffix that conchart writes."""
    for path in paths:
        suffix = Path(path).suffix.lower()
        if suffix in SUFFIXES and suffix not in READ_AGAIN and not _is_capture(path):
            raise UsageError(f"{path} is not a capture: to write it, use -w {path}")


def _is_capture(path: str) -> bool:
    """Tell whether the path is a capture. Pipes can be read only once, so they count as captures."""
    with suppress(OSError):
        if not stat.S_ISREG(Path(path).stat().st_mode) or is_saved(Path(path)):
            return True
    try:
        read(path, count=1).close()
    except CaptureError:
        return False
    return True


def _load(saved: str, paths: tuple[str, ...], reading: Reading) -> Trace:
    """Open a saved trace. It was read before, so options that select or add something are refused."""
    if len(paths) > 1:
        raise UsageError(f"{saved} is a saved trace: it cannot be joined with other files")
    if reading.given:
        refused = ", ".join(reading.given)
        raise UsageError(f"{saved} is a saved trace: {refused} can be used only when a capture is read")
    return Trace.load(saved, memory=reading.options.memory)


def _read(source: Source, options: ReadOptions, reading: Reading) -> Trace:
    """Read captures, with a progress bar for large files when standard error is a terminal."""
    total = sum(map(_size, (*source.names, *chain(*source.places.values()))))
    options = replace(options, workers=reading.workers or usual_workers(total))
    if total < _PROGRESS_FROM and reading.progress == "bar":
        return read_source(source, options, reading.knowledge)
    from conchart.cli.progress import progress_bar, progress_lines

    with progress_bar(total) if reading.progress == "bar" else progress_lines(total) as progress:
        return read_source(source, replace(options, progress=progress), reading.knowledge)


def usual_workers(size: int) -> int:
    """Say how many processes read captures of so many bytes if nobody says so: one for each core, or one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores if cores >= _MANY_CORES and size >= _LARGE_BYTES else 1


def _size(path: str) -> int:
    """Give the size of a file, or 0 if it has none or cannot be examined: reading it then reports the error."""
    with suppress(OSError):
        about = Path(path).stat()
        return about.st_size if stat.S_ISREG(about.st_mode) else 0
    return 0


def growing_capture(paths: tuple[str, ...], *, follow: bool) -> Growing | None:
    """Give the growing input: a pipe on standard input, or the file that ``--follow`` names."""
    if follow:
        if len(paths) != 1 or paths[0] == "-":
            raise UsageError("--follow needs exactly one file, which another program is still writing")
        return Followed(paths[0])
    return Piped() if paths == ("-",) and Piped.is_standard_input() else None
