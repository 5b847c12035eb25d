"""The three hosts of the lesson.

    client 10.77.1.10 ──5 ms── 10.77.1.1 proxy 10.77.2.1 ── 10.77.2.20 backend

The client is some way off: every packet takes 5 ms to the proxy and 5 ms back (``lab/delay_line.py``). The backend
stands beside the proxy, joined by a veth cable.
"""

from __future__ import annotations

from lab.network import Network

CLIENT = "10.77.1.10"
PROXY_FRONT = "10.77.1.1"
PROXY_BACK = "10.77.2.1"
BACKEND = "10.77.2.20"
SITE_NAME = "shop.example"

DELAY_MS = 5


class Shop(Network):
    """Client, proxy and backend, joined by a long and a short cable."""

    def __init__(self) -> None:
        """Name the hosts."""
        super().__init__("client", "proxy", "backend")
        self.client, self.proxy, self.backend = self.hosts

    def build(self) -> None:
        """Lay both cables."""
        self.long_cable(self.client, CLIENT, self.proxy, PROXY_FRONT, DELAY_MS)
        self.cable(self.proxy, PROXY_BACK, self.backend, BACKEND)
        self.name_the_site(self.client, PROXY_FRONT, SITE_NAME)
