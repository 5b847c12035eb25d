"""The cases: which proxies, how many networks, what stands behind, where tcpdump listens."""

from __future__ import annotations

from dataclasses import dataclass, replace

from proxies import Proxy
from town import ANY, APART, BRIDGE, CABLES, LO, LOCAL, SAME, SWITCH

CONCURRENCIES = (1, 16, 64, 128)
SLOWER = {1: 1, 16: 1, 64: 5, 128: 10}
"""How many times longer servers take where so many ask at a time, so that one processor can do it all."""
PAUSE_MS = {1: 1, 16: 1, 64: 20, 128: 40}
"""How long a client thinks, about."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """What stands in the town, and who asks how."""

    title: str
    proxy: Proxy
    networks: int = 1
    homes: str = APART
    """Who runs where: ``APART``, ``LOCAL``, ``SAME``."""
    capture: str = ANY
    inner: Proxy | None = None
    """A second proxy behind the first."""
    inner_beside: bool = False
    """The second proxy runs on the first one's host."""
    shops: int = 1
    shop_beside: bool = False
    """The shop runs on the proxy's host."""
    calls: str = ""
    """What shops ask the stores: ``some``, ``all``, nothing."""
    flaky: bool = False
    """The second shop fails and breaks off now and then; the third is closed."""
    checked: bool = False
    """A HAProxy on the proxy's host asks the shops after their health, and does nothing else."""
    customer: tuple[str, ...] = ()
    """Options of the client."""
    pace: float = 1
    """How many times as quick servers and clients are as ``SLOWER`` and ``PAUSE_MS`` say, but no quicker than ever."""
    alike: bool = False
    """All responses have the same size."""
    keys: bool = False
    """The client's TLS secrets are kept."""
    concurrencies: tuple[int, ...] = CONCURRENCIES

    def times(self, concurrency: int) -> list[str]:
        """Return what tells the client how long servers take and how long it thinks."""
        slower, pause = (max(1, each[concurrency] / self.pace) for each in (SLOWER, PAUSE_MS))
        return ["-slower", f"{slower:g}", "-pause", f"{pause:g}"]

    def sizes(self, classes: str) -> str:
        """Return the sizes of the responses to requests of each class."""
        return ",".join([classes.split(",")[1]] * 3) if self.alike else classes

    def swapped(self) -> Case:
        """Return the same with one network instead of two, and the other way round; to ask directly takes one."""
        fixed = "-direct" in self.customer or self.homes != APART or self.capture == BRIDGE
        return self if fixed else replace(self, networks=3 - self.networks)


