"""``conchart explain``: one connection, packet by packet."""

from collections.abc import Iterable
from pathlib import Path

import click

from conchart.cli.paths import FORCE, Input, write_option
from conchart.cli.reading import Reading, ReadingCommand, read_captures, reading_options
from conchart.cli.terminal import printed_on, terminal
from conchart.errors import MissingToolError, UsageError
from conchart.labels.printable import printable
from conchart.labels.units import count_of
from conchart.outputs import check
from conchart.outputs.options import DrawOptions
from conchart.outputs.terminal.ladder import MAX_CLOCKS, MAX_RUNGS, print_fields, print_ladder, print_segments
from conchart.outputs.terminal.logs import lines_of
from conchart.outputs.terminal.sheet import Sheet
from conchart.questions.explain import Connection, Ladder, LadderRow, connections, every_rung, ladder
from conchart.questions.explain.bytes import dissected, segments
from conchart.reading.options import LAST_STREAM
from conchart.report import logs
from conchart.trace import Trace

_FORMATS = (".html",)
_VERBOSELY = "Show every packet of a large connection. Add the fields of each handshake message and all TCP options."


@click.command(cls=ReadingCommand)
@click.argument("captures", type=Input(), metavar="CAPTURE...", nargs=-1, required=True)
@click.argument("stream", metavar="STREAM", type=click.IntRange(min=0))
@write_option("Write the page (.html) of this connection.")
@FORCE
@click.option("-v", "--verbose", is_flag=True, help=_VERBOSELY)
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
        drawn = ladder(found, most_clocks=MAX_CLOCKS, most_rungs=MAX_RUNGS)
        for output in outputs:
            trace.write(output, options=DrawOptions(names=not no_names, explained=stream), force=force)
            click.echo(f"Wrote {printable(output)}: connection {stream}, {count_of(drawn.packets, 'packet')}")
        if not outputs or verbose:
            console = terminal()
            with printed_on(console) as write:
                sheet = Sheet(console, write)
                _print(trace, drawn, sheet, every_rung(found) if verbose else None)


def _found(trace: Trace, stream: int) -> Connection:
    """Give the connection, or say which streams there are."""
    for connection in connections(trace, stream):
        return connection
    ((matching, last),) = trace.fetch(f"SELECT count(*) FILTER (stream = {stream}), max(stream) FROM connections")
    if matching:
        raise UsageError(
            f"this file does not contain the packets of connection {stream}: use explain on the capture itself"
        )
    there = "there is no connection in it" if last is None else f"its connections are 0 to {last}"
    raise UsageError(f"no connection {stream}: {there}")


def _print(trace: Trace, drawn: Ladder, sheet: Sheet, every: Iterable[LadderRow] | None) -> None:
    """Write the ladder, or with ``every`` packet, whatever else there is."""
    print_ladder(drawn, sheet, every, more=f"{trace.commands.explain(drawn.stream)} -v".lstrip())
    logged = logs.of_stream(trace, drawn.stream)
    sheet.section("What the access log says of its requests", lines_of(logged, sheet.width))
    if every is None:
        return
    print_segments(segments(trace, drawn.stream), sheet)
    try:
        print_fields(dissected(trace, drawn.stream), sheet)
    except MissingToolError as error:
        sheet.tell([("Fields", str(error))])
