"""A client of one process, as plain as scripts are: HTTP/1.1 over TLS, each habit chosen on the command line.

    python3 visitor.py ADDRESS HABIT,HABIT,… TARGET…

``anew``: a connection for each request. ``resume``: offers the session that it has; else none. ``nodelay``: sets
TCP_NODELAY. ``1.2``: speaks no TLS beyond it. ``apart``: posts 100 bytes, head and body in two writes. Trusts
``keys/authority.crt``.
"""

from __future__ import annotations

import socket
import ssl
import sys

NAME = "shop.example"
BODY = b"x" * 100


class Visitor:
    """Knows how to ask."""

    def __init__(self, address: str, habits: set[str]) -> None:
        """Trust the shop's authority."""
        self._address, self._habits = address, habits
        self._context = ssl.create_default_context(cafile="keys/authority.crt")
        if "1.2" in habits:
            self._context.maximum_version = ssl.TLSVersion.TLSv1_2
        self._session: ssl.SSLSession | None = None
        self._connection: ssl.SSLSocket | None = None

    def ask(self, target: str) -> None:
        """Ask for a target, and read the whole answer."""
        connection = self._connection or self._connect()
        anew, apart = "anew" in self._habits, "apart" in self._habits
        head = f"{'POST' if apart else 'GET'} {target} HTTP/1.1\r\nHost: {NAME}\r\n"
        head += f"Content-Length: {len(BODY)}\r\n" * apart + "Connection: close\r\n" * anew + "\r\n"
        connection.sendall(head.encode())
        if apart:
            connection.sendall(BODY)
        _read(connection)
        self._session = connection.session if "resume" in self._habits else None
        self._connection = None if anew else connection
        if anew:
            connection.close()

    def _connect(self) -> ssl.SSLSocket:
        plain = socket.create_connection((self._address, 443))
        if "nodelay" in self._habits:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._context.wrap_socket(plain, server_hostname=NAME, session=self._session)


def _read(connection: ssl.SSLSocket) -> None:
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += connection.recv(65_536)
    head, _, body = answer.partition(b"\r\n\r\n")
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    left = int(fields[b"content-length"]) - len(body)
    while left > 0:
        left -= len(connection.recv(65_536))


def main() -> None:
    """Read the command line, visit."""
    address, habits, *targets = sys.argv[1:]
    visitor = Visitor(address, set(habits.split(",")))
    for target in targets:
        visitor.ask(target)


if __name__ == "__main__":
    main()
