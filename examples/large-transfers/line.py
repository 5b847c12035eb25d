"""The hosts of the lesson: a line with a router, for captures, and a single machine, for measuring.

client 10.87.1.10 ──1 or 10 ms── 10.87.1.1 router 10.87.2.1 ── 10.87.2.20:443 server
"""

from __future__ import annotations

import subprocess

from lab.network import Network, ip, tell_kernel

CLIENT = "10.87.1.10"
ROUTER_NEAR_CLIENT = "10.87.1.1"
ROUTER_NEAR_SERVER = "10.87.2.1"
SERVER = "10.87.2.20"
NAME = "shop.example"

CONGESTION_CONTROL = "reno"
"""The one that every kernel lets a network namespace have; the textbook's, too."""


class Line(Network):
    """Client, router and server. Every setting of a kernel holds on that host alone."""

    def __init__(self, delay_ms: float, *, receive_memory: str | None = None, bottleneck: str | None = None) -> None:
        """Say how far apart they are, and what is narrow.

        Args:
            delay_ms: One way.
            receive_memory: The client's tcp_rmem: least, first and most bytes of a connection; None: the kernel's own.
            bottleneck: What the router lets through to the client, in the words of tc's token bucket; None: all.
        """
        super().__init__("client", "router", "server")
        self.client, self.router, self.server = self.hosts
        self._delay_ms = delay_ms
        self._receive_memory = receive_memory
        self._bottleneck = bottleneck

    def build(self) -> None:
        """Lay both cables and say where they lead."""
        self.long_cable(self.client, CLIENT, self.router, ROUTER_NEAR_CLIENT, self._delay_ms)
        self.cable(self.router, ROUTER_NEAR_SERVER, self.server, SERVER)
        ip("-n", self.client.namespace, "route", "add", "default", "via", ROUTER_NEAR_CLIENT)
        ip("-n", self.server.namespace, "route", "add", "default", "via", ROUTER_NEAR_SERVER)
        tell_kernel(self.router, "net.ipv4.ip_forward=1")
        self.name_the_site(self.client, SERVER, NAME)
        for host in (self.client, self.server):
            # What a kernel remembers of one connection must not open the next one's window.
            tell_kernel(host, f"net.ipv4.tcp_congestion_control={CONGESTION_CONTROL}", "net.ipv4.tcp_no_metrics_save=1")
        if self._receive_memory:
            tell_kernel(self.client, f"net.ipv4.tcp_rmem={self._receive_memory}")
        if self._bottleneck:
            words = ["tc", "qdisc", "add", "dev", "to-client", "root", "tbf", *self._bottleneck.split()]
            subprocess.run(self.router.command(words), check=True)


class Machine(Network):
    """One host with nothing but its loopback: client and server on the same machine, as in the study."""

    def __init__(self) -> None:
        """Name the host."""
        super().__init__("machine")
        (self.host,) = self.hosts

    def build(self) -> None:
        """Say where the site is."""
        self.name_the_site(self.host, "127.0.0.1", NAME)
