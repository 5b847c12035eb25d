"""A server that reads each request, does nothing for a while, and closes the connection.

python3 breaks.py ADDRESS PORT MS
"""

import sys
import time
from socketserver import BaseRequestHandler, ThreadingTCPServer


class Broken(BaseRequestHandler):
    """Answers nothing."""

    def handle(self) -> None:
        """Read, wait, leave."""
        self.request.recv(65_536)
        time.sleep(int(sys.argv[3]) / 1000)


ThreadingTCPServer.allow_reuse_address = True
ThreadingTCPServer((sys.argv[1], int(sys.argv[2])), Broken).serve_forever()
