"""conchart beside tcpdump, ndpiReader, argus, tcptrace, tshark and zeek: the same files, in the same run, in turns.

In: shapes and sizes. Out: medians of wall time, processor time and memory of each tool, with ratios to tcpdump's copy
(`tcpdump -r F -w /dev/null`), and the targets (`targets.py`). A tool that is missing or fails is a row that says so.
The captures are generated (`generate.py`), and real ones where this machine can make them (`live.py`). With `--before`
the conchart of another checkout takes its turn too; with `--browser` Chromium opens the page. `--record` keeps the
ratios (`record.py`).

    python -m tests.benchmarks.run --packets 200000
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import get_args

import click
from rich.console import Console
from rich.table import Table

from tests.benchmarks import live, record
from tests.benchmarks.generate import Shape
from tests.benchmarks.results import Result
from tests.benchmarks.targets import Verdict, browsing, verdicts
from tests.benchmarks.tools import CONCHART, PAST, REFERENCE, ROOT, measure, tools

SLOW_S = 30
"""A tool that takes longer than this runs once."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A capture to make: which module does that, with which words."""

    name: str
    module: str
    shape: str
    packets: int
    ends: tuple[str, ...] = ()

    def make(self, folder: Path) -> Path:
        """Make the capture in a process of its own: what this one holds would count as the tools' memory.

        A file that is there already is taken as it is: real captures take minutes, and two versions want the same one.
        """
        path = folder / f"{self.name.replace(' ', '-')}-{self.packets}.pcap"
        if not path.exists():
            command = [sys.executable, "-m", f"tests.benchmarks.{self.module}", self.shape, str(path)]
            command += ["--packets", str(self.packets), *self.ends]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
        return path


