"""What reading in parts costs: wall and processor time and memory, by the number of processes and files.

    python -m tests.benchmarks.parts CAPTURE [--record]

In: a large pcap file, and editcap to cut it into 40 and 400 files. Out: a table; with --record it goes into
docs/scale.md.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import click

import conchart
from tests.conftest import ROOT

PAGE = ROOT / "docs" / "scale.md"
MARK = "<!-- parts: python -m tests.benchmarks.parts --record -->"
MEASURED = """
import resource, sys, time, conchart
if __name__ == "__main__":
    began = time.monotonic()
    conchart.read(*sys.argv[2:], workers=int(sys.argv[1])).close()
    wall = time.monotonic() - began
    own, tasks = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    spent = own.ru_utime + own.ru_stime + tasks.ru_utime + tasks.ru_stime
    print(wall, spent, own.ru_maxrss // 1024, tasks.ru_maxrss // 1024)
"""
TURNS = 3


def measured(program: Path, workers: int, files: list[Path]) -> list[float]:
    """Give the median of wall and processor seconds, and of MiB of the process and of the largest task."""
    runs = []
    for _ in range(TURNS):
        done = subprocess.run(
            [sys.executable, program, str(workers), *files], check=True, capture_output=True, text=True
        )
        runs.append([float(number) for number in done.stdout.split()])
    return sorted(runs)[TURNS // 2]


@click.command()
@click.argument("capture", type=click.Path(path_type=Path, exists=True))
@click.option("--record", is_flag=True, help="Write the table into docs/scale.md.")
def main(capture: Path, record: bool) -> None:  # noqa: FBT001
    """Measure how long one process and parts of a capture take."""
    with tempfile.TemporaryDirectory() as work, conchart.read(capture) as trace:
        ((packets,),) = trace.sql("SELECT sum(packets) FROM captures").fetchall()
        program = Path(work, "measured.py")
        program.write_text(MEASURED)
        cut = {1: [capture]}
        for files in (40, 400):
            folder = Path(work, str(files))
            folder.mkdir()
            subprocess.run(["editcap", "-c", str(packets // files + 1), capture, folder / "p.pcap"], check=True)
            cut[files] = sorted(folder.iterdir())
        one = measured(program, 1, cut[1])
        rows = [
            "| files | processes | wall ÷ one process | processor time ÷ one process | memory | memory of a task |",
            "|--:|--:|--:|--:|--:|--:|",
            f"| 1 | 1 | 1 | 1 | {one[2]:.0f} MiB | |",
        ]
        for files, workers in ((1, 2), (40, 1), (40, 2), (400, 2)):
            wall, spent, memory, task = measured(program, workers, cut[files])
            task_memory = f"{task:.0f} MiB" if task else ""
            ratios = f"{wall / one[0]:.2f} | {spent / one[1]:.2f}"
            rows.append(f"| {len(cut[files])} | {workers} | {ratios} | {memory:.0f} MiB | {task_memory} |")
        click.echo("\n".join(rows))
        if record:
            text = PAGE.read_text()
            PAGE.write_text(re.sub(rf"{MARK}\n(\n(\|.*\n)+)?", MARK + "\n\n" + "\n".join(rows) + "\n", text))


if __name__ == "__main__":
    main()
