"""Stories of what programs do above TCP: windows of HTTP/2, GOAWAY, sessions with stores, responses by design.

In: a :class:`Capture`. Out: the packets of the story in it. As in ``make-captures``, a docstring becomes the case's
README.
"""

from __future__ import annotations

import http2
from talk import Capture, Talk, get, ok, segments

RTT_MS = 20


def say(talk: Talk, data: bytes, *, by: str = "server") -> None:
    """Let one side send a message in segments, and the other acknowledge it."""
    send, acknowledge = (talk.server, talk.client) if by == "server" else (talk.client, talk.server)
    pieces = segments(data)
    for number, piece in enumerate(pieces):
        send("PA" if number == len(pieces) - 1 else "A", piece)
        talk.wait(0.01)
        if number % 2:
            acknowledge()
    acknowledge()


def hello(talk: Talk, **settings: int) -> None:
    """Open a connection of HTTP/2 as the client sees it."""
    talk.handshake(RTT_MS)
    talk.client("PA", http2.PREFACE + http2.settings(**settings))
    talk.wait(RTT_MS)
    talk.server("PA", http2.settings() + http2.settings_ack())
    talk.wait(0.1)
    talk.client("PA", http2.settings_ack())


def beside(capture: Capture, *, after_ms: float = 0, requests: int = 6) -> None:
    """Let another client ask another server, as ordinary traffic beside a fault does."""
    talk = Talk(
        capture, after_ms=after_ms, port=52_000, client="192.0.2.11", server="198.51.100.21", client_isn=0x5A2B3C4D
    )
    talk.handshake(1)
    for number in range(requests):
        talk.client("PA", get(f"/beside/{number}"))
        talk.wait(2 + number / 10)
        talk.server("PA", ok(300))
        talk.wait(0.05)
        talk.client()
        talk.wait(400 + 90 * number)


def window_of_response(talk: Talk, *, batches: int, pause_ms: float) -> None:
    """Let a response of HTTP/2 use up its window, and its client open it after a pause."""
    talk.client("PA", http2.request(1, "/export"))
    talk.wait(RTT_MS + 5)
    talk.server("PA", http2.headers(1, {":status": "200", "content-type": "text/csv"}))
    for number in range(batches):
        last = number == batches - 1
        say(talk, b"".join(http2.data(1, http2.WINDOW, ends=last)))
        if not last:
            talk.wait(pause_ms)
            talk.client("PA", http2.window_update(0, http2.WINDOW) + http2.window_update(1, http2.WINDOW))
            talk.wait(RTT_MS)


def h2_window_messy(capture: Capture) -> None:
    """A client of HTTP/2 that reads too slowly, beside other requests.

    Three times the response has used up the window of its stream, and goes on when the client has opened it 2 s later.
    Another client asks another server meanwhile.

    - Three stalls `flow-control` of 2.02 s: the client's program does not take the response.
    """
    beside(capture)
    talk = Talk(capture, server_port=50_051, after_ms=300)
    hello(talk)
    window_of_response(talk, batches=4, pause_ms=2_000)
    talk.goodbye()


def h2_window_midstream(capture: Capture) -> None:
    """A response of HTTP/2 that waits for its window, on a connection that is older than the capture.

    As `h2-window-messy`, but neither the connection's opening nor SETTINGS are in the capture: the windows are not
    known.

    - The pauses end with a WINDOW_UPDATE, after which the response goes on: three stalls `flow-control`.
    """
    beside(capture)
    talk = Talk(capture, server_port=50_051, after_ms=300)
    talk.skip(talk.client_side, 1 + 300)
    talk.skip(talk.server_side, 1 + 900)
    talk.client("PA", http2.ping())
    talk.wait(RTT_MS)
    talk.server("PA", http2.frame(6, http2.ACK, 0, b"conchart"))
    talk.wait(0.1)
    window_of_response(talk, batches=4, pause_ms=2_000)


