"""The path itself: nothing goes through it for a while, on any connection."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from avenue import BACKEND, CLIENT, FRONT, PROGRAMS, Avenue, Scene, words
from lab.listening import Listener, settle
from lab.network import Host, ip, tell_kernel
from lab.programs import require, versions

SERVERS = (BACKEND, "10.98.2.31", "10.98.2.32")
STEPS = "/wait-5/pieces-45-60-60"
OUTAGE_SECONDS = 0.6

README = """\
# {title}

Made by `examples/findings/make-captures`.

## Topology

    client {client} ──5 ms── {front} router 10.98.2.20 ──5 ms── {servers} servers

Network namespaces on one machine; `examples/lab/delay_line.py` makes the distance, the router is Linux.

## How it was made

- Servers, port 8080: `python3 LAB/backend.py ADDRESS 8080`
- Client, three at a time, one for each server: `python3 asks.py ADDRESS 8080 {steps}`
- Router: {router}
- Captured between the router and the servers.

{versions}

## What to see

{see}
"""


def forward(router: Host, *, on: bool) -> None:
    """Let the router pass packets on, or lose them without a word."""
    tell_kernel(router, f"net.ipv4.ip_forward={int(on)}")


def record_path(folder: Path) -> None:
    """Let a client stream from three servers through a router that stops for half a second, or does not."""
    broken = not folder.name.endswith("-clean")
    require(("ip", "tcpdump"))
    with Avenue(Scene(title="", see="", clients=(), front_ms=5, back_ms=5)) as avenue:
        client, router, servers = avenue.client, avenue.middle, avenue.backend
        for address in SERVERS[1:]:
            ip("-n", servers.namespace, "address", "add", f"{address}/24", "dev", "to-middle")
        ip("-n", client.namespace, "route", "add", "10.98.2.0/24", "via", FRONT)
        ip("-n", servers.namespace, "route", "add", "10.98.1.0/24", "via", "10.98.2.20")
        forward(router, on=True)
        for number, address in enumerate(SERVERS):
            program = words(f"python3 LAB/backend.py {address} 8080")
            if number:
                avenue.start(servers, program, stderr=subprocess.DEVNULL)
            else:
                avenue.start_server(servers, 8080, program)
        settle()
        listener = Listener(avenue, router, "to-backend", "tcp", avenue.folder / "input.pcap")
        asking = [
            avenue.start(client, words(f"python3 asks.py {address} 8080 {STEPS}"), cwd=PROGRAMS) for address in SERVERS
        ]
        time.sleep(1.5)
        if broken:
            forward(router, on=False)
            time.sleep(OUTAGE_SECONDS)
            forward(router, on=True)
        for program in asking:
            if code := program.wait(60):
                raise RuntimeError(f"a client: exit code {code}")
        settle()
        listener.stop()
        shutil.copyfile(listener.capture, folder / "input.pcap")
    stop = f"`sysctl net.ipv4.ip_forward=0`, and {OUTAGE_SECONDS:g} s later `=1`: it loses what comes meanwhile"
    text = README.format(
        title="A router that loses everything for half a second" if broken else "A router that loses nothing",
        see="- Three connections to three servers stop at the same time, until what was lost is sent again."
        if broken
        else "- The twin of `path-outage`.",
        router=stop if broken else "it passes everything on",
        client=CLIENT, front=FRONT, servers=", ".join(SERVERS), steps=STEPS,
        versions=versions([("python3", "--version"), ("tcpdump", "--version")]),
    )  # fmt: skip
    (folder / "README.md").write_text(text)


CASES: dict[str, Callable[[Path], None]] = dict.fromkeys(("path-outage", "path-outage-clean"), partial(record_path))
