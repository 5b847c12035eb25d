"""A capture's README: topology, how it was made, what to see."""

from __future__ import annotations

import shlex
from importlib.metadata import version

from alley import CLIENT, NAME, PORT, SERVER
from cases import CHROMIUM, Case
from lab.programs import versions


def readme(name: str, case: Case) -> str:
    """Say how the capture was made and what to see in it."""
    programs = [("sh", "-c", "echo Caddy $(caddy version)")] * case.caddy + [("tcpdump", "--version")]
    programs = [("chromium", "--version")] * (CHROMIUM in case.ask) + programs
    aioquic = "" if case.caddy and CHROMIUM in case.ask else f"- aioquic {version('aioquic')}\n"
    return f"""\
# {case.title}

Made by `examples/http3/make-captures {name}`; what the set is for is in `examples/http3/README.md`.

## Topology

    client {CLIENT} ──{case.delay_ms:g} ms── {SERVER}:{PORT} server

Two network namespaces on one machine. Every packet takes {case.delay_ms:g} ms each way
(`examples/lab/delay_line.py`).{line(case)}

## How it was made

- Client: {client(case)}
- Server: {server(case)}
- Captured on the client: `tcpdump -n --time-stamp-precision=nano -w input.pcap port {PORT}`.
- `keys.log` has the TLS secrets as the client wrote them; {truth(case)}.

{aioquic}{versions(programs)}

## What to see

{case.see}
"""


def truth(case: Case) -> str:
    """Say what else there is."""
    if case.tunnels:
        return "`tunnels.json` what the client counted"
    return "`truth.json` what the ends logged\n  (`examples/http3/truth.py`)"


def line(case: Case) -> str:
    """Say what gets lost."""
    if case.loss:
        return f" The line drops {case.loss:.0%} of the packets either way, at random (seed {case.seed})."
    if case.translated:
        return " The client's host translates its UDP port (nftables), and forgets it after a second of silence."
    return f" The line drops chosen packets: `{' '.join(case.rules)}`." if case.rules else ""


def client(case: Case) -> str:
    """Name the client and what it asks for."""
    if case.tunnels:
        return f"aioquic: `examples/http3/tunnels.py ask {NAME} authority.crt keys.log qlog`."
    if case.ask[0] == CHROMIUM:
        return f"Chromium, told to speak QUIC to `{NAME}` from its first packet on, at `https://{NAME}{case.ask[1]}`."
    return f"aioquic: `examples/http3/ask.py {NAME} authority.crt keys.log qlog {shlex.join(case.ask)}`."


def server(case: Case) -> str:
    """Name the server."""
    if case.caddy:
        return "Caddy, `examples/udp/Caddyfile`, behind it `examples/lab/backend.py`."
    if case.tunnels:
        return "aioquic: `examples/http3/tunnels.py serve …`."
    chain = ", with a certificate of 151 names (`examples/http3/chains.py`)" if case.long_chain else ""
    return f"aioquic: `examples/http3/serve.py {shlex.join(('…', *case.serve))}`{chain}."
