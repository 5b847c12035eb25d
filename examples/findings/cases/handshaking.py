"""Which handshakes there are: full ones that need not be, versions, groups, certificates, early data.

client 10.131.1.10 ──10 ms── 10.131.1.20 server

The cables keep time best with ``chrt --rr 5 examples/findings/make-captures``, as those of ``examples/round-trips`` do.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from avenue import BACKEND, CERTIFIED, FRONT, KEEP_ALIVE, SITE, Scene, record, start_nginx
from lab.keys import make_keys
from lab.listening import Listener, settle
from lab.network import Network, ip, stop
from lab.programs import require, versions

CLIENT = "10.131.1.10"
SERVER = "10.131.1.20"
PATIENCE_SECONDS = 60

VISITOR = Path(__file__).parents[1] / "visitor.py"
ROOTS = Path("/etc/ssl/certs")

BEHIND_BALANCER = (8443, 8444)
BOTH_VERSIONS = "ssl_protocols TLSv1.2 TLSv1.3"
TICKETS = ("ssl_session_cache off", BOTH_VERSIONS)
SESSION_IDS = ("ssl_session_cache shared:TLS:1m", "ssl_session_tickets off", BOTH_VERSIONS)
NO_SESSIONS = ("ssl_session_cache off", "ssl_session_tickets off", BOTH_VERSIONS)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A client that visits a server, with tcpdump at the client."""

    title: str
    visits: tuple[str, ...] = ()
    """Options of ``visitor.py``."""
    early: bool = False
    """The client is ``openssl s_client`` instead: its first request is early data, but on the first
    connection."""
    see: str
    delay_ms: float = 10
    directives: tuple[str, ...] = TICKETS
    then: tuple[str, ...] | None = None
    """Directives with which nginx is started again when the client has been there once."""
    balanced: bool = False
    """Two servers stand behind a balancer that hands connections to them in turn; it reads none of their bytes."""
    shared_ticket_key: bool = False
    keys: str = "rsa:2048"
    chain: int = 0
    """How many certificates that the chain does not need are sent behind the server's own."""
    authority: bool = False
    """The authority's own certificate is sent, too."""
    first_window: int | None = None
    """The server's initial congestion window, in segments; the system's where it is None."""


class Street(Network):
    """A client, and a server some way off."""

    def __init__(self, delay_ms: float) -> None:
        """Name the hosts."""
        super().__init__("client", "server")
        self.client, self.server = self.hosts
        self.delay_ms = delay_ms

    def build(self) -> None:
        """Lay the cable and say where the site is."""
        self.long_cable(self.client, CLIENT, self.server, SERVER, self.delay_ms)
        self.name_the_site(self.client, SERVER, SITE)


def nginx(listen: str, directives: tuple[str, ...]) -> str:
    """Answer over TLS, as the directives say."""
    lines = " ".join(f"{directive};" for directive in directives)
    return f"""\
    server {{
        listen {listen} ssl; {CERTIFIED}
        {lines}
        location / {{ default_type text/plain; return 200 'the shelf is full of fine things'; }}
    }}
"""


BALANCER = """\
global
    nbthread 1
defaults
    mode tcp
    timeout connect 5s
    timeout client 30s
    timeout server 30s
listen shop
    bind {front}:443
    balance roundrobin
{servers}
"""


def start_servers(street: Street, case: Case, directives: tuple[str, ...]) -> list[subprocess.Popen[bytes]]:
    """Start what answers at the site's address."""
    if case.shared_ticket_key:
        directives += ("ssl_session_ticket_key @KEYS@/ticket.key",)
    if not case.balanced:
        return [start_nginx(street, street.server, 443, nginx(f"{SERVER}:443", directives))]
    programs = [
        start_nginx(street, street.server, port, nginx(f"127.0.0.1:{port}", directives)) for port in BEHIND_BALANCER
    ]
    servers = "\n".join(f"    server nginx-{port} 127.0.0.1:{port}" for port in BEHIND_BALANCER)
    configuration = street.folder / "haproxy.cfg"
    configuration.write_text(BALANCER.format(front=SERVER, servers=servers))
    return [*programs, street.start_server(street.server, 443, ["haproxy", "-db", "-f", configuration])]


def make_chain(keys: Path, case: Case) -> None:
    """Append to the server's certificate what the case sends behind it; make a ticket key."""
    (keys / "ticket.key").write_bytes(bytes(range(80)))
    parts = [(keys / "server.crt").read_text()]
    parts += [(keys / "authority.crt").read_text()] * case.authority
    parts += [path.read_text() for path in sorted(ROOTS.glob("*.pem"))[: case.chain]]
    (keys / "server.crt").write_text("".join(parts))


