"""A customer who comes anew for each request: TLS 1.2, one connection each, like many a script.

    python3 shopper.py ADDRESS TIMES full|resumed held|nodelay DIARY

Says ``ready`` once it has a session, and goes on when it hears a line. ``resumed`` offers that session again, ``held``
leaves the sockets as Python makes them, ``nodelay`` sets TCP_NODELAY. DIARY is written at the end, see ``witness.py``.
Trusts ``keys/authority.crt``.
"""

from __future__ import annotations

import socket
import ssl
import sys
from pathlib import Path

from witness import Witness

NAME = "shop.example"
REQUEST = f"GET / HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n".encode()


class Shopper:
    """Knows how to fetch."""

    def __init__(self, address: str, nodelay: bool, witness: Witness) -> None:
        """Trust the shop's authority."""
        self._address = address
        self._nodelay = nodelay
        self._witness = witness
        self._context = ssl.create_default_context(cafile="keys/authority.crt")
        self._context.maximum_version = ssl.TLSVersion.TLSv1_2

    def fetch(self, number: int | None, session: ssl.SSLSession | None) -> ssl.SSLSession | None:
        """Fetch over a new connection, watched under a number if it has one; returns its session."""
        plain = socket.create_connection((self._address, 443))
        if self._nodelay:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if number is not None:
            self._witness.watch(number, plain)
        with self._context.wrap_socket(plain, server_hostname=NAME, session=session) as connection:
            connection.sendall(REQUEST)
            while connection.recv(65_536):
                pass
            if number is not None:
                self._witness.leave(number)
            return connection.session


def main() -> None:
    """Read the command line, shop."""
    address, times, kind, sockets, diary = sys.argv[1:]
    witness = Witness()
    shopper = Shopper(address, sockets == "nodelay", witness)
    session = shopper.fetch(None, None)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    for number in range(int(times)):
        shopper.fetch(number, session if kind == "resumed" else None)
    witness.write(Path(diary))


if __name__ == "__main__":
    main()
