"""Client, load balancer and application, a known distance apart, and where tcpdump listens.

client 10.93.1.10 ──line── 10.93.1.20 lb 10.93.2.20 ──line── 10.93.2.30 app

With a router: client 10.93.1.10 ──line── 10.93.1.1 router 10.93.3.1 ── 10.93.3.20 lb; the client knows the router's
address only, and the router translates addresses and ports in both directions. With a cut: client 10.93.3.10 ──
10.93.3.1 router 10.93.1.1 ──line── 10.93.1.20 lb; segments are large on the client's cable and small on the line. A
firewall and a SYN proxy are the same router, with small segments everywhere. With a detour, the load balancer's packets
go back on a second cable, past the router. On
one host: client and a relay on the host's loopback, lb 10.93.4.20 and app 10.93.4.30 as containers at its bridge.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from lab.network import Host, Network, ip, tell_kernel

NAME = "shop.example"
ROW, NAT, CUT, ONE_HOST = "row", "nat", "cut", "one-host"
FIREWALL, SYN_PROXY, DETOUR = "firewall", "syn-proxy", "detour"
TUNNEL, CONTAINERS = "tunnel", "containers"
ROUTED = (CUT, FIREWALL, SYN_PROXY, DETOUR, TUNNEL)
"""Layouts in which the router hands on packets as they are addressed."""
CLIENT, LB_FRONT, LB_BACK, APP = "10.93.1.10", "10.93.1.20", "10.93.2.20", "10.93.2.30"
ROUTER_FRONT, ROUTER, BEHIND_ROUTER, FAR_CLIENT = "10.93.1.1", "10.93.3.1", "10.93.3.20", "10.93.3.10"
BRIDGE, LB_BRIDGED, APP_BRIDGED = "10.93.4.1", "10.93.4.20", "10.93.4.30"
DETOUR_CLIENT, DETOUR_LB = "10.93.5.10", "10.93.5.20"
INNER_CLIENT, INNER_LB = "10.93.6.10", "10.93.6.20"
"""In the tunnel."""
POD_GATEWAY, POD, NODE_BACK = "10.93.7.1", "10.93.7.20", "10.93.2.20"
PUBLISHED = f"""
table ip places {{
    chain inward {{
        type nat hook prerouting priority dstnat
        ip daddr {ROUTER_FRONT} tcp dport 443 dnat to {POD}:443
    }}
    chain outward {{
        type nat hook postrouting priority srcnat
        ip saddr 10.93.7.0/24 oifname != "br0" masquerade
    }}
}}
"""
"""nftables: a port of the node is the container's, and what the container opens comes from the node's address."""
PEERS = {"client": ("router", "lb"), "router": ("client", "lb"), "lb": ("router", "client")}
LOOPBACK = "127.0.0.1"
MANY_SEGMENTS = 45
"""As many as fit into 64 kB."""
PORTS = "20000-29999"
"""The router's ports: none that a client's kernel would choose."""
TRANSLATION = f"""
table ip places {{
    chain inward {{
        type nat hook prerouting priority dstnat
        ip daddr {ROUTER_FRONT} tcp dport 443 dnat to {BEHIND_ROUTER}:443
    }}
    chain outward {{
        type nat hook postrouting priority srcnat
        oifname "to-lb" meta l4proto tcp masquerade to :{PORTS} random
    }}
}}
"""
"""nftables: the client's address and port, and the server's address."""
CHANGES = """
table ip places {
    chain pass {
        type filter hook forward priority mangle
        tcp flags & syn == syn tcp option maxseg size set 1300
        tcp flags & syn == syn reset tcp option sack-perm
        tcp flags & syn == syn reset tcp option timestamp
        iifname "to-client" ip dscp set af21
        iifname "to-client" ip ecn set ce
    }
}
"""
"""nftables: maximum segment size, options of SYNs, DSCP of what the client sends, ECN."""
ANSWERS = """
table ip places {
    chain before {
        type filter hook prerouting priority raw
        iifname "to-client" tcp dport 443 tcp flags syn notrack
    }
    chain pass {
        type filter hook forward priority filter
        tcp dport 443 ct state invalid,untracked synproxy mss 1460 wscale 7 timestamp sack-perm
        ct state invalid drop
    }
}
"""
"""nftables: the router answers a SYN by itself, and opens the connection to the server after the client's ACK."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line as ``lab/delay_line.py`` makes it."""

    delay_ms: float
    back_ms: float | None = None
    """Towards the client; None: as towards the application."""
    rate: float | None = None
    queue: int | None = None
    loss: float = 0
    loss_back: float = 0
    rules: tuple[str, ...] = ()
    """Chosen packets that get lost or are held back, see ``lab/rules.py``."""


