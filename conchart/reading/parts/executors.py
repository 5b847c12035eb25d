"""Executors of the tasks: processes of this machine, or a Dask cluster.

In: the number of processes, or the address of a scheduler. Out: a :class:`concurrent.futures.Executor`.
"""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any, cast

from conchart.errors import MissingToolError, UsageError
from conchart.files.unfinished import Undone


@contextmanager
def tasks_of(workers: int, scheduler: str | None) -> Iterator[Executor]:
    """Give who runs tasks, as long as the block lasts; what is under way when it fails is called off.

    Raises:
        MissingToolError: Dask is not installed.
        UsageError: No scheduler answers at the address.
    """
    with _cluster(scheduler) if scheduler else _processes(workers) as executor:
        yield executor


@contextmanager
def _processes(workers: int) -> Iterator[Executor]:
    # Forked processes would inherit the threads of DuckDB in an unknown state.
    with _quiet():
        pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))

    def end() -> None:
        for process in list((pool._processes or {}).values()):
            process.terminate()

    # A signal ends the processes as well: nothing that they do is wanted any more.
    with Undone(end):
        try:
            _start(pool, workers)
            yield pool
            pool.shutdown()
        except BaseException:
            end()
            pool.shutdown(cancel_futures=True)
            raise


@contextmanager
def _quiet() -> Iterator[None]:
    """Start the process that cleans up after multiprocessing without its warning: after a signal, that is its work."""
    before = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = "ignore:resource_tracker"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONWARNINGS"]
        else:
            os.environ["PYTHONWARNINGS"] = before


def _start(pool: ProcessPoolExecutor, workers: int) -> None:
    """Start all processes, so that Ctrl-C is for the one that started them: a mask of signals is inherited."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        for _ in range(workers):
            pool.submit(_start_up)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_up() -> None:
    """Load what every task needs."""
    import conchart.reading.parts.survey  # noqa: F401


@contextmanager
def _cluster(scheduler: str) -> Iterator[Executor]:
    try:
        from distributed import Client
    except ImportError:
        raise MissingToolError("--scheduler needs Dask: pip install 'conchart[cluster]'") from None
    try:
        client = cast("Any", Client)(scheduler, timeout="10s", set_as_default=False)
    except (OSError, ValueError) as error:
        raise UsageError(f"no Dask scheduler answers at {scheduler}: {error}") from None
    with client:
        # Tasks of a worker that is lost run again on another one.
        yield cast("Executor", client.get_executor(pure=False, retries=3))
