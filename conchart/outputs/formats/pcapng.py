"""pcapng: the packets of the captures, with comments where phases, handshakes, stalls and findings are, for Wireshark.

In: a trace, and its captures, which are read once more. Out: one file. The native core copies; what is said of packets
is ``report``'s.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from conchart import _native
from conchart.errors import CaptureError, UsageError
from conchart.labels.units import count_of
from conchart.outputs.options import DrawOptions
from conchart.reading.selection import parse_selection
from conchart.report.comments import comments
from conchart.store.tables import Tables


def check_captures(paths: Iterable[str], output: Path) -> None:
    """Refuse captures whose packets cannot be had once more.

    Raises:
        UsageError: One is standard input or a pipe.
    """
    for path in map(Path, paths):
        if str(path) == "-" or (path.exists() and not path.is_file()):
            name = "standard input" if str(path) == "-" else str(path)
            raise UsageError(
                f"cannot write {output}: the packets have to be read a second time, and {name} can be read only once\n"
                f"  Write them to a file first (tcpdump -w slow.pcap), then: conchart slow.pcap -w {output}"
            )


def write_pcapng(tables: Tables, path: Path, options: DrawOptions) -> None:
    """Copy the packets that were chosen when the captures were read, with a comment for each thing said of one.

    Raises:
        CaptureError: A capture is gone, or has changed since it was read.
    """
    rows = tables.fetch("SELECT path, packets, bytes, selection FROM captures ORDER BY capture")
    chosen = parse_selection(rows[0][3] or "" if rows else "")
    batches = comments(tables, names=options.names)
    try:
        seen = _native.annotate_captures(
            [(name, packets) for name, packets, _, _ in rows],
            os.fspath(path),
            lambda: next(batches, []),
            compile_filter=chosen.compiler(),
            **chosen.bounds,
        )
    except _native.CaptureError as error:
        raise CaptureError(
            f"{error}\n  conchart reads a capture a second time for {path.suffix}: put the file back."
        ) from None
    for (name, packets, size, _), found in zip(rows, seen, strict=True):
        if found != (packets, size):
            raise CaptureError(
                f"{name}: has changed since it was read: {count_of(packets, 'packet')} of {size} bytes then, "
                f"{count_of(found[0], 'packet')} of {found[1]} bytes now"
            )
