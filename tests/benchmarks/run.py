"""conchart beside tcpdump, tcptrace and tshark: the same files, in the same run, in turns.

In: shapes and sizes. Out: the least wall time and the highest resident memory of each tool, with ratios against
tcpdump's copy (`tcpdump -r F -w /dev/null`) and the targets. A tool that is missing or fails is a row that says so.
The captures are generated (`generate.py`), and real ones of the same shapes where this machine can make them
(`live.py`). With `--before` the conchart of another checkout takes its turn too. Memory below this process's own (about
35 MiB) cannot be told: Linux counts what a child had before it became the tool.

    python -m tests.benchmarks.run
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from tests.benchmarks.live import missing

READ = """
import sys, time
import conchart
wall, processor = time.perf_counter(), time.process_time()
trace = conchart.read(sys.argv[1])
seconds, busy = time.perf_counter() - wall, time.process_time() - processor
((packets,),) = trace.sql("SELECT packets FROM captures").fetchall()
((connections,),) = trace.sql("SELECT count(*) FROM connections").fetchall()
print(seconds, busy, packets, connections)
"""
WRITE = """
import sys, tempfile, time
import conchart
trace = conchart.read(sys.argv[1])
with tempfile.TemporaryDirectory() as folder:
    wall, processor = time.perf_counter(), time.process_time()
    trace.write(f"{folder}/out{sys.argv[2]}")
    seconds, busy = time.perf_counter() - wall, time.process_time() - processor
((packets,),) = trace.sql("SELECT packets FROM captures").fetchall()
((connections,),) = trace.sql("SELECT count(*) FROM connections").fetchall()
print(seconds, busy, packets, connections)
"""
REFERENCE = "tcpdump -w /dev/null"
CONCHART = "conchart.read"
PAGE = "page, once read"
SUMMARY = "summary, once read"
PAST = " before"
"""What the names of the same in another checkout end with."""
BEFORE = CONCHART + PAST
TIMEOUT_S = 300
LIVE = "live-"
"""What the names of real captures begin with."""
SLOW_S = 30
"""A tool that takes longer than this runs once."""
MAX_MEMORY = 400 * 2**20
MAX_RATIO = {"full": 2.2, "resumed": 3.0, "bulk": 0.8}
"""A shape that is not here is measured, and that is all."""
NOISE = 1.05
"""Memory that two runs of the same program may differ by."""
MAX_SLOWER = 1.10
"""How much longer reading, the page and the summary may take than in the other checkout."""
MAX_GROWTH = 1.25
"""How much more memory four times the file may take when the connections stay as few."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of one tool, or why there was none."""

    seconds: float | None = None
    busy: float | None = None
    """Processor seconds of all its threads: what to look at when the machine has other things to do."""
    memory: int | None = None
    """Peak resident set in bytes."""
    problem: str | None = None
    note: str = ""


def commands(capture: Path) -> dict[str, list[str]]:
    """The tools by the name in the table; none resolves names."""
    file = str(capture.absolute())
    ours = {
        CONCHART: [sys.executable, "-c", READ, file],
        PAGE: [sys.executable, "-c", WRITE, file, ".html"],
        SUMMARY: [sys.executable, "-c", WRITE, file, ".txt"],
    }
    return {
        REFERENCE: ["tcpdump", "-r", file, "-w", "/dev/null"],
        "tcptrace -n": ["tcptrace", "-n", file],
        "tshark -z conv,tcp": ["tshark", "-n", "-q", "-z", "conv,tcp", "-r", file],
    } | {turn: command for tool, command in ours.items() for turn in (tool + PAST, tool)}


def measure(command: list[str], folder: Path | None = None) -> Run:
    """Run a command to its end in a process of its own; Python imports what is in ``folder``.

    The time of `conchart.read`, of the page and of the summary is that of the call, as the caller sees it; of every
    other tool that of its process.
    """
    if shutil.which(command[0]) is None:
        return Run(problem="not installed")
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=err, cwd=folder)
        try:
            status, usage = _wait(process, start + TIMEOUT_S)
        except TimeoutError:
            return Run(problem=f"no end after {TIMEOUT_S} s")
        seconds = time.perf_counter() - start
        if status:
            err.seek(0)
            lines = err.read().decode(errors="replace").strip().splitlines()
            return Run(problem=f"exit {status}: {lines[-1] if lines else 'no message'}")
        memory = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        if command[1:2] != ["-c"]:
            return Run(seconds, usage.ru_utime + usage.ru_stime, memory)
        out.seek(0)
        inside, busy, packets, connections = out.read().split()
        note = f"{int(packets):,} packets, {int(connections):,} connections; process {seconds:.2f} s"
        return Run(float(inside), float(busy), memory, note=note)