def make(case: Case, folder: Path) -> None:
    """Let the client visit, and keep what was heard."""
    require(("ip", "tcpdump", "openssl", "nginx", "haproxy"))
    with Street(case.delay_ms) as street:
        keys = make_keys(street.folder / "keys", case.keys)
        make_chain(keys, case)
        servers = start_servers(street, case, case.directives)
        if case.first_window:
            ip("-n", street.server.namespace, "route", "change", "10.131.1.0/24", "dev", "to-client",
               "src", SERVER, "initcwnd", str(case.first_window))  # fmt: skip
        visit(street, case, keys, ("--visits", "1"))  # pays for start-up
        settle()
        listener = Listener(street, street.client, "to-server", "tcp port 443", street.folder / "input.pcap")
        if case.early:
            visit_early(street, keys, case, servers)
        else:
            visit(street, case, keys, case.visits)
        settle()
        listener.stop()
        shutil.copyfile(listener.capture, folder / "input.pcap")
    (folder / "README.md").write_text(readme(folder.name, case))


def visit(street: Street, case: Case, keys: Path, options: tuple[str, ...]) -> None:
    """Run ``visitor.py`` to its end."""
    words = [sys.executable, VISITOR, SITE, keys / "authority.crt", *options]
    subprocess.run(street.client.command(words), check=True, timeout=PATIENCE_SECONDS)


EARLY_CONNECTIONS = 4
GET = f"GET / HTTP/1.1\r\nHost: {SITE}\r\nUser-Agent: early\r\n\r\n"
LAST = GET.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")


def visit_early(street: Street, keys: Path, case: Case, servers: list[subprocess.Popen[bytes]]) -> None:
    """Visit once, for a session; then offer it, and with it the first request, on each connection."""
    session, request = street.folder / "session.pem", street.folder / "request"
    request.write_text(GET)
    words = ["openssl", "s_client", "-connect", f"{SITE}:443", "-servername", SITE, "-tls1_3", "-quiet", "-ign_eof"]
    words += ["-CAfile", str(keys / "authority.crt"), "-verify_return_error"]
    ask(street, [*words, "-sess_out", str(session)], (GET, GET, LAST), wait=False)
    if case.then is not None:
        for server in servers:
            stop(server)
        start_servers(street, case, case.then)
    for _ in range(EARLY_CONNECTIONS):
        # Early data that is refused is asked again: s_client leaves that to who uses it.
        again = (GET,) if case.then is not None else ()
        offer = [*words, "-sess_in", str(session), "-early_data", str(request)]
        ask(street, offer, (*again, GET, LAST), wait=case.then is None)