def h2_window_upload(capture: Capture) -> None:
    """An upload over HTTP/2 that waits for the window of its server.

    The client sends 200 kB. The server reads at once, and allows 65,535 bytes at a time: the upload waits for a round
    trip of 80 ms each time.

    - Three stalls `flow-control` of a round trip: the server's window is small for this path.
    """
    rtt_ms = 80
    talk = Talk(capture, server_port=50_051)
    talk.handshake(rtt_ms)
    talk.client("PA", http2.PREFACE + http2.settings())
    talk.wait(rtt_ms)
    talk.server("PA", http2.settings() + http2.settings_ack())
    talk.wait(0.1)
    talk.client("PA", http2.settings_ack() + http2.request(1, "/photos", method="POST", ends=False))
    for number in range(4):
        last = number == 3
        for piece in segments(b"".join(http2.data(1, http2.WINDOW if not last else 20_000, ends=last))):
            talk.client("A", piece)
            talk.wait(0.01)
        talk.wait(rtt_ms)
        if not last:
            talk.server("PA", http2.window_update(0, http2.WINDOW) + http2.window_update(1, http2.WINDOW))
            talk.wait(0.1)
    talk.server("A")
    talk.wait(4)
    talk.server("PA", http2.headers(1, {":status": "201"}, ends=True))
    talk.wait(0.1)
    talk.client()
    talk.goodbye(rtt_ms)


def h2_window_clean(capture: Capture) -> None:
    """A response of HTTP/2 whose client allows as much as there is.

    The client's SETTINGS allow 1 MiB on each stream, and its first WINDOW_UPDATE as much on the connection.

    - No stall `flow-control`.
    """
    talk = Talk(capture, server_port=50_051)
    hello(talk, initial_window_size=1 << 20)
    talk.client("PA", http2.window_update(0, 1 << 20) + http2.request(1, "/export"))
    talk.wait(RTT_MS + 5)
    talk.server("PA", http2.headers(1, {":status": "200", "content-type": "text/csv"}))
    say(talk, b"".join(http2.data(1, 4 * http2.WINDOW, ends=True)))
    talk.goodbye()


def call(talk: Talk, stream: int, path: str, work_ms: float, *, goaway: bytes = b"") -> None:
    """Call a method of gRPC; ``goaway`` comes in the place of the answer."""
    fields = {"content_type": "application/grpc", "te": "trailers"}
    message = b"\0\0\0\0\4abcd"
    request = http2.request(stream, path, method="POST", ends=False, **fields)
    talk.client("PA", request + http2.frame(0, http2.END_STREAM, stream, message))
    talk.wait(RTT_MS)
    talk.server()
    talk.wait(work_ms)
    if goaway:
        talk.server("PA", goaway)
        talk.wait(0.1)
        talk.server("FA")
    else:
        head = http2.headers(stream, {":status": "200", "content-type": "application/grpc"})
        trailers = http2.headers(stream, {"grpc-status": "0"}, ends=True)
        talk.server("PA", head + http2.frame(0, 0, stream, message) + trailers)
    talk.wait(0.1)
    talk.client()


def h2_goaway_messy(capture: Capture) -> None:
    """A gRPC server ends connections as the client sends too many PINGs, beside other requests.

    The client sends a PING each 10 s. The server allows one in five minutes: with the fourth it sends GOAWAY
    (ENHANCE_YOUR_CALM, `too_many_pings`), and the call that is under way fails. Twice. The calls before are answered.

    - Two of eight calls have no answer: the client's PINGs are the cause.
    """
    beside(capture)
    for connection in range(2):
        talk = Talk(capture, after_ms=500 + 35_000 * connection, port=51_000 + connection, server_port=50_051)
        hello(talk)
        for number in range(3):
            call(talk, 1 + 2 * number, "/shop.Orders/Get", 12 + number)
            talk.wait(10_000)
            talk.client("PA", http2.ping())
            talk.wait(RTT_MS)
            talk.server("PA", http2.frame(6, http2.ACK, 0, b"conchart"))
            talk.wait(0.1)
            talk.client()
        call(talk, 7, "/shop.Orders/Get", 900, goaway=http2.goaway(7, 0xB, b"too_many_pings"))
        talk.wait(0.1)
        talk.client("FA")
        talk.wait(RTT_MS)
        talk.server()


def h2_goaway_clean(capture: Capture) -> None:
    """A server of HTTP/2 ends a connection gracefully.

    While a call is under way, the server sends GOAWAY with NO_ERROR, and answers it all the same.

    - No finding: that is how servers restart.
    """
    talk = Talk(capture, server_port=50_051)
    hello(talk)
    for number in range(3):
        call(talk, 1 + 2 * number, "/shop.Orders/Get", 12 + number)
        talk.wait(500)
    talk.client("PA", http2.request(7, "/shop.Orders/Get", method="POST", content_type="application/grpc"))
    talk.wait(RTT_MS)
    talk.server("PA", http2.goaway(7, 0))
    talk.wait(12)
    talk.server(
        "PA", http2.headers(7, {":status": "200", "content-type": "application/grpc", "grpc-status": "0"}, ends=True)
    )
    talk.wait(0.1)
    talk.client()
    talk.wait(1)
    talk.server("FA")
    talk.wait(0.1)
    talk.client("FA")
    talk.wait(RTT_MS)
    talk.server()


