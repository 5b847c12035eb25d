"""Apache 2.4 on a host of the lab, in front of a backend: ``httpd.conf`` and what a case adds to it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from lab.network import Host, Network
from lab.programs import Apache

CONFIGURATION = Path(__file__).with_name("httpd.conf")


def start_apache(
    network: Network,
    host: Host,
    apache: Apache,
    *,
    front: str,
    backend: str,
    keys: Path,
    defines: Iterable[str] = (),
    directives: Iterable[str] = (),
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start it at the address ``front``; ``directives`` come after those of the file, ``defines`` choose among them."""
    run = network.folder / "apache"
    run.mkdir()
    variables = {
        "LAB_MODULES": apache.modules, "LAB_RUN": str(run), "LAB_KEYS": str(keys),
        "LAB_USER": apache.user, "LAB_GROUP": apache.group, "LAB_FRONT": front, "LAB_BACKEND": backend,
    }  # fmt: skip
    defines = list(defines)
    words = [apache.program, "-f", CONFIGURATION, "-D", "FOREGROUND"]
    words += [word for name in defines for word in ("-D", name)]
    words += [word for directive in directives for word in ("-c", directive)]
    return network.start_server(host, 443 if "TLS" in defines else 80, words, {**variables, **(environment or {})})
