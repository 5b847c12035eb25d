"""An application that asks its store several things for each request, one after the other or all at once.

    python3 fans_out.py ADDRESS STORE serial|beside MS…

Each MS is a request to the store at STORE, port 8080, that takes it so many milliseconds.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import local

ADDRESS, STORE, ORDER, *TIMES = sys.argv[1:]
THREAD = local()
WORKERS = ThreadPoolExecutor(1 if ORDER == "serial" else len(TIMES))


def fetch(number: int, ms: str) -> bytes:
    """Ask the store on this thread's connection."""
    if not hasattr(THREAD, "connection"):
        THREAD.connection = HTTPConnection(STORE, 8080)
    THREAD.connection.request("GET", f"/wait-{ms}/bytes-{200 + number}")
    return THREAD.connection.getresponse().read()


class Application(BaseHTTPRequestHandler):
    """Answers when the store has answered everything."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Ask the store, answer with all of it."""
        body = b"".join(WORKERS.map(fetch, range(len(TIMES)), TIMES))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        """Say nothing."""


ThreadingHTTPServer((ADDRESS, 80), Application).serve_forever()
