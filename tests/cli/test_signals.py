"""Ctrl-C, SIGTERM and SIGHUP, whenever they come: no traceback, nothing left behind, and the status that says so."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conchart.files.unfinished import Undone, undo_all
from tests.benchmarks.generate import generate
from tests.children import handles, running, wait_until
from tests.conftest import ROOT

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks /proc what a process is doing"),
    pytest.mark.usefixtures("signals_reach_children"),
]

COMMAND = Path(sys.executable).with_name("conchart")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
STATUS = {signal.SIGINT: 130, signal.SIGTERM: -signal.SIGTERM, signal.SIGHUP: -signal.SIGHUP}
"""As ``subprocess`` has it: -15 is what shells show as 143."""
FOREVER = "SELECT count(*) FROM range(1000000000000) a(i) WHERE hash(i) = 0"


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("capture") / "input.pcap"
    generate("full", path, 50_000)
    return path


@contextmanager
def started(folder: Path, *args: str | Path) -> Iterator[subprocess.Popen[str]]:
    """Start the real command in ``folder``; goes on once our code runs, which is after Python itself has started."""
    pipe = subprocess.PIPE
    with running([COMMAND, *args], cwd=folder, env=ENVIRONMENT, stdout=pipe, stderr=pipe, text=True) as process:
        wait_until(lambda: handles(process.pid, signal.SIGHUP), process, every_s=0.001)
        yield process


def end(process: subprocess.Popen[str], number: signal.Signals) -> tuple[int, str]:
    process.send_signal(number)
    _, err = process.communicate(timeout=20)
    return process.returncode, err


@pytest.mark.parametrize("delay_ms", [*range(0, 300, 30), *range(300, 900, 75)])
def test_interrupt_at_any_instant_is_130(capture: Path, tmp_path: Path, delay_ms: int) -> None:
    with started(tmp_path, capture, "-w", "a.duckdb", "-w", "b.json", "-w", "c.csv") as process:
        time.sleep(delay_ms / 1000)
        code, err = end(process, signal.SIGINT)
    assert err == ""
    assert code in (130, 0)
    assert {path.name for path in tmp_path.iterdir()} <= {"a.duckdb", "b.json", "c.csv"}


@pytest.mark.parametrize("number", STATUS)
def test_a_statement_of_duckdb_ends_at_once(capture: Path, tmp_path: Path, number: signal.Signals) -> None:
    with started(tmp_path, "query", capture, FOREVER) as process:
        time.sleep(0.6)
        assert end(process, number) == (STATUS[number], "")


@pytest.mark.parametrize("number", STATUS)
@pytest.mark.parametrize("output", ["out.duckdb", "out.html", "out.csv"])
def test_nothing_stays_of_a_file_that_is_being_written(
    capture: Path, tmp_path: Path, output: str, number: signal.Signals
) -> None:
    (tmp_path / output).write_text("old")
    with started(tmp_path, capture, "-w", output, "--force") as process:
        wait_until(lambda: any(tmp_path.glob(".conchart-*")), process, every_s=0.001)
        assert end(process, number) == (STATUS[number], "")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(output, "old")]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_what_the_caller_ignores_stays_ignored(capture: Path, tmp_path: Path, number: signal.Signals) -> None:
    """As ``nohup`` asks for, and shells for what they run in the background."""
    before = signal.signal(number, signal.SIG_IGN)
    try:
        words: list[str | Path] = [COMMAND, capture, "-w", tmp_path / "out.json"]
        with running(words, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            while process.poll() is None:
                process.send_signal(number)
                time.sleep(0.01)
            assert process.stderr
            assert process.stderr.read() == b""
    finally:
        signal.signal(number, before)
    assert process.returncode == 0


def test_an_interrupt_while_the_core_waits_for_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "never")
    with started(tmp_path, "never") as process:
        time.sleep(0.5)
        assert end(process, signal.SIGINT) == (130, "")


def test_what_is_unfinished_is_undone_from_the_inside_out_whatever_fails() -> None:
    undone: list[str] = []

    def fail() -> None:
        raise OSError("it is gone already")

    def leave_in_the_middle() -> None:
        with Undone(lambda: undone.append("outer")), Undone(fail), Undone(lambda: undone.append("inner")):
            undo_all()
            assert undone == ["inner", "outer"]

    with pytest.raises(OSError, match="gone"):
        leave_in_the_middle()
    undone.clear()
    undo_all()
    assert undone == []
