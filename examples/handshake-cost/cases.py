"""The cases over a wire: who talks, how, and what to see; and their READMEs."""

from __future__ import annotations

from dataclasses import dataclass

from cable import CLIENT, SERVER
from grid import Cell
from lab.programs import versions

CONNECTIONS = 12
"""Of each case, after the first."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One capture."""

    title: str
    see: str
    program: str = "cost"
    """``cost``, ``cost-go``, or ``nginx`` for nginx and curl."""
    version: str = "1.3"
    key: str = "RSA-2048"
    how: str = "full"
    group: str = "X25519"

    @property
    def cell(self) -> Cell:
        """The same in one process."""
        return Cell(version=self.version, cipher="AES128-GCM", key=self.key, how=self.how, bytes=1)


FULL_FIRST = "- The first connection has a full handshake; the other twelve resume, each the session of the one before."

CASES = {
    "tls12-full": Case(
        title="TLS 1.2, full handshakes",
        version="1.2",
        see="""\
- Two round trips each. The server answers twice: with its certificate and a signature, and with a ticket and its
  Finished.""",
    ),
    "tls12-session-id": Case(
        title="TLS 1.2, resumed by session id",
        version="1.2",
        how="session-id",
        see=f"{FULL_FIRST}\n- No certificate, no signature, no key exchange: both ends only hash.",
    ),
    "tls12-ticket": Case(
        title="TLS 1.2, resumed with tickets",
        version="1.2",
        how="ticket",
        see=f"{FULL_FIRST}\n- As with session ids, but the server opens the ticket instead of finding the session.",
    ),
    "tls13-full": Case(
        title="TLS 1.3, full handshakes",
        see="- One round trip each. What an end computes in it is what TLS 1.2 computes in two.",
    ),
    "tls13-psk": Case(
        title="TLS 1.3, resumed",
        how="psk",
        see=f"{FULL_FIRST}\n- No certificate and no signature, but a key exchange: both hellos have a key share.",
    ),
    "tls13-0rtt": Case(
        title="TLS 1.3, resumed, with early data",
        how="0rtt",
        see=f"{FULL_FIRST}\n- The client's byte comes with its ClientHello. Nobody computes less for it.",
    ),
    "tls13-full-rsa4096": Case(
        title="TLS 1.3, full handshakes with an RSA key of 4096 bits",
        key="RSA-4096",
        see="- The server's answer takes several times as long as with 2048 bits. The client's hardly changes.",
    ),
    "tls13-full-ecdsa": Case(
        title="TLS 1.3, full handshakes with an ECDSA key",
        key="ECDSA P-256",
        see="- Now the client computes longer than the server: to sign is cheaper than to verify.",
    ),
    "go-x25519": Case(
        title="Go, TLS 1.3, X25519",
        program="cost-go",
        see="- For comparison with `go-x25519mlkem768`: same programs, same key.",
    ),
    "go-x25519mlkem768": Case(
        title="Go, TLS 1.3, a post-quantum group",
        program="cost-go",
        group="X25519MLKEM768",
        see="""\
- `named_group` is X25519MLKEM768. The client's key share has 1,216 bytes instead of 32: its ClientHello nearly
  fills a segment; the server's share has 1,120.
- Both ends compute a little longer than in `go-x25519`.""",
    ),
    "nginx-curl": Case(
        title="nginx and curl, TLS 1.3, full and resumed in turn",
        program="nginx",
        how="psk",
        see="""\
- Eight runs of curl, two connections each: the first full, the second resumed.
- nginx takes longer for its answer than the lesson's own server: between two runs a program was started, which leaves
  nothing of nginx in the processor's caches. curl has only just been started, and checks the certificate.
- The RSTs are harmless: curl's close_notify reaches a server that has already gone.""",
    ),
}

ON_THE_WIRE = [case.cell for case in CASES.values() if case.program == "cost"]


def command(case: Case) -> str:
    """Say what ran."""
    if case.program == "nginx":
        return (
            "    curl --cacert keys/authority.crt --header 'Connection: close' https://shop.example/ \\\n"
            "        --next --cacert keys/authority.crt https://shop.example/\n\n"
            "- eight times. Server: nginx, `examples/lab/nginx.conf`, with `return 200 .`"
        )
    count = CONNECTIONS + 1
    if case.program == "cost-go":
        words = f"{case.group} keys {case.how} 1 {count} {SERVER}:443"
        return f"    cost-go server {words} &\n    cost-go client {words}\n\n- `examples/handshake-cost/cost.go`"
    words = f"{case.version} {case.cell.suite} keys {case.how} 1 {count} {SERVER} 443"
    return (
        f"    cost server {words} &\n    cost client {words}\n\n"
        "- `examples/handshake-cost/cost.c`, which counts its own CPU in these very handshakes"
    )


def readme(case: Case) -> str:
    """Say how the capture was made and what to see in it."""
    programs = {
        "cost": [("openssl", "version")],
        "cost-go": [("go", "version")],
        "nginx": [("nginx", "-v"), ("curl", "--version"), ("openssl", "version")],
    }[case.program]
    return f"""\
# {case.title}

Made by `examples/handshake-cost/make-captures`; lesson and questions in `examples/handshake-cost/README.md`.

## Topology

    client {CLIENT} ──veth── {SERVER}:443 server

Two network namespaces on one machine, joined by a veth cable.

## How it was made

{command(case)}; {case.key} certificate, which {"curl checks" if case.program == "nginx" else "nobody checks"}.
- One byte goes each way. One connection after the other.
- Captured on the server: `tcpdump -n --time-stamp-precision=nano -w input.pcap tcp port 443`.

{versions([*programs, ("tcpdump", "--version")])}

## What to see

{case.see}
"""
