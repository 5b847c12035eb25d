"""Client, middle and server in a row, a known time apart: a capture can be taken at each of them at once.

client 10.79.1.10 ──5 ms── 10.79.1.1 middle 10.79.2.1 ──15 ms── 10.79.2.20 server
"""

from __future__ import annotations

from lab.network import Host, Network, ip

CLIENT = "10.79.1.10"
MIDDLE_NEAR_CLIENT = "10.79.1.1"
MIDDLE_NEAR_SERVER = "10.79.2.1"
SERVER = "10.79.2.20"
NAME = "shop.example"

CLIENT_DELAY_MS = 5
SERVER_DELAY_MS = 15
RTT_CLIENT_NS = 2 * CLIENT_DELAY_MS * 1_000_000
"""Round trip between client and middle."""
RTT_SERVER_NS = 2 * SERVER_DELAY_MS * 1_000_000
"""Round trip between middle and server."""

RTTS_NS = {
    "client": (0, RTT_CLIENT_NS + RTT_SERVER_NS),
    "middle": (RTT_CLIENT_NS, RTT_SERVER_NS),
    "server": (RTT_CLIENT_NS + RTT_SERVER_NS, 0),
}
"""For each place to capture: the round trips to the client and to the server."""


class Path(Network):
    """The three hosts. The middle forwards packets and does nothing else."""

    def __init__(self) -> None:
        """Name the hosts."""
        super().__init__("client", "middle", "server")
        self.client, self.middle, self.server = self.hosts

    def build(self) -> None:
        """Lay both cables and say where they lead."""
        self.long_cable(self.client, CLIENT, self.middle, MIDDLE_NEAR_CLIENT, CLIENT_DELAY_MS)
        self.long_cable(self.middle, MIDDLE_NEAR_SERVER, self.server, SERVER, SERVER_DELAY_MS)
        ip("-n", self.client.namespace, "route", "add", "default", "via", MIDDLE_NEAR_CLIENT)
        ip("-n", self.server.namespace, "route", "add", "default", "via", MIDDLE_NEAR_SERVER)
        ip("netns", "exec", self.middle.namespace, "sysctl", "--quiet", "--write", "net.ipv4.ip_forward=1")
        self.name_the_site(self.client, SERVER, NAME)

    def places(self) -> dict[str, tuple[Host, str]]:
        """Host and interface of each place to capture. The middle listens on its client's side."""
        return {
            "client": (self.client, "to-middle"),
            "middle": (self.middle, "to-client"),
            "server": (self.server, "to-middle"),
        }
