"""The cases: what the line does, who serves, who asks, and what is to be seen."""

from __future__ import annotations

from dataclasses import dataclass

CHROMIUM = "chromium"


@dataclass(frozen=True, kw_only=True)
class Case:
    """One capture."""

    title: str
    ask: tuple[str, ...]
    """Options and paths of ``ask.py``; ``chromium`` and a path: that browser."""
    see: str
    serve: tuple[str, ...] = ()
    """Options of ``serve.py``."""
    tunnels: bool = False
    """``tunnels.py`` serves and asks."""
    caddy: bool = False
    """Caddy serves, and not aioquic."""
    long_chain: bool = False
    """The server's certificate has many names, and its authority's authority comes with it."""
    delay_ms: float = 10
    """One way."""
    loss: float = 0
    rules: tuple[str, ...] = ()
    seed: int = 1
    translated: bool = False
    """The client's port is translated, and the translation forgotten after a second of silence."""


PAGE = "/bytes-3000"
SLOW_PAGE = "/wait-20/bytes-3000"

CASES = {
    "one": Case(
        title="One request over HTTP/3",
        ask=(SLOW_PAGE,),
        see="""\
- ClientHello and ServerHello in Initial packets, the rest of the server's flight in a Handshake packet of the same
  datagram. The client's Finished and its SETTINGS share a datagram.
- The request is on stream 0. The server thinks for 20 ms; three packets bring the answer.""",
    ),
    "visits": Case(
        title="Three connections, one request each",
        ask=("--visits", "3", PAGE),
        see="""\
- Three full handshakes: each takes one round trip, and so does each request.""",
    ),
    "parallel": Case(
        title="Twenty requests at once",
        ask=tuple(f"/wait-{5 * n % 35}/bytes-{1000 + 100 * n}" for n in range(20)),
        see="""\
- Streams 0, 4, 8 … 76. The server thinks for 0 to 30 ms, so that answers overtake each other.""",
    ),
    "download": Case(
        title="A download of 200,000 bytes",
        ask=("/bytes-200000",),
        see="""\
- The server's congestion window begins at 10 packets and doubles with each round trip (RFC 9002 section 7.3.1).""",
    ),
    "lossy": Case(
        title="Twenty downloads while 3 % of the packets get lost",
        loss=0.03,
        seed=7,
        ask=tuple(f"/bytes-{4000 + 400 * n}" for n in range(20)),
        see="""\
- `truth.json` has what each end took for lost, by packet number. What is sent again has a new number.""",
    ),
    "retry": Case(
        title="A server that answers each first packet with a Retry",
        serve=("--retry",),
        ask=("--visits", "3", PAGE),
        see="""\
- Three connections. Each begins with an Initial packet, a Retry, and the same ClientHello once more, with the token
  of the Retry: one round trip more than in the case `visits`.""",
    ),
    "early": Case(
        title="A resumed session with early data",
        ask=("--visits", "2", "--again", "early", SLOW_PAGE),
        see="""\
- The second connection sends its request in a 0-RTT packet, in the datagram after its ClientHello. The server answers
  before the handshake is complete.""",
    ),
    "early-refused": Case(
        title="Early data that the server refuses",
        serve=("--forget",),
        ask=("--visits", "2", "--again", "early", SLOW_PAGE),
        see="""\
- The second connection sends its request in a 0-RTT packet. The server has forgotten the ticket: a full handshake, and
  the client sends its request again in a 1-RTT packet.""",
    ),
    "resumed": Case(
        title="Resumed sessions without early data",
        delay_ms=30,
        ask=("--visits", "4", "--again", "ticket", SLOW_PAGE),
        see="""\
- From the second connection on, the ClientHello has a ticket and no extension `early_data`, although the server's
  ticket allows it (`max_early_data_size`).""",
    ),
    "tunnels": Case(
        title="Tunnels: CONNECT-UDP, WebTransport and WebSocket over HTTP/3",
        tunnels=True,
        ask=(),
        see="""\
- Stream 0 is a tunnel for UDP to an echo behind the server (RFC 9298): five HTTP datagrams each way in DATAGRAM frames,
  and one in a capsule. The server opens it 30 ms after it was asked.
- Stream 4 is an ordinary request meanwhile, which the server answers after 50 ms: its wait is its own.
- A session of WebTransport with a stream both ways, one from the client, one from the server, and three datagrams. Then
  a WebSocket with four messages each way, and a tunnel that the server refuses with 403.
- `tunnels.json` has what the client handed to HTTP/3 and got from it.""",
    ),
    "version-2": Case(
        title="QUIC version 2",
        ask=("--version", "2", PAGE),
        see="""\
- Version 0x6b3343cf (RFC 9369): other types of long headers, other salts and labels of the keys.""",
    ),
    "chacha20": Case(
        title="ChaCha20-Poly1305",
        ask=("--cipher", "CHACHA20_POLY1305_SHA256", PAGE),
        see="""\
- Headers are protected by ChaCha20, too (RFC 9001 section 5.4.4). Initial packets are AES-128-GCM as always.""",
    ),
    "key-update": Case(
        title="New keys between requests",
        ask=("--one-by-one", "--update", *(f"/bytes-{n}000" for n in range(1, 5))),
        see="""\
- Four requests, one after the other. Before each but the first, the client changes its keys, and the server follows
  (RFC 9001 section 6). `keys.log` has the first secrets alone.""",
    ),
    "rebind": Case(
        title="The client's port changes between requests",
        ask=("--one-by-one", "--rebind", *(f"/bytes-{n}000" for n in range(1, 4))),
        see="""\
- Three requests, each from another port, with the same connection IDs, as after a NAT's timeout. The server validates
  each new path (PATH_CHALLENGE) and sends no more than three times what it got until it is answered.""",
    ),
    "moved": Case(
        title="The client's port changes before each of three requests, which are long, and answers are short",
        delay_ms=30,
        ask=("--one-by-one", "--rebind", "--cookie", "1200", *("/bytes-100",) * 4),
        see="""\
**Fresh**: the rules for captures without keys stood before it was made.

- Each answer fits into three times what the new address has sent by then: nobody waits for the path's validation.""",
    ),
    "moved-limited": Case(
        title="The client's port changes before a request with a long answer",
        delay_ms=30,
        ask=("--one-by-one", "--rebind", "/bytes-100", "/bytes-40000", "/bytes-40000"),
        see="""\
- The server sends PATH_CHALLENGE and as much of its answer as fits into three times what it got (RFC 9000 section 9.3).
  The rest follows when PATH_RESPONSE has come, one round trip later.""",
    ),
    "rebind-caddy": Case(
        title="The client's port changes, and Caddy serves",
        caddy=True,
        delay_ms=30,
        ask=("--one-by-one", "--rebind", "--patience", "5", "/wait-5/bytes-1000", "/wait-5/bytes-30000"),
        see="""\
- The second request comes from another port, with the same connection IDs.""",
    ),
    "rebind-idle": Case(
        title="An address translation forgets the client while the server thinks",
        translated=True,
        delay_ms=30,
        ask=("--apart", "4", "/wait-2500/bytes-40000", "/bytes-500"),
        see="""\
**Fresh**: the rules for captures without keys stood before it was made.

- The translation forgets the client's port after a second of silence. The server begins to answer after 2.5 s, to a
  port that leads nowhere any more; it sends again when its probe timeout has passed, in vain.
- After 4 s, the client asks for something else. That comes from a new port. The server sends data there when its probe
  timeout has run out once more, and validates the path.""",
    ),
    "rebind-idle-kept": Case(
        title="The same, and the client sends a PING every half second",
        translated=True,
        delay_ms=30,
        ask=("--apart", "4", "--ping", "0.5", "/wait-2500/bytes-40000", "/bytes-500"),
        see="""\
**Fresh**: the rules for captures without keys stood before it was made.

- The translation sees a packet every half second, and keeps the port: the answer arrives as soon as it is sent.""",
    ),
    "qpack": Case(
        title="Answers refer to an entry of QPACK's table that has a datagram of its own",
        serve=("--policy", "2000"),
        delay_ms=30,
        ask=("--first-alone", *(f"/bytes-{n}00" for n in range(1, 8))),
        see="""\
**Fresh**: the rules for captures without keys stood before it was made.

- Each answer has the same Content-Security-Policy of 2,000 bytes. When the server sends it for the second time, it
  puts it into the dynamic table (RFC 9204 section 3.2), by an instruction on its encoder stream, and six answers refer
  to it. The instruction fills a datagram, and comes before them.""",
    ),
    "qpack-lost": Case(
        title="A datagram with a part of the instruction is lost",
        serve=("--policy", "2000"),
        delay_ms=30,
        rules=("drop:from=right,kind=udp,number=8",),
        ask=("--first-alone", *(f"/bytes-{n}00" for n in range(1, 8))),
        see="""\
- The instruction needs two datagrams, and one of them is lost, in which an answer may be. The others arrive, and none
  of them can be read: all wait for the instruction (RFC 9204 section 2.1.2), until the
  server has sent it again.""",
    ),
    "first-lost": Case(
        title="The client's first packet is lost",
        rules=("drop:from=left,kind=udp,number=1",),
        ask=(PAGE,),
        see="""\
- Nothing comes back. After 200 ms, its probe timeout, the client sends its ClientHello again.""",
    ),
    "flight-lost": Case(
        title="The server's first flight is lost",
        rules=("drop:from=right,kind=udp,number=1-2",),
        ask=(PAGE,),
        see="""\
- Both datagrams of the server are lost: its flight, and what it sends to the client's probe after 200 ms.""",
    ),
    "tail-lost": Case(
        title="The last packet of an answer is lost",
        rules=("drop:from=right,kind=udp,number=6",),
        ask=(SLOW_PAGE,),
        see="""\
- Nothing follows the lost packet that could tell the server of the loss: it waits for its probe timeout.""",
    ),
    "long-chain": Case(
        title="A certificate too long for three times the first packet",
        long_chain=True,
        ask=("--visits", "3", PAGE),
        see="""\
- The client's first datagram has 1,200 bytes, so that the server may send 3,600 before it knows the client's address
  (RFC 9000 section 8.1). Its flight is longer. The rest comes one round trip later.""",
    ),
    "caddy": Case(
        title="aioquic asks Caddy",
        caddy=True,
        ask=tuple(f"/wait-20/bytes-{1000 * n}" for n in range(1, 6)),
        see="""\
- Five requests at once. Caddy's Initial acknowledgement comes before its flight.""",
    ),
    "chromium": Case(
        title="Chromium loads a page from Caddy",
        caddy=True,
        ask=(CHROMIUM, "/wait-20/page"),
        see="""\
- A page and the four requests that it makes a browser ask, with PRIORITY_UPDATE frames on the control stream.
- Chromium takes a packet of its ClientHello for lost that has arrived: the server acknowledged too soon.""",
    ),
    "steps": Case(
        title="aioquic asks Caddy, one request after the other",
        caddy=True,
        delay_ms=25,
        ask=(
            "--one-by-one",
            "/wait-30/bytes-500",
            "/wait-0/bytes-40000",
            "/wait-80/bytes-2000",
            "/wait-0/bytes-100",
            "/wait-10/bytes-8000",
            "/wait-0/bytes-1200",
        ),
        see="""\
**Held out** from the rules for captures without keys: made after them.

- Six requests, each after the answer to the one before.""",
    ),
    "steps-lossy": Case(
        title="Ten requests, one after the other, while 2 % of the packets get lost",
        delay_ms=20,
        loss=0.02,
        seed=3,
        ask=("--one-by-one", *(f"/wait-{7 * n % 40}/bytes-{300 + 1700 * n}" for n in range(10))),
        see="""\
**Held out** from the rules for captures without keys: made after them.

- Each request comes after the answer to the one before, so that each loss delays all that follow.""",
    ),
    "chromium-far": Case(
        title="Chromium loads a page from Caddy over 40 ms",
        caddy=True,
        delay_ms=40,
        ask=(CHROMIUM, "/wait-5/page"),
        see="""\
**Held out** from the rules for captures without keys: made after them.

- The same page as in the case `chromium`, on a longer line.""",
    ),
    "rounds": Case(
        title="Thirty downloads at once",
        caddy=True,
        delay_ms=30,
        ask=tuple(f"/wait-0/bytes-{9000 + 500 * (n % 7)}" for n in range(30)),
        see="""\
**Held out** from the rules for captures without keys: made before them, and measured after them.

- The answers come mixed, in rounds: Caddy sends what its congestion window allows, and waits for acknowledgements.""",
    ),
    "held": Case(
        title="A request that the server holds open for three seconds",
        delay_ms=15,
        ask=(
            *("/wait-3000/bytes-400", "pause-1", "/wait-5/bytes-20000", "pause-1", "/wait-2/bytes-9000"),
            *("pause-700", "/wait-20/bytes-2000", "pause-1", "/bytes-15000", "pause-900", "/wait-40/bytes-700"),
        ),
        see="""\
- A long poll, and the requests that come meanwhile. With keys, its phase is `wait` until the server answers. Without,
  nobody can tell whose answers came, so that most of this wait counts as another request's `transfer`.""",
    ),
    "held-alone": Case(
        title="Long polls, one after the other",
        delay_ms=15,
        ask=("--one-by-one", "/wait-1500/bytes-300", "/wait-2000/bytes-0", "/wait-900/bytes-5000"),
        see="""\
- Each request is held open by the server for seconds, and nothing else is asked for.""",
    ),
    "restarted": Case(
        title="A server that has forgotten the connection",
        serve=("--restart",),
        ask=("--one-by-one", "/bytes-1000", PAGE),
        see="""\
- The server answers the first request, and forgets the connection, as after a restart. It answers the second request
  with a stateless reset (RFC 9000 section 10.3): a random datagram that ends with a token of the handshake.""",
    ),
    "negotiated": Case(
        title="A client that first tries a version that nobody has",
        ask=("--greased", PAGE),
        see="""\
- The server answers with a Version Negotiation packet, and the client begins again with version 1: one round trip.""",
    ),
}
