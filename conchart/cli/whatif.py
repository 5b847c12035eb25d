"""``conchart whatif``: a capture replayed under a changed set-up."""

from functools import partial
from pathlib import Path
from typing import Any

import click

from conchart.cli.paths import FORCE, Input, write_option
from conchart.cli.reading import Reading, ReadingCommand, read_captures, reading_options
from conchart.cli.terminal import print_on, terminal
from conchart.errors import UsageError
from conchart.labels.printable import printable
from conchart.labels.units import parse_duration
from conchart.outputs.predictions import SUFFIXES, check, write
from conchart.outputs.terminal.predictions import print_prediction
from conchart.questions.predict import Change, predict
from conchart.questions.predict.sentences import headline
from conchart.report.report import report_of


@click.command(cls=ReadingCommand, options_metavar="CHANGE... [-w OUT] [OPTIONS]")
@click.argument("captures", type=Input(), metavar="CAPTURE...", nargs=-1, required=True)
@click.option("--keepalive", is_flag=True, help="Keep connections open and reuse them.")
@click.option("--resume", is_flag=True, help="Resume TLS sessions.")
@click.option("--tls13", is_flag=True, help="Use TLS 1.3 instead of older versions.")
@click.option(
    "--0rtt",
    "zero_rtt",
    is_flag=True,
    help="Send the first request of a resumed connection with the ClientHello (early data).",
)
@click.option("--nodelay", is_flag=True, help="Send small segments without delay (TCP_NODELAY).")
@click.option("--tls-off", is_flag=True, help="Use no TLS.")
@click.option(
    "--rtt", metavar="DUR", help="Change the round-trip time between users and the servers that they call: 80ms."
)
@click.option(
    "--server", metavar="SERVER", help="Apply the changes (except --rtt) to this server only: a name, IP or IP:PORT."
)
@write_option(f"Write a file instead of printing the result. The suffix selects the format: {' '.join(SUFFIXES)}.")
@FORCE
@reading_options
def whatif(
    *,
    captures: tuple[str, ...],
    rtt: str | None,
    outputs: tuple[str, ...],
    force: bool,  # noqa: ARG001  (FileCommand reads it)
    reading: Reading,
    **changes: Any,  # noqa: ANN401  (click's flags)
) -> None:
    """Predict how long CAPTURE would have taken with a changed configuration.

    conchart replays the captured requests. It keeps their dependencies and the processing times of clients and servers.
    Several changes can be combined. The result lists the assumptions.

    \b
    Examples:
      conchart whatif slow.pcap --keepalive
      conchart whatif slow.pcap --resume --tls13 --rtt 80ms -w whatif.html
    """  # noqa: D301  (click's mark for lines it must not wrap)
    change = Change(**changes, rtt_ns=None if rtt is None else parse_duration(rtt))
    if not change.words and change.rtt_ns is None:
        raise UsageError(
            "whatif: name at least one change: --keepalive, --resume, --tls13, --0rtt, --nodelay, --tls-off, --rtt"
        )
    for output in outputs:
        check(Path(output))
    with read_captures(captures, reading) as trace:
        prediction = predict(trace, change)
        with report_of(trace) as report:
            for output in outputs:
                write(prediction, report, Path(output))
                click.echo(f"Wrote {printable(output)}: {headline(prediction)}")
        if not outputs:
            print_on(terminal(), partial(print_prediction, prediction))
