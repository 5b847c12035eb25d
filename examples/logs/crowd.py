"""Many clients at a time, all asking for the same.

    python3 crowd.py SITE CONNECTIONS REQUESTS [TARGET PATIENCE_MS]

Each connection asks one request after the other. ``X-Request-ID`` numbers them. With a patience, each request has a new
connection, and who has to wait longer goes away; every third one asks for an answer that comes in time.
"""

from __future__ import annotations

import http.client
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

PATIENCE_SECONDS = 60


def main() -> None:
    """Ask, all connections side by side; leave with an error if a response was none."""
    site, connections, requests = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    target, patience_ms = (sys.argv[4], int(sys.argv[5])) if len(sys.argv) > 4 else ("/item", 0)  # noqa: PLR2004
    failed: list[str] = []
    start = threading.Barrier(connections)

    def ask(number: int) -> None:
        connection = http.client.HTTPConnection(site, timeout=patience_ms / 1000 or PATIENCE_SECONDS)
        start.wait()
        for turn in range(requests):
            name = number * requests + turn
            if patience_ms:
                connection = http.client.HTTPConnection(site, timeout=patience_ms / 1000)
            try:
                path = "/item" if patience_ms and name % 3 == 0 else target
                connection.request("GET", path, headers={"X-Request-ID": f"r{name:05}"})
                response = connection.getresponse()
                response.read()
                if response.status != http.HTTPStatus.OK:
                    failed.append(f"{path}: {response.status}")
            except TimeoutError:
                if not patience_ms:
                    failed.append(f"{target}: no answer")
            if patience_ms:
                connection.close()
        connection.close()

    with ThreadPoolExecutor(connections) as threads:
        list(threads.map(ask, range(connections)))
    sys.exit("\n".join(failed) or 0)


if __name__ == "__main__":
    main()
