"""TLS handshakes that take long, fail, or are waited for: real clients and servers that are slow where they are told.

client 10.97.1.10 to .13 ──5 ms── 10.97.1.20 to .22 server: several addresses, so that several clients each open one
connection, or one client a connection to each of several servers. What nobody does on demand is crafted.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from lab.clients import Words, run_clients
from lab.keys import make_keys
from lab.listening import Listener, settle
from lab.network import Host, Network, ip
from lab.programs import require, versions
from talk import Capture, Talk

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"
LAB = PROGRAMS.parents[1] / "lab"
NAME = "shop.example"
CLIENTS = [f"10.97.1.{number}" for number in (10, 11, 12, 13)]
SERVERS = [f"10.97.1.{number}" for number in (20, 21, 22)]
DELAY_MS = 5
MANY_CLIENTS = ",".join(f"{client}-{SERVERS[0]}" for client in CLIENTS)
MANY_SERVERS = ",".join(f"{CLIENTS[0]}-{server}" for server in SERVERS)
REVOCATION = f"http://{SERVERS[2]}/wait-60/bytes-400"
SECOND_SEGMENTS = ("drop:from=left,number=8", "drop:from=left,number=15", "drop:from=left,number=22")


class Street(Network):
    """One client, one server, a cable between."""

    def __init__(self, rules: tuple[str, ...] = ()) -> None:
        """Name the hosts; ``rules`` say what the cable loses."""
        super().__init__("client", "server")
        self.client, self.server = self.hosts
        self.rules = rules

    def build(self) -> None:
        """Lay the cable, give both ends their other addresses."""
        self.long_cable(self.client, CLIENTS[0], self.server, SERVERS[0], DELAY_MS, rules=self.rules)
        for host, end, addresses in (
            (self.client, "to-server", CLIENTS[1:]), (self.server, "to-client", SERVERS[1:]),
        ):  # fmt: skip
            for address in addresses:
                ip("-n", host.namespace, "address", "add", f"{address}/24", "dev", end)
        self.name_the_site(self.client, SERVERS[0], NAME)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One run."""

    title: str
    see: str
    client: tuple[str, ...] = ()
    """Options of shopper.go after the pairs."""
    pairs: str = MANY_CLIENTS
    commands: tuple[Words, ...] = ()
    """Other clients instead, one after the other."""
    server: tuple[str, ...] = ("https",)
    port: int = 443
    rules: tuple[str, ...] = ()
    packets: str = "tcp"
    may_fail: bool = False
    """The clients end with an error: that is the lesson."""
    vantage: str = "client"


def make(case: Case, folder: Path) -> None:
    """Run the case and keep what was heard."""
    require(("ip", "tcpdump", "openssl", "go", "curl", "python3"))
    with Street(case.rules) as street:
        keys = make_keys(street.folder / "keys", "rsa:2048")
        desk = street.folder / "desk"
        desk.mkdir()
        shutil.copytree(keys, desk / "keys")
        start_servers(street, case, keys)
        commands = case.commands or (shopper(street, case),)
        host: Host = {"client": street.client, "server": street.server}[case.vantage]
        interface = {"client": "to-server", "server": "to-client"}[case.vantage]
        listener = Listener(street, host, interface, case.packets, street.folder / "input.pcap")
        for words in commands:
            with suppress(RuntimeError) if case.may_fail else nullcontext():
                run_clients(street, street.client, [words], desk, {})
        settle()
        listener.stop()
        shutil.copyfile(listener.capture, folder / "input.pcap")
    (folder / "README.md").write_text(readme(case))


def start_servers(street: Street, case: Case, keys: Path) -> None:
    """Start what answers, and the revocation list's server beside it."""
    backend = [sys.executable, LAB / "backend.py", SERVERS[2], "80"]
    street.start_server(street.server, 80, backend)
    words: list[str | Path] = [
        sys.executable,
        PROGRAMS / "tls_server.py",
        "0.0.0.0",
        str(case.port),
        keys,
        *case.server,
    ]
    street.start_server(street.server, case.port, words)


def shopper(street: Street, case: Case) -> Words:
    """Build the client, return its command."""
    built = street.folder / "shopper"
    subprocess.run(["go", "build", "-o", built, PROGRAMS / "shopper.go"], check=True)
    return (str(built), NAME, "keys/authority.crt", case.pairs, *case.client)


