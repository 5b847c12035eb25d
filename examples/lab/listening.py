"""tcpdump on a host of the lab: started, heard, stopped, and refused when it lost a packet."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

from lab.network import Host, Network, stop, wait_until

SETTLE_SECONDS = 2.5
"""Enough for the last FIN and ACK, and for the kernel to hand them to tcpdump, which it does once a second."""


class Listener:
    """One running tcpdump and the file it writes."""

    def __init__(
        self,
        network: Network,
        host: Host,
        interface: str,
        packets: str,
        capture: Path,
        snapshot: int | None = None,
        buffer_kib: int | None = None,
    ) -> None:
        """Start it; returns when it listens.

        It keeps ``snapshot`` bytes of each packet; None: all. The kernel holds ``buffer_kib`` for it; None: 2 MiB.
        """
        self.capture = capture
        self._log = capture.with_suffix(".log")
        words = ["tcpdump", "-i", interface, "-n", "--time-stamp-precision=nano", "-Z", "root", "-w", capture, packets]
        words[1:1] = ["-s", str(snapshot)] if snapshot else []
        words[1:1] = ["-B", str(buffer_kib)] if buffer_kib else []
        with self._log.open("wb") as sink:
            self._program: subprocess.Popen[bytes] = network.start(host, words, stderr=sink)
        wait_until(lambda: b"listening on" in self._log.read_bytes(), "tcpdump listens")

    def stop(self) -> None:
        """End it.

        Raises:
            RuntimeError: the kernel dropped packets: the capture is not worth keeping.
        """
        stop(self._program, signal.SIGINT)
        lost = [line for line in self._log.read_text().splitlines() if "dropped by kernel" in line]
        if lost != ["0 packets dropped by kernel"]:
            raise RuntimeError(f"{self.capture.name}: tcpdump says {lost}; not kept")


def settle() -> None:
    """Let the last packets pass and reach tcpdump."""
    time.sleep(SETTLE_SECONDS)
