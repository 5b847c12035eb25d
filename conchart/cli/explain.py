"""``conchart explain``: one connection, packet by packet."""

from functools import partial
from pathlib import Path

import click
from rich.console import Console

from conchart.cli.paths import FORCE, Input, write_option
from conchart.cli.reading import Reading, ReadingCommand, read_captures, reading_options
from conchart.cli.terminal import print_on, terminal
from conchart.errors import MissingToolError, UsageError
from conchart.labels.printable import printable
from conchart.labels.units import count_of
from conchart.outputs import check
from conchart.outputs.options import DrawOptions
from conchart.outputs.terminal.ladder import print_fields, print_ladder, print_segments
from conchart.outputs.terminal.logs import lines_of
from conchart.outputs.terminal.sheet import Sheet
from conchart.questions.explain import Ladder, connections, ladder
from conchart.questions.explain.bytes import dissected, segments
from conchart.reading.options import LAST_STREAM
from conchart.report import logs
from conchart.trace import Trace

_FORMATS = (".html",)


@click.command(cls=ReadingCommand)
@click.argument("captures", type=Input(), metavar="CAPTURE...", nargs=-1, required=True)
@click.argument("stream", metavar="STREAM", type=click.IntRange(min=0))
@write_option("Write the page (.html) of this connection.")
@FORCE
@click.option("-v", "--verbose", is_flag=True, help="Add the fields of each handshake message and all TCP options.")
@click.option("-n", "--no-names", is_flag=True, help="Show addresses instead of the names found in the capture.")
@reading_options
def explain(
    *,
    captures: tuple[str, ...],
    stream: int,
    outputs: tuple[str, ...],
    force: bool,
    verbose: bool,
    no_names: bool,
    reading: Reading,
) -> None:
    """Explain one connection packet by packet: the purpose of each packet, each pause, and the sums.

    STREAM is the number of the connection on the page and in the tables. In a capture that holds only TCP, it equals
    Wireshark's tcp.stream. Names in brackets are inferred from the position in an encrypted handshake; --keylog
    decrypts the handshake instead.

    \b
    Examples:
      conchart explain slow.pcap 0
      conchart explain slow.pcap 3 -v
      conchart explain slow.pcap 3 -w ladder.html
    """  # noqa: D301  (click's mark for lines it must not wrap)
    for output in outputs:
        check(Path(output))
        if Path(output).suffix.lower() not in _FORMATS:
            raise UsageError(f"cannot write {output}: explain writes {' '.join(_FORMATS)}")
    if reading.options.seen_from != "capture":
        raise UsageError(
            "explain does not support --seen-from: it shows the times at the capture point and at both ends"
        )
    with read_captures(captures, reading, explain=min(stream, LAST_STREAM)) as trace:
        found = _found(trace, stream)
        for output in outputs:
            trace.write(output, options=DrawOptions(names=not no_names, explained=stream), force=force)
            click.echo(f"Wrote {printable(output)}: connection {stream}, {count_of(len(found.rungs), 'packet')}")
        if not outputs or verbose:
            print_on(terminal(), partial(_print, trace, found, verbose=verbose))


def _found(trace: Trace, stream: int) -> Ladder:
    """Give the ladder of the stream, or say which streams there are."""
    for connection in connections(trace, stream):
        return ladder(connection)
    ((matching, last),) = trace.fetch(f"SELECT count(*) FILTER (stream = {stream}), max(stream) FROM connections")
    if matching:
        raise UsageError(
            f"this file does not contain the packets of connection {stream}: use explain on the capture itself"
        )
    there = "there is no connection in it" if last is None else f"its connections are 0 to {last}"
    raise UsageError(f"no connection {stream}: {there}")


def _print(trace: Trace, found: Ladder, console: Console, *, verbose: bool) -> None:
    sheet = Sheet(console)
    print_ladder(found, sheet)
    logged = logs.of_stream(trace, found.stream)
    sheet.section("What the access log says of its requests", lines_of(logged, sheet.width))
    if not verbose:
        return
    print_segments(segments(trace, found.stream), sheet)
    try:
        print_fields(dissected(trace, found.stream), sheet)
    except MissingToolError as error:
        sheet.tell([("Fields", str(error))])
