"""The cases: who asks for what, and what is to be seen."""

from __future__ import annotations

from dataclasses import dataclass

from street import DELAY_MS, DUAL, NAME

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
    delay_ms: float = DELAY_MS
    """One way."""
    rules: tuple[str, ...] = ()
    """What the line does to chosen packets."""
    everywhere: bool = False
    """tcpdump listens on all interfaces: such a capture says which end it was made on."""
    blocked: bool = False
    """What comes to UDP port 443 is dropped."""
    http3: bool = False
    """Caddy serves the site, and the client leaves its secrets."""
    by_frames: bool = False
    """``altsvc.py`` serves it instead."""


def curl_http2(count: int) -> tuple[str, ...]:
    """Fetch pages over HTTP/2, on one connection."""
    urls = (f"https://{NAME}/wait-20/bytes-500?{number}" for number in range(count))
    return ("curl", "--silent", "--show-error", "--output", "page", "--http2", "--insecure", *urls)


def curl(*urls: str) -> tuple[str, ...]:
    """Fetch pages, each on a connection of its own."""
    return ("curl", "--silent", "--show-error", "--output", "page", "--http1.1", *urls)


def curl_raced(*options: str) -> tuple[str, ...]:
    """Fetch a page from a server with IPv4 and IPv6 addresses."""
    return (*curl_http2(0), *options, f"https://{DUAL}/wait-20/bytes-500")


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
    "http3-race-won": Case(
        title="A client tries QUIC and TCP at once, and QUIC wins",
        commands=(("python3", "race.py", WWW, "/wait-20/bytes-5000"),),
        packets="port 53 or port 443",
        delay_ms=20,
        rules=("hold:from=right,kind=data,number=1-20,ms=300",),
        see="""\
- `examples/udp/race.py` sends a ClientHello over QUIC and a SYN at the same time. The server's TLS flight over TCP
  comes 300 ms late.
- QUIC stands first and carries the request; the client ends the TCP connection when it stands.""",
        http3=True,
    ),
    "http3-race-lost": Case(
        title="Chromium tries QUIC and TCP, and TCP wins",
        commands=(
            (
                *CHROMIUM, f"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE {WWW}",
                "--user-data-dir=profile", "--dump-dom", f"https://{WWW}/wait-20/page",
            ),  # fmt: skip
        ),
        packets="port 53 or port 443",
        rules=("hold:from=right,kind=udp,number=3-12,ms=600",),
        see="""\
- The HTTPS record of the name offers h3. Chromium sends its ClientHello in QUIC packets, and opens a TCP connection at
  the same time. The server's datagrams come 600 ms late.
- TCP stands first: the page comes over HTTP/2, although UDP is not blocked.""",
        http3=True,
    ),
    "ip-race-lost": Case(
        title="curl tries IPv6 and IPv4, and IPv6 leads nowhere",
        commands=(curl_raced(),),
        packets="port 53 or port 443",
        rules=("drop:from=left,kind=ip6,number=1-1000",),
        everywhere=True,
        see="""\
- The name has an address of IPv6 and one of IPv4. Nothing that is sent over IPv6 arrives.
- After 200 ms (RFC 8305 section 5: the Connection Attempt Delay; curl's `--happy-eyeballs-timeout-ms`) curl tries IPv4
  too, whose handshake is done first.""",
        http3=True,
    ),
    "ip-race-won": Case(
        title="curl tries IPv6 and IPv4, and IPv6 wins",
        commands=(curl_raced("--happy-eyeballs-timeout-ms", "100"),),
        packets="port 53 or port 443",
        delay_ms=30,
        rules=("hold:from=right,kind=ip6,number=1-1000,ms=60",),
        everywhere=True,
        see="""\
- IPv6 takes 120 ms for a round trip, IPv4 60 ms. After 100 ms, curl tries IPv4 too.
- The SYN-ACK comes over IPv6 first. curl ends the other attempt.""",
        http3=True,
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
    "http3-altsvc": Case(
        title="A server offers HTTP/3 with ALTSVC frames, and curl opens a TCP connection for each page",
        commands=(curl_http2(2),) * 5,
        packets="port 53 or port 443",
        see="""\
- No response has the header field Alt-Svc. Each connection begins with an ALTSVC frame on stream 0, which names the
  origin `https://shop.example`; the second response of each has one on its own stream before it, without an origin.
- The first connection told the client of HTTP/3. Each later one costs the round trips that QUIC would have saved.""",
        http3=True,
        by_frames=True,
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
