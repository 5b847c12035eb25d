"""An application whose answers look alike: any path, the same size, a time to think that its seed chooses.

    python3 app.py ADDRESS PORT

``/think-MS`` thinks for so many milliseconds; anything else for 5 to 60.
"""

from __future__ import annotations

import random
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SIZE = 500
LEAST_MS, MOST_MS = 5, 60
DICE, LOCK = random.Random(32), threading.Lock()


class Thinker(BaseHTTPRequestHandler):
    """Answers one connection's requests."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body leave together
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Think, then answer."""
        match = re.fullmatch(r"/think-(\d+)", self.path)
        with LOCK:
            thought = DICE.uniform(LEAST_MS, MOST_MS)
        time.sleep((int(match[1]) if match else thought) / 1000)
        self.send_response(200)
        self.send_header("Content-Length", str(SIZE))
        self.end_headers()
        self.wfile.write(b"x" * SIZE)

    def log_message(self, *words: object) -> None:
        """Say nothing."""


class App(ThreadingHTTPServer):
    """Takes many connections at once."""

    request_queue_size = 256


if __name__ == "__main__":
    App((sys.argv[1], int(sys.argv[2])), Thinker).serve_forever()
