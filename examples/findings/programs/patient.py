"""A client that keeps its connection, asks now and then, and opens another one where the server has closed it.

python3 patient.py HOST PAUSE_SECONDS...
"""

from __future__ import annotations

import http.client
import select
import sys
import time


def main() -> None:
    """Ask, wait, ask again."""
    host, *pauses = sys.argv[1:]
    connection = http.client.HTTPConnection(host)
    for number, pause in enumerate(["0", *pauses]):
        time.sleep(float(pause))
        if connection.sock and select.select([connection.sock], [], [], 0)[0]:
            connection.close()  # there is nothing to be read but the end
        connection.request("GET", f"/{number}")
        connection.getresponse().read()
    connection.close()


if __name__ == "__main__":
    main()
