"""A capture's README: topology, how it was made, what to see."""

from __future__ import annotations

import json

from cases import Case
from lab.programs import versions
from path import CLIENT, NEAR_CLIENT, NEAR_SERVER, SERVER, SERVER_BEHIND_ROUTER


def readme(case: Case, place: str) -> str:
    """Say how the capture was made and what to see in it."""
    snapshot = f"-s {case.snapshot} " if case.snapshot else ""
    return f"""\
# {case.title}, seen at the {place}

Made by `examples/stalls/make-captures`; what the set is for is in `examples/stalls/README.md`.

## Topology

    {topology(case)}

Network namespaces on one machine; `examples/lab/delay_line.py` makes the distance, a round trip of {case.rtt_ms:g} ms.

## How it was made

{programs(case)}\
{settings(case)}\
- Captured on the {place}: `tcpdump -n {snapshot}--time-stamp-precision=nano -w input.pcap 'tcp or icmp'`; at the other
  end at the same time.
- `truth.json`: what held the connection up and when, from the log of the line and from what the kernels knew.

{versions([("tcpdump", "--version"), *[("nginx", "-v"), ("openssl", "version")] * bool(case.shopper)])}

## What to see

{case.see}
"""


def topology(case: Case) -> str:
    """Draw it."""
    if case.routed:
        return (
            f"client {CLIENT} ──line── {NEAR_CLIENT} router {NEAR_SERVER} ── {SERVER_BEHIND_ROUTER}:{case.port} server"
        )
    return f"client {CLIENT} ──line── {SERVER}:{case.port} server"


def programs(case: Case) -> str:
    """Say what ran at either end."""
    if case.shopper:
        return f"""\
    python3 shopper.py {SERVER} {" ".join(case.shopper)} client.json

- Client: `examples/stalls/shopper.py`, once it has fetched something and so has a session.
- Server: nginx, `examples/lab/nginx.conf`, which answers by itself.
"""
    return f"""\
    client: {json.dumps(case.script("client"))}
    server: {json.dumps(case.script("server"))}

- Both ends: `examples/stalls/talk.py`, which says what the steps mean.
"""


def settings(case: Case) -> str:
    """List what differs from an ordinary path and kernel."""
    lines = [f"The line: `{rule}` (`examples/lab/rules.py`)." for rule in case.rules]
    lines += [f"Kernels: `{setting}`." for setting in case.kernel]
    lines += [f"Server's route: `initcwnd {case.initial_window}`."] if case.initial_window else []
    lines += ["The server's cable takes super-segments, which the router's kernel cuts."] if case.offload else []
    lines += [f"The router passes on at most {case.mtu:,} bytes towards the server."] if case.mtu else []
    return "".join(f"- {line}\n" for line in lines)
