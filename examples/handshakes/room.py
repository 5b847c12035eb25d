"""The two hosts of this lab: a client and a server, side by side or a known time apart."""

from __future__ import annotations

from clients import ADDRESS as SERVER
from clients import NAME
from lab.network import Network

CLIENT = "10.78.0.10"


class Room(Network):
    """Client and server. The server's backend lives on the server, behind its loopback interface."""

    def __init__(self, delay_ms: float) -> None:
        """Name the hosts; ``delay_ms`` is what a packet takes one way, 0 for a veth cable."""
        super().__init__("client", "server")
        self.client, self.server = self.hosts
        self.delay_ms = delay_ms

    def build(self) -> None:
        """Lay the cable."""
        if self.delay_ms:
            self.long_cable(self.client, CLIENT, self.server, SERVER, self.delay_ms)
        else:
            self.cable(self.client, CLIENT, self.server, SERVER)
        self.name_the_site(self.client, SERVER, NAME)
