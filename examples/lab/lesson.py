"""What lessons with figures share: ``results.json``, the tables made from it in a README, the machine measured.

A README has its tables between two comments, ``<!-- table: NAME -->`` and ``<!-- end of table -->``. Nobody edits
what is between them: ``make-captures --tables`` writes it anew, and a test compares.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

BLOCK = re.compile(r"(<!-- table: ([a-z0-9-]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)
RIGHT = re.compile(r"[-+±≈×≥]? ?[0-9][0-9., ]*( ?[%×]| [A-Za-zµ]+| / .*)?|–?")
"""A cell that is a number, perhaps with its unit."""


def machine() -> dict[str, str | int]:
    """Name the processor, how many of them there are, and the kernel."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "processor": models[0] if models else os.uname().machine,
        "processors": os.cpu_count() or 1,
        "kernel": f"{os.uname().sysname} {os.uname().release}",
    }


def machine_named(measured: Mapping[str, str | int]) -> str:
    """Say in words what :func:`machine` found."""
    return f"{measured['processor']}, {measured['processors']} processors, {measured['kernel']}"


def write_results(path: Path, results: Mapping[str, Any]) -> None:
    """Write results, one line for each row of each list, so that a difference can be read."""
    parts = []
    for name, value in results.items():
        if isinstance(value, list):
            rows = ",\n".join(f"  {json.dumps(row)}" for row in value)
            parts.append(f"{json.dumps(name)}: [\n{rows}\n]")
        else:
            parts.append(f"{json.dumps(name)}: {json.dumps(value)}")
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def read_results(path: Path) -> dict[str, Any]:
    """Read what :func:`write_results` wrote."""
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def ask_conchart(capture: Path, question: str, *options: str) -> list[dict[str, Any]]:
    """Return the rows that conchart answers an SQL question with, as its users ask it: by its command.

    ``options`` are those of ``conchart query``.

    Raises:
        FileNotFoundError: there is no ``conchart``, neither beside this Python nor in the path.
    """
    beside = Path(sys.executable).with_name("conchart")
    program = str(beside) if beside.is_file() else shutil.which("conchart")
    if program is None:
        raise FileNotFoundError("conchart: run this by the Python that it is installed for")
    words = [program, "query", str(capture), question, "--format", "json", *options]
    found: list[dict[str, Any]] = json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout)
    return found


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown; a column in which all cells are numbers is set to the right."""
    rows = list(rows)
    numbers = [all(RIGHT.fullmatch(row[column]) for row in rows) for column in range(len(heads))]
    lines = [heads, ["---:" if right else "---" for right in numbers], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines).replace(" ---: ", "---:").replace(" --- ", "---")


def fill(page: str, tables: Mapping[str, str]) -> str:
    """Put tables into a page, each between its comments.

    Raises:
        ValueError: the page has another set of places than ``tables``; names what is too many on either side.
    """
    places = {name for _, name, _ in BLOCK.findall(page)}
    if places != tables.keys():
        raise ValueError(f"places in the page and tables differ: {sorted(places ^ tables.keys())}")
    return BLOCK.sub(lambda place: f"{place[1]}{tables[place[2]]}\n{place[3]}", page)