def ask(street: Street, words: list[str], requests: tuple[str, ...], *, wait: bool) -> None:
    """Run ``s_client`` and give it requests, each with time enough for the answer to the one before.

    The first is there before the connection is, unless it has one before it, too, and has to ``wait``.
    """
    pause = "sleep 0.4; "
    script = pause.join(f"printf %s {shlex.quote(request)}; " for request in requests)
    program = street.start(
        street.client, ["sh", "-c", f"{{ {pause * wait}{script}}} | {shlex.join(words)}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    program.wait(PATIENCE_SECONDS)


def readme(name: str, case: Case) -> str:
    """Say how the capture was made and what to see."""
    how = (
        "openssl s_client -early_data"
        if case.early
        else shlex.join(["visitor.py", SITE, "authority.crt", *case.visits])
    )
    settings = "".join(f"; `{directive}`" for directive in case.directives)
    if case.balanced:
        settings += "; two of them on one machine, behind HAProxy (`mode tcp`, `balance roundrobin`)"
        settings += (
            ", with one `ssl_session_ticket_key`" if case.shared_ticket_key else ", each with ticket keys of its own"
        )
    settings += f"; {case.chain} root certificates of the system behind its own" if case.chain else ""
    settings += "; the authority's certificate behind its own" if case.authority else ""
    settings += f"; `ip route … initcwnd {case.first_window}`" if case.first_window else ""
    if case.then is not None:
        settings += f". After the first visit started again with {', '.join(f'`{word}`' for word in case.then)}"
    programs = [("openssl", "version"), ("nginx", "-v"), ("tcpdump", "--version")]
    programs += [] if case.early else [(sys.executable, "--version")]
    programs += [("haproxy", "-v")] if case.balanced else []
    return f"""\
# {case.title}

Made by `examples/findings/make-captures {name}`.

## Topology

    client {CLIENT} ──{case.delay_ms:g} ms── {SERVER}:443 server

Two network namespaces on one machine (`examples/lab/delay_line.py` makes the distance), captured on the client.

## How it was made

    {how}

{point(f"Server: nginx{settings}; {case.keys.upper().replace(':', ' ')} certificate.")}
- Client: `examples/findings/visitor.py` unless named otherwise: three requests on each connection.
- `tcpdump -n --time-stamp-precision=nano -w input.pcap tcp port 443`

{versions(programs)}

## What to see

{point(case.see)}
"""


def point(text: str) -> str:
    """One point of a list, in lines."""
    return textwrap.fill(text, 115, initial_indent="- ", subsequent_indent="  ")


def leg(offered: str, *, title: str, see: str) -> Scene:
    """Clients that come all at once to a proxy, when it has no connection to its backend yet."""
    return Scene(
        title=title,
        see=see,
        nginx=f"""\
    upstream shop {{ server {BACKEND}:443; keepalive 8; }}
    server {{
        listen {FRONT}:80;
        location / {{
            proxy_pass https://shop; {KEEP_ALIVE}
            proxy_ssl_trusted_certificate @KEYS@/authority.crt; proxy_ssl_verify on; proxy_ssl_name {SITE};
            proxy_ssl_protocols {offered};
        }}
    }}
""",
        nginx_behind=nginx(f"{BACKEND}:443", TICKETS),
        back_ms=5,
        clients=["curl --silent --fail" + f" http://{SITE}/" * 3 + " &"] * 3,
    )


FORGETFUL = Case(
    title="A client that forgets its TLS sessions",
    visits=("--visits", "4", "--version", "1.2"),
    see="The server issues a ticket on each connection; the client offers none on the next: a full "
    "handshake each time, of two round trips.",
)
REFUSED = Case(
    title="Session tickets that half of the servers cannot open",
    visits=("--visits", "4", "--version", "1.2", "--resume"),
    balanced=True,
    see="The client offers the ticket of its last visit. Connections go to the two servers in turn, each "
    "of which can open its own tickets alone: a full handshake and another ticket each time.",
)
REFUSED_NEAR = replace(
    REFUSED, title="Pre-shared keys that half of the servers cannot open, on a short path",
    delay_ms=0.2, keys="rsa:4096", visits=("--visits", "12", "--version", "1.3", "--resume"),
    see="Eleven of twelve ClientHellos have a pre_shared_key, no ServerHello has one. The path is short and the key is "
    "long: nearly all that users wait for is the signature, and its verification.",
)  # fmt: skip
UNISSUED = Case(
    title="A server that lets no session be resumed",
    visits=("--visits", "4", "--version", "1.2", "--resume"),
    directives=NO_SESSIONS,
    see="The client's hello says that it takes tickets. The ServerHello has no session_ticket extension "
    "and an empty session id: there is nothing that the client could offer next time.",
)
OLD_VERSION = Case(
    title="A server that speaks TLS 1.2 to a client that offers TLS 1.3",
    visits=("--visits", "3", "--together"),
    directives=("ssl_session_cache off", "ssl_protocols TLSv1.2"),
    see="Three connections at once, so that none can resume another's session. supported_versions of the "
    "client has 1.3; the server chooses 1.2: two round trips each.",
)
RETRIED = Case(
    title="A server that wants another key share",
    visits=("--visits", "3", "--resume"),
    directives=(*TICKETS, "ssl_ecdh_curve secp384r1"),
    see="The client's key share is X25519. The server asks for secp384r1 each time (HelloRetryRequest): "
    "one more round trip, on resumed connections, too.",
)
SMALL_WINDOW = Case(
    title="A certificate that does not fit into the first window",
    visits=("--visits", "3", "--together"),
    keys="rsa:4096",
    authority=True,
    chain=1,
    first_window=2,
    see="The server's flight has four segments. It may send two, and waits a round trip for their acknowledgement.",
)
HEAVY = Case(
    title="A certificate with a bundle of roots behind it",
    visits=("--visits", "3", "--together", "--version", "1.2"),
    chain=20,
    see="The Certificate message has more bytes than ten segments: the server waits for acknowledgements in its midst.",
)
EARLY_UNUSED = Case(
    title="A far client that resumes, and waits before it asks",
    visits=("--visits", "4", "--resume", "--version", "1.3"),
    delay_ms=40,
    see="Resumed handshakes of one round trip, then the request. The ClientHello could have carried it.",
)
EARLY_REJECTED = Case(
    title="Early data that the server does not take",
    early=True,
    delay_ms=40,
    directives=(*TICKETS, "ssl_early_data on"),
    then=TICKETS,
    shared_ticket_key=True,
    see="On all connections but the first the request goes with the ClientHello. The server resumes, "
    "ignores the early data, and is asked again when the handshake is done.",
)

_CASES = {
    "full-handshakes-never-resumed": FORGETFUL,
    "full-handshakes-never-resumed-clean": replace(
        FORGETFUL, title="A client that keeps its TLS sessions", visits=(*FORGETFUL.visits, "--resume"),
        see="From the second connection on the client offers the ticket: one round trip.",
    ),
    "full-handshakes-never-resumed-tls13": replace(
        FORGETFUL, title="A client that forgets its TLS 1.3 sessions", visits=("--visits", "4", "--version", "1.3"),
        see="No ClientHello has a pre_shared_key. In TLS 1.3 a full handshake takes one round trip, as a "
        "resumed one: what it costs more is computing, and the certificate's bytes.",
    ),
    "full-handshakes-never-resumed-tls13-clean": replace(
        FORGETFUL, title="A client that keeps its TLS 1.3 sessions",
        visits=("--visits", "4", "--version", "1.3", "--resume"),
        see="From the second connection on there is a pre_shared_key, and no certificate.",
    ),
    "full-handshakes-never-resumed-ids": replace(
        FORGETFUL, title="A client that forgets its session ids", visits=("--visits", "3", "--version", "1.2"),
        directives=SESSION_IDS,
        see="Each ServerHello has a session id. The next ClientHello, of the same fingerprint, has none.",
    ),
    "full-handshakes-never-resumed-ids-clean": replace(
        FORGETFUL, title="A client that keeps its session ids",
        visits=("--visits", "3", "--version", "1.2", "--resume"), directives=SESSION_IDS,
        see="From the second connection on the ClientHello has the session id, and so has the ServerHello.",
    ),
    "resumption-refused": REFUSED,
    "resumption-refused-clean": replace(
        REFUSED, title="Session tickets that every server can open", shared_ticket_key=True,
        see="Both servers have the same ticket key: whichever it is, it resumes.",
    ),
    "resumption-refused-tls13": replace(
        REFUSED, title="Pre-shared keys that half of the servers cannot open",
        visits=("--visits", "4", "--version", "1.3", "--resume"),
        see="The ClientHello has a pre_shared_key, the ServerHello has none.",
    ),
    "resumption-refused-tls13-near": REFUSED_NEAR,
    "resumption-refused-tls13-near-clean": replace(
        REFUSED_NEAR, title="Pre-shared keys that every server can open, on a short path", shared_ticket_key=True,
        see="Both servers have the same ticket key: one full handshake, and eleven without a signature.",
    ),
    "no-ticket-issued": UNISSUED,
    "no-ticket-issued-clean": replace(
        UNISSUED, title="A server that issues session tickets", directives=TICKETS,
        see="NewSessionTicket on the first connection; it is resumed on the others.",
    ),
    "tls12-where-13-possible": OLD_VERSION,
    "tls12-where-13-possible-clean": replace(
        OLD_VERSION, title="TLS 1.3 with a client that offers it", directives=TICKETS,
        see="One round trip each.",
    ),
    "hello-retry-request": RETRIED,
    "hello-retry-request-clean": replace(
        RETRIED, title="A server that takes the first key share", directives=TICKETS,
        see="The key share of the first hello is accepted.",
    ),
    "server-flight-exceeds-initcwnd": SMALL_WINDOW,
    "server-flight-exceeds-initcwnd-clean": replace(
        SMALL_WINDOW, title="A certificate that fits into the first window", first_window=10,
        see="The server's flight comes at once.",
    ),
    "certificate-chain-heavy": HEAVY,
    "certificate-chain-heavy-clean": replace(
        HEAVY, title="A certificate alone", chain=0, see="The Certificate message fits into one segment.",
    ),
    "early-data-unused": EARLY_UNUSED,
    "early-data-unused-clean": replace(
        EARLY_REJECTED, title="A far client that asks with its ClientHello", then=None,
        see="On all connections but the first the request goes with the ClientHello, and is answered a "
        "round trip later.",
    ),
    "early-data-rejected": EARLY_REJECTED,
}  # fmt: skip

CASES: dict[str, Callable[[Path], None]] = {name: partial(make, case) for name, case in _CASES.items()} | {
    "proxy-backend-leg-tls12": partial(record, leg(
        "TLSv1 TLSv1.1 TLSv1.2", title="A proxy that offers its backend no more than TLS 1.2",
        see="- nginx before 1.23.4 has `proxy_ssl_protocols TLSv1 TLSv1.1 TLSv1.2` by default: the backend, which can\n"
        "  do 1.3, is asked for 1.2, and each new connection waits for a second round trip.",
    )),
    "proxy-backend-leg-tls12-clean": partial(record, leg(
        "TLSv1.2 TLSv1.3", title="A proxy that offers its backend TLS 1.3",
        see="- One round trip for each new connection.",
    )),
}  # fmt: skip
