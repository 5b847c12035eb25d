"""nginx on a host of the lab, in front of a backend: ``nginx.conf`` and what a case adds to it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from lab.network import Host, Network

CONFIGURATION = Path(__file__).with_name("nginx.conf")


def start_nginx(
    network: Network,
    host: Host,
    *,
    front: str,
    backend: str,
    keys: Path,
    http2: bool = False,
    proxy_protocol: bool = False,
    directives: Iterable[str] = (),
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start it at port 443 of the address ``front``; ``directives`` go into its ``server`` block.

    With ``proxy_protocol``, each connection must begin with a PROXY header.
    """
    run = network.folder / "nginx"
    run.mkdir()
    text = CONFIGURATION.read_text()
    listen = f"{front}:443 ssl{' http2' * http2}{' proxy_protocol' * proxy_protocol}"
    for name, value in {
        "RUN": run, "KEYS": keys, "BACKEND": backend, "LISTEN": listen,
        "DIRECTIVES": "\n        ".join(f"{directive};" for directive in directives),
    }.items():  # fmt: skip
        text = text.replace(f"@{name}@", str(value))
    (run / "nginx.conf").write_text(text)
    words = ["nginx", "-p", run, "-e", run / "error.log", "-c", run / "nginx.conf"]
    return network.start_server(host, 443, words, environment)
