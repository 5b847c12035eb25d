"""The captures of the lesson: what limits each transfer, and what to see; and their READMEs."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from lab.network import SLICE_SECONDS
from lab.programs import versions
from line import CLIENT, CONGESTION_CONTROL, NAME, ROUTER_NEAR_CLIENT, ROUTER_NEAR_SERVER, SERVER

SNAPSHOT = 128
"""Bytes of each packet that are kept: its headers, and a few of its content."""
ROOMY = "4096 4194304 16777216"
"""A receive buffer in which the whole file has room from the start."""
BOTTLENECK = "rate 20mbit burst 16kb limit 32kb"
DEEP_BOTTLENECK = "rate 20mbit burst 16kb limit 4mb"


@dataclass(frozen=True, kw_only=True)
class Case:
    """One transfer, and what is in its way."""

    title: str
    see: str
    limit: tuple[str, ...]
    """Kinds of stall that explain more of the transfer than all others (docs/stalls.md); none: nobody pauses."""
    way: str
    """What is in its way, as the README has it."""
    size: int = 1 << 20
    delay_ms: float = 10
    upload: bool = False
    receive_memory: str | None = ROOMY
    bottleneck: str | None = None
    rate_limit: str | None = None
    """What curl limits itself to, bytes a second."""
    server_socket: str = ""
    """Words of nginx's ``listen``."""
    server_cpu_percent: int | None = None
    place: str = "server"
    """Where the capture is taken."""

    @property
    def client(self) -> tuple[str, ...]:
        """What the client runs."""
        words = ["curl", "--disable", "--silent", "--show-error", "--fail", "--cacert", "authority.crt"]
        words += ["--limit-rate", self.rate_limit] if self.rate_limit else []
        if self.upload:
            return (*words, "--upload-file", "zeros", f"https://{NAME}/store/zeros")
        return (*words, "--output", "/dev/null", f"https://{NAME}/zeros")


CASES = {
    "congestion-window": Case(
        title="A download limited by the sender's congestion window",
        size=1 << 21,
        limit=("slow-start",),
        way="nothing but 20 ms of distance: the client's kernel has room for the whole file (`tcp_rmem`)",
        see="""\
- The server sends ten segments, waits for their acknowledgement, sends twenty, waits, sends forty: slow start.
- Nothing is lost, the window that the client announces is never used up, and the server computes for a few
  milliseconds in all. All the rest is distance.""",
    ),
    "receive-window": Case(
        title="A download limited by the client's receive window",
        limit=("window-limited",),
        way="20 ms of distance, and a client whose kernel keeps 64 KiB for a connection at most (`tcp_rmem`)",
        receive_memory="4096 65536 65536",
        place="client",
        see="""\
- One window, a pause of a round trip, one window, for the whole transfer. The window is as open as it ever was: the
  client reads what comes, it has no room for more.
- Window ÷ round trip is all there is, whatever the cipher, the server and the line could do.""",
    ),
    "receive-window-upload": Case(
        title="An upload limited by the server's receive window",
        limit=("window-limited",),
        way="20 ms of distance, and a server with `rcvbuf=32k` on its `listen`",
        upload=True,
        server_socket="rcvbuf=32k",
        see="""\
- The same picture with the sides exchanged: it is the client that waits for room, in the phase `request`.
- One word of nginx's configuration does it: a fixed buffer also ends the kernel's own tuning of it.""",
    ),
    "slow-reader": Case(
        title="A download by a client that does not read",
        limit=("receiver", "zero-window"),
        way="20 ms of distance, and a client that reads 512 KiB a second (`--limit-rate`)",
        receive_memory=None,
        rate_limit="512k",
        see="""\
- The window shrinks, closes, opens again: the client's kernel has what its program has not read.
- Seen from the server this looks like a slow line, until one looks at the window.""",
    ),
    "sender-cpu": Case(
        title="A download limited by the server's CPU",
        limit=("sender",),
        way="2 ms of distance, and a server that gets 2 % of a CPU",
        delay_ms=1,
        server_cpu_percent=2,
        see="""\
- Everything is acknowledged, the window is open, and the server sends nothing: then a few records at once, then
  nothing again.
- The pauses are ten round trips long and more: no acknowledgement ends them.""",
    ),
    "congestion": Case(
        title="A download limited by loss at a bottleneck",
        size=1 << 21,
        limit=("fast-retransmit",),
        way="20 ms of distance, and a router that lets 20 Mbit/s through and has room for 32 kB",
        bottleneck=BOTTLENECK,
        see="""\
- The server sends faster than the router passes on; the router's queue is full, and segments are lost. The
  acknowledgements say which, and they are sent again.
- The capture is taken in front of the router: every lost segment is in it, and so is its copy.""",
    ),
    "line-rate": Case(
        title="A download limited by a line with a deep queue",
        limit=(),
        way="20 ms of distance, and a router that lets 20 Mbit/s through and has room for 4 MB",
        bottleneck=DEEP_BOTTLENECK,
        place="client",
        see="""\
- Beyond the first round trips nobody pauses, and the bytes come evenly: 20 Mbit/s. No stall is what a line looks like
  that is simply full.
- Nothing is lost: the queue has room for all of it. The server was done long before the client had the last byte.""",
    ),
}
QUICK = ("receive-window", "congestion")


def readme(case: Case) -> str:
    """Say how the capture was made and what to see in it."""
    limits = (
        f"{SLICE_SECONDS * 1e3:g} ms of SIGCONT, {slept_ms(case):g} ms of SIGSTOP" if case.server_cpu_percent else ""
    )
    return f"""\
# {case.title}

Made by `examples/large-transfers/make-captures`; lesson and questions in `examples/large-transfers/README.md`.

## Topology

    client {CLIENT} ──{case.delay_ms:g} ms── {ROUTER_NEAR_CLIENT} router {ROUTER_NEAR_SERVER} ── {SERVER}:443 server

Three network namespaces on one machine. Between client and router every packet takes {case.delay_ms:g} ms each way
(`examples/lab/delay_line.py`); router and server are joined by a veth cable.

## How it was made

Client, for a file of {case.size:,} zeros:

    {shlex.join(case.client)}

- In its way: {case.way}{f" ({limits})" if limits else ""}.
- Server: nginx, `examples/large-transfers/nginx.conf`, TLS 1.3; both ends use {CONGESTION_CONTROL}.
- Captured on the {case.place}, headers only: `tcpdump -i to-router -n --time-stamp-precision=nano -s {SNAPSHOT}
  -w input.pcap 'tcp port 443'`.

{versions([("curl", "--version"), ("nginx", "-v"), ("tcpdump", "--version"), ("openssl", "version")])}

## What to see

{case.see}
"""


def slept_ms(case: Case) -> float:
    """How long the server sleeps between two slices."""
    return SLICE_SECONDS * 1e3 * (100 / (case.server_cpu_percent or 100) - 1)
