"""What several places cost: time and memory of reading captures together, against reading each alone.

    python -m tests.benchmarks.places CAPTURE CAPTURE… [--record]

In: captures of the same traffic at each place, as ``tests/benchmarks/capture-both`` makes them. Out: a table; with
--record it goes into docs/scale.md. All runs print the terminal's first screen, and take turns: each number is the
least of its runs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import click

import conchart
from tests.conftest import ROOT

PAGE = ROOT / "docs" / "scale.md"
MARK = "<!-- places: python -m tests.benchmarks.places --record -->"
PROGRAM = "import sys; from conchart.cli import main; sys.exit(main())"
TURNS = 5


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one run."""

    wall_s: float
    processor_s: float
    memory_mib: float


def cost(*arguments: str | Path) -> Cost:
    """Run the command line once."""
    began = time.monotonic()
    run = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(run.pid, 0)
    run.returncode = os.waitstatus_to_exitcode(status)
    if run.returncode:
        raise subprocess.CalledProcessError(run.returncode, [str(one) for one in arguments])
    return Cost(time.monotonic() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def least(costs: list[Cost]) -> Cost:
    """Give the least of each: what other programs add varies."""
    return Cost(*(min(getattr(one, name) for one in costs) for name in ("wall_s", "processor_s", "memory_mib")))


def ratios(captures: list[Path], turns: int = TURNS) -> tuple[Cost, Cost]:
    """Give what all places cost together, and the sum of what each costs alone."""
    together = [word for number, path in enumerate(captures) for word in ("--at", f"p{number}={path}")]
    alone: dict[Path, list[Cost]] = {path: [] for path in captures}
    places: list[Cost] = []
    for _ in range(turns):
        for path, costs in alone.items():
            costs.append(cost(path))
        places.append(cost(*together))
    each = [least(costs) for costs in alone.values()]
    names = ("wall_s", "processor_s", "memory_mib")
    return least(places), Cost(*(sum(getattr(one, name) for one in each) for name in names))


@click.command()
@click.argument("captures", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("--record", is_flag=True, help="Write the table into docs/scale.md.")
def main(captures: tuple[Path, ...], record: bool) -> None:  # noqa: FBT001
    """Measure how much more several places cost than their captures one by one."""
    packets = 0
    for path in captures:
        with conchart.read(path) as trace:
            packets += trace.sql("SELECT sum(packets) FROM captures").fetchall()[0][0]
    places, alone = ratios(list(captures))
    rows = [
        "| places | packets | wall ÷ each alone | processor time ÷ each alone | memory ÷ each alone |",
        "|--:|--:|--:|--:|--:|",
        f"| {len(captures)} | {packets:,} | {places.wall_s / alone.wall_s:.2f} | "
        f"{places.processor_s / alone.processor_s:.2f} | {places.memory_mib / alone.memory_mib:.2f} |",
    ]
    click.echo("\n".join(rows))
    if record:
        text = PAGE.read_text()
        PAGE.write_text(re.sub(rf"{MARK}\n(\n(\|.*\n)+)?", MARK + "\n\n" + "\n".join(rows) + "\n", text))


if __name__ == "__main__":
    main()
