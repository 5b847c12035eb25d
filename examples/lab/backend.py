"""A backend that thinks for a known time before it answers, in HTTP/1.1 with connections kept open.

python3 backend.py ADDRESS PORT [PAGES]

/wait-MS/bytes-N     MS milliseconds later: 200 and N bytes
/wait-MS/status-N    MS milliseconds later: 204 or 304, which have no body
/wait-MS/pieces-N-BYTES-PAUSE
                     MS milliseconds later: 200 and N pieces of BYTES bytes, chunked, PAUSE milliseconds between them
/wait-MS/events-N-BYTES-PAUSE
                     the same, as events for a browser's EventSource
/wait-MS/page        MS milliseconds later: HTML that makes a browser ask for four more
/wait-MS/page-NAME   MS milliseconds later: NAME.html of the folder PAGES
"""

from __future__ import annotations

import re
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PAGE = b"""<!doctype html><meta charset=utf-8><title>A page</title>
<link rel=stylesheet href=/wait-2/bytes-150><link rel=icon href=data:,>
<img src=/wait-10/bytes-6000 alt=""><img src=/wait-2/bytes-90 alt=""><img src=/wait-50/status-204 alt="">
"""
TARGET = re.compile(
    r"/wait-(?P<wait>\d+)/(?:bytes-(?P<size>\d+)|status-(?P<status>204|304)|(?P<page>page)(?:-(?P<name>[a-z]+))?"
    r"|(?P<kind>pieces|events)-(?P<count>\d+)-(?P<piece>\d+)-(?P<pause>\d+))"
)


class Thinker(BaseHTTPRequestHandler):
    """Answers one connection's requests."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body leave together
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Think, then answer what the target asks for."""
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        target = TARGET.fullmatch(self.path)
        if not target:
            self.send_error(404)
            return
        time.sleep(int(target["wait"]) / 1000)
        if target["kind"]:
            self.send_pieces(target["kind"] == "events", *map(int, target.group("count", "piece", "pause")))
            return
        status, page = target["status"], target["page"]
        body = self.page(target["name"]) if page else b"x" * int(target["size"] or 0)
        self.send_response(int(status or 200))
        if not status:
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Type", "text/html" if page else "text/plain")
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def handle_expect_100(self) -> bool:
        """Say 100 (Continue) at once: what is not flushed waits for the response."""
        goes_on = super().handle_expect_100()
        self.wfile.flush()
        return goes_on

    def page(self, name: str | None) -> bytes:
        """Return a page's HTML."""
        return Path(sys.argv[3], f"{name}.html").read_bytes() if name else PAGE

    def send_pieces(self, events: bool, count: int, size: int, pause_ms: int) -> None:
        """Answer in chunks (RFC 9112 section 7.1), each on its way before the next is there."""
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Content-Type", "text/event-stream" if events else "text/plain")
        self.end_headers()
        piece = b"data: %b\n\n" % (b"x" * (size - len("data: \n\n"))) if events else b"x" * size
        for number in range(count):
            if number:
                time.sleep(pause_ms / 1000)
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def log_message(self, *words: object) -> None:
        """Say nothing."""


class Backend(ThreadingHTTPServer):
    """Takes many connections at once; a shorter queue has a proxy send its SYN again a second later."""

    request_queue_size = 128


if __name__ == "__main__":
    Backend((sys.argv[1], int(sys.argv[2])), Thinker).serve_forever()