def mysql(number: int, payload: bytes) -> bytes:
    """Return a packet of MySQL's protocol."""
    return len(payload).to_bytes(3, "little") + bytes((number,)) + payload


GREETING = (
    b"\x0a8.0.36\0" + b"\x07\0\0\0" + b"saltsalt\0" + b"\xff\xf7\xff\x02\0\xff\xdf\x15" + bytes(10)
    + b"moresaltsalt\0" + b"mysql_native_password\0"
)  # fmt: skip
LOGIN = (
    b"\x8d\xa6\xef\x01" + (1 << 24).to_bytes(4, "little") + b"\xff" + bytes(23)
    + b"shop\0" + b"\x14" + b"hashhashhashhashhash" + b"goods\0" + b"mysql_native_password\0"
)  # fmt: skip
OK = b"\0\0\0\x02\0\0\0"


def mysql_login(talk: Talk, answer: bytes) -> None:
    """Begin a session with MySQL, up to the answer to the login."""
    talk.handshake(1)
    talk.wait(0.6)
    talk.server("PA", mysql(0, GREETING))
    talk.wait(0.1)
    talk.client("PA", mysql(1, LOGIN))
    talk.wait(1.4)
    talk.server("PA", mysql(2, answer))
    talk.wait(0.1)


def mysql_access_denied(capture: Capture) -> None:
    """An application whose password MySQL does not know.

    The application tries again each second. Six logins of six end with error 1045: access denied.

    - The finding names the error, and that it is the client's account.
    """
    denied = b"\xff\x15\x04#28000Access denied for user 'shop'@'192.0.2.10' (using password: YES)"
    for number in range(6):
        talk = Talk(capture, after_ms=1_000 * number, port=51_000 + number, server_port=3306)
        mysql_login(talk, denied)
        talk.server("FA")
        talk.wait(0.1)
        talk.client("FA")
        talk.wait(1)
        talk.server()


def mysql_access_granted(capture: Capture) -> None:
    """An application that logs in at MySQL.

    Two sessions, each with a login and three pings.

    - No finding.
    """
    for number in range(2):
        talk = Talk(capture, after_ms=70 * number, port=51_000 + number, server_port=3306)
        mysql_login(talk, OK)
        for _ in range(3):
            talk.client("PA", mysql(0, b"\x0e"))
            talk.wait(1.1)
            talk.server("PA", mysql(1, OK))
            talk.wait(40)
        talk.client("PA", mysql(0, b"\x01"))
        talk.goodbye(1)


def redis(*words: str) -> bytes:
    """Return a command of Redis."""
    return f"*{len(words)}\r\n".encode() + b"".join(f"${len(word)}\r\n{word}\r\n".encode() for word in words)


def redis_noauth_messy(capture: Capture) -> None:
    """A client of Redis that does not log in, beside one that does, in a capture that begins in its middle.

    Its connection is older than the capture. Each command is refused (NOAUTH): the password was set after the client
    was started. Another client uses the same server without an error, and another server is asked over HTTP.

    - One session of two fails; the finding names NOAUTH.
    """
    beside(capture)
    talk = Talk(capture, port=51_000, server_port=6379)
    talk.skip(talk.client_side, 1 + 400)
    talk.skip(talk.server_side, 1 + 900)
    other = Talk(capture, after_ms=150, port=51_001, client="192.0.2.12", server_port=6379, client_isn=0x6A2B3C4D)
    other.handshake(1)
    other.client("PA", redis("AUTH", "secret"))
    other.wait(1.1)
    other.server("PA", b"+OK\r\n")
    for number in range(6):
        talk.wait(300)
        talk.client("PA", redis("GET", f"cart:{number}"))
        talk.wait(1.1)
        talk.server("PA", b"-NOAUTH Authentication required.\r\n")
        talk.wait(0.1)
        talk.client()
        other.wait(270 + 10 * number)
        other.client("PA", redis("GET", f"page:{number}"))
        other.wait(1.2)
        other.server("PA", b"$5\r\nhello\r\n")
        other.wait(0.1)
        other.client()


