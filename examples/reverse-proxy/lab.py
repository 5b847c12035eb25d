"""Three hosts in network namespaces, and the programs that run on them.

In: nothing. Out: a :class:`Lab` whose hosts start programs; leaving its ``with`` block ends the programs this lab
started and removes its namespaces and folders, also after an error or a signal. Needs root, iproute2 and Linux.

    client 10.77.1.10 ──5 ms── 10.77.1.1 proxy 10.77.2.1 ── 10.77.2.20 backend

The client is some way off: every packet takes 5 ms to the proxy and 5 ms back (delay_line.py). The backend stands
beside the proxy, joined by a veth cable.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

CLIENT = "10.77.1.10"
PROXY_FRONT = "10.77.1.1"
PROXY_BACK = "10.77.2.1"
BACKEND = "10.77.2.20"
SITE_NAME = "shop.example"

DELAY_MS = 5
STOP_SECONDS = 5
SLICE_SECONDS = 0.0005


def ip(*words: str) -> None:
    """Run iproute2's ``ip``; its complaint ends the lab."""
    subprocess.run(["ip", *words], check=True)


def wait_until(ready: Callable[[], bool], what: str, seconds: float = 10) -> None:
    """Poll until ``ready()``.

    Raises:
        TimeoutError: it was not ready within ``seconds``; names ``what``.
    """
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds:g} s")
        time.sleep(0.02)


class Host:
    """One network namespace: a machine as far as the network can tell."""

    def __init__(self, namespace: str) -> None:
        """Name the namespace; the lab makes and removes it."""
        self.namespace = namespace

    def command(self, words: Sequence[str | Path]) -> list[str]:
        """Return the command that runs ``words`` on this host, in the same process: ``ip netns exec`` execs."""
        return ["ip", "netns", "exec", self.namespace, *map(str, words)]

    def listens(self, port: int) -> bool:
        """Say whether a program on this host accepts connections to ``port``."""
        sockets = subprocess.run(
            self.command(["cat", "/proc/net/tcp"]), check=True, capture_output=True, text=True
        ).stdout.splitlines()[1:]
        return any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A" for line in sockets)

    def pids(self) -> list[int]:
        """Return the processes still on this host."""
        found = subprocess.run(["ip", "netns", "pids", self.namespace], check=True, capture_output=True, text=True)
        return [int(pid) for pid in found.stdout.split()]


