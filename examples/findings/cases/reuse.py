"""Connections that are used again, or not: real servers and clients where one misbehaves on demand, else crafted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from avenue import BACKEND, CERTIFIED, FRONT, KEEP_ALIVE, SITE, THINKER, Scene, record
from talk import START_AT, Capture, Talk, get, ok

ANSWER = 'location / {{ return 200 "{}\\n"; }}'.format("A short answer, always the same. " * 8)
TO_BACKEND = "location / { proxy_pass http://shop; %s }"


def nginx(server: str = ANSWER, upstream: str = "", listen: str = "80") -> str:
    """Answer, or pass on to the upstream, as ``server`` says."""
    keys = f" {CERTIFIED}" if "ssl" in listen else ""
    return f"""\
    {upstream}
    server {{
        listen {FRONT}:{listen};{keys}
        {server}
    }}
"""


def haproxy(reuse: str) -> str:
    """Reuse connections to the backend as ``http-reuse`` says."""
    return f"""\
frontend street
    bind {FRONT}:80
    default_backend shop
backend shop
    http-reuse {reuse}
    server one {BACKEND}:8080
"""


def curl(count: int) -> str:
    """Write one curl that asks for so many objects, one after the other."""
    return f"curl --silent --output /dev/null http://{SITE}/wait-2/bytes-[301-{300 + count}]"


served = partial(Scene, front_ms=5)
proxied = partial(Scene, front_ms=5, back_ms=5, backends=[THINKER % 8080])

POOL = f"upstream shop {{ server {BACKEND}:8080; keepalive 8; }}"
NO_POOL = f"upstream shop {{ server {BACKEND}:8080; }}"
FIVE_POOLS = " ".join(f"upstream shop{n} {{ server {BACKEND}:8080; keepalive 8; }}" for n in range(1, 6))
FIVE_LOCATIONS = " ".join(f"location /wait-{n}/ {{ proxy_pass http://shop{n}; {KEEP_ALIVE} }}" for n in range(1, 6))
ONE_POOL = " ".join(f"location /wait-{n}/ {{ proxy_pass http://shop; {KEEP_ALIVE} }}" for n in range(1, 6))
TWO_SERVERS = f"upstream shop {{ server {BACKEND}:%d max_fails=0; server {BACKEND}:8080 max_fails=0; keepalive 8; }}"
FIVE_PLACES = f"curl --silent --output /dev/null http://{SITE}/wait-[1-5]/bytes-[301-306]"

SCENES = {
    "backend-no-keepalive": proxied(
        title="nginx before 1.29.7 as it is by default: a connection to the backend for each request",
        nginx=nginx(TO_BACKEND % "", NO_POOL),
        clients=[curl(8)],
        see="""\
- The client keeps one connection for its eight requests. nginx opens eight to the backend, 10 ms each.
- nginx asks with `HTTP/1.0` and `Connection: close`; the backend would keep connections.""",
    ),
    "backend-no-keepalive-clean": proxied(
        title="nginx with a pool of connections to the backend",
        nginx=nginx(TO_BACKEND % KEEP_ALIVE, POOL),
        clients=[curl(8)],
        see="- One connection in front, one behind, eight requests on each: the twin of `backend-no-keepalive`.",
    ),
    "client-no-reuse": served(
        title="A shell script that calls curl for each object",
        nginx=nginx(),
        clients=[curl(1)] * 6,
        see="""\
- Six connections with a request each, one after the other. The client closes each; the server would have kept it
  (`Connection: keep-alive`).""",
    ),
    "client-no-reuse-clean": served(
        title="One curl for all objects",
        nginx=nginx(),
        clients=[curl(6)],
        see="- One connection with six requests: the twin of `client-no-reuse`.",
    ),
    "server-closes-each-response": served(
        title="A server that closes after every response",
        nginx=nginx(f"keepalive_timeout 0; {ANSWER}"),
        clients=[f"wget --quiet --output-document=/dev/null {' '.join(f'http://{SITE}/{n}' for n in range(6))}"],
        see="""\
- wget asks for `Connection: Keep-Alive`; nginx with `keepalive_timeout 0` answers `Connection: close`, and closes.
- Six connections for six requests.""",
    ),
    "server-closes-each-response-clean": served(
        title="A server that keeps connections",
        nginx=nginx(),
        clients=[f"wget --quiet --output-document=/dev/null {' '.join(f'http://{SITE}/{n}' for n in range(6))}"],
        see="- One connection with six requests: the twin of `server-closes-each-response`.",
    ),
    "keepalive-request-cap": served(
        title="A server that closes after ten requests",
        nginx=nginx(f"keepalive_requests 10; {ANSWER}"),
        clients=[curl(45)],
        see="""\
- Five connections: ten requests on each of the first four, five on the last.
- The server says `Connection: close` in every tenth response. The client opens the next connection at once.""",
    ),
    "keepalive-request-cap-clean": served(
        title="A server that allows a thousand requests",
        nginx=nginx(),
        clients=[curl(45)],
        see="- One connection with 45 requests: the twin of `keepalive-request-cap`.",
    ),
    "keepalive-idle-too-short": served(
        title="A server that closes after a second, asked every other second",
        nginx=nginx(f"keepalive_timeout 1s; {ANSWER}"),
        clients=[f"python3 patient.py {SITE} 1.2 1.9 1.4 2.3 1.3"],
        see="""\
