"""A visitor, a web server, an application and a database; all of it passes a switch, where tcpdump listens.

visitor 10.95.1.10 ─┐
web     10.95.1.20 ─┤ switch ── router 10.95.1.1 ──so many ms── 10.95.2.40 store
application  .1.30 ─┘

The application is beside the switch. So the capture has its times, and each query's round trip to the store.
"""

from __future__ import annotations

from lab.network import Host, Network, ip, tell_kernel

VISITOR, WEB, APPLICATION, ROUTER = "10.95.1.10", "10.95.1.20", "10.95.1.30", "10.95.1.1"
FAR_SIDE, STORE = "10.95.2.1", "10.95.2.40"
BRIDGE = "switch0"
WAKING_MS = 0.03
"""What cables, router and the program that is the line take themselves, one way."""


class Office(Network):
    """The hosts; the store is ``rtt_ms`` away from the application."""

    def __init__(self, rtt_ms: float) -> None:
        """Name the hosts."""
        super().__init__("visitor", "web", "app", "router", "store", "switch")
        self.visitor, self.web, self.application, self.router, self.store, self.switch = self.hosts
        self._rtt_ms = rtt_ms

    def build(self) -> None:
        """Lay the cables."""
        ip("-n", self.switch.namespace, "link", "add", BRIDGE, "type", "bridge")
        ip("-n", self.switch.namespace, "link", "set", BRIDGE, "up")
        for host, address in (
            (self.visitor, VISITOR), (self.web, WEB), (self.application, APPLICATION), (self.router, ROUTER),
        ):  # fmt: skip
            self._plug_into_switch(host, address)
        self.long_cable(self.router, FAR_SIDE, self.store, STORE, self._rtt_ms / 2 - WAKING_MS)
        tell_kernel(self.router, "net.ipv4.ip_forward=1")
        ip("-n", self.application.namespace, "route", "add", "default", "via", ROUTER)
        ip("-n", self.store.namespace, "route", "add", "default", "via", FAR_SIDE)

    def _plug_into_switch(self, host: Host, address: str) -> None:
        """Join a host and the switch. Packets have the size that a wire would carry."""
        port = f"to-{host.role}"
        ip("link", "add", "to-switch", "netns", host.namespace, "type", "veth",
           "peer", "name", port, "netns", self.switch.namespace)  # fmt: skip
        ip("-n", self.switch.namespace, "link", "set", port, "master", BRIDGE, "gso_max_segs", "1", "up")
        ip("-n", host.namespace, "address", "add", f"{address}/24", "dev", "to-switch")
        ip("-n", host.namespace, "link", "set", "to-switch", "gso_max_segs", "1", "up")
