"""A user with a stopwatch: some requests, one after the other, each with the time from the click to the last byte.

    python3 timed.py SITE FILE

Two connections, three requests on each; the times go to FILE, as JSON.
"""

from __future__ import annotations

import http.client
import json
import sys
import time
from pathlib import Path

TARGETS = ("/wait-20/bytes-500", "/wait-20/bytes-500", "/wait-20/bytes-200000")


def main() -> None:
    """Ask, and write down how long each request took."""
    rows = []
    for round_number in range(2):
        connection = http.client.HTTPConnection(sys.argv[1], timeout=60)
        for place, target in enumerate(TARGETS):
            name = f"r{round_number * len(TARGETS) + place:05}"
            began = time.monotonic_ns()
            connection.request("GET", target, headers={"X-Request-ID": name})
            response = connection.getresponse()
            response.read()
            rows.append({"number": name, "target": target, "took_ns": time.monotonic_ns() - began})
            if response.status != http.HTTPStatus.OK:
                sys.exit(f"{target}: {response.status}")
            time.sleep(0.3)
        connection.close()
    Path(sys.argv[2]).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
