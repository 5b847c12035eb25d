"""A client that keeps connections open: each asks for its pages one after the other, all connections at once.

    python3 ask.py SITE AUTHORITY PLAN [--gate FILE]

PLAN is JSON, a list of connections. Each is a list of requests ``[path, pause_ms, upload_bytes]``: the client pauses,
then sends the request, with a body if there is something to upload, and reads the response. With a gate, each
connection waits after its first request until FILE is there: whoever makes the file has seen ``open`` printed when all
have come so far.
"""

from __future__ import annotations

import argparse
import http.client
import json
import socket
import ssl
import sys
import threading
import time
from pathlib import Path

PATIENCE_SECONDS = 60


def main() -> None:
    """Read the command line, ask, and leave with an error if a response was none."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("site")
    parser.add_argument("authority")
    parser.add_argument("plan", type=json.loads)
    parser.add_argument("--gate", type=Path)
    options = parser.parse_args()
    context = ssl.create_default_context(cafile=options.authority)
    open_ones = threading.Barrier(len(options.plan) + 1)
    failed: list[str] = []

    def ask(requests: list[tuple[str, int, int]]) -> None:
        connection = http.client.HTTPSConnection(options.site, context=context, timeout=PATIENCE_SECONDS)
        for number, (path, pause_ms, upload) in enumerate(requests):
            time.sleep(pause_ms / 1000)
            connection.request("POST" if upload else "GET", path, body=b"u" * upload or None)
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            response = connection.getresponse()
            response.read()
            if response.status != 200:
                failed.append(f"{path}: {response.status}")
            if options.gate and number == 0:
                open_ones.wait(PATIENCE_SECONDS)
                while not options.gate.exists():
                    time.sleep(0.01)
        connection.close()

    threads = [threading.Thread(target=ask, args=(requests,)) for requests in options.plan]
    for thread in threads:
        thread.start()
    if options.gate:
        open_ones.wait(PATIENCE_SECONDS)
        print("open", flush=True)  # noqa: T201
    for thread in threads:
        thread.join()
    sys.exit("\n".join(failed) or 0)


if __name__ == "__main__":
    main()
