"""What tshark says of a capture: fields of its packets."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path


def fields(capture: Path, names: Sequence[str], secrets: Path | None = None) -> Iterator[list[str]]:
    """Return the named fields of each packet, in the order of the capture; with TLS ``secrets``, of what is inside."""
    words = ["tshark", "-n", *(["-o", f"tls.keylog_file:{secrets}"] if secrets else []), "-r", capture, "-T", "fields"]
    output = subprocess.run(
        [*words, *(word for name in names for word in ("-e", name))], check=True, capture_output=True, text=True
    ).stdout
    return (line.split("\t") for line in output.splitlines())


def nanoseconds(epoch: str) -> int:
    """Read ``frame.time_epoch``: nanoseconds since the Unix epoch."""
    seconds, _, fraction = epoch.partition(".")
    return int(seconds) * 10**9 + int(fraction.ljust(9, "0")[:9])
