"""What was wrong, and what mends it: each case is captured before and after.

In: nothing. Out: ``CASES``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

NEAR, FAR, FARTHER = 0, 20, 80
"""Milliseconds of a round trip; 0 is a cable without a delay."""

PAGE = [f"/wait-{wait}/bytes-{size}" for wait, size in ((8, 2_000), (4, 9_000), (12, 400), (5, 24_000))]
CURL = ("curl", "--silent", "--show-error", "--http1.1", "--cacert", "keys/authority.crt", "--no-sessionid")


@dataclass(frozen=True, kw_only=True)
class Side:
    """How one of the two captures is made."""

    rtt_ms: int
    client: str
    """``curl`` or ``python``."""
    habits: str = ""
    """Of ``visitor.py``."""
    directives: tuple[str, ...] = ()
    """Of the server, beyond those of the lab."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A fault, and what mends it."""

    title: str
    server: str
    """``nginx``, ``apache`` or ``haproxy``."""
    tls: str = "1.3"
    """Of HAProxy: the highest version."""
    before: Side
    after: Side
    options: tuple[str, ...]
    """Of ``conchart whatif``."""
    targets: list[str] = field(default_factory=lambda: PAGE * 2)
    clients: int = 1
    """So many at a time."""
    behind: bool = False
    """The distance lies between the server, which is a proxy, and its backend; captured at the proxy."""
    congestion: str = "reno"
    """Of the kernels; cubic begins as reno does, and not every kernel lets a namespace choose it."""
    see: str


CASES: dict[str, Case] = {}

for rtt_ms in (NEAR, FAR, FARTHER):
    CASES[f"keepalive-{rtt_ms}"] = Case(
        title=f"No keepalive, {rtt_ms} ms away",
        server="nginx",
        before=Side(rtt_ms=rtt_ms, client="curl", directives=("keepalive_timeout 0",)),
        after=Side(rtt_ms=rtt_ms, client="curl"),
        options=("--keepalive",),
        see="Eight requests of one curl: before, each has a connection of its own; after, all have the same.",
    )
    CASES[f"resume-{rtt_ms}"] = Case(
        title=f"TLS 1.2 sessions are not resumed, {rtt_ms} ms away",
        server="haproxy",
        tls="1.2",
        before=Side(rtt_ms=rtt_ms, client="python", habits="anew,nodelay"),
        after=Side(rtt_ms=rtt_ms, client="python", habits="anew,nodelay,resume"),
        options=("--resume",),
        see="Eight connections: before, each has a full handshake; after, all but the first resume the session.",
    )
    CASES[f"resume13-{rtt_ms}"] = Case(
        title=f"TLS 1.3 sessions are not resumed, {rtt_ms} ms away",
        server="nginx",
        before=Side(rtt_ms=rtt_ms, client="python", habits="anew,nodelay"),
        after=Side(rtt_ms=rtt_ms, client="python", habits="anew,nodelay,resume"),
        options=("--resume",),
        see="As `resume`, with TLS 1.3: resumption saves no round trip, only computing.",
    )
    CASES[f"tls13-{rtt_ms}"] = Case(
        title=f"TLS 1.2 where 1.3 could be, {rtt_ms} ms away",
        server="apache",
        before=Side(rtt_ms=rtt_ms, client="curl", directives=("KeepAlive Off", "SSLProtocol TLSv1.2")),
        after=Side(rtt_ms=rtt_ms, client="curl", directives=("KeepAlive Off", "SSLProtocol TLSv1.3")),
        options=("--tls13",),
        see="Eight full handshakes: before, of two round trips; after, of one.",
    )
    CASES[f"nodelay-{rtt_ms}"] = Case(
        title=f"Head and body in two writes, {rtt_ms} ms away",
        server="nginx",
        before=Side(rtt_ms=rtt_ms, client="python", habits="apart"),
        after=Side(rtt_ms=rtt_ms, client="python", habits="apart,nodelay"),
        options=("--nodelay",),
        see="Before, the body of most requests is held back until the head is acknowledged; after, it follows at once.",
    )

CASES["keepalive-three-20"] = Case(
    title="No keepalive, three clients at a time, 20 ms away",
    server="nginx",
    before=Side(rtt_ms=FAR, client="curl", directives=("keepalive_timeout 0",)),
    after=Side(rtt_ms=FAR, client="curl"),
    options=("--keepalive",),
    targets=[*PAGE, *PAGE[:2]],
    clients=3,
    see="Three curls from one address: which request followed which has to be told from the capture.",
)
CASES["keepalive-behind-20"] = Case(
    title="No keepalive to a backend that is 20 ms away",
    server="haproxy",
    before=Side(rtt_ms=FAR, client="curl", directives=("option http-server-close",)),
    after=Side(rtt_ms=FAR, client="curl"),
    options=("--keepalive",),
    behind=True,
    see="One client connection; behind the proxy eight connections before, one after. The client waits for them.",
)
CASES["rtt-20-80"] = Case(
    title="The same visit from 20 and from 80 ms away",
    server="nginx",
    before=Side(rtt_ms=FAR, client="curl", directives=("keepalive_timeout 0",)),
    after=Side(rtt_ms=FARTHER, client="curl", directives=("keepalive_timeout 0",)),
    options=("--rtt", "80ms"),
    see="The same requests, each on a connection of its own, from nearer and from farther away.",
)
CASES["rtt-20-80-keepalive"] = Case(
    title="The same visit on one connection from 20 and from 80 ms away",
    server="nginx",
    before=Side(rtt_ms=FAR, client="curl"),
    after=Side(rtt_ms=FARTHER, client="curl"),
    options=("--rtt", "80ms"),
    see="The same requests on one connection, from nearer and from farther away.",
)
CASES["rtt-20-80-bbr"] = Case(
    title="The same from a server that paces what it sends",
    server="nginx",
    before=Side(rtt_ms=FAR, client="curl"),
    after=Side(rtt_ms=FARTHER, client="curl"),
    options=("--rtt", "80ms"),
    congestion="bbr",
    see="BBR spreads the segments of a flight over the round trip, which a prediction does not know of.",
)
CASES["all-20-80"] = Case(
    title="Everything at once",
    server="apache",
    before=Side(rtt_ms=FAR, client="curl", directives=("KeepAlive Off", "SSLProtocol TLSv1.2")),
    after=Side(rtt_ms=FARTHER, client="curl", directives=("SSLProtocol TLSv1.3",)),
    options=("--keepalive", "--tls13", "--rtt", "80ms"),
    see="Before: TLS 1.2, no keepalive, 20 ms away. After: TLS 1.3, one connection, 80 ms away.",
)