def _wait(process: subprocess.Popen[bytes], deadline: float) -> tuple[int, os.rusage_result]:  # type: ignore[name-defined]
    """Exit code and resources of exactly this child."""
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, usage
        if time.perf_counter() > deadline:
            process.kill()
            os.wait4(process.pid, 0)
            process.returncode = -9
            raise TimeoutError
        time.sleep(0.002)


@dataclass(slots=True)
class Result:
    """All runs on one capture."""

    shape: str
    capture: Path
    packets: int
    runs: dict[str, list[Run]] = field(default_factory=dict)

    def best(self, tool: str) -> Run:
        """Least time and highest memory of a tool's rounds; its problem, if any round had one."""
        runs = self.runs[tool]
        for run in runs:
            if run.problem:
                return run
        seconds = min(run.seconds for run in runs if run.seconds is not None)
        busy = min(run.busy for run in runs if run.busy is not None)
        memory = max(run.memory for run in runs if run.memory is not None)
        return Run(seconds, busy, memory, note=runs[-1].note or f"best of {len(runs)}")

    def ratio(self, tool: str) -> float | None:
        """A tool's time over the time of tcpdump's copy."""
        seconds, reference = self.best(tool).seconds, self.best(REFERENCE).seconds
        return seconds / reference if seconds is not None and reference else None


def benchmark(
    shape: str, capture: Path, packets: int, rounds: int, tools: list[str] | None = None, before: Path | None = None
) -> Result:
    """Run every tool ``rounds`` times on a capture, taking turns, after one read that fills the page cache."""
    with capture.open("rb") as file:
        while file.read(1 << 24):
            pass
    result = Result(shape, capture, packets)
    for _ in range(rounds):
        for tool, command in commands(capture).items():
            is_past = tool.endswith(PAST)
            if is_past and before is None:
                continue
            runs = result.runs.setdefault(tool, [])
            if tools is not None and tool not in tools:
                runs[:] = [Run(problem="left out")]
            elif not runs or not (runs[0].problem or (runs[0].seconds or 0) > SLOW_S):
                runs.append(measure(command, before if is_past else None))
    return result


def table(result: Result) -> Table:
    """One row per tool."""
    size = result.capture.stat().st_size / 1e6
    drawn = Table(title=f"{result.capture.stem}: {result.packets:,} packets, {size:,.0f} MB", title_justify="left")
    for column in ("tool", "time", "packets/s", f"÷ {REFERENCE}", "processor", "÷", "peak memory", "note"):
        drawn.add_column(column, justify="left" if column in ("tool", "note") else "right")
    for tool in result.runs:
        run, ratio = result.best(tool), result.ratio(tool)
        if run.seconds is None or run.busy is None or run.memory is None:
            drawn.add_row(tool, *["-"] * 6, run.problem)
            continue
        rate = f"{result.packets / run.seconds / 1e6:.2f} M"
        times = f"{ratio:.2f}" if ratio is not None else "-"
        reference = result.best(REFERENCE).busy
        share = f"{run.busy / reference:.2f}" if reference else "-"
        memory = f"{run.memory / 2**20:,.0f} MiB"
        drawn.add_row(tool, f"{run.seconds:.2f} s", rate, times, f"{run.busy:.2f} s", share, memory, run.note)
    return drawn


