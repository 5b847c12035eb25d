"""A client that opens TLS connections it may not need: it asks on the first, and on as many others as told.

python3 preconnecting.py ADDRESS CONNECTIONS USED
"""

from __future__ import annotations

import socket
import ssl
import sys
import time

REQUEST = b"GET / HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: preconnecting\r\n\r\n"


def main() -> None:
    """Open all, use some, close all. The later ones resume the session of the first."""
    address, connections, used = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    trusting = ssl.create_default_context()
    trusting.check_hostname = False
    trusting.verify_mode = ssl.CERT_NONE
    opened: list[ssl.SSLSocket] = []
    for number in range(connections):
        plain = socket.create_connection((address, 443))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        session = opened[0].session if opened else None
        opened.append(trusting.wrap_socket(plain, server_hostname="shop.example", session=session))
        if number < used:
            opened[-1].sendall(REQUEST)
            opened[-1].recv(65_536)
    time.sleep(0.5)
    for connection in opened:
        connection.close()


if __name__ == "__main__":
    main()