def readme(case: Case) -> str:
    """Say what the capture is."""
    client = " ".join(("shopper", NAME, "keys/authority.crt", case.pairs, *case.client))
    commands = [" ".join(words) for words in case.commands] or [client]
    lost = f"\nThe cable loses, once each: `{' '.join(case.rules)}` (`examples/lab/rules.py`).\n" if case.rules else ""
    programs = [["go", "version"], ["python3", "-V"], ["curl", "-V"], ["openssl", "version"], ["tcpdump", "--version"]]
    return f"""\
# {case.title}

Made by `examples/findings/make-captures`: real programs that are slow, or rude, where they are told.

## Topology

    client 10.97.1.10 to .13 ──5 ms── 10.97.1.20 to .22 server

Two network namespaces on one machine, each with several addresses (`examples/lab/delay_line.py` makes the distance).
{lost}
## How it was made

{textwrap.indent(chr(10).join(commands), "    ")}

- Server: `examples/findings/programs/tls_server.py ADDRESS {case.port} KEYS {" ".join(case.server)}`, RSA of 2048 bits.
- Client: see above; `shopper` is `examples/findings/programs/shopper.go`.
- Captured on the {case.vantage}: `tcpdump -n --time-stamp-precision=nano -w input.pcap {case.packets}`.

{versions(programs)}

## What to see

{case.see}"""


def mail(kind: str, client: str) -> Words:
    """Have curl send a mail."""
    secured = ("--ssl-reqd",) if kind == "smtp" else ()
    port = {"smtp": 25, "smtps": 465}[kind]
    return (
        "curl", "--silent", "--show-error", "--cacert", "keys/authority.crt", *secured, "--interface", client,
        f"{kind}://{NAME}:{port}", "--mail-from", "a@shop.example", "--mail-rcpt", "b@shop.example",
        "--upload-file", "body-300",
    )  # fmt: skip


def fetch(client: str, *trust: str) -> Words:
    """Have curl ask once."""
    return ("curl", "--silent", "--show-error", "--output", "page", "--interface", client, *trust, f"https://{NAME}/")


TRUST = ("--cacert", "keys/authority.crt")
LAB_CASES = {
    "server-crypto-slow": Case(
        title="A server that looks 40 ms for its certificate",
        server=("https", "lookup=40"),
        see="- Between ClientHello and ServerHello lie 50 ms; the round trip is 10 ms.\n"
        "- Everything else is as in `server-crypto-slow-clean`.\n",
    ),
    "server-crypto-slow-clean": Case(
        title="A server that has its certificate at hand",
        see="- Between ClientHello and ServerHello lies the round trip, and a millisecond or two for the signature.\n",
    ),
    "client-verify-slow": Case(
        title="A client that fetches a revocation list before it trusts a certificate",
        pairs=MANY_SERVERS,
        client=(f"verify-{REVOCATION}",),
        see="- After the server's flight the client opens a connection to 10.97.1.22:80, asks, and waits 60 ms for\n"
        "  the answer; only then comes its Finished.\n",
    ),
    "client-verify-slow-clean": Case(
        title="A client that trusts a certificate as it is",
        pairs=MANY_SERVERS,
        see="- The client's Finished follows the server's flight within a millisecond or two.\n",
    ),
    "gap-before-clienthello": Case(
        title="A client that is busy between connect() and its handshake",
        pairs=MANY_SERVERS,
        client=("hello-45",),
        see="- SYN, SYN-ACK, ACK; then nothing for 45 ms; then the ClientHello.\n",
    ),
    "gap-before-clienthello-clean": Case(
        title="A client that begins its handshake at once",
        pairs=MANY_SERVERS,
        see="- The ClientHello follows the ACK of the SYN-ACK within a millisecond.\n",
    ),
    "handshake-failure": Case(
        title="A client that does not trust the server's certificate",
        commands=(fetch(CLIENTS[0]), fetch(CLIENTS[1], *TRUST)),
        may_fail=True,
        see="- The first client does not know the authority: a fatal alert, `unknown_ca`. The second one does.\n",
    ),
    "handshake-failure-clean": Case(
        title="Two clients that trust the server's certificate",
        commands=(fetch(CLIENTS[0], *TRUST), fetch(CLIENTS[1], *TRUST)),
        see="- Both handshakes are complete.\n",
    ),
    "mtls-overhead": Case(
        title="A client whose key signs in 80 ms",
        pairs=MANY_SERVERS,
        client=("sign-80",),
        server=("https", "ask=1"),
        see="- The server asks for a certificate. The client's flight, with its signature, comes 80 ms after the\n"
        "  server's.\n",
    ),
    "mtls-overhead-clean": Case(
        title="A client whose key signs at once",
        pairs=MANY_SERVERS,
        client=("sign-0",),
        server=("https", "ask=1"),
        see="- The server asks for a certificate. The client's flight follows the server's at once.\n",
    ),
    "big-clienthello-trouble": Case(
        title="Something on the path that loses the second segment of a ClientHello",
        client=("small-1",),
        rules=SECOND_SEGMENTS,
        see="- The first client's ClientHello fits into one segment, and is answered. Those of the other three have a\n"
        "  post-quantum key share and two segments, of which the second is lost, and sent again.\n",
    ),
    "big-clienthello-trouble-clean": Case(
        title="ClientHellos of two segments, and a path that takes them",
        client=("small-1",),
        see="- Three of four ClientHellos have two segments. All are answered.\n",
    ),
    "unclean-close": Case(
        title="A server that breaks a response off with a RST",
        server=("https", "reset=2"),
        see="- On every second connection half of a response, then a RST of the server's: no close_notify, no FIN.\n",
    ),
    "unclean-close-clean": Case(
        title="A server that lets its clients close",
        see="- All responses are whole. The clients close with close_notify and FIN.\n",
    ),
    "pre-tls-turns": Case(
        title="Three clients send mail, and begin in clear",
        commands=tuple(mail("smtp", client) for client in CLIENTS[:3]),
        server=("smtp",),
        port=25,
        see="- Greeting, EHLO, STARTTLS: three turns before the ClientHello. After the handshake EHLO comes again.\n",
    ),
    "pre-tls-turns-clean": Case(
        title="Three clients send mail, with TLS from the first byte",
        commands=tuple(mail("smtps", client) for client in CLIENTS[:3]),
        server=("smtps",),
        port=465,
        see="- The ClientHello is the first that is said.\n",
    ),
}


