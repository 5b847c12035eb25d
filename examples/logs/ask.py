"""A client with several connections: each asks for its pages one after the other, and gives every request a number.

    python3 ask.py SITE CONNECTIONS

Requests differ in how long the backend thinks and in how much it answers. Every third connection is opened again for
each request. ``X-Request-ID`` is the number.
"""

from __future__ import annotations

import http.client
import sys
import time
from concurrent.futures import ThreadPoolExecutor

REQUESTS = 6
THOUGHTS_MS = (0, 3, 12, 40, 7)
SIZES = (200, 1_500, 20_000, 6_000)
PATIENCE_SECONDS = 60


def main() -> None:
    """Ask, all connections side by side; leave with an error if a response was none."""
    site, connections = sys.argv[1], int(sys.argv[2])
    failed: list[str] = []

    def ask(number: int) -> None:
        connection = http.client.HTTPConnection(site, timeout=PATIENCE_SECONDS)
        time.sleep(number * 0.009)
        for turn in range(REQUESTS):
            name = number * REQUESTS + turn
            path = f"/wait-{THOUGHTS_MS[name % len(THOUGHTS_MS)]}/bytes-{SIZES[name % len(SIZES)]}"
            body = b"u" * 4_000 if name % 7 == 3 else None
            connection.request("POST" if body else "GET", path, body=body, headers={"X-Request-ID": f"r{name:04}"})
            response = connection.getresponse()
            response.read()
            if response.status != http.HTTPStatus.OK:
                failed.append(f"{path}: {response.status}")
            if number % 3 == 2:
                connection.close()
            time.sleep(0.004 * (turn % 3))
        connection.close()

    with ThreadPoolExecutor(connections) as threads:
        list(threads.map(ask, range(connections)))
    sys.exit("\n".join(failed) or 0)


if __name__ == "__main__":
    main()
