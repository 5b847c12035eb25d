"""HAProxy on a host of the lab, in front of a backend: ``haproxy.cfg`` and what a case adds to it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from lab.network import Host, Network

CONFIGURATION = Path(__file__).with_name("haproxy.cfg")


def start_haproxy(
    network: Network,
    host: Host,
    *,
    front: str,
    backend: str,
    keys: Path,
    tls: str = "1.3",
    directives: Iterable[str] = (),
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start it at port 443 of the address ``front``; ``directives`` go into its ``frontend`` section."""
    run = network.folder / "haproxy"
    run.mkdir(mode=0o700)
    (run / "server.pem").write_text((keys / "server.crt").read_text() + (keys / "server.key").read_text())
    text = CONFIGURATION.read_text()
    for name, value in {
        "FRONT": front, "RUN": run, "TLS": tls, "BACKEND": backend, "DIRECTIVES": "\n    ".join(directives),
    }.items():  # fmt: skip
        text = text.replace(f"@{name}@", str(value))
    (run / "haproxy.cfg").write_text(text)
    return network.start_server(host, 443, ["haproxy", "-db", "-f", run / "haproxy.cfg"], environment)
