"""Clients of a case: command lines, run on a host of the lab in a folder of their own, with TLS secrets asked for.

A command names files that are made for it: ``body-200000`` has so many bytes, ``cookie-8000`` a Cookie field of so many
bytes; curl wants an ``@`` before. The first part of a word's path may stand for a folder that ``places`` has.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.network import Host, Network

SECRETS = "keys.log"
BODY, COOKIE = "body-", "cookie-"
PATIENCE_SECONDS = 60

Words = tuple[str, ...]


def run_clients(
    network: Network, host: Host, commands: Sequence[Words], desk: Path, places: Mapping[str, Path]
) -> None:
    """Run clients' commands, all at once, to their ends.

    Raises:
        RuntimeError: one of them failed; says what it said.
    """
    logs = [desk / f"client-{number}.log" for number in range(len(commands))]
    clients = [
        _start_client(network, host, words, desk, places, log) for words, log in zip(commands, logs, strict=True)
    ]
    for words, client, log in zip(commands, clients, logs, strict=True):
        if code := client.wait(PATIENCE_SECONDS):
            raise RuntimeError(f"{shlex.join(words)}: exit code {code}; it said: {log.read_text()}")


def _start_client(
    network: Network, host: Host, words: Words, desk: Path, places: Mapping[str, Path], log: Path
) -> subprocess.Popen[bytes]:
    """Start a client's command, the files that it sends beside it."""
    for word in words:
        name = word.removeprefix("@")
        if name.startswith(BODY):
            (desk / name).write_bytes(b"x" * int(name.removeprefix(BODY)))
        if name.startswith(COOKIE):
            (desk / name).write_bytes(b"Cookie: c=" + b"x" * int(name.removeprefix(COOKIE)) + b"\n")
    placed = ["/".join(str(places.get(part, part)) for part in word.split("/")) for word in words]
    environment = {**os.environ, "SSLKEYLOGFILE": str(desk / SECRETS), "HOME": str(desk)}
    with log.open("wb") as sink:
        return network.start(host, placed, cwd=desk, stdout=sink, stderr=sink, env=environment)
