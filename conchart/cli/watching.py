"""Watch a growing capture on a terminal: the summary so far is printed repeatedly, and signals end the capture.

In: a capture that grows. Out: standard error, where that is a terminal; nothing where it is none.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from io import StringIO
from time import monotonic_ns

import click
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from conchart.cli.progress import clear_line
from conchart.cli.reading import Reading, warn_of_damage, warn_of_filter
from conchart.files.unfinished import Undone
from conchart.labels.printable import printable
from conchart.labels.units import SECOND, count_of, format_ns
from conchart.outputs.options import DrawOptions
from conchart.outputs.terminal import print_summary
from conchart.reading.live.growing import Growing
from conchart.reading.source import Source
from conchart.report.report import report_of
from conchart.trace import Trace, Watch, read_source

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_REFRESH = 2
"""Times a second that the line of status is drawn."""


def read_growing(growing: Growing, reading: Reading, options: DrawOptions) -> Trace:
    """Read a growing capture until it ends, or until a signal ends it; a terminal shows the summary so far."""
    warn_of_filter(reading)
    with _watched(growing, options) as watch:
        # The summary is shown instead of progress, and what grows cannot be divided.
        chosen = replace(reading.options, watch=watch, packets=options.packets)
        trace = read_source(Source(paths=(growing,), places=reading.places), chosen, reading.knowledge)
    warn_of_damage(trace)
    if growing.broken:
        click.echo(f"conchart: warning: {printable(growing.name)}: {printable(growing.broken)}", err=True)
    return trace


@contextmanager
def _watched(growing: Growing, options: DrawOptions) -> Iterator[Watch | None]:
    """Let the first signal end what grows, and show it if there is a terminal; gives what ``read`` wants to show."""
    console = Console(stderr=True, highlight=False)
    with _ended_by_signals(growing), ExitStack() as shown:
        if not console.is_terminal:
            yield None
            return
        screen = _Screen(console, growing, options)
        shown.enter_context(Undone(clear_line))
        shown.enter_context(
            Live(
                get_renderable=screen.draw,
                console=console,
                refresh_per_second=_REFRESH,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
                vertical_overflow="crop",
            )
        )
        yield screen.show


@contextmanager
def _ended_by_signals(growing: Growing) -> Iterator[None]:
    """Let the first signal end the capture, the second one the process; ignored signals stay ignored."""
    before = {number: signal.getsignal(number) for number in _ENDING}
    ours = [number for number, handler in before.items() if handler != signal.SIG_IGN]
    if threading.current_thread() is not threading.main_thread():
        ours = []

    def give_back() -> None:
        for number in ours:
            signal.signal(number, before[number])

    def end(_number: int, _frame: object) -> None:
        growing.end()
        give_back()

    for number in ours:
        signal.signal(number, end)
    try:
        yield
    finally:
        give_back()


class _Screen:
    """A line of status, and below it as much of the summary as there are lines."""

    def __init__(self, console: Console, growing: Growing, options: DrawOptions) -> None:
        self._console = console
        self._growing = growing
        self._options = options
        self._began = monotonic_ns()
        self._summary: list[str] = []
        self._packets: int | None = None

    def show(self, trace: Trace) -> None:
        """Take the summary of the capture so far."""
        size = self._console.size
        page = Console(file=StringIO(), width=size.width, force_terminal=True)
        with page.capture() as captured, report_of(trace, names=self._options.names) as report:
            print_summary(report, page, self._options)
        self._summary = captured.get().split("\n")
        ((self._packets,),) = trace.sql("SELECT sum(packets)::BIGINT FROM captures").fetchall()

    def draw(self) -> Group:
        """Draw both."""
        growing = self._growing
        # The folders of a file would leave no room for what changes.
        status = [growing.name.rpartition("/")[2], format_ns((monotonic_ns() - self._began) // SECOND * SECOND)]
        # Only an interface counts its packets. Of a pipe or a file, those that the summary has read are known.
        packets = self._packets if growing.packets is None else growing.packets
        if packets is not None:
            status.append(count_of(packets, "packet"))
        if growing.dropped:
            status.append(f"{count_of(growing.dropped, 'packet')} lost")
        status.append("Ctrl-C ends it")
        lines = self._summary[: max(self._console.size.height - 2, 0)]
        return Group(
            Text(", ".join(status), style="bold", no_wrap=True, overflow="ellipsis"),
            Text.from_ansi("\n".join(lines), no_wrap=True, overflow="crop"),
        )