- Six connections with a request each. nginx closes each after a second of idling; the client asks again a little
  later, on a new one.""",
    ),
    "keepalive-idle-too-short-clean": served(
        title="A server that waits for 75 seconds, asked every other second",
        nginx=nginx(f"keepalive_timeout 75s; {ANSWER}"),
        clients=[f"python3 patient.py {SITE} 1.2 1.9 1.4 2.3 1.3"],
        see="- One connection with six requests: the twin of `keepalive-idle-too-short`.",
    ),
    "server-closes-each-response-heedless": served(
        title="A server that closes after every response, and a client that does not look",
        middle=f"python3 closes.py {FRONT} 80 1",
        clients=[f"python3 heedless.py {SITE} {' '.join(['0.1'] * 7)}"],
        see="""\
- The server answers as if it kept the connection, and closes it at once. The client has that FIN for a tenth of a
  second when it asks again on the same connection. RST answers, and the client asks once more on a new connection.
- Eight connections with two requests on each but the last, of which the first is answered.""",
    ),
    "keepalive-request-cap-heedless": served(
        title="A server that closes after ten requests, and a client that does not look",
        middle=f"python3 closes.py {FRONT} 80 10",
        clients=[f"python3 heedless.py {SITE} {' '.join(['0.01'] * 44)}"],
        see="""\
- Five connections, eleven requests on each of the first four: the server closes after the tenth response, without
  having said so. The eleventh is answered by RST, and asked again on the next connection.""",
    ),
    "keepalive-idle-too-short-heedless": served(
        title="A server that closes after a second, and a client that does not look",
        middle=f"python3 closes.py {FRONT} 80 1000 1",
        clients=[f"python3 heedless.py {SITE} 1.2 1.9 1.4 2.3 1.3"],
        see="""\
- The server closes each connection after a second of idling. The client asks again a little later, on the same one:
  RST answers, and it asks once more on a new connection.
- The FIN came 0.2 s to 1.3 s before the request: no race.""",
    ),
    "heedless-clean": served(
        title="The same client at a server that keeps connections",
        middle=f"python3 closes.py {FRONT} 80 1000 75",
        clients=[f"python3 heedless.py {SITE} {' '.join(['0.1'] * 12)} 1.2 1.9"],
        see="""\
- One connection with 15 requests: the twin of `server-closes-each-response-heedless`,
  `keepalive-request-cap-heedless` and `keepalive-idle-too-short-heedless`.""",
    ),
    "pool-too-small": proxied(
        title="A Go client that keeps two idle connections and asks eight times at a time",
        nginx=nginx(TO_BACKEND % KEEP_ALIVE, POOL),
        clients=[f"go run pooling.go -url http://{SITE}/wait-20/bytes-300 -at-a-time 8 -rounds 6"],
        see="""\
- Six rounds of eight requests at a time. Go keeps two idle connections (`MaxIdleConnsPerHost`), closes each further
  one right after its response, and opens another one in the next round.""",
    ),
    "pool-too-small-clean": proxied(
        title="A Go client that keeps eight idle connections and asks eight times at a time",
        nginx=nginx(TO_BACKEND % KEEP_ALIVE, POOL),
        clients=[f"go run pooling.go -url http://{SITE}/wait-20/bytes-300 -at-a-time 8 -rounds 6 -idle 8"],
        see="- Eight connections, used again in each round: the twin of `pool-too-small`.",
    ),
    "pool-fragmented": proxied(
        title="nginx with an upstream of its own for each location, all to the same server",
        nginx=nginx(FIVE_LOCATIONS, FIVE_POOLS),
        clients=[FIVE_PLACES],
        see="""\
