"""One request by curl from a host of the lab, its answer thrown away."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from lab.network import Host

PATIENCE_SECONDS = 60


def fetch(host: Host, url: str, keys: Path, *, certificate: bool = False) -> None:
    """Fetch ``url``, trusting the authority in ``keys`` and, on demand, showing the client's ``certificate`` there.

    Before tcpdump listens: a server's first answer pays for start-up that is no part of the lesson.
    """
    words = ["curl", "--fail", "--silent", "--show-error", "--output", os.devnull]
    words += ["--cacert", str(keys / "authority.crt")] * url.startswith("https:")
    words += ["--cert", str(keys / "client.crt"), "--key", str(keys / "client.key")] * certificate
    subprocess.run(host.command([*words, url]), check=True, timeout=PATIENCE_SECONDS)
