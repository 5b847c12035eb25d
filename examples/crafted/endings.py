"""Stories of who gets no answer, or a late one: servers that hang, a device on the path that ends connections.

In: a :class:`Capture`. Out: the packets of the story in it. As in ``make-captures``, a docstring becomes the case's
README.
"""

from __future__ import annotations

import http2
from applications import RTT_MS, beside, hello
from talk import CLIENT, SYN_OPTIONS, Capture, Talk, get, ok

REFUSED_STREAM = 7
TTL_SERVER, TTL_DEVICE = 52, 252


def serve(talk: Talk, target: str, *, size: int = 600) -> None:
    """Ask for one object, which takes 8 ms."""
    talk.client("PA", get(target))
    talk.wait(RTT_MS)
    talk.server(ttl=TTL_SERVER)
    talk.wait(8)
    talk.server("PA", ok(size), ttl=TTL_SERVER)
    talk.wait(0.1)
    talk.client()


def opened(
    capture: Capture,
    number: int,
    *,
    after_ms: float,
    client: str = CLIENT,
    server_port: int = 80,
    rtt_ms: float = RTT_MS,
) -> Talk:
    """Open a connection to a server that is twelve hops away."""
    talk = Talk(
        capture, after_ms=after_ms, port=51_000 + number, client=client, server_port=server_port,
        client_isn=0x1A2B3C4D + 0x10000 * number, server_isn=0x7F001000 + 0x20000 * number,
    )  # fmt: skip
    talk.client("S", options=SYN_OPTIONS)
    talk.wait(rtt_ms)
    talk.server("SA", options=SYN_OPTIONS, ttl=TTL_SERVER)
    talk.wait(0.05)
    talk.client()
    return talk


def elsewhere(capture: Capture, *, after_ms: float, every_ms: float) -> None:
    """Ask another server four times, each time on a connection of its own."""
    for number in range(4):
        talk = Talk(
            capture, after_ms=after_ms + every_ms * number, port=52_000 + number, server="198.51.100.21",
            client_isn=0x5A2B3C4D + 0x10000 * number,
        )  # fmt: skip
        talk.handshake(1)
        serve(talk, "/elsewhere")
        talk.goodbye(1)


def hangs_to_the_end(capture: Capture) -> None:
    """A server that hangs until the capture ends.

    Three connections have each two answers. The third request is acknowledged on all of them, and nothing else comes.
    The client asks another server for 20 s more.

    - Three of nine requests get no answer: by silence up to the end of the capture. They are waited for until then.
    """
    for number in range(3):
        talk = opened(capture, number, after_ms=200 * number)
        serve(talk, "/")
        talk.wait(50)
        serve(talk, "/style.css")
        talk.wait(50)
        talk.client("PA", get("/report"))
        talk.wait(RTT_MS)
        talk.server(ttl=TTL_SERVER)
    elsewhere(capture, after_ms=2_000, every_ms=5_000)


def foreign_rst_first(capture: Capture) -> None:
    """A device on the path resets connections before the server answers.

    30 ms after each request a RST comes in the server's name, with a hop limit of 252; the server's packets have 52.
    The server's answer comes 50 ms later, and the client refuses it with a RST.

    - Three of three requests get no answer: the path ended them. The server did not close anything.
    """
    for number in range(3):
        talk = opened(capture, number, after_ms=700 * number)
        talk.client("PA", get("/forbidden"))
        talk.wait(RTT_MS)
        talk.server(ttl=TTL_SERVER)
        talk.wait(10)
        talk.server("RA", window=0, ttl=TTL_DEVICE)
        talk.wait(50)
        talk.server("PA", ok(900), ttl=TTL_SERVER)
        talk.wait(0.1)
        talk.client("R", window=0)
    beside(capture)


def rst_after_rest(capture: Capture) -> None:
    """A NAT has forgotten connections that rested, and resets them.

    Each of two connections has three answers, and rests for 350 s. The next request on it is refused at once by a RST
    with a hop limit of 252; the server's packets have 52. A new connection works.

    - Two requests on connections that had rested are refused by the path, which has forgotten them.
    """
    for number in range(2):
        talk = opened(capture, number, after_ms=400 * number)
        for target in ("/", "/a", "/b"):
            serve(talk, target)
            talk.wait(30)
        talk.wait(350_000)
        talk.client("PA", get("/again"))
        talk.wait(3)
        talk.server("R", window=0, ttl=TTL_DEVICE)
        again = opened(capture, number + 2, after_ms=351_000 + 400 * number)
        serve(again, "/again")
        again.goodbye(RTT_MS)


