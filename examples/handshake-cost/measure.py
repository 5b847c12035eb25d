"""Runs ``cost.c`` and ``cost.go`` in one process, and makes rows of what they print.

In: compiled programs, keys. Out: rows of ``results.json``: nanoseconds of CPU of a connection, its median over the
connections after the first, which starts the library, and has no session to resume. Everything is measured in several
rounds, minutes apart, and the round that others disturbed least is kept: the one with the lowest median.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import TypeVar

from grid import Cell, GoCell

HERE = Path(__file__).resolve().parent
STAGES = ("setup", "hello", "answers", "last", "data")
PATIENCE_SECONDS = 120

Row = dict[str, object]
AnyCell = TypeVar("AnyCell")


def build(folder: Path) -> None:
    """Compile both programs into ``folder``."""
    words = ["cc", "-O2", "-o", folder / "cost", HERE / "cost.c", "-lssl", "-lcrypto"]
    subprocess.run(words, check=True)
    subprocess.run(["go", "build", "-o", folder / "cost-go", HERE / "cost.go"], check=True)


def least_disturbed(cells: Sequence[AnyCell], rounds: int, measured: Callable[[AnyCell], Row]) -> list[Row]:
    """Measure all cells, ``rounds`` times, and keep the best round of each."""
    found = [[measured(cell) for cell in cells] for _ in range(rounds)]
    return [min(rows, key=lambda row: int(str(row["cpu_ns"]))) for rows in zip(*found, strict=True)]


def measure(programs: Path, keys: Mapping[str, Path], cell: Cell, connections: int, role: str = "process") -> Row:
    """Let both ends talk in one process; its ``role`` may also be ``pauses``."""
    words = [role, cell.version, cell.suite, keys[cell.key], cell.how, cell.bytes, connections]
    return {**asdict(cell), **stages(run(programs / "cost", words))}


def measure_go(programs: Path, keys: Mapping[str, Path], cell: GoCell, connections: int) -> Row:
    """Let both ends of Go talk in one process."""
    output = run(programs / "cost-go", ["process", cell.group, keys[cell.key], cell.how, cell.bytes, connections])
    return {**asdict(cell), "cpu_ns": round(median(int(line) for line in output.splitlines()[1:]))}


def stages(output: str) -> Row:
    """Make a row of what ``cost`` printed: medians by end and stage, and of the whole connection."""
    lines = [[int(word) for word in line.split()] for line in output.splitlines()[1:]]
    columns = [round(median(column)) for column in zip(*lines, strict=True)]
    ends = {"client": columns[: len(STAGES)], "server": columns[len(STAGES) :]}
    return {
        "cpu_ns": round(median(sum(line) for line in lines)),
        **{end: dict(zip(STAGES, values, strict=True)) for end, values in ends.items()},
    }


def run(program: Path, words: list[object]) -> str:
    """Run a program to its end; returns what it printed."""
    done = subprocess.run(
        [program, *map(str, words)], check=True, stdout=subprocess.PIPE, text=True, timeout=PATIENCE_SECONDS
    )
    return done.stdout
