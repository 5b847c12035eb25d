"""A server that reads each request, does nothing for a while, and closes the connection.

python3 breaks.py ADDRESS PORT MS [reset]    with RST rather than FIN
"""

import socket
import struct
import sys
import time
from socketserver import BaseRequestHandler, ThreadingTCPServer


class Broken(BaseRequestHandler):
    """Answers nothing."""

    def handle(self) -> None:
        """Read, wait, leave."""
        self.request.recv(65_536)
        time.sleep(int(sys.argv[3]) / 1000)
        if "reset" in sys.argv:
            self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.request.close()


ThreadingTCPServer.allow_reuse_address = True
ThreadingTCPServer((sys.argv[1], int(sys.argv[2])), Broken).serve_forever()
