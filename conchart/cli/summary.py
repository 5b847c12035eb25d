"""``conchart CAPTURE...``: the summary on the terminal, or files."""

import click

from conchart.cli.paths import Input
from conchart.cli.reading import Reading, ReadingCommand, growing_capture, read_captures, reading_options
from conchart.cli.results import Results, showing_options, writing_options


@click.command(cls=ReadingCommand, options_metavar="[-w OUT] [OPTIONS]")
@click.argument("captures", type=Input(), metavar="CAPTURE...", nargs=-1, required=True)
@writing_options
@click.option("--follow", is_flag=True, help="Keep reading as the file grows, until Ctrl-C.")
@reading_options
@showing_options
def summary(*, captures: tuple[str, ...], follow: bool, reading: Reading, results: Results) -> int:
    """Show where the time went in packet captures.

    CAPTURE is a pcap or pcapng file, plain or compressed (gzip, zstd), a URL, or - for standard input. Several files
    are read as one capture. A .duckdb file or a folder of tables that conchart wrote is opened instead. Without -w,
    conchart prints a summary of one screen: findings with cost and change ("conchart findings" explains each finding)
    and waits that none explains, the largest first, where the time went per server and phase, lanes of connections, and
    how complete the capture is. -v prints everything. Times are those of the capturing machine. While the input grows
    (a pipe, or a file with --follow), the terminal shows the summary so far. Ctrl-C then ends the input, and conchart
    writes all
    output.

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
      conchart --at client=a.pcap --at server=b.pcap -w slow.html
      ssh web tcpdump -i any -U -w - 'tcp port 443' | conchart - -w slow.html

    \b
    Exit codes:
      0 success (of a damaged capture, the part before the damage is used, with a warning)
      1 findings, with --fail-on   2 wrong usage   3 unreadable capture   4 cannot write
    """  # noqa: D301  (click's mark for lines it must not wrap)
    results.check([file for files in reading.places.values() for file in files] or captures)
    options = results.options
    if growing := growing_capture(captures, follow=follow):
        from conchart.cli.watching import read_growing  # not above: a page needs nothing of rich, which takes a while

        trace = read_growing(growing, reading, options)
    else:
        trace = read_captures(captures, reading, packets=options.packets or results.want_packets)
    with trace:
        return results.give(trace)