class Row(Network):
    """The hosts and the lines between them."""

    def __init__(self, layout: str, front: Line, back: Line, seed: int) -> None:
        """Name the hosts; ``seed`` chooses what gets lost."""
        super().__init__("client", "router", "lb", "app")
        self.client, self.router, self.lb, self.app = self.hosts
        self.layout, self.lines, self.seed = layout, {"client-lb": front, "lb-app": back}, seed
        self.site = {NAT: ROUTER_FRONT, CONTAINERS: ROUTER_FRONT, ONE_HOST: LOOPBACK, TUNNEL: INNER_LB}.get(
            layout, LB_FRONT
        )
        """Where the client asks."""
        self.front = {NAT: BEHIND_ROUTER, ONE_HOST: LB_BRIDGED, TUNNEL: INNER_LB, CONTAINERS: POD}.get(layout, LB_FRONT)
        """Where the load balancer listens."""
        self.behind = APP_BRIDGED if layout == ONE_HOST else APP
        """Where the application listens."""

    def build(self) -> None:
        """Lay the lines and cables of the layout."""
        for host in self.hosts:
            tell_kernel(host, "net.ipv6.conf.all.disable_ipv6=1")
        if self.layout == ONE_HOST:
            self._plug_in_containers()
        elif self.layout == CONTAINERS:
            self._publish_a_container()
        else:
            {ROW: self._lay_row, NAT: self._lay_nat}.get(self.layout, self._lay_routed)()
            self._line("lb-app", self.lb, LB_BACK, self.app, APP)
        self.name_the_site(self.client, self.site, NAME)

    def drops(self, line: str) -> Path:
        """Return the file of packets that a line has dropped."""
        return self.folder / f"{line}.jsonl"

    def places(self) -> dict[str, tuple[Host, str]]:
        """Host and interface of each place to capture, in the order of the path."""
        if self.layout == ONE_HOST:
            return {
                "client": (self.client, "lo"), "bridge": (self.client, "br0"),
                "lb": (self.lb, "eth0"), "app": (self.app, "eth0"),
            }  # fmt: skip
        if self.layout == DETOUR:
            return {"client": (self.client, "any"), "router": (self.router, "to-lb"), "lb": (self.lb, "any")}
        if self.layout == TUNNEL:
            return {
                "client": (self.client, "tunnel"), "router": (self.router, "to-lb"), "lb": (self.lb, "any"),
                "app": (self.app, "to-lb"),
            }  # fmt: skip
        if self.layout == CONTAINERS:
            return {
                "client": (self.client, "to-router"), "node": (self.router, "any"), "pod": (self.lb, "eth0"),
                "app": (self.app, "to-router"),
            }  # fmt: skip
        near = "to-lb" if self.layout == ROW else "to-router"
        return {"client": (self.client, near), "lb": (self.lb, "any"), "app": (self.app, "to-lb")}

    def lost_inside(self) -> list[str]:
        """Name the interfaces at which a kernel dropped packets: no log of a line has those."""
        found = []
        for host in self.hosts:
            devices = subprocess.run(host.command(["cat", "/proc/net/dev"]), check=True, capture_output=True, text=True)
            for line in devices.stdout.splitlines()[2:]:
                name, _, counters = line.partition(":")
                fields = counters.split()
                if int(fields[3]) or int(fields[11]):
                    found.append(f"{host.role} {name.strip()}")
        return found

    def _line(self, name: str, left: Host, left_address: str, right: Host, right_address: str) -> None:
        line = self.lines[name]
        self.long_cable(
            left, left_address, right, right_address, line.delay_ms, back_ms=line.back_ms, rate=line.rate,
            queue=line.queue, loss=line.loss, loss_back=line.loss_back, seed=self.seed, drops=self.drops(name),
            rules=line.rules,
        )  # fmt: skip

    def _lay_row(self) -> None:
        self._line("client-lb", self.client, CLIENT, self.lb, LB_FRONT)

    def _lay_nat(self) -> None:
        self._line("client-lb", self.client, CLIENT, self.router, ROUTER_FRONT)
        self.cable(self.router, ROUTER, self.lb, BEHIND_ROUTER)
        tell_kernel(self.router, "net.ipv4.ip_forward=1")
        subprocess.run(self.router.command(["nft", "-f", "-"]), input=TRANSLATION, text=True, check=True)

    def _lay_routed(self) -> None:
        segments = MANY_SEGMENTS if self.layout == CUT else 1
        self.cable(self.client, FAR_CLIENT, self.router, ROUTER, segments=segments)
        self._line("client-lb", self.router, ROUTER_FRONT, self.lb, LB_FRONT)
        tell_kernel(self.router, "net.ipv4.ip_forward=1")
        ip("-n", self.client.namespace, "route", "add", "default", "via", ROUTER)
        if self.layout == DETOUR:
            self._lay_detour()
        else:
            ip("-n", self.lb.namespace, "route", "add", "10.93.3.0/24", "via", ROUTER_FRONT)
        if self.layout == CUT:
            self._cut()
        if self.layout == TUNNEL:
            self._dig_tunnel(self.client, FAR_CLIENT, INNER_CLIENT, LB_FRONT)
            self._dig_tunnel(self.lb, LB_FRONT, INNER_LB, FAR_CLIENT)
        if self.layout == SYN_PROXY:
            tell_kernel(
                self.router, "net.ipv4.tcp_syncookies=1", "net.ipv4.tcp_timestamps=1",
                "net.netfilter.nf_conntrack_tcp_loose=0",
            )  # fmt: skip
        rules = {FIREWALL: CHANGES, SYN_PROXY: ANSWERS}.get(self.layout)
        if rules:
            subprocess.run(self.router.command(["nft", "-f", "-"]), input=rules, text=True, check=True)

    def _cut(self) -> None:
        # Generic receive offload on the client's end, which a veth does for a peer without TSO only; the kernel waits
        # 1 ms for more to join.
        subprocess.run(self.router.command(["ethtool", "-K", "to-client", "tso", "off"]), check=True)
        subprocess.run(self.client.command(["ethtool", "-K", "to-router", "gro", "on"]), check=True)
        for name, value in (("napi_defer_hard_irqs", 4), ("gro_flush_timeout", 1_000_000)):
            words = ["sh", "-c", f"echo {value} > /sys/class/net/to-router/{name}"]
            subprocess.run(self.client.command(words), check=True)

    def _lay_detour(self) -> None:
        self.cable(self.client, DETOUR_CLIENT, self.lb, DETOUR_LB)
        ip("-n", self.lb.namespace, "route", "add", f"{FAR_CLIENT}/32", "via", DETOUR_CLIENT)
        for host in (self.client, self.lb, self.router):
            tell_kernel(host, "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0")
            tell_kernel(host, *(f"net.ipv4.conf.to-{peer}.rp_filter=0" for peer in PEERS[host.role]))

    def _dig_tunnel(self, host: Host, address: str, inner: str, peer: str) -> None:
        ip("-n", host.namespace, "link", "add", "tunnel", "type", "vxlan", "id", "42", "dstport", "4789",
           "local", address, "remote", peer)  # fmt: skip
        ip("-n", host.namespace, "address", "add", f"{inner}/24", "dev", "tunnel")
        ip("-n", host.namespace, "link", "set", "tunnel", "mtu", "1450", "gso_max_segs", "1", "up")

    def _publish_a_container(self) -> None:
        """Lay what a container engine does: the load balancer is a container at a bridge of the node (``router``)."""
        self._line("client-lb", self.client, CLIENT, self.router, ROUTER_FRONT)
        self._line("lb-app", self.router, NODE_BACK, self.app, APP)
        ip("-n", self.router.namespace, "link", "add", "br0", "type", "bridge")
        ip("-n", self.router.namespace, "address", "add", f"{POD_GATEWAY}/24", "dev", "br0")
        ip("-n", self.router.namespace, "link", "set", "br0", "up")
        ip("link", "add", "eth0", "netns", self.lb.namespace, "type", "veth",
           "peer", "name", "veth-pod", "netns", self.router.namespace)  # fmt: skip
        ip("-n", self.router.namespace, "link", "set", "veth-pod", "master", "br0", "gso_max_segs", "1", "up")
        ip("-n", self.lb.namespace, "address", "add", f"{POD}/24", "dev", "eth0")
        ip("-n", self.lb.namespace, "link", "set", "eth0", "gso_max_segs", "1", "up")
        ip("-n", self.lb.namespace, "route", "add", "default", "via", POD_GATEWAY)
        tell_kernel(self.router, "net.ipv4.ip_forward=1")
        subprocess.run(self.router.command(["nft", "-f", "-"]), input=PUBLISHED, text=True, check=True)

    def _plug_in_containers(self) -> None:
        ip("-n", self.client.namespace, "link", "add", "br0", "type", "bridge")
        ip("-n", self.client.namespace, "address", "add", f"{BRIDGE}/24", "dev", "br0")
        ip("-n", self.client.namespace, "link", "set", "br0", "up")
        for host, address in ((self.lb, LB_BRIDGED), (self.app, APP_BRIDGED)):
            ip("link", "add", "eth0", "netns", host.namespace, "type", "veth",
               "peer", "name", f"veth-{host.role}", "netns", self.client.namespace)  # fmt: skip
            ip("-n", self.client.namespace, "link", "set", f"veth-{host.role}", "master", "br0", "up")
            ip("-n", host.namespace, "address", "add", f"{address}/24", "dev", "eth0")
            ip("-n", host.namespace, "link", "set", "eth0", "up")