def verdicts(results: list[Result]) -> list[tuple[bool, str]]:
    """The targets, each met or not, in words with both numbers."""
    said: list[tuple[bool, str]] = []
    for result in results:
        ours = result.best(CONCHART)
        if ours.seconds is None or ours.memory is None:
            said.append((False, f"{result.shape}: {CONCHART}: {ours.problem}"))
            continue
        ratio, limit = result.ratio(CONCHART), MAX_RATIO.get(result.shape)
        where = f"{result.capture.stem}, {result.packets:,} packets"
        if ratio is None:
            said.append((False, f"{where}: no time of {REFERENCE} to compare with"))
        elif limit is not None:
            said.append((ratio <= limit, f"{where}: {ratio:.2f} x {REFERENCE}; target {limit} x"))
        before = result.best(BEFORE).memory if BEFORE in result.runs else None
        most = MAX_MEMORY if before is None else int(before * NOISE)
        text = f"{where}: peak memory {ours.memory / 2**20:,.0f} MiB; target {most / 2**20:,.0f} MiB"
        said.append((ours.memory <= most, text))
        for tool in (CONCHART, PAGE, SUMMARY):
            if tool in result.runs and tool + PAST in result.runs:
                now, then = result.best(tool).seconds, result.best(tool + PAST).seconds
                slower = now / then if now is not None and then else None
                text = f"{where}: {tool}: {slower or 0:.2f} x the time of before; target {MAX_SLOWER}"
                said.append((slower is not None and slower <= MAX_SLOWER, text))
        for tool in ("tcptrace -n", "tshark -z conv,tcp"):
            theirs = result.best(tool).seconds
            if theirs is not None and result.shape != "bulk":
                said.append((ours.seconds < theirs, f"{where}: {theirs / ours.seconds:.1f} times as fast as {tool}"))
    # Real transfers are as many as there was time for: only the generated ones are alike.
    sizes = [result for result in results if result.shape == "bulk" and not result.capture.stem.startswith(LIVE)]
    memories = [memory for result in sizes if (memory := result.best(CONCHART).memory) is not None]
    if len(memories) > 1:
        growth = memories[-1] / memories[0]
        files = sizes[-1].capture.stat().st_size / sizes[0].capture.stat().st_size
        text = f"bulk: a file {files:.1f} times as large takes {growth:.2f} times the memory; target {MAX_GROWTH}"
        said.append((growth <= MAX_GROWTH, text))
    return said


def captures(folder: Path, packets: int, bulk_packets: int) -> Iterator[tuple[str, Path, int]]:
    """Make the captures, each in a process of its own: what this one holds would count as the tools' memory.

    A file that is there already is taken as it is: real captures take minutes, and two versions want the same one.
    """
    generated = [(shape, packets) for shape in ("full", "resumed", "keepalive")]
    generated += [("bulk", bulk_packets // 4), ("bulk", bulk_packets), ("headers", 2 * bulk_packets)]
    real = [(shape, packets // 3) for shape in ("full", "resumed", "keepalive")] + [("bulk", bulk_packets)]
    made = [("generate", shape, wanted, folder / f"{shape}-{wanted}.pcap") for shape, wanted in generated]
    if not missing():
        made += [("live", shape, wanted, folder / f"{LIVE}{shape}-{wanted}.pcap") for shape, wanted in real]
    for module, shape, wanted, path in made:
        if not path.exists():
            command = [sys.executable, "-m", f"tests.benchmarks.{module}", shape, str(path), "--packets", str(wanted)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        yield shape, path, count(path)


def count(path: Path) -> int:
    """The packets of a little-endian pcap file."""
    number = 0
    with path.open("rb") as file:
        file.seek(24)
        while len(head := file.read(16)) == 16:
            file.seek(struct.unpack_from("<I", head, 8)[0], os.SEEK_CUR)
            number += 1
    return number


@click.command()
@click.option("--packets", default=3_060_000, show_default=True, help="Packets of short connections.")
@click.option("--bulk-packets", default=700_000, show_default=True, help="Packets of the large transfers.")
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(min=1))
@click.option("--tool", "tools", multiple=True, help="Only these tools, by their name in the table.")
@click.option(
    "--before", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Another checkout, built."
)
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), help="Keep the captures here.")
def main(
    packets: int, bulk_packets: int, rounds: int, tools: tuple[str, ...], before: Path | None, folder: Path | None
) -> None:
    """Measure conchart.read beside tcpdump, tcptrace and tshark on captures made now, or found in the folder.

    Exit 1 when a target is missed.
    """
    console = Console(width=None if sys.stdout.isatty() else 140)
    if lacking := missing():
        console.print(f"no real captures: this machine lacks {', '.join(lacking)}")
    with tempfile.TemporaryDirectory() as temporary:
        place = folder or Path(temporary)
        place.mkdir(parents=True, exist_ok=True)
        results = []
        for shape, capture, number in captures(place, packets, bulk_packets):
            result = benchmark(shape, capture, number, rounds, list(tools) or None, before)
            console.print(table(result))
            results.append(result)
        outcome = verdicts(results)
    for met, text in outcome:
        console.print("met   " if met else "MISSED", text)
    sys.exit(0 if all(met for met, _ in outcome) else 1)


if __name__ == "__main__":
    main()
