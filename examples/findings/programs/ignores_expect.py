"""A server that never says 100 (Continue): it waits for the body that the client keeps back.

python3 ignores_expect.py ADDRESS PORT
"""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Silent(BaseHTTPRequestHandler):
    """Takes uploads."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def handle_expect_100(self) -> bool:
        """Go on without a word."""
        return True

    def do_POST(self) -> None:
        """Read the body, answer."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"ok\n")

    def log_message(self, *words: object) -> None:
        """Say nothing."""


ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Silent).serve_forever()
