"""A server that keeps connections as HTTP/1.1 does, and closes each after so many responses without having said so.

python3 closes.py ADDRESS PORT RESPONSES [IDLE_SECONDS]

With IDLE_SECONDS it also closes a connection on which nothing was asked for so long.
"""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ADDRESS, PORT, MOST = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


class Closing(BaseHTTPRequestHandler):
    """Answers one connection's requests."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body leave together
    disable_nagle_algorithm = True
    timeout = float(sys.argv[4]) if len(sys.argv) > 4 else None
    answered = 0

    def do_GET(self) -> None:
        """Answer, and leave after the last one."""
        body = b"x" * 300
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.answered += 1
        self.close_connection = self.answered >= MOST


ThreadingHTTPServer.allow_reuse_address = True
ThreadingHTTPServer((ADDRESS, PORT), Closing).serve_forever()