def by_design_messy(capture: Capture) -> None:
    """Responses that take long by design, beside a server that is slow.

    - Server-sent events: the response begins at once, an event follows each 15 s. Captured from its middle on.
    - A watch of Kubernetes' API (`watch=true`): 40 s with two events.
    - A long poll, answered with 204 after 25 s, twice.
    - A blocking query of Consul, answered after 30 s, and one that fails with 500 after 3 s: an error is no event.
    - An ordinary request, answered after 1.2 s, three times.

    Users waited 3.6 s for the slow server and 3 s for the error; all other time is idle.
    """

    def begin(port: int, server: str, server_port: int, after_ms: float, target: str, extra: str = "") -> Talk:
        talk = Talk(
            capture, after_ms=after_ms, port=port, server=server, server_port=server_port, client_isn=port << 12
        )
        talk.handshake(1)
        talk.client("PA", get(target).replace(b"\r\n\r\n", f"\r\n{extra}\r\n".encode()))
        talk.wait(1.2)
        talk.server()
        return talk

    def answer(talk: Talk, message: bytes) -> None:
        talk.server("PA", message)
        talk.wait(0.1)
        talk.client()

    def chunk(content: bytes) -> bytes:
        return b"%x\r\n%s\r\n" % (len(content), content)

    chunked = "HTTP/1.1 200 OK\r\nContent-Type: {}\r\nTransfer-Encoding: chunked\r\n\r\n"
    events = begin(51_000, "198.51.100.21", 8001, 0, "/events", "Accept: text/event-stream\r\n")
    events.wait(4)
    answer(events, chunked.format("text/event-stream").encode())
    watch = begin(51_001, "198.51.100.22", 8080, 50, "/api/v1/pods?watch=true&resourceVersion=7")
    watch.wait(3)
    answer(watch, chunked.format("application/json").encode())
    for number in range(2):
        events.wait(15_000)
        answer(events, chunk(b"data: tick %d\n\n" % number))
        watch.wait(13_000 + 4_000 * number)
        answer(watch, chunk(b'{"type":"MODIFIED","object":{}}\n'))
    watch.wait(10_000)
    answer(watch, b"0\r\n\r\n")
    poll = begin(51_002, "198.51.100.23", 80, 90, "/news/updates?since=4")
    poll.wait(25_000)
    answer(poll, b"HTTP/1.1 204 No Content\r\n\r\n")
    poll.client("PA", get("/news/updates?since=4"))
    poll.wait(25_002)
    answer(poll, b"HTTP/1.1 204 No Content\r\n\r\n")
    query = begin(51_003, "198.51.100.24", 8500, 120, "/v1/health/service/web?index=100&wait=30s")
    query.wait(30_000)
    answer(query, ok(800))
    query.client("PA", get("/v1/health/service/web?index=101&wait=30s"))
    query.wait(3_000)
    answer(query, b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n")
    slow = begin(51_004, "198.51.100.25", 80, 700, "/report/0")
    for number in range(3):
        slow.wait(1_200 + number)
        answer(slow, ok(900))
        slow.wait(2_000 + 700 * number)
        if number < 2:
            slow.client("PA", get(f"/report/{number + 1}"))


def health_checks_messy(capture: Capture) -> None:
    """Health checks at equal intervals that succeed, some that fail, and a user who waits.

    - A load balancer asks one server for `/healthz` every second, eight times: 204 after 2 ms.
    - It asks another one as often: 503 after 2 ms.
    - A user waits 1.2 s for the first server.

    The eight that succeed are left out of findings; those that fail are not.
    """
    for number in range(8):
        for server, line in (("198.51.100.31", b"204 No Content"), ("198.51.100.32", b"503 Service Unavailable")):
            talk = Talk(
                capture,
                after_ms=1_000 * number + int(server[-1]) * 7,
                port=52_000 + number,
                client="192.0.2.60",
                server=server,
                client_isn=(52_000 + number) << 12,
            )
            talk.handshake(0.5)
            talk.client("PA", get("/healthz"))
            talk.wait(2)
            talk.server("PA", b"HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n" % line)
            talk.wait(0.2)
            talk.client("FA")
            talk.wait(0.2)
            talk.server("FA")
            talk.client()
    user = Talk(capture, after_ms=2_500, port=53_000, server="198.51.100.31", client_isn=53_000 << 12)
    user.handshake(20)
    user.client("PA", get("/report"))
    user.wait(1_200)
    user.server("PA", ok(900))
    user.wait(20)
    user.client()


def mysql_work(capture: Capture, *, after_ms: float = 0, least_ms: float, rest_ms: float = 0) -> None:
    """Let an application send commands to MySQL: each takes ``least_ms``, some statements longer by ``rest_ms``."""
    talk = Talk(capture, after_ms=after_ms, server_port=3306)
    mysql_login(talk, OK)
    for number in range(5):
        for command in (
            b"\x0e",
            b"\x03UPDATE cart SET goods = %d WHERE id = %d" % (number, 7 + number),
            b"\x03INSERT INTO visit (id) VALUES (%d)" % number,
            b"\x03DELETE FROM basket WHERE age > %d" % (90 + number),
        ):
            talk.client("PA", mysql(0, command))
            talk.wait(1 + least_ms + number / 10 + (rest_ms if command.startswith(b"\x03DELETE") else 0))
            talk.server("PA", mysql(1, OK))
            talk.wait(30)
    talk.client("PA", mysql(0, b"\x01"))
    talk.goodbye(1)


def mysql_floor(capture: Capture) -> None:
    """A database behind a proxy that is near, while the database is far.

    The round trip to the address takes 1 ms. Every command takes 40 ms more, also a ping: the statements do not.

    - The finding is about what stands between. No statement is called slow.
    """
    mysql_work(capture, least_ms=40)


def mysql_floor_messy(capture: Capture) -> None:
    """A database behind a proxy that is near, beside other requests, with one statement that is slow besides.

    As `mysql-floor`; DELETE takes 60 ms more than all others.

    - Of DELETE, 40 ms are what all commands take; the rest is the statement's.
    """
    beside(capture)
    mysql_work(capture, after_ms=400, least_ms=40, rest_ms=60)


def mysql_floor_clean(capture: Capture) -> None:
    """A database whose commands take what they need.

    The same commands as in `mysql-floor`, each answered in 0.4 ms to 0.8 ms beyond the round trip.

    - No finding.
    """
    mysql_work(capture, least_ms=0.4)


def memcached_reads(capture: Capture, *, keys: int, found: int, together: bool = False) -> None:
    """Let an application read keys of memcached; of each ten, so many are found."""
    talk = Talk(capture, server_port=11_211)
    talk.handshake(0.5)

    def value(number: int) -> bytes:
        return b"VALUE goods:%d 0 5\r\nhello\r\n" % number if number % 10 < found else b""

    if together:
        for first in range(0, keys, 10):
            numbers = range(first, first + 10)
            talk.client("PA", b"get " + b" ".join(b"goods:%d" % number for number in numbers) + b"\r\n")
            talk.wait(0.6)
            talk.server("PA", b"".join(value(number) for number in numbers) + b"END\r\n")
            talk.wait(40)
    else:
        for number in range(keys):
            talk.client("PA", b"get goods:%d\r\n" % number)
            talk.wait(0.6)
            talk.server("PA", value(number) + b"END\r\n")
            talk.wait(40 if number % 30 == 29 else 0.1)
    talk.goodbye(0.5)


def memcached_one_by_one(capture: Capture) -> None:
    """An application that reads 60 keys of memcached one by one.

    Thirty keys in a row, each read when the answer to the one before is there, twice.

    - One command for several keys would wait once.
    """
    memcached_reads(capture, keys=60, found=10)


def memcached_hits(capture: Capture) -> None:
    """An application that reads ten keys of memcached with each command, and finds them.

    - No finding.
    """
    memcached_reads(capture, keys=200, found=10, together=True)


def memcached_misses(capture: Capture) -> None:
    """An application that finds two of ten keys in memcached.

    - 48 of 60 reads find nothing: a note. They are sent one by one, too.
    """
    memcached_reads(capture, keys=60, found=2)


STORIES = (
    h2_window_messy, h2_window_midstream, h2_window_upload, h2_window_clean, h2_goaway_messy, h2_goaway_clean,
    mysql_access_denied, mysql_access_granted, redis_noauth_messy, by_design_messy, health_checks_messy,
    mysql_floor, mysql_floor_messy, mysql_floor_clean, memcached_one_by_one, memcached_hits, memcached_misses,
)  # fmt: skip
