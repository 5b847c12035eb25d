"""Client and server some milliseconds apart; the server has a second address, where names are resolved.

client 10.81.0.10 ──5 ms── 10.81.0.53 resolver, 10.81.0.20 server

Both have IPv6 addresses too; only the name dual.shop.example leads there.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from lab.network import Network, ip, tell_kernel, wait_until

CLIENT = "10.81.0.10"
RESOLVER = "10.81.0.53"
SERVER = "10.81.0.20"
CLIENT_SIX, SERVER_SIX = "fd00:81::10", "fd00:81::20"
NAME = "shop.example"
DUAL = f"dual.{NAME}"
DELAY_MS = 5
UPSTREAM_PORT = 5300
PATIENCE_SECONDS = 1
"""How long the client's resolver waits for an answer before it asks again."""

LONG_TEXT = "what a resolver cannot say in 512 bytes, it says over TCP; "
SERVICES = {
    # 1 . alpn=h3,h2 ipv4hint=10.81.0.20
    f"www.{NAME}": "0001 00 0001 0006 02 6833 02 6832 0004 0004 0a510014",
    # 2 alt.example. mandatory=alpn alpn=h2 no-default-alpn port=8443 ipv6hint=2001:db8::1 ech=…
    f"full.{NAME}": "0002 03616c74076578616d706c6500 0000 0002 0001 0001 0003 02 6832 0002 0000 0003 0002 20fb"
    " 0005 0004 fe0d0000 0006 0010 20010db8000000000000000000000001",
    # 0 www.shop.example.
    f"alias.{NAME}": "0000 0377777704 73686f70076578616d706c6500",
}
"""HTTPS records (RFC 9460), as dnsmasq takes data."""
HERE = Path(__file__).resolve().parent


class Street(Network):
    """The two hosts."""

    def __init__(self, delay_ms: float = DELAY_MS, rules: tuple[str, ...] = ()) -> None:
        """Name the hosts."""
        super().__init__("client", "server")
        self.client, self.server = self.hosts
        self._delay_ms, self._rules = delay_ms, rules

    def build(self) -> None:
        """Lay the cable, give the server its second address, and tell the client where names are resolved."""
        for host in self.hosts:
            # No packets of the kernel's own on the line.
            tell_kernel(host, "net.ipv6.conf.default.router_solicitations=0", "net.ipv6.conf.default.addr_gen_mode=1")
        self.long_cable(self.client, CLIENT, self.server, SERVER, self._delay_ms, rules=self._rules)
        for host, end, address in (
            (self.client, "to-server", CLIENT_SIX),
            (self.server, "to-client", SERVER_SIX),
        ):
            ip("-n", host.namespace, "address", "add", f"{address}/64", "dev", end, "nodad")
        ip("-n", self.server.namespace, "address", "add", f"{RESOLVER}/24", "dev", "to-client")
        self.set_file(self.client, "hosts", "127.0.0.1 localhost\n")
        self.set_file(
            self.client, "resolv.conf", f"nameserver {RESOLVER}\noptions timeout:{PATIENCE_SECONDS} attempts:3\n"
        )

    def block_quic(self) -> None:
        """Let the server drop what comes to UDP port 443, as firewalls do."""
        rules = "table inet lab { chain input { type filter hook input priority 0; udp dport 443 drop; }; }"
        subprocess.run(self.server.command(["nft", "-f", "-"]), input=rules, text=True, check=True)

    def start_resolver(self) -> None:
        """Start dnsmasq: it knows shop.example, and asks upstream.py for slow.example and lost.example."""
        words = [
            "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--pid-file=",
            "--user=root", "--bind-interfaces", f"--listen-address={RESOLVER}", "--cache-size=0", "--local=/example/",
            f"--address=/{NAME}/{SERVER}",
            *(f"--address=/{DUAL}/{address}" for address in (SERVER, SERVER_SIX)),
            *(f"--dns-rr={name},65,{data.replace(' ', '')}" for name, data in SERVICES.items()),
            *(f"--server=/{name}/127.0.0.1#{UPSTREAM_PORT}" for name in ("slow.example", "lost.example")),
            *(f"--txt-record=long.example,{number} {LONG_TEXT}" for number in range(12)),
        ]  # fmt: skip
        upstream = self.start(self.server, [sys.executable, HERE / "upstream.py", str(UPSTREAM_PORT), SERVER])
        wait_until(lambda: self.server.has_bound(UPSTREAM_PORT), f"{upstream.args} listens")
        self.start_server(self.server, 53, words)
