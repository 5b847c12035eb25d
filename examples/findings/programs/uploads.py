"""A client that uploads piece by piece.

    python3 uploads.py HOST PORT BYTES PIECES MS TARGET

BYTES in so many PIECES, so many milliseconds from one to the next.
"""

import sys
import time
from collections.abc import Iterator
from http.client import HTTPConnection

host, port, size, pieces, ms = sys.argv[1], *map(int, sys.argv[2:6])


def body() -> Iterator[bytes]:
    """Give the pieces."""
    for number in range(pieces):
        if number:
            time.sleep(ms / 1000)
        yield b"x" * (size // pieces)


connection = HTTPConnection(host, port, timeout=30)
connection.request("POST", sys.argv[6], body(), {"Content-Length": str(size), "User-Agent": "uploads"})
connection.getresponse().read()
connection.close()
