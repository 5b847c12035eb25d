"""nginx that hands out a large file and takes one in; what it says of each transfer, and its CPU.

The file is zeros, as in the study, and sparse: it is read from the page cache and never from a disk. What is taken in
goes to memory (``/dev/shm``).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from lab.network import Host, Network, wait_until

CONFIGURATION = Path(__file__).with_name("nginx.conf")
PLAIN_PORT, PORT = 80, 443
MEMORY = Path("/dev/shm")
TICKS = os.sysconf("SC_CLK_TCK")


class FileServer:
    """nginx on a host of the lab, with a file of zeros; leaving its ``with`` block removes both."""

    def __init__(
        self,
        network: Network,
        host: Host,
        address: str,
        keys: Path,
        size: int,
        *,
        plain_port: int = PLAIN_PORT,
        port: int = PORT,
        socket: str = "",
        directives: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start it. ``socket`` are words of its ``listen``, ``directives`` lines of its ``server``."""
        self._lines_read = 0
        self._run = network.folder / f"nginx-{port}"
        files = self._run / "files"
        files.mkdir(parents=True)
        self.file = files / "zeros"
        with self.file.open("wb") as file:
            file.truncate(size)
        self._store = Path(tempfile.mkdtemp(prefix=f"{network.name}-", dir=MEMORY))
        try:
            text = CONFIGURATION.read_text()
            for name, value in {
                "RUN": self._run, "FILES": files, "STORE": self._store, "KEYS": keys, "ADDRESS": address,
                "PLAIN_PORT": plain_port, "PORT": port, "SOCKET": socket, "DIRECTIVES": directives,
            }.items():  # fmt: skip
                text = text.replace(f"@{name}@", str(value))
            (self._run / "nginx.conf").write_text(text)
            words = ["nginx", "-p", self._run, "-e", self._run / "error.log", "-c", self._run / "nginx.conf"]
            self.program: subprocess.Popen[bytes] = network.start_server(host, port, words, environment)
        except BaseException:
            shutil.rmtree(self._store)
            raise

    def __enter__(self) -> FileServer:
        """Nothing is left to do."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove what was taken in; the network ends nginx."""
        shutil.rmtree(self._store)

    def empty(self) -> None:
        """Throw away what was taken in."""
        (self._store / "zeros").unlink(missing_ok=True)

    def cpu(self) -> tuple[float, float]:
        """User and system CPU seconds of nginx so far, to a hundredth."""
        fields = Path("/proc", str(self.program.pid), "stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) / TICKS, int(fields[12]) / TICKS

    def next_cipher(self) -> str | None:
        """Wait until nginx has written down the next transfer; returns its cipher suite, None without TLS."""
        log = self._run / "access.log"
        wait_until(lambda: log.read_text().count("\n") > self._lines_read, "nginx writes its log")
        self._lines_read += 1
        (cipher,) = log.read_text().splitlines()[self._lines_read - 1 :]
        return None if cipher == "-" else cipher
