"""The cases: who asks for what, and what is to be seen."""

from __future__ import annotations

from dataclasses import dataclass

from street import NAME

WWW = f"www.{NAME}"

KEY_HASH = "KEY-HASH"
"""Stands for the hash of the server's public key: each run of the lab has a key of its own."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One capture."""

    title: str
    commands: tuple[tuple[str, ...], ...]
    """One after the other, on the client."""
    packets: str
    """tcpdump's filter."""
    see: str
    """What to see, in Markdown."""
    blocked: bool = False
    """What comes to UDP port 443 is dropped."""
    http3: bool = False
    """Caddy serves the site, and the client leaves its secrets."""


def curl_http2(count: int) -> tuple[str, ...]:
    """Fetch pages over HTTP/2, on one connection."""
    urls = (f"https://{NAME}/wait-20/bytes-500?{number}" for number in range(count))
    return ("curl", "--silent", "--show-error", "--output", "page", "--http2", "--insecure", *urls)


def curl(*urls: str) -> tuple[str, ...]:
    """Fetch pages, each on a connection of its own."""
    return ("curl", "--silent", "--show-error", "--output", "page", "--http1.1", *urls)


CHROMIUM = (
    "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--no-first-run", "--disable-sync", "--disable-default-apps",
    f"--ignore-certificate-errors-spki-list={KEY_HASH}",
)  # fmt: skip

CASES = {
    "dns-before-http": Case(
        title="Names are resolved before pages are fetched",
        commands=tuple(
            curl(f"http://{name}/wait-20/bytes-500") for name in (NAME, "slow.example", "lost.example", "none.example")
        ),
        packets="port 53 or tcp port 80",
        see="""\
- Each name is asked for twice at once, for A and for AAAA, from one port: two queries on their way together.
- `shop.example`: the answers take one round trip, 10 ms, and the SYN follows them. It has no AAAA record:
  dnsmasq says NXDOMAIN.
- `slow.example`: the answers take 120 ms more. The page waits for them before its first packet.
- `lost.example`: nobody answers; one second later the same two queries come again, with their IDs and from the same
  port. The page has waited since the first.
- `none.example`: NXDOMAIN (RCODE 3), and no connection.""",
    ),
    "dns-truncated": Case(
        title="An answer too long for UDP is asked for again over TCP",
        commands=(("dig", "+noedns", "+tries=1", "long.example", "TXT"), ("dig", "+tries=1", NAME, "HTTPS")),
        packets="port 53",
        see="""\
- `long.example`: the first response has TC set (RFC 1035 section 4.1.1): truncated at 512 bytes. dig asks again over
  TCP, with another ID; query and response stand behind their lengths, and the response is whole.
- `shop.example`, HTTPS: a query with an OPT record (RFC 6891). There is none: dnsmasq says NXDOMAIN.""",
    ),
    "services": Case(
        title="HTTPS records say where a site is, and that it speaks HTTP/3",
        commands=(
            *(("dig", "+tries=1", f"{name}.{NAME}", "HTTPS") for name in ("www", "full", "alias")),
            ("dig", "+tries=1", "+tcp", f"full.{NAME}", "HTTPS"),
        ),
        packets="port 53",
        see="""\
- `www`: `1 . alpn="h3,h2" ipv4hint=10.81.0.20`: who reads it can begin with QUIC.
- `full`: all keys of RFC 9460 in one record, with another target, over UDP and over TCP.
- `alias`: priority 0, the name of another record.""",
    ),
    "http3-blocked": Case(
        title="Chromium is told of HTTP/3 by DNS, and UDP is blocked",
        commands=(
            (
                *CHROMIUM, f"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE {WWW}",
                "--user-data-dir=profile", "--dump-dom", f"https://{WWW}/wait-20/page",
            ),  # fmt: skip
        ),
        packets="port 53 or port 443",
        see="""\
- The HTTPS record of the name offers h3. Chromium sends its ClientHello in QUIC packets, which the server's firewall
  drops.
- Chromium then opens a TCP connection to the same address, and loads the page over HTTP/2.""",
        http3=True,
        blocked=True,
    ),
    "http3-offered": Case(
        title="Caddy offers HTTP/3, and curl opens a TCP connection for each page",
        commands=(curl_http2(1),) * 5,
        packets="port 53 or port 443",
        see="""\
- Each response has `alt-svc: h3=":443"; ma=2592000`.
- curl without HTTP/3 opens another TCP connection for the next page: two round trips until it can ask, instead of
  one.""",
        http3=True,
    ),
    "http3-offered-clean": Case(
        title="Caddy offers HTTP/3, and curl keeps its TCP connection",
        commands=(curl_http2(5),),
        packets="port 53 or port 443",
        see="""\
- Each response has `alt-svc: h3=":443"; ma=2592000`.
- curl goes on with the connection that it has.""",
        http3=True,
    ),
    "http3": Case(
        title="Chromium resolves a name and loads a page over HTTP/3",
        commands=(
            (
                *CHROMIUM, f"--origin-to-force-quic-on={NAME}:443",
                f"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE {NAME}",
                "--user-data-dir=profile", "--dump-dom", f"https://{NAME}/wait-20/page",
            ),  # fmt: skip
        ),
        packets="port 53 or port 443",
        see="""\
- Chromium asks for the HTTPS and the A record of the name, each from a port of its own.
- Then QUIC version 1. The ClientHello is longer than a packet: it comes in Initial packets whose CRYPTO frames are
  split and shuffled, with PING and PADDING between them. Its SNI is `shop.example`, its ALPN `h3`; anyone can
  read it, as the keys of Initial packets follow from the first Destination Connection ID (RFC 9001 section 5.2).
- The server acknowledges, then sends ServerHello (Initial), the rest of its flight (Handshake) and its first 1-RTT
  packet. The client's Finished comes in a Handshake packet, and its request in a 1-RTT packet after it.
- With the secrets: a page and four requests that it makes a browser ask, each on a stream of its own.""",
        http3=True,
    ),
}  # fmt: skip
