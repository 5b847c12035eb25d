"""An HTTP/1.1 client on Python's ssl and http.client: several connections side by side, each in a thread of its own.

    python3 threads.py NAME AUTHORITY.crt VERSION CONNECTIONS THINK_MS REQUESTS...

VERSION is 1.2 or 1.3. Each connection is kept open and asks every REQUEST, beginning with another one than its
neighbours; it thinks THINK_MS before each but the first. A request is written METHOD:TARGET:BODY_BYTES or
METHOD:TARGET:BODY_BYTES:COOKIE_BYTES. Secrets go to the file that SSLKEYLOGFILE names.
"""

from __future__ import annotations

import ssl
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPSConnection

PATIENCE_SECONDS = 20


def ask(connection: HTTPSConnection, line: str) -> None:
    """Send one request, read its response to the end."""
    method, target, size, cookie = [*line.split(":"), "0"][:4]
    headers = {"Cookie": "c=" + "x" * int(cookie)} if cookie != "0" else {}
    connection.request(method, target, body=b"x" * int(size) if size != "0" else None, headers=headers)
    connection.getresponse().read()


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
