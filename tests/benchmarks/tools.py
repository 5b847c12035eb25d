"""What is measured: conchart in three ways, its peers, and tcpdump's copy, each as one process that runs to its end.

In: a capture. Out: wall time, processor time and peak memory of a tool. Memory below this process's own (about 35 MiB)
cannot be told: Linux counts what a child had before it became the tool.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""Not from `tests.conftest`: what that imports would count as every tool's memory."""
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
COMMAND = "import sys; from conchart.cli import main; sys.argv[0] = 'conchart'; main()"
"""The command of whichever checkout the process stands in."""
REFERENCE = "tcpdump -w /dev/null"
CONCHART = "conchart.read"
TEXT = "conchart F"
PAGE = "conchart F -w F.html"
OURS = (CONCHART, TEXT, PAGE)
PAST = " before"
"""What the names of the same in another checkout end with."""
PEERS = {
    "ndpiReader": ["ndpiReader", "-q", "-i", "F"],
    # -X: nothing of /etc/argus.conf.
    "argus": ["argus", "-X", "-r", "F", "-w", "/dev/null"],
    "tcptrace": ["tcptrace", "-n", "F"],
    "tshark -z conv,tcp": ["tshark", "-n", "-q", "-z", "conv,tcp", "-r", "F"],
    # -C: checksums that a network card would have filled in are not reasons to leave packets out.
    "zeek": ["zeek", "-C", "-r", "F", "Log::default_writer=Log::WRITER_NONE"],
}
"""Each does more than copy, and none of them asks for names; F is the capture."""
TIMEOUT_S = 300


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
    connections: int | None = None
    """Of `conchart.read` only."""
    written: int | None = None
    """Bytes of the page, where one is written."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A command, where it runs, and what it writes."""

    words: list[str]
    folder: Path | None = None
    """Python imports the conchart that lies there."""
    output: Path | None = None


def tools(capture: Path, before: Path | None, folder: Path) -> dict[str, Tool]:
    """The tools by their names in the table; pages are written to ``folder``."""
    file = str(capture.absolute())
    by_name = {REFERENCE: Tool(["tcpdump", "-r", file, "-w", "/dev/null"])}
    by_name |= {name: Tool([file if word == "F" else word for word in words]) for name, words in PEERS.items()}
    page = folder / "out.html"
    for suffix, checkout in ((PAST, before), ("", ROOT)):
        if checkout is None:
            continue
        command = [sys.executable, "-c", COMMAND, file]
        by_name[CONCHART + suffix] = Tool([sys.executable, "-c", READ, file], checkout)
        by_name[TEXT + suffix] = Tool(command, checkout)
        by_name[PAGE + suffix] = Tool([*command, "-w", str(page)], checkout, page)
    return by_name


def measure(tool: Tool) -> Run:
    """Run a tool to its end in a process of its own.

    The time of `conchart.read` is that of the call, as the caller sees it; of every other tool that of its process.
    """
    if shutil.which(tool.words[0]) is None:
        return Run(problem="not installed")
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.perf_counter()
        process = subprocess.Popen(tool.words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=tool.folder)
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
        busy = usage.ru_utime + usage.ru_stime
        if tool.words[1:3] != ["-c", READ]:
            return Run(seconds, busy, memory, written=tool.output.stat().st_size if tool.output else None)
        out.seek(0)
        inside, busy_inside, packets, connections = out.read().split()
        note = f"{int(packets):,} packets, {int(connections):,} connections; process {seconds:.2f} s"
        return Run(float(inside), float(busy_inside), memory, note=note, connections=int(connections))


def _wait(process: subprocess.Popen[bytes], deadline: float) -> tuple[int, os.rusage_result]:  # type: ignore[name-defined]
    """Exit code and resources of exactly this child."""
    try:
        while time.perf_counter() <= deadline:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                process.returncode = os.waitstatus_to_exitcode(status)
                return process.returncode, usage
            time.sleep(0.002)
        raise TimeoutError
    finally:
        # Whoever is interrupted here leaves nothing running.
        if process.returncode is None:
            process.kill()
            process.wait()
