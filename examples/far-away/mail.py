"""nginx as a web-mail server: it takes a login, and hands out attachments of so many kB.

A login is a POST, and is answered by an inbox of 2,000 bytes. Nobody computes it: what the line costs is the lesson.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lab.network import Host, Network

CONFIGURATION = Path(__file__).with_name("nginx.conf")
PLAIN_PORT, PORT = 80, 443
INBOX_BYTES = 2_000
KB = 1_000


class MailServer:
    """nginx on a host of the lab; the network ends it."""

    def __init__(self, network: Network, host: Host, keys: Path, sizes: Iterable[int]) -> None:
        """Start it with files of ``sizes`` in kB, each named after its size."""
        run = network.folder / host.role
        files = run / "files"
        files.mkdir(parents=True)
        for size in sizes:
            (files / str(size)).write_bytes(bytes(size * KB))
        text = CONFIGURATION.read_text()
        for name, value in {"RUN": run, "FILES": files, "KEYS": keys, "INBOX": "x" * INBOX_BYTES}.items():
            text = text.replace(f"@{name}@", str(value))
        (run / "nginx.conf").write_text(text)
        words = ["nginx", "-p", run, "-e", run / "error.log", "-c", run / "nginx.conf"]
        self._program = network.start_server(host, PORT, words)

    def cpu_ns(self) -> int:
        """CPU of nginx so far, system calls with it; ``/proc/PID/stat`` would count in hundredths of a second."""
        return int(Path("/proc", str(self._program.pid), "schedstat").read_text().split()[0])
