"""Hosts in network namespaces, the cables between them, and the programs that run on them.

In: nothing. Out: a :class:`Network` whose hosts start programs; leaving its ``with`` block ends the programs it
started and removes its namespaces and folders, also after an error or a signal.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType

STOP_SECONDS = 5
SERVER_SECONDS = 60
"""A database that makes its files takes long on a busy machine."""
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
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
        """Name the namespace; the network makes and removes it."""
        self.namespace = namespace

    @property
    def role(self) -> str:
        """What this host is in its network: the last part of its name."""
        return self.namespace.rpartition("-")[2]

    def command(self, words: Sequence[str | Path]) -> list[str]:
        """Return the command that runs ``words`` on this host, in the same process: ``ip netns exec`` execs."""
        return ["ip", "netns", "exec", self.namespace, *map(str, words)]

    def listens(self, port: int) -> bool:
        """Say whether a program on this host accepts connections to ``port``."""
        sockets = subprocess.run(
            self.command(["cat", "/proc/net/tcp"]), check=True, capture_output=True, text=True
        ).stdout.splitlines()[1:]
        return any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A" for line in sockets)

    def has_bound(self, port: int) -> bool:
        """Say whether a program on this host has bound UDP ``port``."""
        words = self.command(["cat", "/proc/net/udp"])
        sockets = subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()[1:]
        return any(line.split()[1].endswith(f":{port:04X}") for line in sockets)

    def pids(self) -> list[int]:
        """Return the processes still on this host."""
        found = subprocess.run(["ip", "netns", "pids", self.namespace], check=True, capture_output=True, text=True)
        return [int(pid) for pid in found.stdout.split()]


class Network:
    """Some hosts and the cables that :meth:`build` lays between them.

    The names carry our pid, so that two labs can stand side by side.
    """

    def __init__(self, *roles: str) -> None:
        """Choose names; :meth:`__enter__` builds."""
        self.name = f"conchart-{os.getpid()}"
        self.hosts = [Host(f"{self.name}-{role}") for role in roles]
        self._undo = ExitStack()

    def build(self) -> None:
        """Lay the cables; a subclass says which."""
        raise NotImplementedError

    def __enter__(self) -> Network:
        """Make the hosts and build the network; what was made is undone if the rest fails."""
        clean_up_on_signals()
        try:
            with _signals_wait():
                self.folder = Path(tempfile.mkdtemp(prefix=f"{self.name}-"))
                self._undo.callback(shutil.rmtree, self.folder)
            self.folder.chmod(0o755)
            for host in self.hosts:
                with _signals_wait():
                    ip("netns", "add", host.namespace)
                    self._undo.callback(_remove_namespace, host)
                ip("-n", host.namespace, "link", "set", "lo", "up")
            self.build()
        except BaseException:
            self._undo.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Undo everything, last thing first."""
        self._undo.close()

    def start(self, host: Host, words: Sequence[str | Path], **options: object) -> subprocess.Popen[bytes]:
        """Start a program on ``host``; it ends with the network at the latest. ``options`` are those of ``Popen``."""
        program = subprocess.Popen(host.command(words), **options)  # type: ignore[call-overload]
        self._undo.callback(stop, program)
        return program

    def start_server(
        self,
        host: Host,
        port: int,
        words: Sequence[str | Path],
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a program in ``folder`` and wait until it listens to ``port``.

        It keeps to one CPU, see :func:`stay_on_one_cpu`.
        """
        log = self.folder / f"port-{port}.log"
        with log.open("ab") as sink:
            server = self.start(
                host, words, stdout=sink, stderr=sink, preexec_fn=stay_on_one_cpu, cwd=folder,
                env={**os.environ, **(environment or {})},
            )  # fmt: skip
        try:
            wait_until(lambda: host.listens(port), f"{words[0]} listens", SERVER_SECONDS)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; it said: {log.read_text()}") from None
        return server

    def long_cable(
        self,
        left: Host,
        left_address: str,
        right: Host,
        right_address: str,
        delay_ms: float,
        *,
        back_ms: float | None = None,
        rate: float | None = None,
        queue: int | None = None,
        loss: float = 0,
        loss_back: float = 0,
        seed: int = 0,
        rules: Sequence[str] = (),
        log: Path | None = None,
        drops: Path | None = None,
    ) -> None:
        """Join two hosts ``delay_ms`` apart, one way; what else there is to say is that of ``delay_line.py``."""
        left_end, right_end = _ends(left, right)
        words: list[str | Path] = [sys.executable, Path(__file__).with_name("delay_line.py")]
        words += [left.namespace, left_end, right.namespace, right_end, str(delay_ms), *rules]
        for name, value in {
            "back": back_ms, "rate": rate, "queue": queue, "loss": loss or None, "loss-back": loss_back or None,
            "seed": seed or None, "log": log, "drops": drops,
        }.items():  # fmt: skip
            words += [f"--{name}", str(value)] if value is not None else []
        line = subprocess.Popen(words, stdout=subprocess.PIPE)
        self._undo.callback(stop, line)
        if line.stdout is None or line.stdout.readline() != b"ready\n":
            raise RuntimeError("the delay line did not start")
        _plug_in(left, left_end, left_address)
        _plug_in(right, right_end, right_address)

    def cable(self, left: Host, left_address: str, right: Host, right_address: str, *, segments: int = 1) -> None:
        """Join two hosts side by side. Either end is born in its namespace, so no name of ours is ever seen outside.

        ``segments`` is how many the kernel hands over as one packet. With 1, packets leave as the 1,460-byte segments
        a wire would carry; with more, as the super-segments that a network card would cut.
        """
        left_end, right_end = _ends(left, right)
        ip("link", "add", left_end, "netns", left.namespace, "type", "veth",
           "peer", "name", right_end, "netns", right.namespace)  # fmt: skip
        _plug_in(left, left_end, left_address, "gso_max_segs", str(segments))
        _plug_in(right, right_end, right_address, "gso_max_segs", str(segments))

    def name_the_site(self, host: Host, address: str, name: str) -> None:
        """Tell ``host`` alone where the site is."""
        self.set_file(host, "hosts", f"127.0.0.1 localhost\n{address} {name}\n")

    def set_file(self, host: Host, name: str, text: str) -> None:
        """Give ``host`` alone a file ``/etc/NAME``: ``ip netns exec`` mounts it over the machine's."""
        folder = Path("/etc/netns") / host.namespace
        if not folder.is_dir():
            parent_is_ours = not folder.parent.is_dir()
            folder.mkdir(parents=True)
            if parent_is_ours:
                self._undo.callback(_remove_if_empty, folder.parent)
            self._undo.callback(shutil.rmtree, folder)
        (folder / name).write_text(text)


def tell_kernel(host: Host, *settings: str) -> None:
    """Change settings of the kernel that hold on ``host`` alone."""
    subprocess.run(host.command(["sysctl", "--quiet", "--write", *settings]), check=True)


def clean_up_on_signals() -> None:
    """Have a signal end this program as an error would: what ``with`` blocks began is undone."""
    for number in ENDING:
        signal.signal(number, _leave)


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


def stay_on_one_cpu() -> None:
    """Keep both ends of a veth cable on the same CPU: it has a queue per CPU, and packets of two queues overtake."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def slow_down(
    program: subprocess.Popen[bytes], percent: int, until: Callable[[], bool] | None = None, seconds: float = 60
) -> None:
    """Let a program run for ``percent`` of the time, to its end or until ``until()``: as ``cpulimit`` does.

    It is stopped and continued in turn. The slices are short (0.5 ms) so that no single computation slips through. A
    control group's CPU quota is the more usual brake, but it lets a process run on until the next timer tick and has
    it pay later: the pauses then stand where no work was done. The kernel goes on acknowledging packets in either case.
    """
    deadline = time.monotonic() + seconds
    while program.poll() is None and not (until and until()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the slowed-down program: not within {seconds:g} s")
        program.send_signal(signal.SIGCONT)
        time.sleep(SLICE_SECONDS)
        program.send_signal(signal.SIGSTOP)
        time.sleep(SLICE_SECONDS * (100 / percent - 1))
    program.send_signal(signal.SIGCONT)


def _ends(left: Host, right: Host) -> tuple[str, str]:
    """Name both ends of a cable for where they lead."""
    return f"to-{right.role}", f"to-{left.role}"


def _plug_in(host: Host, end: str, address: str, *settings: str) -> None:
    ip("-n", host.namespace, "address", "add", f"{address}/24", "dev", end)
    ip("-n", host.namespace, "link", "set", end, *settings, "up")


@contextmanager
def _signals_wait() -> Iterator[None]:
    """Let a signal wait until what is being made can be undone."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _leave(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


def _remove_namespace(host: Host) -> None:
    for pid in host.pids():
        with suppress(ProcessLookupError):  # it has just ended by itself
            os.kill(pid, signal.SIGKILL)
    ip("netns", "delete", host.namespace)


def _remove_if_empty(folder: Path) -> None:
    if not any(folder.iterdir()):
        folder.rmdir()