def wanted(packets: int, bulk_packets: int, small_packets: int) -> Iterator[Wanted]:
    """Every capture of the benchmark that this machine can make."""
    sizes: dict[str, int] = {"bulk": bulk_packets, "headers": bulk_packets, "small": small_packets}
    for ends in get_args(live.Ends):
        for shape in get_args(live.Shape):
            if not live.missing(shape):
                yield Wanted(f"{ends} {shape}", "live", shape, sizes.get(shape, packets), ("--ends", ends))
    yield Wanted("generated quarter bulk", "generate", "bulk", bulk_packets // 4)
    for shape in get_args(Shape):
        yield Wanted(f"generated {shape}", "generate", shape, sizes.get(shape, packets))


def benchmark(
    capture: Path,
    rounds: int,
    *,
    name: str,
    shape: str,
    only: list[str] | None = None,
    before: Path | None = None,
    browser: bool = False,
) -> tuple[Result, list[Verdict]]:
    """Run every tool ``rounds`` times on a capture, in turns, after one read that fills the page cache."""
    result = Result(name, shape, capture, count(capture))
    judged: list[Verdict] = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            for tool, command in tools(capture, before, Path(folder)).items():
                if only is not None and tool.removesuffix(PAST) not in only:
                    continue
                runs = result.runs.setdefault(tool, [])
                if not runs or not (runs[0].problem or (runs[0].seconds or 0) > SLOW_S):
                    runs.append(measure(command))
        page = Path(folder) / "out.html"
        if browser and page.exists():
            # Here alone: selenium is not needed otherwise.
            from tests.benchmarks.browsing import browse

            judged = browsing(name, browse(page, Path(folder)), result.connections)
    return result, judged


def table(result: Result) -> Table:
    """One row per tool."""
    size = result.capture.stat().st_size / 1e6
    drawn = Table(title=f"{result.name}: {result.packets:,} packets, {size:,.0f} MB", title_justify="left")
    for column in ("tool", "time", "packets/s", f"÷ {REFERENCE}", "processor", "÷", "peak memory", "page", "note"):
        drawn.add_column(column, justify="left" if column in ("tool", "note") else "right")
    for tool in result.runs:
        run = result.middle(tool)
        if run.seconds is None or run.busy is None or run.memory is None:
            drawn.add_row(tool, *["-"] * 7, run.problem)
            continue
        ratios = [result.ratio(tool), result.ratio(tool, "busy")]
        times, share = (f"{ratio:.2f}" if ratio is not None else "-" for ratio in ratios)
        rate = f"{result.packets / run.seconds / 1e6:.2f} M"
        page = f"{run.written / 2**20:.1f} MiB" if run.written is not None else ""
        memory = f"{run.memory / 2**20:,.0f} MiB"
        drawn.add_row(tool, f"{run.seconds:.2f} s", rate, times, f"{run.busy:.2f} s", share, memory, page, run.note)
    return drawn


def count(path: Path) -> int:
    """The packets of a little-endian pcap file; reads it once."""
    number = 0
    with path.open("rb") as file:
        file.seek(24)
        while len(head := file.read(16)) == 16:
            file.seek(struct.unpack_from("<I", head, 8)[0], os.SEEK_CUR)
            number += 1
        file.seek(0)
        while file.read(1 << 24):
            pass
    return number


@click.command()
@click.option("--packets", default=1_000_000, show_default=True, help="Packets of short connections.")
@click.option("--bulk-packets", default=700_000, show_default=True, help="Packets of the large transfers.")
@click.option("--small-packets", default=1_000_000, show_default=True, help="Packets of the small ones; 10 M is slow.")
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(min=1))
@click.option("--capture", "patterns", multiple=True, help="Only captures of these names: 'loopback *', '* resumed'.")
@click.option("--tool", "only", multiple=True, help="Only these tools, by their name in the table.")
@click.option(
    "--before", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Another checkout, built."
)
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), help="Keep the captures here.")
@click.option("--browser", is_flag=True, help="Open the pages in Chromium, and zoom.")
@click.option("--record", "label", metavar="WHAT", help="Keep this run's ratios, as those of WHAT.")
@click.option("--record-before", "label_before", metavar="WHAT", help="Keep those of the other checkout.")
def main(
    packets: int,
    bulk_packets: int,
    small_packets: int,
    rounds: int,
    patterns: tuple[str, ...],
    only: tuple[str, ...],
    before: Path | None,
    folder: Path | None,
    browser: bool,
    label: str | None,
    label_before: str | None,
) -> None:
    """Measure conchart beside other tools on captures made now, or found in the folder.

    Exit 1 when a target is missed.
    """
    if label_before and before is None:
        raise click.UsageError("--record-before needs --before")
    console = Console(width=None if sys.stdout.isatty() else 160)
    if lacking := live.missing("http2"):
        console.print(f"not every real capture can be made: this machine lacks {', '.join(lacking)}")
    results: list[Result] = []
    browsed: list[Verdict] = []
    with tempfile.TemporaryDirectory() as temporary:
        place = folder or Path(temporary)
        place.mkdir(parents=True, exist_ok=True)
        for one in wanted(packets, bulk_packets, small_packets):
            if patterns and not any(fnmatch(one.name, pattern) for pattern in patterns):
                continue
            result, judged = benchmark(
                one.make(place),
                rounds,
                name=one.name,
                shape=one.shape,
                only=[REFERENCE, CONCHART, *only] if only else None,
                before=before and before.absolute(),
                browser=browser,
            )
            console.print(table(result))
            results.append(result)
            browsed += judged
        if browser:
            from tests.benchmarks.browsing import FEW, FEW_CONNECTIONS, browse_few

            browsed += browsing(FEW.parent.name, browse_few(place), FEW_CONNECTIONS)
        outcome = verdicts(results) + browsed
    for met, text in outcome:
        console.print("met   " if met else "MISSED", text, soft_wrap=True, highlight=False)
    for what, checkout, suffix in ((label_before, before, PAST), (label, ROOT, "")):
        if what and checkout:
            record.append(record.line(what, checkout, results, suffix, rounds))
    if label or label_before:
        record.document()
    sys.exit(0 if all(met for met, _ in outcome) else 1)


if __name__ == "__main__":
    main()
