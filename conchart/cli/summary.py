"""``conchart CAPTURE...``: the summary on the terminal, or files."""

import re
import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from conchart.cli.reading import read_captures, reading_options
from conchart.cli.terminal import print_on, terminal
from conchart.errors import UsageError
from conchart.exports import FORMATS, SUFFIXES, check, check_dump, dump, prepare
from conchart.exports.text import print_summary
from conchart.options import DrawOptions
from conchart.printable import printable
from conchart.schema import SEVERITIES, TABLES
from conchart.trace import Trace
from conchart.units import count_of, format_ns

_STDOUT = frozenset({"-", "/dev/stdout"})
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


@click.command(options_metavar="[-w OUT] [OPTIONS]")
@click.argument("captures", metavar="CAPTURE...", nargs=-1, required=True)
@click.option(
    "-w",
    "--write",
    "outputs",
    multiple=True,
    metavar="OUT",
    help=f"Write a file instead of printing; its suffix chooses the format: {' '.join(SUFFIXES)}. "
    "- is JSON on standard output. May be given several times.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(list(FORMATS)),
    help="The format of what -w writes, whatever its suffix.",
)
@click.option(
    "--table",
    type=click.Choice([table.name for table in TABLES]),
    help="The table that .csv and .parquet hold.  [default: connections, with the time in each phase and in stalls]",
)
@reading_options
@click.option("-a", "--packets", is_flag=True, help="Mark every packet on the page; fill the packets table.")
@click.option("-R", "--no-retransmits", is_flag=True, help="Do not mark retransmitted packets.")
@click.option("-n", "--no-names", is_flag=True, help="Show addresses only, not the names found in the capture.")
@click.option(
    "--size",
    type=Size(),
    default="1600x900",
    show_default=True,
    metavar="WIDTHxHEIGHT",
    help="Of .svg and .png, in pixels; a larger picture of the same shape is the same, sharper.",
)
@click.option("--light/--dark", default=True, help="What .svg and .png stand on.  [default: light]")
@click.option("-v", "--verbose", is_flag=True, help="Print all of each finding, and the facts of each connection too.")
@click.option(
    "--fail-on",
    type=click.Choice(SEVERITIES),
    help="Exit with 1 if there is a finding of this severity or a worse one; everything is written before.",
)
def summary(
    *,
    captures: tuple[str, ...],
    outputs: tuple[str, ...],
    form: str | None,
    table: str | None,
    selection: dict[str, Any],
    packets: bool,
    no_retransmits: bool,
    no_names: bool,
    size: tuple[int, int],
    light: bool,
    verbose: bool,
    fail_on: str | None,
) -> int:
    """Say where the time went in packet captures.

    CAPTURE is a pcap or pcapng file, compressed (gzip, zstd) or not; - is standard input. Several are read as if they
    had been joined. A .duckdb file that conchart wrote is opened instead. Without -w, a summary is printed: how good
    the capture is, what is wrong (conchart findings explains each), where the time went per server and phase, and one
    lane per connection. Times are as seen where the capture was taken.

    \b
    Examples:
      tcpdump -i any -s 0 -w slow.pcap 'tcp port 443'
      conchart slow.pcap
      conchart slow.pcap -w slow.html
      conchart slow.pcap -f 'host 10.0.0.5 and port 443' -s 2.5 -e 10 -v
      conchart slow.pcap -w phases.parquet --table phases
      conchart slow.pcap -w slow.har -w slow.perfetto.json -w slow.otlp.json
      conchart slow.pcap -w slow.svg --size 1920x1080 --dark
      conchart slow.pcap --fail-on serious -w slow.html
      ssh web tcpdump -i any -U -w - 'tcp port 443' | conchart - -c 100000 -w slow.html

    \b
    Exit codes:
      0 done (a damaged capture gives what came before the damage, and a warning)   1 findings, with --fail-on
      2 wrong usage   3 unreadable capture   4 cannot write
    """  # noqa: D301  (click's mark for lines it must not wrap)
    if form and len(outputs) != 1:
        raise UsageError("--format says what one -w writes; of several, the suffix of each does")
    for output in outputs:
        if output == "-":
            check_dump(form or "json")
        else:
            check(Path(output), table=table, form=form, captures=captures)
            prepare(Path(output), form=form)
    options = DrawOptions(
        packets=packets, retransmits=not no_retransmits, names=not no_names, size=size, dark=not light
    )
    with read_captures(captures, selection, packets=packets) as trace:
        for output in outputs:
            if output == "-":
                dump(trace, sys.stdout, form or "json")
            else:
                trace.write(output, format=form, table=table, options=options)
                click.echo(f"Wrote {printable(output)}: {_extent(trace)}", err=not _STDOUT.isdisjoint(outputs))
        if verbose or not outputs:
            print_on(terminal(), partial(print_summary, trace, options=options, verbose=verbose))
        return int(fail_on is not None and _fails(trace, fail_on))


def _fails(trace: Trace, least: str) -> bool:
    """Tell whether there are findings of this severity or a worse one, and name them."""
    bad = SEVERITIES[SEVERITIES.index(least) :]
    query = "SELECT finding FROM findings WHERE list_contains($bad, severity) GROUP BY finding ORDER BY min(number)"
    names = [printable(name) for (name,) in trace.sql(query, {"bad": list(bad)}).fetchall()]
    if names:
        click.echo(f"conchart: --fail-on {least}: {', '.join(names)}", err=True)
    return bool(names)


def _extent(trace: Trace) -> str:
    (connections, span), *_ = trace.sql(
        "SELECT (SELECT count(*) FROM connections), coalesce(max(last_at) - min(first_at), 0) FROM captures"
    ).fetchall()
    return f"{count_of(connections, 'connection')}, {format_ns(span)}"
