"""``conchart CAPTURE...``: the summary on the terminal, or files."""

from typing import Any

import click

from conchart.cli.reading import growing_capture, read_captures, reading_options
from conchart.cli.results import Results, showing_options, writing_options


@click.command(options_metavar="[-w OUT] [OPTIONS]")
@click.argument("captures", metavar="CAPTURE...", nargs=-1, required=True)
@writing_options
@click.option(
    "--follow", is_flag=True, help="Go on where the file ends: somebody still writes it. Ctrl-C ends the reading."
)
@reading_options
@showing_options
def summary(*, captures: tuple[str, ...], follow: bool, selection: dict[str, Any], results: Results) -> int:
    """Say where the time went in packet captures.

    CAPTURE is a pcap or pcapng file, compressed (gzip, zstd) or not; - is standard input. Several are read as if they
    had been joined. A .duckdb file that conchart wrote is opened instead. Without -w, a summary is printed: how good
    the capture is, what is wrong (conchart findings explains each), where the time went per server and phase, and one
    lane per connection. Times are as seen where the capture was taken. Of what still grows, a pipe or with --follow a
    file, a terminal shows the summary of what has come; Ctrl-C ends the reading, and everything is written.

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
      conchart --follow growing.pcap -w slow.html
      ssh web tcpdump -i any -U -w - 'tcp port 443' | conchart - -w slow.html

    \b
    Exit codes:
      0 done (a damaged capture gives what came before the damage, and a warning)   1 findings, with --fail-on
      2 wrong usage   3 unreadable capture   4 cannot write
    """  # noqa: D301  (click's mark for lines it must not wrap)
    results.check(captures)
    options = results.options
    if growing := growing_capture(captures, follow=follow):
        from conchart.cli.watching import read_growing  # not above: a page needs nothing of rich, which takes a while

        trace = read_growing(growing, selection, options)
    else:
        trace = read_captures(captures, selection, packets=options.packets)
    with trace:
        return results.give(trace)
