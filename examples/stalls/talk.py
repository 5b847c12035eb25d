"""One end of one connection: does the steps it is given, and has the kernel watched meanwhile.

    python3 talk.py client|server ADDRESS PORT SCRIPT DIARY

SCRIPT is JSON: ``steps``, and where wanted ``tls`` (a version; keys are in the folder it is started in), ``tickets``
(how many), ``options`` of the socket by name, ``quick_acks``. DIARY is written at the end, see ``witness.py``.
The steps:

    ["write", TEXT, BYTES]         TEXT and BYTES more bytes in one write
    ["read", BYTES]                until so many have come
    ["read", BYTES, STEP, MS]      so many, STEP at a time, MS milliseconds between them
    ["think", MS]                  before a request or a response
    ["pause", MS]                  within one
"""

from __future__ import annotations

import json
import socket
import ssl
import sys
import time
from pathlib import Path
from typing import Any

from witness import Witness

NAME = "shop.example"
PATIENCE_SECONDS = 60
SO_SNDBUFFORCE = 32
"""include/uapi/asm-generic/socket.h: a send buffer beyond what the machine allows to others than root."""


def reach(role: str, address: tuple[str, int], script: dict[str, Any]) -> socket.socket:
    """Connect, or wait for the other end to."""
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    for name, value in script.get("options", {}).items():
        level = socket.SOL_SOCKET if name.startswith("SO_") else socket.IPPROTO_TCP
        option = SO_SNDBUFFORCE if name == "SO_SNDBUFFORCE" else getattr(socket, name)
        one.setsockopt(level, option, value.encode() if isinstance(value, str) else value)
    if role == "client":
        one.connect(address)
        return one
    one.bind(address)
    one.listen()
    return one.accept()[0]


def secure(role: str, connection: socket.socket, version: str, tickets: int) -> ssl.SSLSocket:
    """Shake hands; in TLS 1.3 the server sends so many tickets."""
    purpose = ssl.Purpose.SERVER_AUTH if role == "client" else ssl.Purpose.CLIENT_AUTH
    context = ssl.create_default_context(purpose, cafile="keys/authority.crt")
    context.minimum_version = context.maximum_version = ssl.TLSVersion[f"TLSv{version.replace('.', '_')}"]
    if role == "server":
        context.load_cert_chain("keys/server.crt", "keys/server.key")
        context.num_tickets = tickets
    return context.wrap_socket(
        connection, server_side=role == "server", server_hostname=NAME if role == "client" else None
    )


class Talk:
    """The connection, as a script sees it."""

    def __init__(self, connection: socket.socket, witness: Witness, quick_acks: bool) -> None:
        """Take over the connection."""
        self._connection = connection
        self._witness = witness
        self._quick_acks = quick_acks

    def write(self, text: str, fill: int = 0) -> None:
        """Give the kernel all of it at once."""
        self._witness.note("write", bytes=len(text) + fill)
        self._connection.sendall(text.encode() + b"x" * fill)
        self._witness.note("written")

    def read(self, size: int, step: int = 65_536, pause_ms: float = 0) -> None:
        """Take ``size`` bytes.

        Raises:
            EOFError: there were fewer.
        """
        left = size
        while left:
            if self._quick_acks:  # not for good: the kernel goes back to delayed ones by itself
                self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
            got = len(self._connection.recv(min(left, step)))
            if not got:
                raise EOFError(f"{left} of {size} bytes did not come")
            left -= got
            self._witness.note("read", bytes=got)
            if left and pause_ms:
                time.sleep(pause_ms / 1000)

    def think(self, ms: float) -> None:
        """Let the other end wait."""
        time.sleep(ms / 1000)

    def pause(self, ms: float) -> None:
        """Let it wait in the middle of something."""
        self._witness.note("pause")
        time.sleep(ms / 1000)
        self._witness.note("paused")


def main() -> None:
    """Read the command line, talk, close."""
    role, address, port, text, diary = sys.argv[1:]
    script = json.loads(text)
    witness = Witness()
    connection = reach(role, (address, int(port)), script)
    connection.settimeout(PATIENCE_SECONDS)
    if script.get("quick_acks"):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
    witness.watch(0, connection)
    if "tls" in script:
        connection = secure(role, connection, script["tls"], script.get("tickets", 2))
    talk = Talk(connection, witness, bool(script.get("quick_acks")))
    for verb, *words in script["steps"]:
        getattr(talk, verb)(*words)
    if role == "server":
        connection.recv(1)  # the client closes first: until then there may be something to send again
    witness.leave(0)
    connection.close()
    witness.write(Path(diary))


if __name__ == "__main__":
    main()
