"""A capture's README: topology, how it was made, what to see."""

from __future__ import annotations

import shlex
from importlib.metadata import version

from cases import QUESTIONS, Case
from lab.programs import versions
from lane import CLIENT, DELAY_MS, RESOLVER, SERVER

CURL = ("curl", "--version")


def readme(name: str, case: Case) -> str:
    """Say how the capture was made and what to see in it."""
    programs = [("sh", "-c", "echo unbound $(unbound -V | head -1)")]
    programs += [("sh", "-c", "echo Caddy $(caddy version)")] * case.caddy + [CURL] * (not case.over)
    libraries = ["dnspython", "httpx", "aioquic"] if case.over else []
    used = "".join(f"- {library} {version(library)}\n" for library in libraries)
    return f"""\
# {case.title}

Made by `examples/dns/make-captures {name}`; what the set is for is in `examples/dns/README.md`.

## Topology

    client {CLIENT} ──{DELAY_MS} ms── {RESOLVER} resolver, {SERVER} server

Two network namespaces on one machine; resolver and server are two addresses of one host. Every packet takes
{DELAY_MS} ms each way (`examples/lab/delay_line.py`).

## How it was made

- Client: {client(case)}
- Resolver: unbound, `examples/dns/unbound.conf`, which keeps nothing. It asks for `slow.example` at
  `examples/udp/upstream.py`, which thinks for 120 ms.{front(case)}
- Captured on the client: `tcpdump -n --time-stamp-precision=nano -w input.pcap {case.packets}`.
- `keys.log` has the TLS secrets as the client wrote them; `truth.json` what the client was told, and how long it
  waited.

{used}{versions([*programs, ("tcpdump", "--version")])}

## What to see

{case.see}
"""


def client(case: Case) -> str:
    """Name the client."""
    if not case.over:
        return "curl, with `--doh-url`, once for each name (`examples/dns/make-captures`)."
    return f"dnspython: `examples/dns/ask.py {case.over} … {shlex.join(QUESTIONS)}`."


def front(case: Case) -> str:
    """Say what stands before the resolver."""
    if case.caddy:
        return "\n- In front of it: Caddy, `examples/dns/Caddyfile`."
    if case.over == "http1-chunked":
        return "\n- In front of it: `examples/dns/chunks.py` by Python's http.server."
    return "\n- In front of it: `examples/dns/serve.py` by aioquic." if case.over == "quic" else ""
