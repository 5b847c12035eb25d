"""What the READMEs of the captures say."""

from __future__ import annotations

import re
import subprocess

from lab.programs import versions
from rack import BACKEND, CLIENT, FRONT, REAR

_EVENTS = """\
- The first ten handshakes overlap: one process computes them in turns. Who has its handshake behind it waits for
  those of the others: the first ten requests are answered hardly before the last handshake is over."""
_CLIENT = """\
- The first ten handshakes overlap: one process computes them in turns. Behind each, it is the client that is silent: it
  has its own part of ten handshakes to compute."""
_POOLED = """\
- Forty connections in front, and behind far fewer, which are kept: HTTP is read, and any of them will do."""
_COPIED = """\
- Forty connections in front, forty behind: HTTP is not read, and what came in on a connection goes out on one."""
_THREADS = """\
- A thread for each connection: ten handshakes are computed side by side, so that each takes several times as long as
  one alone."""
_LINKS = """\
- Each request has a target of its own, and is linked with the one behind by it. The split of its wait says how much of
  it was the backend's: little."""
SEE = {
    "nginx": (_EVENTS, _POOLED, _LINKS),
    "HAProxy": (_EVENTS, _POOLED, _LINKS),
    "hitch": (_CLIENT, _COPIED, _LINKS),
    "stunnel": (_THREADS, _COPIED, _LINKS),
    "Apache": (_THREADS, _POOLED, _LINKS),
}
"""What to see in the capture of each."""
VERSION_COMMANDS = {
    "nginx": ("nginx", "-v"), "HAProxy": ("haproxy", "-v"), "hitch": ("hitch", "--version"),
    "stunnel": ("stunnel", "-version"), "Apache": ("apache2", "-v"),
}  # fmt: skip


def named(name: str) -> str:
    """Return a terminator's name with its version, as the program has it."""
    run = subprocess.run(VERSION_COMMANDS[name], capture_output=True, text=True, check=True)
    found = re.search(rf"{name}(?: version |/| )(\d+\.\d[\d.]*)", run.stdout + run.stderr, re.IGNORECASE)
    return f"{name} {found[1]}" if found else name


def readme(name: str, users: int) -> str:
    """Say how the capture was made and what to see in it."""
    see = "\n".join(SEE[name])
    return f"""\
# {users} users come to {name} at once

Made by `examples/terminators/make-captures`; lesson and questions in `examples/terminators/README.md`.

## Topology

    client {CLIENT} ── {FRONT}:443 terminator {REAR} ── {BACKEND}:8080 backend

Three network namespaces on one machine, joined by veth cables. {name} has one core.

## How it was made

- Client: httperf, {users} users who come four times as fast as {name} can bear. Each makes four requests, one after the
  other, each on a connection of its own: one full handshake (TLS 1.2, RSA-2048), three resumed.
- Backend: nginx, 1,024 bytes for everybody (`examples/terminators/conf`).
- Captured on the terminator, both of its sides: `tcpdump -i any -n --time-stamp-precision=nano -w input.pcap
  tcp port 443 or tcp port 8080`. `keys.log` is httperf's (`examples/lab/secrets.c`).

- {named(name)}
{versions([("tcpdump", "--version"), ("openssl", "version")])}

## What to see

{see}
"""
