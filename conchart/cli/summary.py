"""``conchart CAPTURE...``: the summary on the terminal, or files."""

import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from conchart.cli.reading import read_captures, reading_options
from conchart.cli.streams import plain_width
from conchart.exports import SUFFIXES, check
from conchart.exports.json import dump_json
from conchart.exports.text import PLAIN_WIDTH, print_summary
from conchart.options import DrawOptions
from conchart.printable import printable
from conchart.schema import SEVERITIES, TABLES
from conchart.trace import Trace
from conchart.units import count_of, format_ns

_STDOUT = "-"


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
    "--table",
    type=click.Choice([table.name for table in TABLES]),
    help="The table that .csv and .parquet hold.  [default: connections, with the time in each phase and in stalls]",
)
@reading_options
@click.option("-a", "--packets", is_flag=True, help="Mark every packet on the page; fill the packets table.")
@click.option("-R", "--no-retransmits", is_flag=True, help="Do not mark retransmitted packets.")
@click.option("-n", "--no-names", is_flag=True, help="Show addresses only, not the names found in the capture.")
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
    table: str | None,
    selection: dict[str, Any],
    packets: bool,
    no_retransmits: bool,
    no_names: bool,
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
      conchart slow.pcap --fail-on serious -w slow.html
      ssh web tcpdump -i any -U -w - 'tcp port 443' | conchart - -c 100000 -w slow.html

    \b
    Exit codes:
      0 done (a damaged capture gives what came before the damage, and a warning)   1 findings, with --fail-on
      2 wrong usage   3 unreadable capture   4 cannot write
    """  # noqa: D301  (click's mark for lines it must not wrap)
    for output in outputs:
        if output != _STDOUT:
            check(Path(output), table=table)
    options = DrawOptions(packets=packets, retransmits=not no_retransmits, names=not no_names)
    with read_captures(captures, selection, packets=packets) as trace:
        for output in outputs:
            if output == _STDOUT:
                dump_json(trace, sys.stdout)
            else:
                chosen = table if Path(output).suffix.lower() in (".csv", ".parquet") else None
                trace.write(output, table=chosen, options=options)
                click.echo(f"Wrote {printable(output)}: {_extent(trace)}", err=_STDOUT in outputs)
        if verbose or not outputs:
            _print(trace, options, verbose=verbose)
        return int(fail_on is not None and _fails(trace, fail_on))


def _print(trace: Trace, options: DrawOptions, *, verbose: bool) -> None:
    console = plain_width(Console(highlight=False), PLAIN_WIDTH)
    # Printed in one piece by click, so that a reader who has gone is BrokenPipeError here as everywhere.
    with console.capture() as captured:
        print_summary(trace, console, options, verbose=verbose)
    click.echo(captured.get(), nl=False, color=console.is_terminal)


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
