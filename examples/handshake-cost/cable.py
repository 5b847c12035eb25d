"""The two hosts of the lesson, side by side.

client 10.86.0.10 ──veth── 10.86.0.20 server
"""

from __future__ import annotations

from lab.network import Network

CLIENT = "10.86.0.10"
SERVER = "10.86.0.20"
NAME = "shop.example"


class Cable(Network):
    """Client and server, joined by a cable that costs next to no time."""

    def __init__(self) -> None:
        """Name the hosts."""
        super().__init__("client", "server")
        self.client, self.server = self.hosts

    def build(self) -> None:
        """Lay the cable."""
        self.cable(self.client, CLIENT, self.server, SERVER)
        self.name_the_site(self.client, SERVER, NAME)
