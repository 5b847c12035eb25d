"""A client that visits a server over TLS, and keeps or forgets the sessions it was given.

python3 visitor.py NAME AUTHORITY [OPTION…]

    --visits N      connections (3)
    --together      all opened at once, when none has a session yet; else one after another
    --resume        offers the newest session of an earlier visit
    --version V     the only TLS version it speaks: 1.2 or 1.3; both when it is not given

A visit is three requests on one connection, which the client then closes.
"""

from __future__ import annotations

import argparse
import socket
import ssl
import time
from threading import Barrier, Thread

REQUESTS = 3
PAUSE_SECONDS = 0.15
PATIENCE_SECONDS = 20
VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


class Visitor:
    """Who visits; remembers one session."""

    def __init__(self, name: str, authority: str, version: str | None, *, resumes: bool) -> None:
        """Say whom it visits, and trust the authority."""
        self.name = name
        self.resumes = resumes
        self.session: ssl.SSLSession | None = None
        self.context = ssl.create_default_context(cafile=authority)
        if version:
            self.context.minimum_version = self.context.maximum_version = VERSIONS[version]

    def visit(self, barrier: Barrier | None = None) -> None:
        """Ask three times, one after another."""
        with socket.create_connection((self.name, 443), PATIENCE_SECONDS) as plain:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if barrier:
                barrier.wait(PATIENCE_SECONDS)
            with self.context.wrap_socket(plain, server_hostname=self.name, session=self.session) as sealed:
                for _ in range(REQUESTS):
                    sealed.sendall(f"GET / HTTP/1.1\r\nHost: {self.name}\r\nUser-Agent: visitor\r\n\r\n".encode())
                    read_response(sealed)
                if self.resumes:
                    self.session = sealed.session


def read_response(sealed: ssl.SSLSocket) -> None:
    """Read one response with a Content-Length."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += sealed.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    left = int(head.lower().partition(b"content-length:")[2].split()[0]) - len(body)
    while left > 0:
        left -= len(sealed.recv(65536))


def main() -> None:
    """Read the command line and visit."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("name")
    parser.add_argument("authority")
    parser.add_argument("--visits", type=int, default=3)
    parser.add_argument("--together", action="store_true")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--version", choices=sorted(VERSIONS))
    options = parser.parse_args()
    visitor = Visitor(options.name, options.authority, options.version, resumes=options.resume)
    if not options.together:
        for _ in range(options.visits):
            visitor.visit()
            time.sleep(PAUSE_SECONDS)
        return
    barrier = Barrier(options.visits)
    visits = [Thread(target=visitor.visit, args=(barrier,)) for _ in range(options.visits)]
    for visit in visits:
        visit.start()
    for visit in visits:
        visit.join()


if __name__ == "__main__":
    main()
