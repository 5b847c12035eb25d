"""Results of a command that reads captures: files, the summary, an exit code."""

import io
import os
import re
import struct
import sys
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from conchart.cli.paths import FORCE, write_option
from conchart.errors import ConchartError, OutputError, UsageError
from conchart.files.paths import temporary_folder
from conchart.labels.printable import printable
from conchart.labels.units import count_of, format_ns
from conchart.outputs import FORMATS, SUFFIXES, check, check_dump, dump, form_of, prepare, wants_packets
from conchart.outputs.options import DrawOptions
from conchart.store.schema import SEVERITIES, TABLES
from conchart.trace import Trace, read

if TYPE_CHECKING:
    from conchart.report.report import Report

_STDOUT = frozenset({"-", "/dev/stdout"})
_UNJUDGED = "unjudged"
"""What ``--fail-on`` takes besides severities."""
_SIDES = (300, 16_000)
"""The least and the greatest width or height of a picture: below, nothing can be read; above, memory ends."""


class Size(click.ParamType[tuple[int, int]]):
    """The size of a picture: ``1600x900``."""

    name = "size"

    def convert(
        self, value: str | tuple[int, int], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        """Read it."""
        if isinstance(value, tuple):
            return value
        sides = re.fullmatch(r"(\d{1,6})[x×](\d{1,6})", value)
        if not sides:
            self.fail(f"{value!r} is no size: give width and height in pixels (1600x900)", param, ctx)
        width, height = int(sides[1]), int(sides[2])
        least, most = _SIDES
        if not (least <= width <= most and least <= height <= most):
            self.fail(f"{value} is no size for a picture: each side has {least} to {most} pixels", param, ctx)
        return width, height


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """What is wanted of a trace."""

    outputs: tuple[str, ...]
    form: str | None
    table: str | None
    force: bool
    """Replace also what conchart did not write."""
    options: DrawOptions
    fail_on: tuple[str, ...]

    def check(self, captures: Iterable[str]) -> None:
        """Refuse output that cannot be written before a long capture is read; start preparations in parallel.

        Raises:
            UsageError: As ``exports.check``.
        """
        if self.form and len(self.outputs) != 1:
            raise UsageError("--format needs exactly one -w; with several, the suffix of each selects the format")
        for output in self.outputs:
            if output == "-":
                check_dump(self.form or "json")
            else:
                form = form_of(output, self.form)
                check(Path(output), table=self.table, form=form, captures=captures)
                prepare(Path(output), form=form)

    @property
    def want_packets(self) -> bool:
        """Whether something that is written has all packets in it."""
        return any(wants_packets(output, form_of(output, self.form)) for output in self.outputs)

    def rehearse(self) -> None:
        """Produce all output once for a capture without packets, and discard it.

        The user that conchart switches to may not have access to Python modules that are loaded later.
        """
        from conchart.outputs.terminal import print_summary
        from conchart.outputs.terminal.sheet import plain_console
        from conchart.report.report import report_of

        with temporary_folder() as folder, suppress(ConchartError):
            empty = folder / ".rehearsal"
            empty.write_bytes(struct.pack("=IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, 1))
            with read(empty, packets=True) as trace:
                with report_of(trace, names=self.options.names) as report:
                    print_summary(report, plain_console(io.StringIO()), replace(self.options, verbose=True))
                for output in self.outputs:
                    with suppress(ConchartError):  # some formats refuse a capture without packets
                        if output == "-":
                            dump(trace, io.StringIO(), self.form or "json")
                        else:
                            trace.write(
                                folder / Path(output).name,
                                format=form_of(output, self.form),
                                table=self.table,
                                options=self.options,
                            )

    def check_folders(self, user: str) -> None:
        """Refuse output that ``user``, to whom conchart has switched, could not write in the end.

        Raises:
            OutputError: A folder is missing or closed to us.
        """
        for output in set(self.outputs) - _STDOUT:
            folder = Path(os.path.realpath(output)).parent
            if not os.access(folder, os.W_OK | os.X_OK):
                raise OutputError(
                    f"cannot write {output}: conchart runs as {user} now, who may not write in {folder}\n"
                    f"  Name a folder in which {user} may write (/tmp), or another user (-Z USER)."
                )

    def give(self, trace: Trace) -> int:
        """Write the files, or print the summary; gives the exit code."""
        from conchart.report.report import report_of  # not above: a page imports it while the capture is read

        for output in self.outputs:
            if output == "-":
                dump(trace, sys.stdout, self.form or "json")
            else:
                trace.write(output, format=self.form, table=self.table, options=self.options, force=self.force)
                click.echo(f"Wrote {printable(output)}: {_extent(trace)}", err=not _STDOUT.isdisjoint(self.outputs))
        prints = self.options.verbose or not self.outputs
        if not prints and not self.fail_on:
            return 0
        trace.provide("findings")  # a rule that is wrong is told before anything is printed
        with report_of(trace, names=self.options.names) as report:
            if prints:
                self._print_summary(report)
            return int(bool(self.fail_on) and _fails(trace, report, self.fail_on))

    def _print_summary(self, report: "Report") -> None:
        # Not above: a page needs nothing of rich, which takes a while.
        from conchart.cli.terminal import print_on, terminal
        from conchart.outputs.terminal import print_summary

        print_on(terminal(), partial(print_summary, report, options=self.options))


_WRITING = (
    write_option(
        f"Write a file instead of printing the summary. The suffix selects the format: {' '.join(SUFFIXES)}. "
        "- writes JSON to standard output. Repeatable."
    ),
    click.option(
        "--format",
        "form",
        type=click.Choice(list(FORMATS)),
        help="Output format of -w, regardless of the suffix.",
    ),
    click.option(
        "--table",
        type=click.Choice([table.name for table in TABLES]),
        help="Table to write to .csv or .parquet.  [default: connections, with the time in each phase and in stalls]",
    ),
    FORCE,
)
_SHOWING = (
    click.option("-a", "--packets", is_flag=True, help="Mark every packet on the page, and fill the packets table."),
    click.option("-R", "--no-retransmits", is_flag=True, help="Do not mark retransmitted packets."),
    click.option("-n", "--no-names", is_flag=True, help="Show addresses instead of the names found in the capture."),
    click.option(
        "--size",
        type=Size(),
        default="1600x900",
        show_default=True,
        metavar="WIDTHxHEIGHT",
        help="Size of .svg and .png in pixels. A larger size with the same aspect ratio only adds resolution.",
    ),
    click.option("--light/--dark", default=True, help="Background of .svg and .png.  [default: light]"),
    click.option(
        "--no-findings",
        is_flag=True,
        help="Leave the answer and the findings out of the text and the page, for a class that predicts first.",
    ),
    click.option(
        "-v",
        "--verbose",
        is_flag=True,
        help="Print more than one screen: every finding in full, all servers, more lanes, and the details of each "
        "connection.",
    ),
    click.option(
        "--fail-on",
        multiple=True,
        type=click.Choice((*SEVERITIES, _UNJUDGED)),
        help="Exit with code 1 if a finding has this severity or a higher one, or if nobody was served; unjudged: if "
        "something could not be judged, or was never served. All output is written first. Repeatable.",
    ),
)


def writing_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say what to write; ``showing_options`` takes them up, and comes after the others."""
    for option in reversed(_WRITING):
        command = option(command)
    return command


def showing_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how to show it; with those of ``writing_options`` they are the command's ``results``."""

    @wraps(command)
    def with_results(
        *,
        outputs: tuple[str, ...],
        form: str | None,
        table: str | None,
        force: bool,
        packets: bool,
        no_retransmits: bool,
        no_names: bool,
        size: tuple[int, int],
        light: bool,
        no_findings: bool,
        verbose: bool,
        fail_on: tuple[str, ...],
        **others: Any,  # noqa: ANN401  (whatever the command's own options are)
    ) -> Any:  # noqa: ANN401
        options = DrawOptions(
            packets=packets,
            retransmits=not no_retransmits,
            names=not no_names,
            size=size,
            dark=not light,
            findings=not no_findings,
            verbose=verbose,
        )
        results = Results(outputs=outputs, form=form, table=table, force=force, options=options, fail_on=fail_on)
        return command(results=results, **others)

    decorated: Callable[..., Any] = with_results
    for option in reversed(_SHOWING):
        decorated = option(decorated)
    return decorated


def _fails(trace: Trace, report: "Report", wanted: Collection[str]) -> bool:
    """Tell whether the answer is one to fail on, and why; if not, what could not be judged."""
    given = " --fail-on ".join(wanted)
    reasons = []
    if severities := [SEVERITIES.index(one) for one in wanted if one != _UNJUDGED]:
        bad = list(SEVERITIES[min(severities) :])
        query = "SELECT finding FROM findings WHERE list_contains($bad, severity) GROUP BY finding ORDER BY min(number)"
        reasons += [printable(name) for (name,) in trace.fetch(query, {"bad": bad})]
    if not reasons and report.verdict.state == "nobody served":
        reasons.append("nobody was served")
    unjudged = [one.words for one in report.unjudged]
    if report.in_vain:
        unjudged.append(f"never served: {report.in_vain}")
    if not unjudged and report.verdict.state == "not judged":
        unjudged.append("nothing could be judged")
    if _UNJUDGED in wanted and unjudged:
        reasons.append(f"not judged: {'; '.join(unjudged)}")
    if reasons:
        click.echo(f"conchart: --fail-on {given}: {', '.join(reasons)}", err=True)
    elif unjudged:
        click.echo(f"conchart: --fail-on {given}: nothing found, but not judged: {'; '.join(unjudged)}", err=True)
    return bool(reasons)


def _extent(trace: Trace) -> str:
    from conchart.report.axis import captured_ns

    return f"{count_of(trace.count('connections'), 'connection')}, {format_ns(captured_ns(trace))}"
