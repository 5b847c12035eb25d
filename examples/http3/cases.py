"""The cases: what the line does, who serves, who asks, and what is to be seen."""

from __future__ import annotations

from dataclasses import dataclass

CHROMIUM = "chromium"


@dataclass(frozen=True, kw_only=True)
class Case:
    """One capture."""

    title: str
    ask: tuple[str, ...]
    """Options and paths of ``ask.py``; ``chromium`` and a path: that browser."""
    see: str
    serve: tuple[str, ...] = ()
    """Options of ``serve.py``."""
    caddy: bool = False
    """Caddy serves, and not aioquic."""
    long_chain: bool = False
    """The server's certificate has many names, and its authority's authority comes with it."""
    delay_ms: float = 10
    """One way."""
    loss: float = 0
    rules: tuple[str, ...] = ()
    seed: int = 1


CASES = {
    "one": Case(title="One request", ask=("/wait-20/bytes-3000",), see=""),
    "parallel": Case(
        title="Twenty requests at once", ask=tuple(f"/wait-{5 * n % 35}/bytes-{1000 + 100 * n}" for n in range(20)), see=""
    ),
    "download": Case(title="A download of 200,000 bytes", ask=("/bytes-200000",), see=""),
    "lossy": Case(title="Twenty downloads while 3 % of the packets get lost", loss=0.03, seed=7,
        ask=tuple(f"/bytes-{4000 + 400 * n}" for n in range(20)), see=""),
    "retry": Case(title="A server that answers each first packet with a Retry", serve=("--retry",),
        ask=("--again", "full", "/bytes-3000"), see=""),
    "early": Case(title="A resumed session with early data", ask=("--again", "early", "/wait-20/bytes-3000"), see=""),
    "early-refused": Case(title="Early data that the server refuses", serve=("--forget",),
        ask=("--again", "early", "/wait-20/bytes-3000"), see=""),
    "resumed": Case(title="A resumed session without early data", ask=("--again", "ticket", "/wait-20/bytes-3000"), see=""),
    "version-2": Case(title="QUIC version 2", ask=("--version", "2", "/bytes-3000"), see=""),
    "chacha20": Case(title="ChaCha20", ask=("--cipher", "CHACHA20_POLY1305_SHA256", "/bytes-3000"), see=""),
    "key-update": Case(title="New keys between requests", ask=("--one-by-one", "--update", *[f"/bytes-{n}000" for n in range(1, 5)]), see=""),
    "rebind": Case(title="The client's port changes between requests", ask=("--one-by-one", "--rebind", *[f"/bytes-{n}000" for n in range(1, 4)]), see=""),
    "first-lost": Case(title="The first packet is lost", rules=("drop:from=left,kind=udp,number=1",), ask=("/bytes-3000",), see=""),
    "flight-lost": Case(title="The server's first flight is lost", rules=("drop:from=right,kind=udp,number=1-2",), ask=("/bytes-3000",), see=""),
    "tail-lost": Case(title="The last packet of an answer is lost", rules=("drop:from=right,kind=udp,number=6",), ask=("/wait-20/bytes-3000",), see=""),
    "long-chain": Case(title="A certificate chain too long for three times the first packet", long_chain=True, delay_ms=40, ask=("/bytes-3000",), see=""),
    "caddy": Case(title="aioquic asks Caddy", caddy=True, ask=tuple(f"/wait-20/bytes-{1000 * n}" for n in range(1, 6)), see=""),
    "chromium": Case(title="Chromium loads a page from Caddy", caddy=True, ask=(CHROMIUM, "/wait-20/page"), see=""),
}
