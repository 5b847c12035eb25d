"""An HTTP/1.1 client on Python's ssl and http.client: several connections side by side, each in a thread of its own.

    python3 threads.py NAME AUTHORITY.crt VERSION CONNECTIONS THINK_MS REQUESTS...

VERSION is 1.2 or 1.3. Each connection is kept open and asks every REQUEST, beginning with another one than its
neighbours; it thinks THINK_MS before each but the first. A request is written METHOD:TARGET:BODY_BYTES or
METHOD:TARGET:BODY_BYTES:COOKIE_BYTES or METHOD:TARGET:BODY_BYTES:COOKIE_BYTES:PAUSE_MS; then it pauses so long before
either half of its body. Secrets go to the file that SSLKEYLOGFILE names.
"""

from __future__ import annotations

import ssl
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPSConnection

PATIENCE_SECONDS = 20


def ask(connection: HTTPSConnection, line: str) -> None:
    """Send one request, read its response to the end."""
    method, target, *numbers = line.split(":")
    size, cookie, pause_ms = map(int, [*numbers, "0", "0"][:3])
    headers = {"Cookie": "c=" + "x" * cookie} if cookie else {}
    body: bytes | Iterator[bytes] | None = b"x" * size or None
    if pause_ms:
        headers["Content-Length"] = str(size)
        body = halves(size, pause_ms)
    connection.request(method, target, body=body, headers=headers)
    connection.getresponse().read()


def halves(size: int, pause_ms: int) -> Iterator[bytes]:
    """Give a body of an even size in two parts, each after a pause."""
    for _ in range(2):
        time.sleep(pause_ms / 1000)
        yield b"x" * (size // 2)


def main() -> None:
    """Read the command line, open the connections, ask."""
    name, authority, version, connections, think_ms, *lines = sys.argv[1:]
    context = ssl.create_default_context(cafile=authority)
    number = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}[version]
    context.minimum_version = context.maximum_version = number

    def converse(first: int) -> None:
        connection = HTTPSConnection(name, 443, context=context, timeout=PATIENCE_SECONDS)
        for place in range(len(lines)):
            if place:
                time.sleep(int(think_ms) / 1000)
            ask(connection, lines[(first + place) % len(lines)])
        connection.close()

    with ThreadPoolExecutor(int(connections)) as pool:
        list(pool.map(converse, range(int(connections))))


if __name__ == "__main__":
    main()
