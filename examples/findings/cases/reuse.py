"""Connections that are used again, or not: real servers and clients where one misbehaves on demand, else crafted.

    client 10.97.1.10 ──5 ms── 10.97.1.1 server or proxy 10.97.2.1 ──5 ms── 10.97.2.20 backend
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lab.keys import make_keys
from lab.listening import Listener, settle
from lab.network import Network, stop
from lab.programs import require, versions
from talk import START_AT, Capture, Talk, get, ok


PROGRAMS = Path(__file__).resolve().parents[1] / "programs"
BACKEND_PROGRAM = Path(__file__).resolve().parents[2] / "lab" / "backend.py"
CLIENT, FRONT, BACK, BACKEND = "10.97.1.10", "10.97.1.1", "10.97.2.1", "10.97.2.20"
SITE = "shop.example"
DELAY_MS = 5
PATIENCE_SECONDS = 60

NGINX = """\
daemon off; master_process off; pid @RUN@/nginx.pid; error_log @RUN@/error.log;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path @RUN@/body; proxy_temp_path @RUN@/proxy; fastcgi_temp_path @RUN@/fastcgi;
    uwsgi_temp_path @RUN@/uwsgi; scgi_temp_path @RUN@/scgi;
    {http}
    server {{
        listen {listen};
        ssl_certificate @KEYS@/server.crt; ssl_certificate_key @KEYS@/server.key;
        {server}
    }}
}}
"""
ANSWER = 'location / {{ return 200 "{}\\n"; }}'.format("A short answer, always the same. " * 8)
TO_BACKEND = "location / { proxy_pass http://shop; %s }"
KEPT = 'proxy_http_version 1.1; proxy_set_header Connection "";'
HAPROXY = """\
global
    nbthread 1
defaults
    mode    http
    timeout connect 5s
    timeout client  30s
    timeout server  30s
frontend street
    bind 10.97.1.1:80
    default_backend shop
backend shop
    http-reuse {reuse}
    server one 10.97.2.20:8080
"""


@dataclass(frozen=True, kw_only=True)
class Case:
    """What the middle host runs, what clients run one after the other, what to see."""

    title: str
    see: str
    clients: Sequence[str]
    """Command lines; ``pooling`` is the Go client."""
    http: str = ""
    server: str = ANSWER
    listen: str = f"{FRONT}:80"
    haproxy: str | None = None
    """How HAProxy reuses connections, where it stands in the place of nginx."""
    backend: bool = False


class Street(Network):
    """Client, server or proxy, backend: all some way off."""

    def __init__(self) -> None:
        """Name the hosts."""
        super().__init__("client", "middle", "backend")
        self.client, self.middle, self.backend = self.hosts

    def build(self) -> None:
        """Lay both cables."""
        self.long_cable(self.client, CLIENT, self.middle, FRONT, DELAY_MS)
        self.long_cable(self.middle, BACK, self.backend, BACKEND, DELAY_MS)
        self.name_the_site(self.client, FRONT, SITE)


def record(case: Case, folder: Path) -> None:
    """Build the street, let the clients ask with tcpdump listening on the middle host, and keep what it heard."""
    require(("ip", "tcpdump", "openssl", "nginx", "haproxy", "curl", "wget", "go"))
    with Street() as street:
        keys = make_keys(street.folder / "keys", "ec")
        if case.backend:
            street.start_server(street.backend, 8080, [sys.executable, BACKEND_PROGRAM, BACKEND, "8080"])
        words = start(street, case, keys)
        pooling = street.folder / "pooling"
        if any(line.startswith("pooling ") for line in case.clients):
            subprocess.run(["go", "build", "-o", pooling, PROGRAMS / "pooling.go"], check=True)
        listener = Listener(street, street.middle, "any", "tcp", street.folder / "input.pcap")
        for line in case.clients:
            places = {"pooling": str(pooling), "python3": sys.executable}
            client = street.start(
                street.client, [places.get(word, word) for word in shlex.split(line)], cwd=PROGRAMS,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            if code := client.wait(PATIENCE_SECONDS):
                raise RuntimeError(f"{line}: exit code {code}")
        stop(words)
        settle()
        listener.stop()
        shutil.copyfile(listener.capture, folder / "input.pcap")
    (folder / "README.md").write_text(readme(case))


def start(street: Street, case: Case, keys: Path) -> subprocess.Popen[bytes]:
    """Start what stands in the middle."""
    run = street.folder / "run"
    run.mkdir()
    if case.haproxy:
        (run / "conf").write_text(HAPROXY.format(reuse=case.haproxy))
        return street.start_server(street.middle, 80, ["haproxy", "-db", "-f", run / "conf"])
    (run / "conf").write_text(configuration(case).replace("@RUN@", str(run)).replace("@KEYS@", str(keys)))
    port = 443 if ":443" in case.listen else 80
    return street.start_server(street.middle, port, ["nginx", "-p", run, "-e", run / "error.log", "-c", run / "conf"])


def configuration(case: Case) -> str:
    """Write nginx's configuration."""
    return NGINX.format(http=case.http, server=case.server, listen=case.listen)


