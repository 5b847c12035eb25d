"""``conchart diff BEFORE AFTER``: what changed from one capture to the other."""

import sys
from functools import partial
from pathlib import Path

import click

from conchart.cli.paths import FORCE, FileCommand, Input, write_option
from conchart.cli.reading import Reading, read_captures, reading_options
from conchart.cli.terminal import print_on, terminal
from conchart.errors import UsageError
from conchart.labels.printable import printable
from conchart.labels.units import count_of
from conchart.outputs.comparison import COMPARISON_SUFFIXES, check_comparison, dump_comparison, write_comparison
from conchart.outputs.terminal.comparison import print_comparison
from conchart.questions.compare import compare

_STDOUT = "-"


@click.command(cls=FileCommand)
@click.argument("before", type=Input(), metavar="BEFORE")
@click.argument("after", type=Input(), metavar="AFTER")
@write_option(
    "Write a file instead of printing the result. The suffix selects the format: "
    f"{' '.join(COMPARISON_SUFFIXES)}. - writes JSON to standard output. Repeatable."
)
@FORCE
@reading_options
@click.option("-n", "--no-names", is_flag=True, help="Show addresses instead of the names found in the captures.")
def diff(
    *,
    before: str,
    after: str,
    outputs: tuple[str, ...],
    force: bool,  # noqa: ARG001  (FileCommand reads it)
    reading: Reading,
    no_names: bool,
) -> None:
    """Compare the capture BEFORE a change with the capture AFTER it.

    Both captures show the same workload. Saved .duckdb files are accepted too. For each server, conchart prints the
    numbers of connections, requests and TLS handshakes, the time in each phase of a request before and after, whether
    the difference exceeds the noise, and which findings are gone or new. Servers are matched by address and port, then
    by name, then by position. Options that select packets or keys apply to both captures.

    \b
    Examples:
      conchart diff before.pcap after.pcap
      conchart diff before.pcap after.pcap -w diff.html
      conchart diff before.pcap after.pcap -f 'tcp port 443' -n -w diff.json

    \b
    Exit codes:
      0 success, with or without changes   2 wrong usage, or captures that cannot be compared
      3 unreadable capture                 4 cannot write
    """  # noqa: D301  (click's mark for lines it must not wrap)
    for output in outputs:
        if output != _STDOUT:
            check_comparison(Path(output))
    if reading.places:
        raise UsageError("diff compares two captures: save each reading of several places first (-w before.duckdb)")
    if before == after == "-":
        raise UsageError("only one of both captures can come from standard input")
    with read_captures((before,), reading) as one, read_captures((after,), reading) as other:
        comparison = compare(one, other, names=not no_names)
    for output in outputs:
        if output == _STDOUT:
            dump_comparison(comparison, sys.stdout)
        else:
            write_comparison(comparison, Path(output))
            servers = count_of(len(comparison.hops), "server")
            click.echo(f"Wrote {printable(output)}: {servers} compared", err=_STDOUT in outputs)
    if not outputs:
        print_on(terminal(), partial(print_comparison, comparison))
