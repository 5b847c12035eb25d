"""Client and server 5 ms apart; the server has a second address, where names are resolved.

client 10.97.0.10 ──5 ms── 10.97.0.53 resolver, 10.97.0.20 server
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from lab.network import Network, ip, wait_until

CLIENT, RESOLVER, SERVER = "10.97.0.10", "10.97.0.53", "10.97.0.20"
NAME = "shop.example"
DELAY_MS = 5
UPSTREAM_PORT = 5300
HERE = Path(__file__).resolve().parent


class Lane(Network):
    """The two hosts."""

    def __init__(self) -> None:
        """Name the hosts."""
        super().__init__("client", "server")
        self.client, self.server = self.hosts

    def build(self) -> None:
        """Lay the cable, give the server its second address, and tell the client where the resolver is."""
        self.long_cable(self.client, CLIENT, self.server, SERVER, DELAY_MS)
        ip("-n", self.server.namespace, "address", "add", f"{RESOLVER}/24", "dev", "to-client")
        self.name_the_site(self.client, RESOLVER, NAME)

    def start_resolver(self, keys: Path, *, caddy: bool, quic: bool, chunks: bool) -> None:
        """Start unbound, which knows some names and asks ``upstream.py`` for slow.example; and a page at port 80."""
        upstream = self.start(
            self.server, [sys.executable, HERE.parent / "udp/upstream.py", str(UPSTREAM_PORT), SERVER]
        )
        wait_until(lambda: self.server.has_bound(UPSTREAM_PORT), f"{upstream.args} listens")
        folder = self.folder / "unbound"
        folder.mkdir()
        text = (HERE / "unbound.conf").read_text()
        # Where another program listens, unbound does not: it would take UDP, too.
        ports = [443] * (not caddy and not chunks) + [853] * (not quic)
        others = "\n\t".join(f"interface: {RESOLVER}@{port}" for port in ports)
        for word, value in {
            "FOLDER": folder, "HTTPS_PORT": 8443 if caddy or chunks else 443, "OTHERS": others, "ADDRESS": RESOLVER,
            "SERVER": SERVER, "KEYS": keys,
        }.items():  # fmt: skip
            text = text.replace(f"@{word}@", str(value))
        (folder / "unbound.conf").write_text(text)
        self.start_server(self.server, 53, ["unbound", "-d", "-p", "-c", folder / "unbound.conf"])
        if caddy:
            words = ["caddy", "run", "--config", HERE / "Caddyfile", "--adapter", "caddyfile"]
            environment = {"HOME": str(self.folder), "LAB_FRONT": RESOLVER, "LAB_KEYS": str(keys)}
            self.start_server(self.server, 443, words, environment)
        self.start_server(self.server, 80, [sys.executable, HERE.parent / "lab/backend.py", SERVER, "80"])

    def start_chunks(self, keys: Path) -> None:
        """Start ``chunks.py``, which hands queries over HTTP/1.1 to unbound."""
        words = [sys.executable, HERE / "chunks.py", RESOLVER, "443", keys / "server.crt", keys / "server.key"]
        self.start_server(self.server, 443, words)

    def start_quic(self, keys: Path) -> None:
        """Start ``serve.py``, which hands queries over QUIC to unbound."""
        log = self.folder / "serve.log"
        words = [sys.executable, HERE / "serve.py", RESOLVER, "853", keys / "server.crt", keys / "server.key"]
        with log.open("wb") as sink:
            self.start(self.server, words, stdout=sink, stderr=sink, env={**os.environ})
        wait_until(lambda: self.server.has_bound(853), f"serve.py listens; {log.read_text()}")