- Thirty requests to five locations, one after the other: one connection to the backend would do. There are five: each
  upstream has a pool, and none knows that another's connection is idle.""",
    ),
    "pool-fragmented-clean": proxied(
        title="nginx with one upstream for all locations",
        nginx=nginx(ONE_POOL, POOL),
        clients=[FIVE_PLACES],
        see="- One connection to the backend for thirty requests: the twin of `pool-fragmented`.",
    ),
    "haproxy-safe-first-request": proxied(
        title="HAProxy's default: the first request of each client on a new connection",
        haproxy=haproxy("safe"),
        clients=[curl(4)] * 6,
        see="""\
- Six clients, one after the other, with four requests each. For the first request of each HAProxy opens a connection to
  the backend, though those of the clients before are idle. Later requests use idle ones.""",
    ),
    "haproxy-safe-first-request-clean": proxied(
        title="HAProxy that uses idle connections for first requests too",
        haproxy=haproxy("always"),
        clients=[curl(4)] * 6,
        see="- One connection to the backend for all 24 requests: the twin of `haproxy-safe-first-request`.",
    ),
    "h1-parallel-instead-of-h2": proxied(
        title="Eight requests at a time over HTTP/1.1, where the client could HTTP/2",
        nginx=nginx(TO_BACKEND % KEEP_ALIVE, POOL, listen="443 ssl"),
        clients=[f"go run pooling.go -url https://{SITE}/wait-20/bytes-300 -first 2 -at-a-time 8 -rounds 2 -idle 8"],
        see="""\
- The client offers `h2`; nginx, not told to, speaks HTTP/1.1. After two requests on one connection the client has eight
  at a time, and opens seven more, each with a TCP and a TLS handshake.""",
    ),
    "h1-parallel-instead-of-h2-clean": proxied(
        title="Eight requests at a time on one connection",
        nginx=nginx(TO_BACKEND % KEEP_ALIVE, POOL, listen="443 ssl http2"),
        clients=[f"go run pooling.go -url https://{SITE}/wait-20/bytes-300 -first 2 -at-a-time 8 -rounds 2 -idle 8"],
        see="- One connection with HTTP/2: the twin of `h1-parallel-instead-of-h2`.",
    ),
    "unused-connections": served(
        title="A client that opens six TLS connections and uses two",
        nginx=nginx(listen="443 ssl"),
        clients=[f"python3 preconnecting.py {SITE} 6 2"],
        see="""\
- Six TLS handshakes, two requests. The other four connections are closed by the client without a request.""",
    ),
    "unused-connections-clean": served(
        title="A client that opens two TLS connections and uses both",
        nginx=nginx(listen="443 ssl"),
        clients=[f"python3 preconnecting.py {SITE} 2 2"],
        see="- Two TLS handshakes, two requests: the twin of `unused-connections`.",
    ),
    "connection-refused-or-filtered": proxied(
        title="One of two backends refuses connections, and stays in rotation",
        nginx=nginx(TO_BACKEND % KEEP_ALIVE, TWO_SERVERS % 8081),
        clients=[curl(8)],
        see="""\
- Nothing listens on port 8081 of the backend. nginx (`max_fails=0`) tries it again and again; each time the request is
  refused first, and goes to port 8080 after that.""",
    ),
    "connection-refused-or-filtered-clean": proxied(
        title="Both backends accept connections",
        nginx=nginx(TO_BACKEND % KEEP_ALIVE, TWO_SERVERS % 8080),
        clients=[curl(8)],
        see="- The twin of `connection-refused-or-filtered`.",
    ),
}


CASES: dict[str, Callable[[Path], None]] = {name: partial(record, scene) for name, scene in SCENES.items()}


def keepalive_race(folder: Path) -> None:
    """Write the twins of requests that meet a closing connection: no program does so on demand."""
    crossing = folder.name == "keepalive-race"
    capture = Capture()
    for visit in range(3):
        talk = Talk(capture, port=51_000 + 10 * visit, after_ms=visit * 7_000)
        talk.handshake()
        exchange(talk, "/first")
        talk.wait(5_000 - 5 if crossing else 4_000)
        talk.client("PA", get("/second"))
        if crossing:
            # The server's FIN was sent 5 ms before the request reached it.
            talk.wait(15)
            talk.server("FA", ack=talk.client_side.next_seq - len(get("/second")))
            talk.wait(0.1)
            talk.client()
            talk.wait(4.9)
            talk.server("R", seq=talk.server_side.next_seq, window=0)
            again = Talk(capture, port=51_001 + 10 * visit, after_ms=(talk.now - START_AT) / 1e6 + 0.3)
            again.handshake()
            exchange(again, "/second")
            again.goodbye()
        else:
            answer(talk)
            talk.goodbye()
    capture.write(folder / "input.pcap")
    (folder / "README.md").write_text(RACE if crossing else NO_RACE)


def exchange(talk: Talk, target: str) -> None:
    """Ask and be answered: 20 ms round trip, 8 ms of work."""
    talk.client("PA", get(target))
    answer(talk)


def answer(talk: Talk) -> None:
    """Be answered."""
    talk.wait(20)
    talk.server()
    talk.wait(8)
    talk.server("PA", ok(900))
    talk.wait(0.05)
    talk.client()


CRAFTED = """
Written with scapy by `examples/findings/make-captures` (`cases/reuse.py`): no program does this on demand. Not a
recording.

    client 192.0.2.10 ── 20 ms round trip ── 198.51.100.20:80 server

Plain HTTP/1.1, Ethernet, microsecond times, valid checksums. Seen from the client.
"""
RACE = f"""# Requests that cross the server's FIN
{CRAFTED}
Three times, the client asks again on a connection that has been idle for 5 s, the server's patience: the
server's FIN was sent 5 ms before the request arrived. The client sees it 15 ms after it asked; the server's machine
answers the request with RST, 20 ms after it was sent. The client asks once more on a new connection.

- Each time the first 15 ms, until the FIN told the client, and the 20 ms of the new TCP handshake would not have been.
"""
NO_RACE = f"""# Requests that come in time
{CRAFTED}
Three times, the client asks again after 4 s of idling, before the server closes: the twin of `keepalive-race`.
"""

CASES |= dict.fromkeys(("keepalive-race", "keepalive-race-clean"), keepalive_race)
