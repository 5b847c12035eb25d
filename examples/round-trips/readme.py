"""A capture's README: topology, how it was made, what to see."""

from __future__ import annotations

import shlex

from cases import Case
from lab.network import SLICE_SECONDS
from lab.programs import versions
from path import CLIENT, CLIENT_DELAY_MS, MIDDLE_NEAR_CLIENT, MIDDLE_NEAR_SERVER, RTTS_NS, SERVER, SERVER_DELAY_MS

INTERFACES = {"client": "its only cable", "middle": "the cable to the client", "server": "its only cable"}


def readme(case: Case, place: str) -> str:
    """Say how the capture was made and what to see in it."""
    added = "".join(f", with `{directive}`" for directive in case.directives)
    added += ", which asks for a client certificate" * case.client_keys
    to_client, to_server = (rtt // 1_000_000 for rtt in RTTS_NS[place])
    return f"""\
# {case.title}, seen at the {place}

Made by `examples/round-trips/make-captures`; what the set is for is in `examples/round-trips/README.md`.

## Topology

    client {CLIENT} ──{CLIENT_DELAY_MS} ms── {MIDDLE_NEAR_CLIENT} middle {MIDDLE_NEAR_SERVER} ──{SERVER_DELAY_MS} ms── \
{SERVER}:443 server

Three network namespaces on one machine; the middle forwards packets (`examples/lab/delay_line.py` makes the distance).

## How it was made

    {shlex.join(case.client)}
{slowness(case)}
- Server: nginx, `examples/lab/nginx.conf`{added}; RSA {case.key_bits} certificate signed by a like authority.
- Captured on the {place}, on {INTERFACES[place]}: `tcpdump -n --time-stamp-precision=nano -w input.pcap tcp port 443`;
  at the two other places at the same time.
- `truth.json`: the round trips as the cables were set, and the time either end took, read at that end.

{versions([("curl", "--version"), ("nginx", "-v"), ("tcpdump", "--version"), ("openssl", "version")])}

## What to see

{case.see}
- From here it is {to_client} ms to the client and back, and {to_server} ms to the server and back.
"""


def slowness(case: Case) -> str:
    """Say who was slowed down, if anyone was."""
    for who, percent in (("client", case.client_cpu_percent), ("server", case.server_cpu_percent)):
        if percent is not None:
            run_ms = SLICE_SECONDS * 1e3
            return f"""
The {who} was let run for {percent} % of the time: SIGCONT for {run_ms:g} ms, then SIGSTOP for
{run_ms * (100 / percent - 1):g} ms. Its kernel ran freely.
"""
    return ""
