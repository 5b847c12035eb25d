"""A capture's README: topology, how it was made, what to see."""

from __future__ import annotations

import shlex
import sys

from cases import Case
from lab.programs import versions
from street import CLIENT, LONG_TEXT, PATIENCE_SECONDS, RESOLVER, SERVER

VERSIONS = {
    "curl": ("curl", "--version"),
    "dig": ("dig", "-v"),
    "chromium": ("chromium", "--version"),
    "python3": (sys.executable, "-c", "import aioquic; print('aioquic', aioquic.__version__)"),
}


def readme(case: Case) -> str:
    """Say how the capture was made and what to see in it."""
    programs = list(dict.fromkeys(words[0] for words in case.commands))
    commands = "\n".join(f"    {shlex.join(words)}" for words in case.commands)
    named = [VERSIONS[name] for name in programs]
    if case.by_frames:
        named.append((sys.executable, "-c", "import h2; print('h2', h2.__version__)"))
    elif case.http3:
        named.append(("sh", "-c", "echo Caddy $(caddy version)"))
    named += [
        ("dnsmasq", "--version"),
        ("tcpdump", "--version"),
    ]
    return f"""\
# {case.title}

Made by `examples/udp/make-captures`; what the set is for is in `examples/udp/README.md`.

## Topology

    client {CLIENT} ──{case.delay_ms:g} ms── {RESOLVER}:53 resolver, {SERVER} server

Two network namespaces on one machine; resolver and server are two addresses of one host. Every packet takes
{case.delay_ms:g} ms each way (`examples/lab/delay_line.py`{on_the_way(case)}).

## How it was made

Client, one command after the other:

{commands}

- Resolver: dnsmasq, which knows `shop.example`{blocked(case)} and keeps nothing.
{site(case)}
- Captured on the client: `tcpdump{" -i any" * case.everywhere} -n --time-stamp-precision=nano -w input.pcap
  {case.packets}`.

{versions(named)}

## What to see

{case.see}
"""


def on_the_way(case: Case) -> str:
    """Say what the line does besides."""
    return f"; rules: {', '.join(f'`{rule}`' for rule in case.rules)}" if case.rules else ""


def blocked(case: Case) -> str:
    """Say what else the resolver knows where UDP is blocked."""
    return (
        ", has an HTTPS record for `www.shop.example` that offers h3,"
        if any("https://www." in word for word in case.commands[0])
        else ""
    )


def site(case: Case) -> str:
    """Say what stands at the server's address."""
    if case.http3:
        dropped = "- The server drops datagrams to port 443 (nftables).\n" if case.blocked else ""
        caddy = """\
Caddy, `examples/udp/Caddyfile`; EC certificate signed by a like authority. Behind it
  `examples/lab/backend.py`; `/wait-MS/…` is answered after MS milliseconds."""
        frames = """\
`examples/udp/altsvc.py`, with the library h2; EC certificate signed by a like authority. It answers at
  once, whatever the path says."""
        return f"""\
{dropped}- Server: {frames if case.by_frames else caddy}
- `keys.log` has the TLS secrets, as the client wrote them:
  `tshark -o tls.keylog_file:keys.log -r input.pcap -Y http3`."""
    if "HTTPS" in case.commands[0]:
        return "- Its HTTPS records are `SERVICES` in `examples/udp/street.py`."
    if "dig" in case.commands[0]:
        return f"- `long.example` has twelve TXT records of {len(LONG_TEXT) + 2} bytes and more."
    return f"""\
- `slow.example` and `lost.example` it asks for at `examples/udp/upstream.py`, which thinks for 120 ms and loses
  the first query of each type.
- The client's `resolv.conf`: `timeout:{PATIENCE_SECONDS}`, seconds until it asks again.
- Server: `examples/lab/backend.py` at port 80; `/wait-MS/…` is answered after MS milliseconds."""