def main_cases() -> dict[str, Case]:
    """Each proxy with TLS on neither leg, on either, on both; networks and places of capture in turn."""
    proxies = {
        "nginx": Proxy(program="nginx"),
        "nginx-close": Proxy(program="nginx", pooled=False),
        "haproxy": Proxy(program="haproxy"),
        "haproxy-safe": Proxy(program="haproxy", reuse="safe"),
        "apache": Proxy(program="apache"),
        "apache-close": Proxy(program="apache", pooled=False),
    }
    found = {}
    for row, (name, proxy) in enumerate(proxies.items()):
        for column, (front, back) in enumerate([(False, False), (False, True), (True, False), (True, True)]):
            legs = f"http{'s' * front}-http{'s' * back}"
            found[f"{name}-{legs}"] = Case(
                title=f"{name} from {legs.replace('-', ' to ')}",
                proxy=replace(proxy, front_tls=front, back_tls=back),
                networks=1 + (row + column) % 2,
                capture=(ANY, CABLES)[(row // 2 + column) % 2],
            )
    return found


NGINX, HAPROXY, APACHE, CADDY, VARNISH, SQUID = (
    Proxy(program=program) for program in ("nginx", "haproxy", "apache", "caddy", "varnish", "squid")
)
FEW = (1, 16, 64)
RUSH = (64, 128)
RUSHED = 40
"""A pace at which one processor has more to do than it can."""
HEALTH = "option httpchk GET /health"

CASES: dict[str, Case] = {
    **main_cases(),
    "rush-nginx": Case(title="More than nginx can do", proxy=NGINX, pace=RUSHED, concurrencies=RUSH),
    "rush-haproxy-https-http": Case(
        title="More than HAProxy can do, TLS in front", proxy=replace(HAPROXY, front_tls=True), networks=2, pace=RUSHED,
        concurrencies=RUSH,
    ),
    "rush-apache-http-https": Case(
        title="More than Apache can do, TLS behind", proxy=replace(APACHE, back_tls=True), capture=CABLES, pace=RUSHED,
        concurrencies=RUSH,
    ),
    "rush-nginx-close": Case(
        title="More than nginx can do, with a connection for each request", proxy=replace(NGINX, pooled=False),
        networks=2, capture=CABLES, pace=RUSHED, concurrencies=RUSH,
    ),
    "posts-nginx": Case(title="Uploads", proxy=NGINX, networks=2, customer=("-posts",)),
    "posts-haproxy-https-https": Case(
        title="Uploads, TLS on both legs", proxy=replace(HAPROXY, front_tls=True, back_tls=True),
        capture=CABLES, customer=("-posts",),
    ),
    "brief-haproxy": Case(
        title="Every request has a connection of its own in front", proxy=HAPROXY, networks=2, customer=("-each", "1"),
        concurrencies=FEW,
    ),
    "h2-nginx": Case(
        title="HTTP/2 in front of nginx", proxy=replace(NGINX, front_tls=True, http2=True), networks=2,
        concurrencies=FEW, customer=("-http2",),
    ),
    "h2-nginx-keys": Case(
        title="HTTP/2 in front of nginx, with keys", proxy=replace(NGINX, front_tls=True, http2=True), capture=CABLES,
        concurrencies=FEW, customer=("-http2",), keys=True,
    ),
    "h2-haproxy-keys": Case(
        title="HTTP/2 in front of HAProxy, with keys", proxy=replace(HAPROXY, front_tls=True, http2=True), networks=2,
        concurrencies=FEW, customer=("-http2",), keys=True,
    ),
    "h2-apache": Case(
        title="HTTP/2 in front of Apache", proxy=replace(APACHE, front_tls=True, http2=True), capture=CABLES,
        concurrencies=FEW, customer=("-http2",),
    ),
    "targets-nginx": Case(title="Targets differ", proxy=NGINX, networks=2, customer=("-distinct",)),
    "targets-apache-close": Case(
        title="Targets differ, connections are not kept", proxy=replace(APACHE, pooled=False), customer=("-distinct",),
        concurrencies=FEW,
    ),
    "ids-nginx": Case(
        title="Requests carry a traceparent and an X-Request-ID, the client's address is forwarded",
        proxy=replace(NGINX, directives=("proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for",)),
        networks=2, capture=CABLES, customer=("-mark",),
    ),
    "ids-haproxy": Case(
        title="Requests carry a traceparent and an X-Request-ID, the client's address is forwarded",
        proxy=replace(HAPROXY, directives=("option forwardfor",)), customer=("-mark",), concurrencies=FEW,
    ),
    "ids-echoed": Case(
        title="nginx gives each request an id, and tells the client in its response",
        proxy=replace(
            NGINX, directives=("proxy_set_header X-Request-ID $request_id", "add_header X-Request-ID $request_id")
        ),
        concurrencies=FEW,
    ),
    "tiers-nginx": Case(
        title="nginx, an application, a store", proxy=NGINX, capture=SWITCH, calls="some", concurrencies=FEW
    ),
    "tiers-haproxy-https": Case(
        title="HAProxy, an application, a store, TLS in front", proxy=replace(HAPROXY, front_tls=True),
        networks=2, capture=SWITCH, calls="some", concurrencies=FEW,
    ),
    "tiers-beside": Case(
        title="nginx and an application on one host, a store on another", proxy=NGINX, networks=2, shop_beside=True,
        calls="some", concurrencies=FEW,
    ),
    "fan-out": Case(
        title="An application asks two or three stores at once", proxy=NGINX, networks=2, capture=SWITCH, calls="all",
        concurrencies=FEW,
    ),
    "retries": Case(
        title="Of three servers one fails now and then, one is closed",
        proxy=replace(
            NGINX, directives=("proxy_next_upstream error timeout http_503 non_idempotent", "proxy_connect_timeout 2s")
        ),
        networks=2, capture=CABLES, shops=3, flaky=True, checked=True, concurrencies=FEW,
    ),
    "three-shops-haproxy": Case(
        title="Three servers in turn, asked after their health", proxy=replace(HAPROXY, directives=(HEALTH,)),
        shops=3, concurrencies=FEW,
    ),
    "direct": Case(
        title="The client asks the server past the proxy, too", proxy=NGINX, capture=SWITCH,
        customer=("-direct", "SHOP"), concurrencies=FEW,
    ),
    "beside-nginx": Case(title="nginx and the server on one host", proxy=NGINX, shop_beside=True, concurrencies=FEW),
    "chain": Case(
        title="HAProxy in front of nginx", proxy=HAPROXY, inner=NGINX, networks=2, capture=SWITCH, concurrencies=FEW
    ),
    "chain-https": Case(
        title="HAProxy in front of nginx, TLS in front and between",
        proxy=replace(HAPROXY, front_tls=True, back_tls=True), inner=replace(NGINX, front_tls=True),
        capture=SWITCH, concurrencies=FEW,
    ),
    "chain-announced": Case(
        title="HAProxy names the client to nginx, PROXY protocol version 1",
        proxy=replace(HAPROXY, reuse="never", announces=1), inner=replace(NGINX, takes_announced=True),
        capture=SWITCH, concurrencies=FEW,
    ),
    "chain-announced-v2-beside": Case(
        title="HAProxy and nginx on one host, PROXY protocol version 2",
        proxy=replace(HAPROXY, front_tls=True, reuse="never", announces=2), inner=replace(NGINX, takes_announced=True),
        inner_beside=True, networks=2, concurrencies=FEW,
    ),
    "local-nginx": Case(
        title="All on one host, at addresses of the loopback interface", proxy=NGINX, homes=LOCAL, concurrencies=FEW
    ),
    "local-haproxy-https-https": Case(
        title="All on one host, heard on the loopback interface, TLS on both legs",
        proxy=replace(HAPROXY, front_tls=True, back_tls=True), homes=LOCAL, capture=LO, concurrencies=FEW,
    ),
    "local-chain": Case(
        title="HAProxy in front of nginx, all on one host", proxy=HAPROXY, inner=NGINX, homes=LOCAL, concurrencies=FEW,
    ),
    "local-fan-out": Case(
        title="On one host, an application asks two or three stores at once", proxy=NGINX, homes=LOCAL, calls="all",
        concurrencies=FEW,
    ),
    "same-nginx-close": Case(
        title="All at one address, with a connection for each request", proxy=replace(NGINX, pooled=False), homes=SAME,
        concurrencies=FEW,
    ),
    "same-apache": Case(
        title="All at one address, heard on the loopback interface", proxy=APACHE, homes=SAME, capture=LO,
        concurrencies=FEW,
    ),
    "same-tiers-haproxy": Case(
        title="HAProxy, an application, a store at one address", proxy=HAPROXY, homes=SAME, calls="some",
        concurrencies=FEW,
    ),
    "same-direct": Case(
        title="All at one address; the client asks the server past the proxy, too", proxy=NGINX, homes=SAME,
        customer=("-direct", "SHOP"), concurrencies=FEW,
    ),
    "bridge-nginx": Case(
        title="Containers on a bridge, heard on their host", proxy=NGINX, capture=BRIDGE, concurrencies=FEW
    ),
    "caddy": Case(title="Caddy", proxy=CADDY, networks=2),
    "caddy-https-https": Case(
        title="Caddy, TLS on both legs", proxy=replace(CADDY, front_tls=True, back_tls=True), capture=CABLES,
    ),
    "caddy-close-https-http": Case(
        title="Caddy, TLS in front, with a connection for each request",
        proxy=replace(CADDY, front_tls=True, pooled=False),
    ),
    "posts-caddy": Case(title="Caddy, uploads", proxy=CADDY, capture=CABLES, customer=("-posts",), concurrencies=FEW),
    "varnish": Case(title="Varnish", proxy=VARNISH),
    "varnish-close": Case(
        title="Varnish, with a connection for each request", proxy=replace(VARNISH, pooled=False), networks=2,
        capture=CABLES,
    ),
    "squid": Case(title="Squid", proxy=SQUID, networks=2, capture=CABLES),
    "squid-close": Case(
        title="Squid, with a connection for each request", proxy=replace(SQUID, pooled=False), capture=CABLES
    ),
    "alike-nginx": Case(title="All responses are of one size", proxy=NGINX, networks=2, alike=True, concurrencies=FEW),
    "alike-caddy": Case(
        title="Caddy, all responses are of one size", proxy=CADDY, networks=2, alike=True, concurrencies=FEW
    ),
    "alike-varnish": Case(
        title="Varnish, all responses are of one size", proxy=VARNISH, alike=True, capture=CABLES, concurrencies=FEW
    ),
    "alike-squid-close": Case(
        title="Squid, a connection for each request, all responses are of one size", networks=2, alike=True,
        proxy=replace(SQUID, pooled=False), concurrencies=FEW,
    ),
    "rush-caddy": Case(title="More than Caddy can do", proxy=CADDY, networks=2, pace=RUSHED, concurrencies=RUSH),
    "rush-varnish": Case(title="More than Varnish can do", proxy=VARNISH, pace=RUSHED, concurrencies=RUSH),
    "rush-squid": Case(
        title="More than Squid can do", proxy=SQUID, capture=CABLES, pace=RUSHED, concurrencies=RUSH
    ),
    "tiers-caddy": Case(
        title="Caddy, an application, a store", proxy=CADDY, capture=SWITCH, calls="some", concurrencies=FEW
    ),
    "local-caddy": Case(title="Caddy and all else on one host", proxy=CADDY, homes=LOCAL, concurrencies=FEW),
    "same-squid": Case(title="Squid and all else at one address", proxy=SQUID, homes=SAME, concurrencies=FEW),
    "bridge-varnish": Case(
        title="Containers on a bridge: Varnish", proxy=VARNISH, capture=BRIDGE, concurrencies=FEW
    ),
    "bridge-tiers-apache": Case(
        title="Containers on a bridge: Apache, an application, a store", proxy=APACHE, capture=BRIDGE, calls="some",
        concurrencies=FEW,
    ),
}  # fmt: skip

SHOWN = (
    ("nginx-http-http", 1, 30),
    ("nginx-http-http", 16, 40),
    ("nginx-close-http-https", 16, 30),
    ("haproxy-https-http", 16, 30),
    ("haproxy-safe-https-https", 1, 30),
    ("apache-http-http", 16, 40),
    ("h2-nginx-keys", 16, 40),
    ("ids-echoed", 16, 40),
    ("tiers-beside", 16, 30),
    ("fan-out", 1, 20),
    ("retries", 16, 40),
    ("direct", 16, 40),
    ("chain-https", 1, 24),
    ("chain-announced", 16, 30),
    ("chain-announced-v2-beside", 1, 24),
    ("local-nginx", 16, 40),
    ("local-chain", 16, 30),
    ("local-haproxy-https-https", 16, 30),
    ("same-nginx-close", 16, 40),
    ("same-tiers-haproxy", 1, 24),
    ("bridge-nginx", 16, 40),
    ("caddy", 16, 60),
    ("varnish", 16, 40),
    ("same-squid", 16, 40),
)
"""What is committed, small: a case, a concurrency, how many requests."""
