"""DNS over HTTP/1.1 in chunks (RFC 9112 section 7.1), with extensions and a trailer; each query goes on over UDP.

    chunks.py ADDRESS PORT CERTIFICATE KEY

An answer comes in three chunks, each in a TLS record of its own; a query may come in chunks, too.
"""

from __future__ import annotations

import base64
import socket
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ADDRESS, PORT, CERTIFICATE, KEY = sys.argv[1:]
SECONDS = 5


class Answering(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Take the query from ``?dns=`` (RFC 8484 section 4.1)."""
        text = self.path.partition("dns=")[2]
        self._answer(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))

    def do_POST(self) -> None:
        """Take the query from the content, which has a length or comes in chunks."""
        if "Content-Length" in self.headers:
            self._answer(self.rfile.read(int(self.headers["Content-Length"])))
            return
        query = b""
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            query += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        self._answer(query)

    def _answer(self, query: bytes) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plain:
            plain.settimeout(SECONDS)
            plain.connect((ADDRESS, 53))
            plain.send(query)
            answer = plain.recv(65536)
        self.send_response(200)
        self.send_header("Content-Type", "application/dns-message")
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Trailer", "X-Seen")
        self.end_headers()
        first, second, third = (
            b"%x;part=%d\r\n%b\r\n" % (len(piece), number, piece)
            for number, piece in enumerate((answer[:7], answer[7:13], answer[13:]))
        )
        self.wfile.write(first)
        self.wfile.write(second)
        self.wfile.write(third + b"0\r\nX-Seen: all\r\n\r\n")


def main() -> None:
    """Serve until we are ended."""
    server = ThreadingHTTPServer((ADDRESS, int(PORT)), Answering)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE, KEY)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
