"""What programs write down of their messages: when each was about to be sent, and when it had been received.

In: calls of the programs. Out: `messages.txt`, one line per message: the exchange by its order, sender, number in that
exchange, kind, bytes of the payload, and two instants in nanoseconds since the Unix epoch. It was on its way between
them.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections import defaultdict
from pathlib import Path


class Diary:
    """The messages of one case."""

    def __init__(self) -> None:
        """Begin with none."""
        self._lock = threading.Lock()
        self._sent: dict[tuple[int, str], list[tuple[str, int, int]]] = defaultdict(list)
        self._received: dict[tuple[int, str], list[int]] = defaultdict(list)

    def sending(self, exchange: int, sender: str, payload: bytes | str, kind: str = "message") -> None:
        """Write down a message that is sent next."""
        size = len(payload.encode() if isinstance(payload, str) else payload)
        with self._lock:
            self._sent[exchange, sender].append((kind, size, time.time_ns()))

    def received(self, exchange: int, sender: str) -> None:
        """Write down that the next message of that sender has come."""
        with self._lock:
            self._received[exchange, sender].append(time.time_ns())

    def merge(self, lines: str) -> None:
        """Take in what another program wrote down: an object of JSON per line."""
        for line in lines.splitlines():
            event = json.loads(line)
            key = (event["exchange"], event["sender"])
            if event["what"] == "sending":
                self._sent[key].append(("message", event["bytes"], event["at"]))
            else:
                self._received[key].append(event["at"])

    def keep(self, folder: Path) -> None:
        """Write the file. A message that nobody waited for has no second instant."""
        lines = []
        for (exchange, sender), sent in sorted(self._sent.items()):
            received = self._received[exchange, sender]
            for number, (kind, size, at) in enumerate(sent):
                until = received[number] if number < len(received) else "-"
                lines.append(f"{exchange} {sender} {number} {kind} {size} {at} {until}\n")
        (folder / "messages.txt").write_text("".join(lines))


def certificate(folder: Path) -> tuple[Path, Path]:
    """Let openssl make a certificate for localhost, and its key."""
    made, key = folder / "certificate.pem", folder / "key.pem"
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    about = ["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    files = ["-keyout", str(key), "-out", str(made)]
    subprocess.run([*words, *about, *files], check=True, capture_output=True)
    return made, key
