"""Runs a lesson's ``make-captures`` as its reader would, and looks that nothing of it is left behind."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import ROOT

SECONDS = 240
SESSION_FIELD = 3
"""In /proc/PID/stat, counted from behind the name in brackets."""


def program(path: Path) -> ModuleType:
    """Load a Python file of the examples under a name of its own: several lessons have a ``measure.py``."""
    spec = importlib.util.spec_from_file_location("_of_".join((path.stem, path.parent.name.replace("-", "_"))), path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def skip_unless_root_with(programs: Iterable[str]) -> None:
    """Skip a test of a lab where it cannot stand, and say why."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("network namespaces need root on Linux")
    if missing := [program for program in programs if not shutil.which(program)]:
        pytest.skip(f"not installed: {', '.join(missing)}")
    probe = f"conchart-{os.getpid()}-probe"
    if subprocess.run(["ip", "netns", "add", probe], capture_output=True).returncode:
        pytest.skip("this machine lets nobody make network namespaces")
    subprocess.run(["ip", "netns", "delete", probe], check=True)


def conchart_commands(page: Path) -> list[str]:
    """The command lines of a lesson's page that begin with ``conchart``, with their continuations."""
    lines = re.sub(r"\\\n +", "", page.read_text(encoding="utf-8")).splitlines()
    return [line.strip() for line in lines if line.startswith("    conchart ")]


def run_conchart(command: str, desk: Path) -> str:
    """Run such a command line in a folder that has the captures; returns what it printed."""
    (desk / "captures").symlink_to(ROOT / "captures")
    program = [sys.executable, "-c", "from conchart.cli import main; main()", *shlex.split(command)[1:]]
    return subprocess.run(
        program, cwd=desk, check=True, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    ).stdout


def make_captures(lesson: str, *words: str, temporary: Path, end_after: str | None = None) -> None:
    """Run it, with temporary files in a folder of their own; fails if it does, or leaves something behind.

    Args:
        lesson: Its folder in ``examples``.
        words: Its options.
        temporary: A folder to make.
        end_after: Ask it to end once it has printed this; otherwise it runs to its end.
    """
    temporary.mkdir()
    sources = ROOT / "examples" / lesson
    before = listing(sources)
    program = subprocess.Popen(
        [sys.executable, sources / "make-captures", *words],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        env={**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    output = ""
    if end_after and program.stdout:
        while end_after not in output and (line := program.stdout.readline()):
            output += line
        program.terminate()
    try:
        output += program.communicate(timeout=SECONDS)[0]
    except subprocess.TimeoutExpired:
        program.terminate()  # as a reader would: it cleans up
        output += program.communicate(timeout=SECONDS)[0]
    assert program.returncode == (128 + signal.SIGTERM if end_after else 0), output
    left = left_behind(program.pid, temporary)
    assert not left, f"left behind: {left}"
    assert listing(sources) == before, "it wrote beside its own files, not only where it was told to"


def left_behind(pid: int, temporary: Path) -> list[str]:
    """Name what a lab that ran as process ``pid``, the first of its session, left: hosts, files, processes.

    Labs of others may run meanwhile: theirs have other names.
    """
    places = [*Path("/run/netns").glob(f"conchart-{pid}-*"), *Path("/etc/netns").glob(f"conchart-{pid}-*")]
    places += temporary.iterdir()
    return [*map(str, places), *(f"process {left}" for left in processes(pid))]


def processes(session: int) -> list[int]:
    """The processes of a session."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        ended = fields[0] == "Z"  # and waits for init to notice
        if int(fields[SESSION_FIELD]) == session and not ended:
            found.append(int(stat.parent.name))
    return found


def listing(folder: Path) -> dict[str, int]:
    """Name the files of a folder, and when each was written."""
    return {
        str(path.relative_to(folder)): path.stat().st_mtime_ns
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
