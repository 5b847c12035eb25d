"""Programs that tests start: each ends with its block, after two minutes at the latest, and hears every signal."""

import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DEADLINE_S = 120
PATIENCE_S = 30
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def running(
    words: Sequence[str | Path],
    deadline_s: float = DEADLINE_S,
    **options: Any,  # noqa: ANN401
) -> Iterator["subprocess.Popen[Any]"]:
    """Start a program, and kill it where it still runs when the block ends or its time is up.

    Without the deadline, a program that never ends would hang a test that reads its output.

    Args:
        words: Its command line.
        deadline_s: From its start.
        options: Those of ``subprocess.Popen``.
    """
    program = subprocess.Popen(words, **options)
    deadline = threading.Timer(deadline_s, program.kill)
    deadline.daemon = True
    deadline.start()
    try:
        yield program
    finally:
        deadline.cancel()
        program.kill()  # does nothing to a program whose status is known
        for stream in (program.stdin, program.stdout, program.stderr):
            if stream:
                stream.close()
        program.wait()


@contextmanager
def default_signals() -> Iterator[None]:
    """Let children have the default action of each signal, whatever the caller of the tests ignores.

    Shells ignore SIGINT for what they run in the background, nohup and some CI runners ignore SIGHUP, and children
    inherit what is ignored. What is handled becomes the default in a new program (execve(2)), so a handler that does
    nothing keeps the caller's wish for the tests themselves.
    """
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number, action in before.items():
        if action is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    try:
        yield
    finally:
        for number, action in before.items():
            signal.signal(number, action)


def handles(pid: int, number: signal.Signals) -> bool:
    """Tell whether a process has a handler for a signal (proc_pid_status(5))."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = re.search(r"^SigCgt:\s*(\w+)$", status, re.MULTILINE)
    return caught is not None and bool(int(caught[1], 16) >> (number - 1) & 1)


def wait_until(
    ready: Callable[[], object], program: "subprocess.Popen[Any] | None" = None, every_s: float = 0.05
) -> None:
    """Go on once something holds.

    Args:
        ready: Whether it holds.
        program: Where it ends first, the test fails.
        every_s: How often to ask.
    """
    deadline = time.monotonic() + PATIENCE_S
    while not ready():
        assert program is None or program.poll() is None, "the program ended first"
        assert time.monotonic() < deadline, "not in time"
        time.sleep(every_s)