def readme(case: Case) -> str:
    """Say how the capture was made and what to see in it."""
    port = 443 if ":443" in case.listen else 80
    backend = f" proxy {BACK} ──{DELAY_MS} ms── {BACKEND}:8080 backend" if case.backend else " server"
    said = (
        HAPROXY.format(reuse=case.haproxy) if case.haproxy else "\n".join(filter(str.strip, (case.http, case.server)))
    )
    lines = "\n".join(f"    {line}" for line in said.strip().splitlines())
    clients = "\n".join(f"    {line}" for line in dict.fromkeys(case.clients))
    times = f", one after the other, {len(case.clients)} times" if len(case.clients) > 1 else ""
    programs = [["haproxy", "-v"] if case.haproxy else ["nginx", "-v"], ["curl", "--version"], ["go", "version"]]
    programs += [[sys.executable, "--version"], ["wget", "--version"], ["tcpdump", "--version"]]
    return f"""\
# {case.title}

Made by `examples/findings/make-captures` (`cases/reuse.py`) with real programs.

## Topology

    client {CLIENT} ──{DELAY_MS} ms── {FRONT}:{port}{backend}

Network namespaces on one machine; every packet takes {DELAY_MS} ms each way on either cable (`examples/lab/delay_line.py`).

## How it was made

The {"proxy" if case.backend else "server"}, {"HAProxy" if case.haproxy else "nginx"}:

{lines}

The client{times} (`pooling` is `examples/findings/programs/pooling.go`):

{clients}
{"- Backend: `examples/lab/backend.py`, HTTP/1.1 with connections kept open." if case.backend else ""}
- Captured on the {"proxy" if case.backend else "server"}: `tcpdump -i any -n --time-stamp-precision=nano -w input.pcap tcp`.

{versions(programs)}

## What to see

{case.see}
"""


def curl(count: int) -> str:
    """Write one curl that asks for so many objects, one after the other."""
    return f"curl --silent --output /dev/null http://{SITE}/wait-2/bytes-[301-{300 + count}]"


POOL = f"upstream shop {{ server {BACKEND}:8080; keepalive 8; }}"
NO_POOL = f"upstream shop {{ server {BACKEND}:8080; }}"
FIVE_POOLS = " ".join(f"upstream shop{n} {{ server {BACKEND}:8080; keepalive 8; }}" for n in range(1, 6))
FIVE_LOCATIONS = " ".join(f"location /wait-{n}/ {{ proxy_pass http://shop{n}; {KEPT} }}" for n in range(1, 6))
ONE_POOL = " ".join(f"location /wait-{n}/ {{ proxy_pass http://shop; {KEPT} }}" for n in range(1, 6))
TWO_SERVERS = f"upstream shop {{ server {BACKEND}:%d max_fails=0; server {BACKEND}:8080 max_fails=0; keepalive 8; }}"
FIVE_PLACES = f"curl --silent --output /dev/null http://{SITE}/wait-[1-5]/bytes-[301-306]"

