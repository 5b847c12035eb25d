"""Client, middle and server in a row: the client a known time away, the middle beside the server.

client 10.83.1.10 ──DELAY ms── 10.83.1.1 middle 10.83.2.1 ──veth── 10.83.2.20 server
"""

from __future__ import annotations

from clients import NAME
from lab.network import Host, Network, ip

CLIENT = "10.83.1.10"
MIDDLE_NEAR_CLIENT = "10.83.1.1"
MIDDLE_NEAR_SERVER = "10.83.2.1"
SERVER = "10.83.2.20"


class Road(Network):
    """The three hosts. The middle forwards packets; the server's backend lives behind its loopback interface."""

    def __init__(self, delay_ms: float) -> None:
        """Name the hosts; ``delay_ms`` is what a packet takes one way, 0 for veth cables all the way."""
        super().__init__("client", "middle", "server")
        self.client, self.middle, self.server = self.hosts
        self.delay_ms = delay_ms

    def build(self) -> None:
        """Lay both cables and say where they lead."""
        if self.delay_ms:
            self.long_cable(self.client, CLIENT, self.middle, MIDDLE_NEAR_CLIENT, self.delay_ms)
        else:
            self.cable(self.client, CLIENT, self.middle, MIDDLE_NEAR_CLIENT)
        self.cable(self.middle, MIDDLE_NEAR_SERVER, self.server, SERVER)
        ip("-n", self.client.namespace, "route", "add", "default", "via", MIDDLE_NEAR_CLIENT)
        ip("-n", self.server.namespace, "route", "add", "default", "via", MIDDLE_NEAR_SERVER)
        ip("netns", "exec", self.middle.namespace, "sysctl", "--quiet", "--write", "net.ipv4.ip_forward=1")
        self.name_the_site(self.client, SERVER, NAME)

    def place(self, vantage: str) -> tuple[Host, str]:
        """Host and interface of a place to capture. The middle listens on its client's side."""
        return {
            "client": (self.client, "to-middle"),
            "middle": (self.middle, "to-client"),
            "server": (self.server, "to-middle"),
        }[vantage]
