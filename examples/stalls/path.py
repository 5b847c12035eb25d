"""Client and server, a known time apart, with a line between them that can lose, delay and reorder chosen packets.

    client 10.88.1.10 ──line── 10.88.1.20 server
    client 10.88.1.10 ──line── 10.88.1.1 router 10.88.2.1 ── 10.88.2.20 server

With a router, the server's own cable is a veth, on which the kernel hands over super-segments of up to 64 kB, as it
does to a network card (``Case.offload``), or the router passes only smaller packets on to the server (``Case.mtu``).
"""

from __future__ import annotations

import subprocess

from cases import Case
from lab.network import Host, Network, ip

CLIENT = "10.88.1.10"
NEAR_CLIENT = "10.88.1.1"
NEAR_SERVER = "10.88.2.1"
SERVER = "10.88.1.20"
SERVER_BEHIND_ROUTER = "10.88.2.20"
NAME = "shop.example"
SUPER_SEGMENT = 44
"""Segments of 1,460 bytes in 64 kB."""


class Path(Network):
    """The hosts of a case."""

    def __init__(self, case: Case) -> None:
        """Name the hosts."""
        super().__init__(*("client", "router", "server") if case.routed else ("client", "server"))
        self.case = case
        self.client, self.server = self.hosts[0], self.hosts[-1]
        self.address = SERVER_BEHIND_ROUTER if case.routed else SERVER

    def build(self) -> None:
        """Lay the cables, set what the case wants of either kernel."""
        case = self.case
        self.log = self.folder / "line.jsonl"
        far = self.hosts[1]
        self.long_cable(
            self.client, CLIENT, far, NEAR_CLIENT if case.routed else SERVER, case.rtt_ms / 2,
            rules=case.rules, log=self.log,
        )  # fmt: skip
        if case.routed:
            segments = SUPER_SEGMENT if case.offload else 1
            self.cable(far, NEAR_SERVER, self.server, SERVER_BEHIND_ROUTER, segments=segments)
            ip("-n", self.client.namespace, "route", "add", "default", "via", NEAR_CLIENT)
            ip("-n", self.server.namespace, "route", "add", "default", "via", NEAR_SERVER)
            self.set_kernel(far, "net.ipv4.ip_forward=1")
        if case.mtu:
            ip("-n", far.namespace, "link", "set", "to-server", "mtu", str(case.mtu))
        for host in (self.client, self.server) if case.kernel else ():
            self.set_kernel(host, *case.kernel)
        if case.initial_window:
            way = ["default", "via", NEAR_SERVER] if case.routed else ["10.88.1.0/24", "dev", "to-client"]
            source = [] if case.routed else ["src", SERVER]
            words = [*way, *source, "initcwnd", str(case.initial_window)]
            ip("-n", self.server.namespace, "route", "replace", *words)
        self.name_the_site(self.client, self.address, NAME)

    def set_kernel(self, host: Host, *settings: str) -> None:
        """Set kernel parameters on one host."""
        subprocess.run(host.command(["sysctl", "--quiet", "--write", *settings]), check=True)

    def places(self) -> dict[str, tuple[Host, str]]:
        """Host and interface of each place to capture."""
        far = "router" if self.case.routed else "server"
        near = "router" if self.case.routed else "client"
        return {"client": (self.client, f"to-{far}"), "server": (self.server, f"to-{near}")}
