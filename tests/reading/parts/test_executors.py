"""Executors of the tasks: processes of this machine, or a Dask cluster."""

import os
import signal
import sys
from contextlib import suppress

import pytest

from conchart.errors import MissingToolError
from conchart.reading.parts.executors import _quiet, _start, tasks_of


def blocked() -> bool:
    """Say whether Ctrl-C is for the process that started this one."""
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_tasks_run_in_another_process_that_ctrl_c_does_not_reach() -> None:
    with tasks_of(1, None) as executor:
        number, masked = executor.submit(os.getpid).result(), executor.submit(blocked).result()
    assert number != os.getpid()
    assert masked
    assert not blocked(), "it does reach this one"
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def test_a_block_that_fails_ends_its_processes() -> None:
    numbers = []

    def fail() -> None:
        with tasks_of(1, None) as executor:
            numbers.append(executor.submit(os.getpid).result())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with pytest.raises(ProcessLookupError):
        os.kill(numbers[0], 0)


@pytest.mark.parametrize("before", [None, "error"])
def test_warnings_are_as_they_were_afterwards(before: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONWARNINGS", raising=False)
    if before:
        monkeypatch.setenv("PYTHONWARNINGS", before)
    with suppress(ZeroDivisionError), _quiet():
        assert os.environ["PYTHONWARNINGS"] == "ignore:resource_tracker"
        raise ZeroDivisionError
    assert os.environ.get("PYTHONWARNINGS") == before


def test_a_start_that_fails_leaves_the_mask_of_signals() -> None:
    class Broken:
        def submit(self, _: object) -> None:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        _start(Broken(), 1)  # type: ignore[arg-type]
    assert not blocked()


def test_without_dask_a_scheduler_cannot_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingToolError, match=r"conchart\[cluster\]"), tasks_of(1, "tcp://127.0.0.1:1"):
        pass
