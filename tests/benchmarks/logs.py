"""How long a million lines of an access log take: ``python -m tests.benchmarks.logs [LINES]``.

The log is made beside a capture of the lab: most of its lines lie outside the capture's time, as in real logs, and all
of its targets are those of the capture. Nothing is compared with a limit: ``docs/logs.md`` has the figures.
"""

from __future__ import annotations

import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path
from time import perf_counter

import conchart
from tests.conftest import ROOT

CAPTURE = ROOT / "captures/logs/nginx/input.pcap"
LINES = 1_000_000
AGENT = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0 Safari/537.36"


def make(path: Path, lines: int, until: float) -> None:
    """Write a log of the combined format with durations, two lines a second, whose end lies inside the capture."""
    with path.open("w", encoding="utf-8") as log:
        for number in range(lines):
            at = datetime.fromtimestamp(until - (lines - number) / 2, timezone.utc)
            log.write(
                f'10.97.1.{number % 250} - - [{at:%d/%b/%Y:%H:%M:%S %z}] "GET /wait-{number % 40}/bytes-{number % 997} '
                f'HTTP/1.1" 200 {number % 20_000} "-" "{AGENT}" {number % 300 / 1000:.3f}\n'
            )


def main() -> None:
    """Make the log, and time reading and joining."""
    lines = int(sys.argv[1]) if len(sys.argv) > 1 else LINES
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "access.log")
        with conchart.read(CAPTURE) as trace:
            ((last,),) = trace.sql("SELECT max(last_at) FROM captures").fetchall()
        make(path, lines, last / 1e9)
        began = perf_counter()
        with conchart.read(CAPTURE, access_logs=[f"nginx={path}"]) as trace:
            read = perf_counter()
            trace.provide("log_lines.stream")
            joined = perf_counter()
    size = f"{lines:,} lines"
    print(f"{size}: read in {read - began:.2f} s, joined in {joined - read:.2f} s, {joined - began:.2f} s in all")  # noqa: T201


if __name__ == "__main__":
    main()
