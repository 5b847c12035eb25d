"""The fields of packets and handshake messages, for a reader who studies one connection.

Scapy is asked in a process of its own and is never imported here; why is told in
docs/decisions/scapy-in-its-own-process.md. ``dissecting.packets`` has the packet list, by dpkt.

In: handshake messages as they were sent, or as keys opened them. Out: their fields, as names and values to read.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from conchart.errors import MissingToolError
from conchart.labels.printable import printable

SCRIPT = Path(__file__).parent / "scapy_fields.py"
TIME_LIMIT_S = 20
"""For all messages of a call: a handshake takes half a second, nearly all of it for importing scapy."""
MOST_BYTES = 1 << 17
"""Of one message: the largest certificate chains are a fourth of it. Scapy is slow, and a message may have 16 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandshakeMessage:
    """One message of a TLS handshake (RFC 8446 section 4)."""

    kind: int
    """Its ``HandshakeType``."""
    version: str | None
    """What the handshake settled on, as in ``handshakes.version``; None where that is not known."""
    body: bytes
    """All of it but the four bytes of type and length."""
    sender: str
    """``client`` or ``server``."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message."""

    name: str
    value: str
    """Printable; of a list how many there are, with a field for each below it."""
    depth: int
    """How deep it is nested: extensions in a message, groups in an extension. The first field of a message has 0."""


def dissect(messages: Sequence[HandshakeMessage]) -> list[list[Field]]:
    """Give the fields of each message.

    Args:
        messages: Those of one handshake in the order in which they were sent: what is in a ServerKeyExchange depends on
            the cipher suite in the ServerHello before it.

    Returns:
        As many lists as messages. A message that scapy cannot read has one field, ``undissected``, and says why.

    Raises:
        MissingToolError: Scapy, or what it reads certificates with, is not installed.
    """
    missing = [tool for tool in ("scapy", "cryptography") if find_spec(tool) is None]
    if missing:
        raise MissingToolError(
            f"The fields of handshake messages need {' and '.join(missing)}, which are optional for everything else.\n"
            "  Install what is missing: pip install 'conchart[dissect]'"
        )
    readable = [message for message in messages if len(message.body) <= MOST_BYTES]
    lines, why = _ask(readable) if readable else ([], "")
    answers = iter(lines)
    return [
        _undissected(message, "too long for scapy")
        if len(message.body) > MOST_BYTES
        else _fields(line)
        if (line := next(answers, b""))
        else _undissected(message, why)
        for message in messages
    ]


def _ask(messages: Sequence[HandshakeMessage]) -> tuple[list[bytes], str]:
    """Have scapy's answers, a line for each message that it came to; and why it stopped where it came not to all."""
    question = json.dumps(
        [{"kind": message.kind, "version": message.version, "body": message.body.hex()} for message in messages]
    )
    command = [sys.executable, str(SCRIPT)]
    try:
        done = subprocess.run(command, input=question.encode(), capture_output=True, timeout=TIME_LIMIT_S, check=False)
        answer, why = done.stdout, f"scapy ended with {done.returncode}"
    except subprocess.TimeoutExpired as late:
        answer, why = late.stdout or b"", f"scapy took longer than {TIME_LIMIT_S} s"
    return answer.split(b"\n")[:-1], why  # What has no end of line was cut off.


def _fields(line: bytes) -> list[Field]:
    return [Field(printable(name), printable(value), depth) for name, value, depth in json.loads(line)]


def _undissected(message: HandshakeMessage, why: str) -> list[Field]:
    return [Field("undissected", f"{len(message.body):,} bytes: {why}", 0)]
