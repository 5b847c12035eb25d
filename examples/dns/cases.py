"""The cases: how the client asks, and what is to be seen."""

from __future__ import annotations

from dataclasses import dataclass

from lane import NAME

QUESTIONS = (NAME, "A", NAME, "AAAA", "slow.example", "A", "none.example", "A")


@dataclass(frozen=True, kw_only=True)
class Case:
    """One capture."""

    title: str
    see: str
    """What to see, in Markdown."""
    packets: str
    """tcpdump's filter."""
    over: str = ""
    """How ``ask.py`` asks :data:`QUESTIONS`; empty: curl looks up the names of two pages, and fetches them."""
    caddy: bool = False
    """Caddy is in front of the resolver."""


SAME = """\
- Four questions on one connection, one after the other: two answers of the resolver's own after one round trip (10 ms),
  `slow.example` after 120 ms more, NXDOMAIN (3) for `none.example`."""

CASES = {
    "tls": Case(
        title="DNS over TLS",
        over="tls",
        packets="port 853",
        see=f"""\
{SAME}
- TCP and TLS 1.3 come first. With the keys, each message stands behind its length, as over TCP (RFC 7858).""",
    ),
    "https": Case(
        title="DNS over HTTP/2: POST",
        over="https",
        packets="port 443",
        see=f"""\
{SAME}
- Each question is a POST to `/dns-query` whose content is the message (RFC 8484): a request and a
  response of HTTP/2 with status 200, also where the name does not exist.""",
    ),
    "https-get": Case(
        title="DNS over HTTP/2: GET",
        over="https-get",
        packets="port 443",
        see=f"""\
{SAME}
- Each question is a GET, with the message in `?dns=` as base64url.""",
    ),
    "http1": Case(
        title="DNS over HTTP/1.1",
        over="http1",
        caddy=True,
        packets="port 443",
        see=f"""\
{SAME}
- The resolver speaks HTTP/2 alone; Caddy in front of it also takes HTTP/1.1.""",
    ),
    "http1-chunked": Case(
        title="DNS over HTTP/1.1 in chunks",
        over="http1-chunked",
        packets="port 443",
        see=f"""\
{SAME}
- Each answer comes in three chunks with extensions, each in a TLS record of its own, and a trailer. A POST whose
  content comes in chunks, and a GET take turns.""",
    ),
    "http3": Case(
        title="DNS over HTTP/3",
        over="h3",
        caddy=True,
        packets="port 443",
        see=f"""\
{SAME}
- Each question is a POST on a stream of QUIC. Caddy takes HTTP/3 and asks the resolver over HTTP/2.""",
    ),
    "quic": Case(
        title="DNS over QUIC",
        over="quic",
        packets="port 853",
        see=f"""\
{SAME}
- Each question has a stream of its own, ID 0, and stands there behind its length (RFC 9250). ALPN is `doq`.""",
    ),
    "before-http": Case(
        title="Names are resolved over HTTPS before pages are fetched",
        packets="port 443 or port 80",
        see="""\
- curl asks for A and AAAA of each name by a POST each, on connections of its own to the resolver. Then it fetches the
  page.
- `slow.example`: the answers take 120 ms more. The page waits for them before its SYN.""",
    ),
}
