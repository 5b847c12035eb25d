"""Tests that start programs do not hang, and leave nothing running, whoever starts the tests."""

import signal
import subprocess
import sys
import time

import pytest

from tests.children import SIGNALS, default_signals, running, wait_until

SLEEPER = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]
TELLS_IGNORED = "import signal; print(*[number for number in (1, 2, 15) if signal.getsignal(number) is signal.SIG_IGN])"


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_that_the_caller_ignores_has_its_default_action_in_children(number: signal.Signals) -> None:
    before = signal.signal(number, signal.SIG_IGN)
    try:
        assert str(int(number)) in _ignored().split()
        with default_signals():
            assert _ignored() == ""
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)


def _ignored() -> str:
    return subprocess.run(
        [sys.executable, "-c", TELLS_IGNORED], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.strip()


def test_a_program_ends_with_its_block_also_where_the_test_fails() -> None:
    with pytest.raises(AssertionError, match="fails"), running(SLEEPER, stdout=subprocess.PIPE) as program:
        raise AssertionError("it fails")
    assert program.returncode == -signal.SIGKILL


def test_a_program_that_never_ends_does_not_hang_who_reads_it() -> None:
    started = time.monotonic()
    with running(SLEEPER, deadline_s=1, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout
        assert program.stdout.read() == "up\n"
    assert time.monotonic() - started < 60


def test_waiting_for_what_an_ended_program_was_to_do_fails_at_once() -> None:
    with running(["true"]) as program, pytest.raises(AssertionError, match="ended first"):
        wait_until(lambda: False, program)
