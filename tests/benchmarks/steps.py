"""What each step of reading costs, as a ratio to tcpdump's copy: decoding, the core, the tables.

    python -m tests.benchmarks.steps CAPTURE

In: a capture, and tcpdump. Out: a table for docs/performance.md, medians of turns.
"""

from __future__ import annotations

import resource
import subprocess
import tempfile
import time
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

import click

import conchart
from conchart import _native

if TYPE_CHECKING:
    from collections.abc import Callable

TURNS = 5
NOBODY = ("tcp", ip_address("192.0.2.1"), 1, ip_address("192.0.2.2"), 1, 0)
"""A flow that no capture has: to look for it, each packet is decoded, and nothing more is done."""


def copy(capture: Path) -> None:
    """Let tcpdump copy the capture to nowhere."""
    subprocess.run(["tcpdump", "-r", capture, "-w", "/dev/null"], check=True, stderr=subprocess.DEVNULL)


def decode(capture: Path) -> None:
    """Read each record and decode its headers."""
    with tempfile.TemporaryDirectory() as work:
        _native.spill_flows([str(capture)], [NOBODY], [f"{work}/none"], compile_filter=None, start=None, end=None)


def core(capture: Path) -> None:
    """Reconstruct everything, and drop the rows."""
    _native.read_capture(
        [str(capture)], lambda _table, _batch: None,
        compile_filter=None, detailed=0, explained=None, statements="shape", keylogs=[], progress=None, watch=None,
        start=None, start_relative=False, end=None, end_relative=False, count=None,
    )  # fmt: skip


def read(capture: Path) -> None:
    """Put the rows into tables."""
    conchart.read(capture).close()


def cost(step: Callable[[Path], None], capture: Path) -> tuple[float, float]:
    """Give wall and processor seconds of a step and its child processes."""
    wall, spent = time.perf_counter(), _spent()
    step(capture)
    return time.perf_counter() - wall, _spent() - spent


def _spent() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


@click.command()
@click.argument("capture", type=click.Path(path_type=Path, exists=True))
def main(capture: Path) -> None:
    """Measure the steps in turns, and print their medians."""
    steps = {
        "tcpdump's copy": copy,
        "decode every packet": decode,
        "reconstruct: connections, TLS, requests, phases, stalls": core,
        "the same, into DuckDB's tables (`conchart.read`)": read,
    }
    turns = [{name: cost(step, capture) for name, step in steps.items()} for _ in range(TURNS)]
    medians = {name: tuple(sorted(turn[name][kind] for turn in turns)[TURNS // 2] for kind in (0, 1)) for name in steps}
    wall, spent = medians["tcpdump's copy"]
    click.echo("| step | wall ÷ copy | processor time ÷ copy |\n|---|--:|--:|")
    for name, (its_wall, its_spent) in medians.items():
        click.echo(f"| {name} | {its_wall / wall:.1f} | {its_spent / spent:.1f} |")


if __name__ == "__main__":
    main()
