"""What the kernel says of a connection while it lasts: one of its ends asks TCP_INFO again and again.

Out: one JSON file, ``{"events": [...], "samples": [...], "counters": {...}}``. Events are what the program did, samples
what its kernel knew, each with the instant (``at``, nanoseconds since the Unix epoch). Reads a capture nowhere: what is
found in one can be held against this.
"""

from __future__ import annotations

import array
import fcntl
import json
import socket
import struct
import termios
import threading
import time
from contextlib import suppress
from pathlib import Path

PERIOD_SECONDS = 0.001
TCP_INFO = struct.Struct("=8B24I4Q6I4Q2I2Q6I")
"""linux/tcp.h, up to tcpi_rcv_wnd."""
FIELDS = {
    "ca_state": 1, "snd_mss": 10, "unacked": 12, "sacked": 13, "lost": 14, "retrans": 15, "rtt_us": 23,
    "snd_cwnd": 26, "notsent": 38, "busy_us": 43, "rwnd_limited_us": 44, "sndbuf_limited_us": 45, "snd_wnd": 53,
}  # fmt: skip
"""Where in it the values lie that we keep."""
COUNTED = (
    "TCPTimeouts", "TCPLossProbes", "TCPFastRetrans", "TCPSlowStartRetrans", "TCPLostRetransmit", "TCPSackRecovery",
    "TCPSpuriousRTOs", "TCPDSACKRecv", "TCPDSACKOldSent", "TCPSpuriousRtxHostQueues", "TCPMTUPFail",
)  # fmt: skip
"""Counters of the host, which has no other connection."""


def counters() -> dict[str, int]:
    """Read the host's counters of TCP."""
    names, values = (line.split()[1:] for line in Path("/proc/net/netstat").read_text().splitlines()[:2])
    found = dict(zip(names, map(int, values), strict=True))
    return {name: found.get(name, 0) for name in COUNTED}


class Witness:
    """Watches the sockets it is given, from a thread, and keeps a diary for the program."""

    def __init__(self) -> None:
        """Begin with nothing seen."""
        self._events: list[dict[str, object]] = []
        self._samples: list[dict[str, int]] = []
        self._over = threading.Event()
        self._sockets: dict[int, socket.socket] = {}
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def watch(self, number: int, connection: socket.socket) -> None:
        """Ask about a connection from now on, also when it is wrapped in TLS later: by its descriptor."""
        self._sockets = {**self._sockets, number: socket.socket(fileno=connection.fileno())}

    def leave(self, number: int) -> None:
        """Ask no more about a connection, which can then be closed."""
        left = self._sockets[number]
        self._sockets = {other: each for other, each in self._sockets.items() if other != number}
        left.detach()

    def note(self, what: str, **facts: object) -> None:
        """Note what the program does now."""
        self._events.append({"at": time.time_ns(), "what": what, **facts})

    def write(self, path: Path) -> None:
        """Stop watching; write what was seen."""
        self._over.set()
        self._thread.join()
        document = {"events": self._events, "samples": self._samples, "counters": counters()}
        path.write_text(json.dumps(document))

    def _watch(self) -> None:
        while not self._over.wait(PERIOD_SECONDS):
            for number, connection in self._sockets.items():
                with suppress(OSError):  # the program left it just now
                    self._samples.append({"stream": number, **sample(connection)})


def sample(connection: socket.socket) -> dict[str, int]:
    """Ask the kernel about a connection."""
    at = time.time_ns()
    values = TCP_INFO.unpack(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO.size))
    unread = array.array("i", [0])
    fcntl.ioctl(connection.fileno(), termios.FIONREAD, unread)
    return {"at": at, **{name: values[place] for name, place in FIELDS.items()}, "unread": unread[0]}
