"""Client and server some milliseconds apart, on a line that may lose packets.

client 10.98.0.10 ──so many ms── 10.98.0.20 server
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from lab.network import Network, stay_on_one_cpu, tell_kernel, wait_until

HERE = Path(__file__).resolve().parent
CLIENT, SERVER, NAME, PORT = "10.98.0.10", "10.98.0.20", "shop.example", 443
FORGETS_SECONDS = 1


class Alley(Network):
    """The two hosts; packets take ``delay_ms`` one way, and a share of ``loss`` of them gets lost either way."""

    def __init__(self, delay_ms: float, *, loss: float = 0, rules: tuple[str, ...] = (), seed: int = 1) -> None:
        """Name the hosts."""
        super().__init__("client", "server")
        self.client, self.server = self.hosts
        self._delay_ms, self._loss, self._rules, self._seed = delay_ms, loss, rules, seed

    @property
    def drops(self) -> Path:
        """What the line dropped, one JSON object a line."""
        return self.folder / "drops.jsonl"

    def build(self) -> None:
        """Lay the cable and tell the client where the site is."""
        self.long_cable(
            self.client, CLIENT, self.server, SERVER, self._delay_ms, loss=self._loss, loss_back=self._loss,
            seed=self._seed, rules=self._rules, drops=self.drops,
        )  # fmt: skip
        self.name_the_site(self.client, SERVER, NAME)

    def translate(self) -> None:
        """Translate the client's port as a home router does that forgets what is silent for a second."""
        rules = (
            "table ip nat { chain out { type nat hook postrouting priority 100; udp dport 443 masquerade random; }; }"
        )
        subprocess.run(self.client.command(["nft", "-f", "-"]), input=rules, text=True, check=True)
        names = ("nf_conntrack_udp_timeout", "nf_conntrack_udp_timeout_stream")
        tell_kernel(self.client, *(f"net.netfilter.{name}={FORGETS_SECONDS}" for name in names))

    def start_aioquic(
        self, certificate: Path, options: tuple[str, ...], program: tuple[str | Path, ...] = (HERE / "serve.py",)
    ) -> tuple[subprocess.Popen[bytes], Path]:
        """Start the server; returns it and the folder that has its qlogs when it has ended."""
        qlog = self.folder / "server-qlog"
        qlog.mkdir()
        words = [sys.executable, *program, SERVER, str(PORT), certificate, certificate.with_suffix(".key")]
        log = self.folder / "serve.log"
        with log.open("wb") as sink:
            server = self.start(
                self.server, [*words, qlog, *options], stdout=sink, stderr=sink, preexec_fn=stay_on_one_cpu
            )
        wait_until(lambda: self.server.has_bound(PORT), f"serve.py listens; {log.read_text()}")
        return server, qlog

    def start_caddy(self, keys: Path) -> None:
        """Start Caddy in front of the lab's backend, and wait until it listens to TCP and UDP."""
        backend = [sys.executable, HERE.parent / "lab/backend.py"]
        self.start_server(self.server, 8080, [*backend, "127.0.0.1", "8080"])
        words = ["caddy", "run", "--config", HERE.parent / "udp/Caddyfile", "--adapter", "caddyfile"]
        environment = {"HOME": str(self.folder), "LAB_FRONT": SERVER, "LAB_KEYS": str(keys)}
        self.start_server(self.server, PORT, words, environment)
        wait_until(lambda: self.server.has_bound(PORT), "Caddy listens to UDP")
