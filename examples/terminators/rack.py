"""The hosts of the lesson, side by side, and the five terminators that take turns on the one in the middle.

client 10.92.1.10 ── 10.92.1.20:443 terminator 10.92.2.20 ── 10.92.2.30:8080 backend

The terminator has the first CPU, or the first two. All that is not the terminator has the others; with two CPUs that is
the second one. In: a key, a terminator, cores. Out: a running :class:`Rack`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from lab.apache import start_apache
from lab.keys import make_keys
from lab.network import Network, tell_kernel
from lab.programs import find_apache

CLIENT = "10.92.1.10"
FRONT = "10.92.1.20"
REAR = "10.92.2.20"
BACKEND = "10.92.2.30"
PAGE_BYTES = 1_024
KEYS = {"RSA-2048": "rsa:2048", "ECDSA": "ec"}
"""What the certificate has, and how openssl calls it."""
CONFIGURATIONS = Path(__file__).with_name("conf")
TICKS = os.sysconf("SC_CLK_TCK")

Start = Callable[["Rack", int], object]


def _file(name: str, *words: str) -> Start:
    """Start a program with a configuration from ``conf``, whose path is put in place of ``@CONF@``."""

    def start(rack: Rack, cores: int) -> object:
        file = rack.configure(name, cores)
        return rack.start_server(rack.terminator, 443, [word.replace("@CONF@", str(file)) for word in words])

    return start


def _apache(rack: Rack, cores: int) -> object:
    """Start Apache as the first lesson does; its threads use the cores that there are."""
    return start_apache(
        rack, rack.terminator, find_apache(), front=FRONT, backend=BACKEND, keys=rack.keys, defines=["TLS"],
        directives=["SSLProtocol TLSv1.2", f"SSLSessionCache shmcb:{rack.folder}/apache/sessions(5120000)"],
    )  # fmt: skip


TERMINATORS: dict[str, Start] = {
    "nginx": _file("nginx.conf", "nginx", "-e", "/dev/null", "-c", "@CONF@"),
    "HAProxy": _file("haproxy.cfg", "haproxy", "-db", "-f", "@CONF@"),
    "hitch": _file("hitch.conf", "hitch", "--config=@CONF@"),
    "stunnel": _file("stunnel.conf", "stunnel", "@CONF@"),
    "Apache": _apache,
}


class Rack(Network):
    """Client, terminator and backend."""

    def __init__(self, name: str, key: str, cores: int) -> None:
        """Choose a terminator, what its certificate has, and how many cores it gets."""
        super().__init__("client", "terminator", "backend")
        self.client, self.terminator, self.backend = self.hosts
        self._name, self._key, self._cores = name, key, cores

    def build(self) -> None:
        """Lay the cables, start backend and terminator."""
        self.cable(self.client, CLIENT, self.terminator, FRONT)
        self.cable(self.terminator, REAR, self.backend, BACKEND)
        for host in self.hosts:
            # Thousands of short connections a second: no port may be kept for the minute of TIME-WAIT.
            tell_kernel(host, "net.ipv4.tcp_max_tw_buckets=16", "net.ipv4.ip_local_port_range=1024 65535")
        self.keys = make_keys(self.folder / "keys", KEYS[self._key])
        cpus = sorted(os.sched_getaffinity(0))
        self.others = set(cpus[1:] or cpus)
        words = ["nginx", "-e", "/dev/null", "-c", self.configure("backend.conf", 1)]
        self.start_server(self.backend, 8080, words)
        TERMINATORS[self._name](self, self._cores)
        _keep_to(self.backend.pids(), self.others)
        _keep_to(self.terminator.pids(), set(cpus[: self._cores]))

    def configure(self, name: str, cores: int) -> Path:
        """Write a configuration and what it needs into a folder of its own; returns it."""
        run = self.folder / name.partition(".")[0]
        run.mkdir()
        pem = run / "server.pem"
        pem.write_text((self.keys / "server.crt").read_text() + (self.keys / "server.key").read_text())
        pem.chmod(0o600)
        text = (CONFIGURATIONS / name).read_text()
        for word, value in {
            "FRONT": FRONT, "BACKEND": BACKEND, "RUN": run, "KEYS": self.keys, "CORES": cores, "PAGE": "x" * PAGE_BYTES,
        }.items():  # fmt: skip
            text = text.replace(f"@{word}@", str(value))
        file = run / name
        file.write_text(text)
        return file

    def cpu_seconds(self) -> float:
        """CPU of the terminator so far, all its processes, its system calls included."""
        used = 0
        for pid in self.terminator.pids():
            with suppress(OSError):  # it has just ended
                fields = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()
                # Its own, and that of its children that have ended: Apache ends some when the load falls.
                used += sum(map(int, fields[11:15]))
        return used / TICKS


def _keep_to(pids: list[int], cpus: set[int]) -> None:
    """Give processes these CPUs; what they start later inherits them."""
    for pid in pids:
        for task in Path("/proc", str(pid), "task").iterdir():
            os.sched_setaffinity(int(task.name), cpus)