RECORDED = {
    "backend-no-keepalive": Case(
        title="nginx before 1.29.7 as it is by default: a connection to the backend for each request",
        http=NO_POOL, server=TO_BACKEND % "", backend=True, clients=[curl(8)],
        see="""\
- The client keeps one connection for its eight requests. nginx opens eight to the backend, 10 ms each.
- nginx asks with `HTTP/1.0` and `Connection: close`; the backend would keep connections.""",
    ),
    "backend-no-keepalive-clean": Case(
        title="nginx with a pool of connections to the backend",
        http=POOL, server=TO_BACKEND % KEPT, backend=True, clients=[curl(8)],
        see="- One connection in front, one behind, eight requests on each: the twin of `backend-no-keepalive`.",
    ),
    "client-no-reuse": Case(
        title="A shell script that calls curl for each object",
        clients=[curl(1)] * 6,
        see="""\
- Six connections with a request each, one after the other. The client closes each; the server would have kept it
  (`Connection: keep-alive`).""",
    ),
    "client-no-reuse-clean": Case(
        title="One curl for all objects",
        clients=[curl(6)],
        see="- One connection with six requests: the twin of `client-no-reuse`.",
    ),
    "server-closes-each-response": Case(
        title="A server that closes after every response",
        server=f"keepalive_timeout 0; {ANSWER}",
        clients=[f"wget --quiet --output-document=/dev/null {' '.join(f'http://{SITE}/{n}' for n in range(6))}"],
        see="""\
- wget asks for `Connection: Keep-Alive`; nginx with `keepalive_timeout 0` answers `Connection: close`, and closes.
- Six connections for six requests.""",
    ),
    "server-closes-each-response-clean": Case(
        title="A server that keeps connections",
        clients=[f"wget --quiet --output-document=/dev/null {' '.join(f'http://{SITE}/{n}' for n in range(6))}"],
        see="- One connection with six requests: the twin of `server-closes-each-response`.",
    ),
    "keepalive-request-cap": Case(
        title="A server that closes after ten requests",
        server=f"keepalive_requests 10; {ANSWER}", clients=[curl(45)],
        see="""\
- Five connections: ten requests on each of the first four, five on the last.
- The server says `Connection: close` in every tenth response. The client opens the next connection at once.""",
    ),
    "keepalive-request-cap-clean": Case(
        title="A server that allows a thousand requests",
        clients=[curl(45)],
        see="- One connection with 45 requests: the twin of `keepalive-request-cap`.",
    ),
    "keepalive-idle-too-short": Case(
        title="A server that closes after a second, asked every other second",
        server=f"keepalive_timeout 1s; {ANSWER}", clients=[f"python3 patient.py {SITE} 1.2 1.9 1.4 2.3 1.3"],
        see="""\
- Six connections with a request each. nginx closes each after a second of idling; the client asks again a little
  later, on a new one.""",
    ),
    "keepalive-idle-too-short-clean": Case(
        title="A server that waits for 75 seconds, asked every other second",
        server=f"keepalive_timeout 75s; {ANSWER}", clients=[f"python3 patient.py {SITE} 1.2 1.9 1.4 2.3 1.3"],
        see="- One connection with six requests: the twin of `keepalive-idle-too-short`.",
    ),
    "pool-too-small": Case(
        title="A Go client that keeps two idle connections and asks eight times at a time",
        http=POOL, server=TO_BACKEND % KEPT, backend=True,
        clients=[f"pooling -url http://{SITE}/wait-20/bytes-300 -at-a-time 8 -rounds 6"],
        see="""\
- Six rounds of eight requests at a time. Go keeps two idle connections (`MaxIdleConnsPerHost`), closes each further
  one right after its response, and opens another one in the next round.""",
    ),
    "pool-too-small-clean": Case(
        title="A Go client that keeps eight idle connections and asks eight times at a time",
        http=POOL, server=TO_BACKEND % KEPT, backend=True,
        clients=[f"pooling -url http://{SITE}/wait-20/bytes-300 -at-a-time 8 -rounds 6 -idle 8"],
        see="- Eight connections, used again in each round: the twin of `pool-too-small`.",
    ),
    "pool-fragmented": Case(
        title="nginx with an upstream of its own for each location, all to the same server",
        http=FIVE_POOLS, server=FIVE_LOCATIONS, backend=True, clients=[FIVE_PLACES],
        see="""\
- Thirty requests to five locations, one after the other: one connection to the backend would do. There are five: each
  upstream has a pool, and none knows that another's connection is idle.""",
    ),
    "pool-fragmented-clean": Case(
        title="nginx with one upstream for all locations",
        http=POOL, server=ONE_POOL, backend=True, clients=[FIVE_PLACES],
        see="- One connection to the backend for thirty requests: the twin of `pool-fragmented`.",
    ),
    "haproxy-safe-first-request": Case(
        title="HAProxy's default: the first request of each client on a new connection",
        haproxy="safe", backend=True, clients=[curl(4)] * 6,
        see="""\
- Six clients, one after the other, with four requests each. For the first request of each HAProxy opens a connection to
  the backend, though those of the clients before are idle. Later requests use idle ones.""",
    ),
    "haproxy-safe-first-request-clean": Case(
        title="HAProxy that uses idle connections for first requests too",
        haproxy="always", backend=True, clients=[curl(4)] * 6,
        see="- One connection to the backend for all 24 requests: the twin of `haproxy-safe-first-request`.",
    ),
    "h1-parallel-instead-of-h2": Case(
        title="Eight requests at a time over HTTP/1.1, where the client could HTTP/2",
        listen=f"{FRONT}:443 ssl", http=POOL, server=TO_BACKEND % KEPT, backend=True,
        clients=[f"pooling -url https://{SITE}/wait-20/bytes-300 -first 2 -at-a-time 8 -rounds 2 -idle 8"],
        see="""\
- The client offers `h2`; nginx, not told to, speaks HTTP/1.1. After two requests on one connection the client has eight at a
  time, and opens seven more, each with a TCP and a TLS handshake.""",
    ),
    "h1-parallel-instead-of-h2-clean": Case(
        title="Eight requests at a time on one connection",
        listen=f"{FRONT}:443 ssl http2", http=POOL, server=TO_BACKEND % KEPT, backend=True,
        clients=[f"pooling -url https://{SITE}/wait-20/bytes-300 -first 2 -at-a-time 8 -rounds 2 -idle 8"],
        see="- One connection with HTTP/2: the twin of `h1-parallel-instead-of-h2`.",
    ),
    "unused-connections": Case(
        title="A client that opens six TLS connections and uses two",
        listen=f"{FRONT}:443 ssl", clients=[f"python3 preconnecting.py {SITE} 6 2"],
        see="""\
- Six TLS handshakes, two requests. The other four connections are closed by the client without a request.""",
    ),
    "unused-connections-clean": Case(
        title="A client that opens two TLS connections and uses both",
        listen=f"{FRONT}:443 ssl", clients=[f"python3 preconnecting.py {SITE} 2 2"],
        see="- Two TLS handshakes, two requests: the twin of `unused-connections`.",
    ),
    "connection-refused-or-filtered": Case(
        title="One of two backends refuses connections, and stays in rotation",
        http=TWO_SERVERS % 8081, server=TO_BACKEND % KEPT, backend=True, clients=[curl(8)],
        see="""\
- Nothing listens on port 8081 of the backend. nginx (`max_fails=0`) tries it again and again; each time the request is
  refused first, and goes to port 8080 after that.""",
    ),
    "connection-refused-or-filtered-clean": Case(
        title="Both backends accept connections",
        http=TWO_SERVERS % 8080, server=TO_BACKEND % KEPT, backend=True, clients=[curl(8)],
        see="- The twin of `connection-refused-or-filtered`.",
    ),
}


CASES: dict[str, Callable[[Path], None]] = {name: partial(record, case) for name, case in RECORDED.items()}


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
Written with scapy by `examples/findings/make-captures` (`cases/reuse.py`): no program does this on demand. Not a recording.

    client 192.0.2.10 ── 20 ms round trip ── 198.51.100.20:80 server

Plain HTTP/1.1, Ethernet, microsecond times, valid checksums. Seen from the client.
"""
RACE = f"""# Requests that cross the server's FIN
{CRAFTED}
Three times, the client asks again on a connection that has been idle for 5 s, the server's patience: the server's FIN was sent
5 ms before the request arrived. The client sees it 15 ms after it asked; the server's machine answers the request with RST, 20 ms
after it was sent. The client asks once more on a new connection.

- Each time the first 15 ms, until the FIN told the client, and the 20 ms of the new TCP handshake would not have been.
"""
NO_RACE = f"""# Requests that come in time
{CRAFTED}
Three times, the client asks again after 4 s of idling, before the server closes: the twin of `keepalive-race`.
"""

CASES |= {name: keepalive_race for name in ("keepalive-race", "keepalive-race-clean")}