def late_ssh_banner(capture: Capture) -> None:
    """A server of SSH that greets late, though its client greeted first.

    The client sends its banner as soon as the connection is open, as OpenSSH does. The server acknowledges it, and
    sends its own 10 s later. Three short messages of a session follow in each direction.

    - The client waited 10 s for the greeting. What follows are turns, for which nobody is known to wait.
    """
    talk = Talk(capture, server_port=22)
    talk.handshake(RTT_MS)
    talk.wait(0.1)
    talk.client("PA", b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n")
    talk.wait(RTT_MS)
    talk.server()
    talk.wait(10_000)
    talk.server("PA", b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n")
    for size in (1_100, 48, 64):
        talk.wait(0.3)
        talk.client("PA", bytes(range(256))[: size % 256] + b"\x8f" * (size - size % 256))
        talk.wait(RTT_MS + 2)
        talk.server("PA", b"\x9d" * size)
    talk.wait(0.1)
    talk.client()
    beside(capture, after_ms=3_000)


def reset_before_the_second(capture: Capture) -> None:
    """A device on the path resets connections during their second request.

    The first request is answered. The second comes 200 ms later, is acknowledged, and 10 ms later a RST comes in the
    server's name, with a hop limit of 252; the server's packets have 52. Another client asks another
    server.

    - Three of six requests get no answer: the path ended them. No connection was closed while it was idle.
    """
    for number in range(3):
        talk = opened(capture, number, after_ms=900 * number)
        serve(talk, "/")
        talk.wait(200)
        talk.client("PA", get("/upload"))
        talk.wait(RTT_MS)
        talk.server(ttl=TTL_SERVER)
        talk.wait(10)
        talk.server("R", window=0, ttl=TTL_DEVICE)
    beside(capture)


def refused_streams(capture: Capture) -> None:
    """A server of HTTP/2 refuses streams.

    A client asks for twelve things at once, three times. The server takes eight of them each time, and refuses the
    others with RST_STREAM, REFUSED_STREAM.

    - 12 of 36 requests get no answer: the server refused them before it looked at them.
    """
    talk = Talk(capture, server_port=8080)
    hello(talk)
    beside(capture)
    for turn in range(3):
        talk.wait(400)
        streams = [2 * (12 * turn + number) + 1 for number in range(12)]
        talk.client("PA", b"".join(http2.request(stream, f"/item/{stream}") for stream in streams))
        talk.wait(RTT_MS + 1)
        talk.server("PA", b"".join(http2.reset(stream, REFUSED_STREAM) for stream in streams[8:]))
        for stream in streams[:8]:
            talk.wait(3)
            talk.server("PA", http2.headers(stream, {":status": "204"}, ends=True))
            talk.wait(0.1)
            talk.client()
    talk.goodbye()


def store_gone_away(capture: Capture) -> None:
    """A store closes connections that rest, and the application asks on them.

    Redis answers, and ends each of two connections with a FIN after 60 s of rest. The application does not look at it,
    asks 10 s later, and gets a RST.

    - Two of eight commands get no answer.
    """
    for number in range(2):
        talk = opened(capture, number, after_ms=500 * number, server_port=6379, rtt_ms=0.4)
        for key in (b"a", b"b", b"c"):
            talk.client("PA", b"*2\r\n$3\r\nGET\r\n$1\r\n%s\r\n" % key)
            talk.wait(0.6)
            talk.server("PA", b"$2\r\nok\r\n", ttl=TTL_SERVER)
            talk.wait(0.1)
            talk.client()
            talk.wait(40)
        talk.wait(60_000)
        talk.server("FA", ttl=TTL_SERVER)
        talk.wait(0.1)
        talk.client()
        talk.wait(10_000)
        talk.client("PA", b"*2\r\n$3\r\nGET\r\n$1\r\nd\r\n")
        talk.wait(0.4)
        talk.server("R", window=0, ttl=TTL_SERVER)
    beside(capture)


def nobody_answers_any_more(capture: Capture) -> None:
    """A server answers four clients, and then nobody.

    Three other clients send their SYN, and send it again after 1 s and after 3 s. The capture ends before they give up.

    - Three connections that nobody answers, of seven: each client tried once.
    """
    for number in range(4):
        talk = opened(capture, number, after_ms=300 * number, client=f"192.0.2.{20 + number}")
        serve(talk, "/")
        talk.goodbye(RTT_MS)
    for number in range(3):
        talk = Talk(
            capture, after_ms=3_000 + 100 * number, port=53_000 + number, client=f"192.0.2.{30 + number}",
            client_isn=0x2A2B3C4D + 0x10000 * number,
        )  # fmt: skip
        isn = talk.client("S", options=SYN_OPTIONS)
        for pause in (1_000, 2_000):
            talk.wait(pause)
            talk.client("S", seq=isn, options=SYN_OPTIONS)


def events_joined_midway(capture: Capture) -> None:
    """Streams of events that had begun before the capture, and a queue that is asked for work.

    - Server-sent events of 60 bytes, one each 2 to 7 s: the capture has neither their request nor their head.
    - A WebSocket that begins before the capture: 12 messages of the server's, and a PING.
    - A worker asks a queue (`X-Amz-Target: AmazonSQS.ReceiveMessage`): 20 s each time, by design.
    - A user asks for ten pages, 8 ms each.

    Users waited for the pages, and for nothing else.
    """
    events = Talk(capture, after_ms=100, port=51_000, server_port=3_000, client_isn=0x11000000)
    socket = Talk(capture, after_ms=150, port=51_001, server_port=3_000, client_isn=0x12000000)
    for talk in (events, socket):
        talk.skip(talk.client_side, 1 + 300)
        talk.skip(talk.server_side, 1 + 900)
    for number in range(12):
        events.server(
            "PA", b'id: %d\nevent: tick\ndata: {"price": %d, "at": "08:15:42.0"}\n\n' % (number, 100 + number)
        )
        socket.server("PA", b"\x81\x1e" + b'{"event":"price","at":12345678}'[:30])
        for talk in (events, socket):
            talk.wait(0.1)
            talk.client()
            talk.wait(2_000 + 5_000 * (number * 7 % 12) / 12)
    socket.client("PA", b"\x89\x80\1\2\3\4")
    socket.wait(RTT_MS)
    socket.server("PA", b"\x8a\0")
    queue = opened(capture, 2, after_ms=200, server_port=4_566)
    for _ in range(2):
        content = b'{"QueueUrl":"http://queue.example/0/jobs","WaitTimeSeconds":20}'
        fields = b"X-Amz-Target: AmazonSQS.ReceiveMessage\r\nContent-Length: %d\r\n\r\n" % len(content)
        queue.client("PA", get("/").replace(b"GET", b"POST").removesuffix(b"\r\n") + fields + content)
        queue.wait(RTT_MS)
        queue.server(ttl=TTL_SERVER)
        queue.wait(20_000)
        queue.server("PA", ok(120), ttl=TTL_SERVER)
        queue.wait(30)
        queue.client()
    user = opened(capture, 3, after_ms=300)
    for number in range(10):
        serve(user, f"/page/{number}")
        user.wait(3_000)


def body_stops_at_the_end(capture: Capture) -> None:
    """A download that stops in its middle, and does not go on until the capture ends.

    The server announces 600,000 bytes and sends 5,000 of them, all acknowledged. The client asks
    another server for 15 s more.

    - The client waits for the rest until the capture ends, marked as inferred.
    """
    talk = opened(capture, 0, after_ms=0)
    talk.client("PA", get("/export.csv"))
    talk.wait(RTT_MS)
    talk.server(ttl=TTL_SERVER)
    talk.wait(40)
    talk.server("PA", ok(600_000)[:1_400], ttl=TTL_SERVER)
    for _ in range(3):
        talk.wait(2)
        talk.server("PA", b"x" * 1_200, ttl=TTL_SERVER)
        talk.wait(0.1)
        talk.client()
    elsewhere(capture, after_ms=1_000, every_ms=4_500)


STORIES = (
    late_ssh_banner, hangs_to_the_end, foreign_rst_first, rst_after_rest, reset_before_the_second, refused_streams,
    events_joined_midway, body_stops_at_the_end, store_gone_away, nobody_answers_any_more,
)  # fmt: skip
