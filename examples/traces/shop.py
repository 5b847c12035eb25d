"""An instrumented server: ``shop.py ADDRESS PORT SPANS``. How long a request takes is in its number."""

from __future__ import annotations

import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.propagate import extract
from opentelemetry.trace import SpanKind
from telling import tracer

ADDRESS, PORT, SPANS = sys.argv[1], int(sys.argv[2]), sys.argv[3]
TRACER = tracer("shop", SPANS)
BODY = b"x" * 2_000


class Shop(BaseHTTPRequestHandler):
    """Works a little for each request, in a span of its own."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer."""
        number = int(self.headers["X-Request-ID"])
        attributes = {
            "http.request.method": "GET", "url.path": self.path.partition("?")[0], "url.scheme": "http",
            "network.peer.address": self.client_address[0], "network.peer.port": self.client_address[1],
            "http.response.status_code": 200, "lab.request": number,
        }  # fmt: skip
        with TRACER.start_as_current_span(
            "GET", context=extract(self.headers), kind=SpanKind.SERVER, attributes=attributes
        ):
            with TRACER.start_as_current_span("look for it"):
                time.sleep(0.004 + number * 7 % 13 / 1_000)
            self.send_response(200)
            self.send_header("Content-Length", str(len(BODY)))
            self.end_headers()
            self.wfile.write(BODY)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    """Takes many at a time."""

    request_queue_size = 256
    daemon_threads = True


if __name__ == "__main__":
    Server((ADDRESS, PORT), Shop).serve_forever()