class Lab:
    """Client, proxy and backend, joined by a long and a short cable.

    The names carry our pid, so that two labs can stand side by side.
    """

    def __init__(self) -> None:
        """Choose names; :meth:`__enter__` builds."""
        self.name = f"conchart-{os.getpid()}"
        self.client, self.proxy, self.backend = (Host(f"{self.name}-{role}") for role in ("client", "proxy", "backend"))
        self._undo = ExitStack()

    def __enter__(self) -> Lab:
        """Build the network; what was built is undone if the rest fails."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _leave)
        try:
            self.folder = Path(tempfile.mkdtemp(prefix=f"{self.name}-"))
            self._undo.callback(shutil.rmtree, self.folder)
            self.folder.chmod(0o755)
            for host in (self.client, self.proxy, self.backend):
                ip("netns", "add", host.namespace)
                self._undo.callback(_remove_namespace, host)
            self._long_cable(self.client, CLIENT, self.proxy, PROXY_FRONT)
            self._cable(self.proxy, PROXY_BACK, self.backend, BACKEND)
            self._name_the_site()
        except BaseException:
            self._undo.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Undo everything, last thing first."""
        self._undo.close()

    def start(self, host: Host, words: Sequence[str | Path], **options: object) -> subprocess.Popen[bytes]:
        """Start a program on ``host``; it ends with the lab at the latest. ``options`` are those of ``Popen``."""
        program = subprocess.Popen(host.command(words), **options)  # type: ignore[call-overload]
        self._undo.callback(stop, program)
        return program

    def _long_cable(self, left: Host, left_address: str, right: Host, right_address: str) -> None:
        """Join two hosts :data:`DELAY_MS` apart."""
        left_end, right_end = _ends(left, right)
        program = Path(__file__).with_name("delay_line.py")
        line = subprocess.Popen(
            [sys.executable, program, left.namespace, left_end, right.namespace, right_end, str(DELAY_MS)],
            stdout=subprocess.PIPE,
        )
        self._undo.callback(stop, line)
        if line.stdout is None or line.stdout.readline() != b"ready\n":
            raise RuntimeError("the delay line did not start")
        _plug_in(left, left_end, left_address)
        _plug_in(right, right_end, right_address)

    def _cable(self, left: Host, left_address: str, right: Host, right_address: str) -> None:
        """Join two hosts side by side. Either end is born in its namespace, so no name of ours is ever seen outside.

        ``gso_max_segs 1``: packets leave as the 1,460-byte segments a wire would carry, not as 64 kB super-segments.
        """
        left_end, right_end = _ends(left, right)
        ip("link", "add", left_end, "netns", left.namespace, "type", "veth",
           "peer", "name", right_end, "netns", right.namespace)  # fmt: skip
        _plug_in(left, left_end, left_address, "gso_max_segs", "1")
        _plug_in(right, right_end, right_address, "gso_max_segs", "1")

    def _name_the_site(self) -> None:
        """Tell the client alone where the site is: ``ip netns exec`` mounts this file over /etc/hosts."""
        folder = Path("/etc/netns") / self.client.namespace
        parent_is_ours = not folder.parent.is_dir()
        folder.mkdir(parents=True)
        if parent_is_ours:
            self._undo.callback(_remove_if_empty, folder.parent)
        self._undo.callback(shutil.rmtree, folder)
        (folder / "hosts").write_text(f"127.0.0.1 localhost\n{PROXY_FRONT} {SITE_NAME}\n")


def stop(program: subprocess.Popen[bytes], by: signal.Signals = signal.SIGTERM) -> None:
    """End a program that we started, by its pid, and wait for it."""
    if program.poll() is None:
        program.send_signal(by)
        program.send_signal(signal.SIGCONT)
        try:
            program.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()


def slow_down(program: subprocess.Popen[bytes], percent: int, seconds: float = 60) -> None:
    """Let a program run for ``percent`` of the time: stopped and continued in turn, as ``cpulimit`` does.

    The slices are short (0.5 ms) so that no single computation slips through. A control group's CPU quota is the more
    usual brake, but it lets a process run on until the next timer tick and has it pay later: the pauses then stand
    where no work was done. The kernel goes on acknowledging packets in either case.
    """
    deadline = time.monotonic() + seconds
    while program.poll() is None:
        if time.monotonic() > deadline:
            raise TimeoutError(f"the slow client: not within {seconds:g} s")
        program.send_signal(signal.SIGCONT)
        time.sleep(SLICE_SECONDS)
        program.send_signal(signal.SIGSTOP)
        time.sleep(SLICE_SECONDS * (100 / percent - 1))


def _ends(left: Host, right: Host) -> tuple[str, str]:
    """Name both ends of a cable for where they lead."""
    left_role, right_role = (host.namespace.rpartition("-")[2] for host in (left, right))
    return f"to-{right_role}", f"to-{left_role}"


def _plug_in(host: Host, end: str, address: str, *settings: str) -> None:
    ip("-n", host.namespace, "address", "add", f"{address}/24", "dev", end)
    ip("-n", host.namespace, "link", "set", end, *settings, "up")


def _leave(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


def _remove_namespace(host: Host) -> None:
    for pid in host.pids():
        os.kill(pid, signal.SIGKILL)
    ip("netns", "delete", host.namespace)


def _remove_if_empty(folder: Path) -> None:
    if not any(folder.iterdir()):
        folder.rmdir()