GAP_MS = 30
FRONT, PROXY, BACKEND = "192.0.2.10", "198.51.100.20", "203.0.113.30"


def waiting_proxy(gap_ms: float) -> Callable[[Path], None]:
    """Craft a proxy that takes ``gap_ms`` between its connection and its request."""

    def write(folder: Path) -> None:
        capture = Capture()
        for number in range(4):
            trace = f"{number + 1:032x}"
            head = f"GET /{number} HTTP/1.1\r\nHost: shop.example\r\nX-Request-Id: {trace}\r\n\r\n".encode()
            reply = b"HTTP/1.1 200 OK\r\nServer: proxy\r\nContent-Length: 300\r\n\r\n" + b"x" * 300
            front = Talk(capture, after_ms=number, port=51_000 + number, client=f"192.0.2.{10 + number}", server=PROXY)
            back = Talk(capture, after_ms=number, port=40_000 + number, client=PROXY, server=BACKEND, server_port=8081)
            front.handshake(0.5)
            front.wait(0.1)
            front.client("PA", head)
            back.now = front.now
            back.wait(0.3)
            back.handshake(4)
            back.wait(0.1 + gap_ms)
            back.client("PA", head)
            back.wait(4)
            back.server("A")
            back.wait(20)
            back.server("PA", reply)
            back.wait(0.05)
            back.client()
            front.now = back.now
            front.wait(0.3)
            front.server("PA", reply)
            front.wait(0.5)
            front.client()
        capture.write(folder / "input.pcap")
        pause = f"then nothing for {gap_ms:g} ms; then the request" if gap_ms else "and the request follows at once"
        (folder / "README.md").write_text(f"""\
# A proxy that {"waits with its request" if gap_ms else "sends its request at once"}

Written with scapy by `examples/findings/make-captures`: no proxy does this on demand. Not a recording.

    client 192.0.2.10 to .13 ── 0.5 ms ── 198.51.100.20:80 proxy ── 4 ms ── 203.0.113.30:8081 backend

Plain HTTP/1.1, Ethernet, microsecond times, seen from the proxy. Four clients ask within 3 ms; for each request
the proxy opens a connection to the backend, which answers after 20 ms. The X-Request-Id of a request stands
on both legs.

- SYN, SYN-ACK, ACK to the backend, {pause}.
""")

    return write


def _lab(case: Case) -> Callable[[Path], None]:
    return lambda folder: make(case, folder)


CASES: dict[str, Callable[[Path], None]] = {
    **{name: _lab(case) for name, case in LAB_CASES.items()},
    "gap-before-first-request": waiting_proxy(GAP_MS),
    "gap-before-first-request-clean": waiting_proxy(0),
}
