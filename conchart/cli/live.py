"""``conchart live -i IFACE``: capture, watch, and tell where the time went."""

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from conchart.cli.paths import FileCommand, Output
from conchart.cli.reading import Reading, reading_options
from conchart.cli.results import Results, showing_options, writing_options
from conchart.cli.watching import read_growing
from conchart.errors import UsageError
from conchart.labels.printable import printable
from conchart.labels.units import count_of, parse_duration
from conchart.outputs import reads_again
from conchart.reading import bpf
from conchart.reading.live.interface import Interface
from conchart.reading.live.privileges import become, unprivileged
from conchart.reading.live.sockets import Sockets

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class _Interface(click.ParamType[str]):
    """An interface of this machine, or ``any``."""

    name = "interface"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem[str]]":  # noqa: ARG002
        """Give the interfaces whose names begin like that."""
        import socket  # not above: a run has no use for them

        from click.shell_completion import CompletionItem

        names = ["any", *(name for _, name in socket.if_nameindex())]
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


@click.command(cls=FileCommand, options_metavar="-i IFACE [-f BPF] [-d 30s] [-w OUT] [OPTIONS]")
@click.option(
    "-i",
    "--interface",
    required=True,
    type=_Interface(),
    metavar="IFACE",
    help='Interface to capture on. "any" captures on all interfaces.',
)
@click.option(
    "-d", "--duration", metavar="DUR", help="Stop after this time: 30s, 1m30s.  [default: capture until Ctrl-C]"
)
@writing_options
@click.option(
    "--keep",
    type=Output(".pcap"),
    metavar="FILE",
    help="Also write the packets to this file, as tcpdump -w does.",
)
@click.option(
    "-B",
    "--buffer",
    type=click.IntRange(min=1, max=(1 << 21) - 1),
    default=65536,
    show_default=True,
    metavar="KIB",
    help="Size of the kernel's capture buffer in KiB, as in tcpdump.",
)
@click.option(
    "-Z",
    "--user",
    metavar="USER",
    help="User to switch to once capturing starts; root keeps root.  [default: the caller of sudo, else nobody]",
)
@reading_options
@showing_options
def live(
    *,
    interface: str,
    duration: str | None,
    keep: str | None,
    buffer: int,
    user: str | None,
    reading: Reading,
    results: Results,
) -> int:
    """Capture on an interface, and report where the time went.

    While the capture runs, a terminal shows the summary so far. Ctrl-C, or the time given with -d, ends the capture.
    Then conchart prints the summary, or writes the files that -w names. Starting a capture needs root. conchart drops
    root once capturing starts: the caller of sudo, or else the user nobody, writes the files. The summary reports
    packets that the system dropped.

    \b
    Examples:
      sudo conchart live -i any -f 'tcp port 443 or tcp port 8080'
      sudo conchart live -i eth0 -f 'tcp port 443' -d 30s -w /tmp/slow.html
      sudo conchart live -i any -w slow.html --keep slow.pcap

    \b
    Exit codes:
      0 success, also after Ctrl-C   1 findings, with --fail-on   2 wrong usage   3 cannot capture
      4 cannot write
    """  # noqa: D301  (click's mark for lines it must not wrap)
    if any(reads_again(output, results.form) for output in results.outputs) and not keep:
        raise UsageError(".pcapng needs the packets a second time: also keep them in a file (--keep slow.pcap)")
    results.check(captures=())
    lasting_ns = parse_duration(duration) if duration is not None else None
    if lasting_ns == 0:
        raise UsageError(
            f"-d {duration}: the duration must be longer than 0 (30s); without -d, Ctrl-C ends the capture"
        )
    options = reading.options
    if expression := options.selection.filter:
        bpf.compiler(expression)
    capture = Interface(interface, filter=expression, lasting_ns=lasting_ns, buffer_bytes=buffer << 10)
    # Before privileges are dropped: afterwards, only that user's processes can be named.
    capture.sockets = Sockets.watched()
    if entry := unprivileged(user):
        results.rehearse()
        become(entry)
        click.echo(
            f"conchart: capturing on {printable(interface)}; running as user {entry.pw_name} from now on", err=True
        )
        results.check_folders(entry.pw_name)
    if keep:
        capture.keep_packets(keep)
    options = replace(options, selection=replace(options.selection, filter=None))
    with read_growing(capture, replace(reading, options=options), results.options) as trace:
        if results.options.verbose:
            _tell_unknown(capture.sockets)
        return results.give(trace)


def _tell_unknown(sockets: Sockets | None) -> None:
    if sockets is None:
        click.echo("conchart: this system does not say which process owns a socket", err=True)
    elif sockets.unknown:
        count = count_of(len(sockets.unknown), "socket")
        click.echo(f"conchart: the process of {count} is not known: only root may look (-Z root)", err=True)
