"""The cases, and what each one's handshakes are."""

from __future__ import annotations

from dataclasses import dataclass

from path import NAME


@dataclass(frozen=True, kw_only=True)
class Turns:
    """How often each end of a handshake had to answer the other, up to the instant the client may send a request."""

    version: str
    kind: str
    round_trips: int
    """Until the client holds what it needs to send its first request, ``ready_at`` in docs/phases.md."""
    by_server: int
    """Flights of the server, each an answer to a flight of the client."""
    by_client: int
    """Flights of the client that answer a flight of the server; its first is none."""


FULL_13 = Turns(version="TLSv1.3", kind="full", round_trips=1, by_server=1, by_client=1)
RETRIED_13 = Turns(version="TLSv1.3", kind="full", round_trips=2, by_server=2, by_client=2)
RESUMED_13 = Turns(version="TLSv1.3", kind="psk", round_trips=1, by_server=1, by_client=1)
FULL_12 = Turns(version="TLSv1.2", kind="full", round_trips=2, by_server=2, by_client=1)
RESUMED_12 = Turns(version="TLSv1.2", kind="session-id", round_trips=1, by_server=1, by_client=1)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One run, captured at three places."""

    title: str
    handshakes: tuple[Turns, ...]
    see: str
    tls: str = "1.3"
    key_bits: int = 2048
    directives: tuple[str, ...] = ()
    client_keys: bool = False
    client_cpu_percent: int | None = None
    server_cpu_percent: int | None = None

    @property
    def client(self) -> tuple[str, ...]:
        """One connection for each handshake; curl offers the second the session of the first."""
        words: list[str] = ["curl"]
        for left in range(len(self.handshakes), 0, -1):
            words += ["--silent", "--show-error", "--cacert", "keys/authority.crt"]
            words += [f"--tlsv{self.tls}", "--tls-max", self.tls, "--output", "page"]
            words += ["--cert", "keys/client.crt", "--key", "keys/client.key"] * self.client_keys
            words += ["--header", "Connection: close"] * (left > 1)
            words += [f"https://{NAME}/wait-2/bytes-100"] + ["--next"] * (left > 1)
        return tuple(words)


CASES = {
    "tls13": Case(
        title="TLS 1.3, full and resumed",
        handshakes=(FULL_13, RESUMED_13),
        see="- One round trip each. The resumed one spares the server its signature.",
    ),
    "tls12": Case(
        title="TLS 1.2, full and resumed",
        tls="1.2",
        handshakes=(FULL_12, RESUMED_12),
        see="- Two round trips, then one: curl offers no tickets in TLS 1.2, so the server resumes by session id.",
    ),
    "hello-retry": Case(
        title="A server that accepts none of the offered key shares",
        handshakes=(RETRIED_13,),
        directives=("ssl_ecdh_curve secp384r1",),
        see="- HelloRetryRequest costs a second round trip.",
    ),
    "slow-client": Case(
        title="A client that is short of CPU",
        handshakes=(FULL_13,),
        key_bits=4096,
        client_keys=True,
        client_cpu_percent=5,
        see="- The client computes longest: it signs with an RSA key of 4096 bits.",
    ),
    "slow-server": Case(
        title="A server that is short of CPU",
        handshakes=(FULL_13,),
        key_bits=4096,
        server_cpu_percent=5,
        see="- The server computes longest: it signs with an RSA key of 4096 bits.",
    ),
}
