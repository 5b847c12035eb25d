"""Hypothesis strategies: conversations that real hosts could have, and ways to cut them into segments.

Each conversation carries what was said, so that a law can also ask whether that is what was read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from tests.laws.hello import TLS12_CIPHERS, TLS13_CIPHERS, Speaker, Tls, application
from tests.laws.talk import Cut, Finish, Order, Pause, Reset, Say, Step, Talk

if TYPE_CHECKING:
    from tests.laws.talk import Packet

PAUSES = st.integers(min_value=0, max_value=3_000_000_000).map(lambda ns: ns // 1_000 * 1_000)
NAMES = st.from_regex(r"[a-z]{1,8}(-[a-z0-9]{1,5})?\.example", fullmatch=True)


@dataclass(kw_only=True)
class Conversation:
    """A script, and the facts that a reader must find in it."""

    talk: Talk
    tls: Tls | None = None
    exchanges: list[dict[str, object]] = field(default_factory=list)
    """Method, target, host and status of each HTTP/1 exchange, in order."""


@st.composite
def endings(draw: st.DrawFn) -> list[Step]:
    """How a connection ends: FIN of both, of one, RST, or not within the capture."""
    first: Speaker = draw(st.sampled_from(("client", "server")))
    other: Speaker = "server" if first == "client" else "client"
    choices: list[list[Step]] = [
        [Finish(first), Finish(other)],
        [Finish(first)],
        [Reset(first)],
        [Finish(first), Reset(other)],
        [],
    ]
    return [Pause(draw(PAUSES)), *draw(st.sampled_from(choices))]


@st.composite
def http_messages(draw: st.DrawFn, number: int) -> tuple[bytes, bytes, dict[str, object]]:
    """A request, its response, and what is true of them."""
    method = draw(st.sampled_from(("GET", "HEAD", "POST")))
    status = draw(st.sampled_from((200, 204, 304, 404, 500)))
    host, target = draw(NAMES), f"/{number}/" + draw(st.text("abcxyz0?=&%._-", max_size=12))
    head = f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n"
    body = b""
    if method == "POST":
        body = b"q" * draw(st.integers(min_value=0, max_value=4_000))
        head += f"Content-Length: {len(body)}\r\n"
    request = head.encode() + b"\r\n" + body
    answer = f"HTTP/1.1 {status} Whatever\r\nServer: talk\r\n"
    length = draw(st.integers(min_value=0, max_value=9_000))
    content = b"HTTP/1.1 200 OK\r\n\r\n" * (length // 19)  # a body that looks like a head is still a body
    if status in (204, 304):
        return request, answer.encode() + b"\r\n", _facts(method, target, host, status)
    if draw(st.booleans()):
        answer += "Transfer-Encoding: chunked\r\n\r\n"
        chunked = f"{len(content):x}\r\n".encode() + content + b"\r\n0\r\n\r\n" if content else b"0\r\n\r\n"
        response = answer.encode() + (b"" if method == "HEAD" else chunked)
    else:
        answer += f"Content-Length: {len(content)}\r\n\r\n"
        response = answer.encode() + (b"" if method == "HEAD" else content)
    return request, response, _facts(method, target, host, status)


def _facts(method: str, target: str, host: str, status: int) -> dict[str, object]:
    return {"method": method, "target": target, "host": host, "status": status}


@st.composite
def http_conversations(draw: st.DrawFn) -> Conversation:
    """HTTP/1.1 on one connection: one exchange after the other, or all requests before the first response."""
    messages = [draw(http_messages(number)) for number in range(draw(st.integers(min_value=1, max_value=4)))]
    steps: list[Step] = []
    if draw(st.booleans()):
        for request, response, _ in messages:
            steps += [Say("client", request), Pause(draw(PAUSES)), Say("server", response), Pause(draw(PAUSES))]
    else:
        steps += [Say("client", request) for request, _, _ in messages]
        steps.append(Pause(draw(PAUSES)))
        steps += [Say("server", response) for _, response, _ in messages]
    steps += draw(endings())
    talk = draw(talks(port=80))
    talk.steps = steps
    return Conversation(talk=talk, exchanges=[facts for _, _, facts in messages])


@st.composite
def handshakes(draw: st.DrawFn) -> Tls:
    """A handshake of TLS 1.2 or 1.3 of any kind."""
    name, seed = draw(st.none() | NAMES), draw(st.integers(min_value=0, max_value=99))
    size = draw(st.integers(min_value=700, max_value=5_000))
    if draw(st.booleans()):
        retry = draw(st.booleans())
        return Tls(
            version="TLSv1.3",
            kind=draw(st.sampled_from(("full", "psk") if retry else ("full", "psk", "psk-0rtt"))),
            sni=name,
            cipher=draw(st.sampled_from(TLS13_CIPHERS)),
            retry=retry,
            tickets=draw(st.integers(min_value=0, max_value=2)),
            certificate_bytes=size,
            seed=seed,
        )
    return Tls(
        version="TLSv1.2",
        kind=draw(st.sampled_from(("full", "session-id", "ticket"))),
        sni=name,
        alpn=draw(st.sampled_from((None, "h2", "http/1.1"))),
        cipher=draw(st.sampled_from(TLS12_CIPHERS)),
        certificate_bytes=size,
        seed=seed,
    )


@st.composite
def tls_conversations(draw: st.DrawFn) -> Conversation:
    """A TLS handshake and some requests under it."""
    tls = draw(handshakes())
    steps: list[Step] = []
    for who, data in tls.messages():
        steps += [Say(who, data), Pause(draw(PAUSES))]
    for number in range(draw(st.integers(min_value=0, max_value=3))):
        sizes = draw(st.tuples(st.integers(300, 5_000), st.integers(300, 20_000)))
        steps += [Say("client", application(sizes[0], ("request", number))), Pause(draw(PAUSES))]
        steps += [Say("server", application(sizes[1], ("response", number))), Pause(draw(PAUSES))]
    steps += draw(endings())
    talk = draw(talks(port=443))
    talk.steps = steps
    return Conversation(talk=talk, tls=tls)


@st.composite
def opaque_conversations(draw: st.DrawFn) -> Conversation:
    """A protocol nobody knows, possibly without its beginning."""
    talk = draw(talks(port=9_999))
    talk.sees_open = draw(st.booleans())
    speakers: tuple[Speaker, Speaker] = ("client", "server")
    message = st.tuples(st.sampled_from(speakers), st.binary(min_size=1, max_size=300))
    steps: list[Step] = []
    for who, data in draw(st.lists(message, max_size=6)):
        steps += [Say(who, b"\xfe" + data), Pause(draw(PAUSES))]
    talk.steps = steps + draw(endings())
    return Conversation(talk=talk)


@st.composite
def talks(draw: st.DrawFn, port: int) -> Talk:
    """An empty script with ends, sequence numbers (also just before they wrap) and a round trip."""
    modern = draw(st.booleans())
    client, server = ("2001:db8::5", "2001:db8::9") if modern else ("10.0.0.5", "10.0.0.9")
    numbers = st.integers(0, 2**32 - 1) | st.integers(2**32 - 3_000, 2**32 - 1)
    return Talk(
        client=(client, draw(st.integers(min_value=1_024, max_value=65_535))),
        server=(server, port),
        rtt=draw(st.integers(min_value=20, max_value=400_000)) * 1_000,
        client_isn=draw(numbers),
        server_isn=draw(numbers),
    )


def conversations() -> st.SearchStrategy[Conversation]:
    """Any conversation."""
    return st.one_of(http_conversations(), tls_conversations(), opaque_conversations())


@st.composite
def cuts(draw: st.DrawFn) -> Cut:
    """Ways to cut a message: every segment as long as drawn, down to one byte."""
    sizes = draw(st.lists(st.integers(1, 700) | st.integers(1, 5), min_size=1, max_size=8))

    def cut(data: bytes) -> list[bytes]:
        pieces, start, number = [], 0, 0
        while start < len(data):
            # Short sizes come once; otherwise a long message would be thousands of packets.
            size = sizes[number] if number < len(sizes) else 1_400
            pieces.append(data[start : start + size])
            start, number = start + size, number + 1
        return pieces

    return cut


@st.composite
def orders(draw: st.DrawFn) -> Order:
    """Ways to rearrange a message's segments: none moves further than three places."""
    shifts = draw(st.lists(st.integers(0, 3), min_size=1, max_size=12))

    def order(segments: list[Packet]) -> list[Packet]:
        places = [number + shifts[number % len(shifts)] for number in range(len(segments))]
        return [segments[number] for number in sorted(range(len(segments)), key=lambda number: places[number])]

    return order
