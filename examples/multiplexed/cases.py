"""The cases: which client talks to which server in which way; what to see; which are held out, and which are fresh."""

from __future__ import annotations

from dataclasses import dataclass

from clients import chromium, curl, curl_together, curl_upload, go, h2load, java
from lab.clients import Words

UNBUFFERED = ("proxy_buffering off",)
PACED = ("--rate", "100/m")
"""A request every 600 ms."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One capture."""

    title: str
    client: Words
    see: str
    tls: str = "1.3"
    """The highest version that the server speaks."""
    directives: tuple[str, ...] = ()
    """Of the server that the case's name has second."""
    delay_ms: float = 0
    vantage: str = "client"

    @property
    def server_secrets(self) -> bool:
        """The client writes no secrets; the server does."""
        return self.client[0] == "java"


def server(name: str) -> str:
    """Return the server of a case."""
    return name.split("-")[1]


CASES = {
    "chromium-apache-page": Case(
        title="Chromium loads a page with eight objects",
        client=chromium("shop", 5),
        delay_ms=20,
        see="- Everything the page names is asked for at once; a slow image is overtaken by fast ones. Then 0.9 s in\n"
        "  which the visitor reads, and requests by its script.",
    ),
    "chromium-apache-photos": Case(
        title="Chromium sends photos",
        client=chromium("photos", 4),
        delay_ms=5,
        vantage="server",
        see="- Uploads of several records; a small request is answered while one of them is still being thought about.",
    ),
    "chromium-haproxy-news": Case(
        title="Chromium is told news, then pings",
        client=chromium("news", 16.5),
        delay_ms=10,
        vantage="middle",
        see="- Server-sent events: 180 bytes every 200 ms on one stream, short requests on others meanwhile.\n"
        "- 11 s later Chromium no longer trusts the connection: a PING leaves with the request.",
    ),
    "chromium-haproxy-visit": Case(
        title="HAProxy ends the connection while a visitor reads",
        client=chromium("visit", 6),
        delay_ms=5,
        directives=("timeout http-keep-alive 1s",),
        see="- 1 s after a response: GOAWAY, close_notify, FIN. The next request begins with a handshake, resumed.",
    ),
    "chromium-nginx-search": Case(
        title="Chromium and a connection opened ahead, 40 ms away",
        client=chromium("search", 4),
        delay_ms=40,
        see="- Five requests 220 ms apart, each answered a little later than the one before.\n"
        "- Connections that only shake hands: Chromium opened one, and the page asked for one, and neither was used.\n"
        "  The server says SETTINGS, the client nothing.",
    ),
    "chromium-nginx-shop": Case(
        title="Chromium loads a page beside the server, TLS 1.2",
        client=chromium("shop", 5),
        tls="1.2",
        vantage="server",
        see="- As `chromium-apache-page`, without a distance and with TLS 1.2.",
    ),
    "curl-apache-large-upload": Case(
        title="curl uploads to Apache 20 ms away, TLS 1.2",
        client=curl_upload("@body-90000", "/wait-150/bytes-40", then="/wait-60/bytes-300"),
        tls="1.2",
        delay_ms=20,
        vantage="middle",
        see="- The upload outgrows the congestion window. Apache's WINDOW_UPDATEs fall into it, and answer nothing.",
    ),
    "curl-apache-together": Case(
        title="curl asks for six things at once",
        client=curl_together(
            "/wait-50/bytes-300",
            "/wait-5/bytes-20000",
            "/wait-200/bytes-900",
            "/wait-20/status-204",
            "/wait-120/bytes-6000",
            "/wait-2/bytes-150",
        ),
        delay_ms=10,
        see="- Six streams; they end in the order in which the backend is done, not in that of the requests.",
    ),
    "curl-haproxy-paced": Case(
        title="curl asks every 600 ms, TLS 1.2",
        client=curl(
            "/wait-60/bytes-400", "/wait-5/bytes-2500", "/wait-300/bytes-80", "/wait-30/bytes-16500", options=PACED
        ),
        tls="1.2",
        see="- One request, its response, nothing until the next.",
    ),
    "curl-haproxy-two-downloads": Case(
        title="curl downloads two files at once",
        client=curl_together("/wait-60/bytes-70000", "/wait-60/bytes-50000", "/wait-250/bytes-200"),
        delay_ms=5,
        vantage="server",
        see="- The backend has both downloads ready at once. HAProxy sends one after the other: what the second waits\n"
        "  beyond 60 ms is the transfer of the first. A small response comes long after.",
    ),
    "curl-nginx-goaway": Case(
        title="nginx wants a new connection after three requests",
        client=curl(*(f"/wait-{10 * many}/bytes-{200 * many}" for many in range(1, 8)), options=("--rate", "4/s")),
        directives=("keepalive_requests 3",),
        delay_ms=40,
        see="- GOAWAY comes as soon as the third request is there, before its response. curl forgets the session with\n"
        "  the connection: each handshake is full.",
    ),
    "curl-nginx-slow-backend": Case(
        title="curl and a slow backend",
        client=curl(
            "/wait-50/bytes-120",
            "/wait-500/bytes-120",
            "/wait-200/bytes-30000",
            "/wait-350/status-204",
            "/wait-80/bytes-900",
        ),
        delay_ms=10,
        vantage="middle",
        see="- One request after the other, no time to think: all the silence is the backend's.",
    ),
    "go-apache-goroutines": Case(
        title="Four goroutines share a connection",
        client=go(
            (
                "GET:/wait-40/bytes-900:0",
                "pause-200",
                "POST:/wait-20/bytes-60:700",
                "pause-500",
                "GET:/wait-2/bytes-90:0",
            ),
            ("GET:/wait-120/bytes-5000:0", "pause-30", "GET:/wait-2/status-304:0", "GET:/wait-60/bytes-700:0"),
            ("pause-100", "POST:/wait-30/status-204:3000", "pause-300", "GET:/wait-10/bytes-12000:0"),
            ("pause-1500", "GET:/wait-80/bytes-250:0"),
        ),
        delay_ms=5,
        see="- Four walks side by side, each with its own time to think; then all of them think.\n"
        "- Go opened a second connection before it knew that one is enough, and closed it at once.",
    ),
    "go-apache-pieces": Case(
        title="Responses in pieces, beside the server, TLS 1.2",
        client=go(
            ("GET:/wait-20/pieces-8-1500-100:0", "pause-400", "GET:/wait-50/pieces-4-9000-60:0+GET:/wait-5/bytes-200:0")
        ),
        tls="1.2",
        vantage="server",
        see="- DATA frames 100 ms apart: nobody asked for them again.",
    ),
    "go-haproxy-pings": Case(
        title="Go pings a silent connection",
        client=go(
            (
                "GET:/wait-30/bytes-500:0",
                "pause-1400",
                "GET:/wait-900/bytes-60:0",
                "pause-700",
                "GET:/wait-5/bytes-60:0",
            ),
            ping_ms=300,
        ),
        delay_ms=20,
        see="- After 300 ms in which nothing arrives: PING and its acknowledgement, records of one size; also while a\n"
        "  response is waited for.",
    ),
    "go-haproxy-resumed": Case(
        title="Go resumes a session, TLS 1.2",
        client=go(
            (
                "GET:/wait-50/bytes-300:0",
                "pause-300",
                "POST:/wait-20/bytes-90:6000",
                "again",
                "GET:/wait-5/bytes-40000:0",
                "pause-800",
                "GET:/wait-100/bytes-100:0",
            )
        ),
        tls="1.2",
        delay_ms=10,
        vantage="server",
        see="- Two connections; the second needs one round trip less.",
    ),
    "go-nginx-big-uploads": Case(
        title="Uploads beside the server, one of them with pauses",
        client=go(
            ("POST:/wait-50/bytes-30:80000", "pause-250", "POST:/wait-20/status-204:16000:120"),
            ("pause-40", "GET:/wait-100/bytes-600:0", "pause-600", "GET:/wait-5/bytes-90:0"),
        ),
        see="- nginx takes 65,535 bytes, then the first body waits for a WINDOW_UPDATE.\n"
        "- The second comes in four parts with pauses between; a small request is answered in one of them.",
    ),
    "go-nginx-long-poll": Case(
        title="Long polling, with pings",
        client=go(
            ("GET:/wait-800/bytes-150:0", "GET:/wait-1200/bytes-180:0", "GET:/wait-500/status-204:0"),
            ("pause-350", "POST:/wait-10/status-204:400", "pause-600", "GET:/wait-20/bytes-1500:0"),
            ping_ms=450,
        ),
        delay_ms=5,
        vantage="middle",
        see="- There is always a request to which no answer came yet: such a connection is never idle.",
    ),
    "h2load-apache-burst": Case(
        title="Forty requests, ten at a time, TLS 1.2",
        client=h2load(
            "/wait-20/bytes-500", "/wait-60/bytes-1200", "/wait-5/bytes-90", options=("-n", "40", "-c", "1", "-m", "10")
        ),
        tls="1.2",
        delay_ms=10,
        see="- There are always ten streams open; as one ends, the next request leaves.",
    ),
    "h2load-apache-paced": Case(
        title="Four requests a second",
        client=h2load(
            "/wait-40/bytes-700", "/wait-100/bytes-60", options=("-n", "12", "-c", "1", "-m", "4", "--rps", "4")
        ),
        delay_ms=5,
        vantage="middle",
        see="- One request each 250 ms.",
    ),
    "h2load-haproxy-four": Case(
        title="Four connections beside the server",
        client=h2load("/wait-10/bytes-300", "/wait-30/bytes-4000", options=("-n", "48", "-c", "4", "-m", "4")),
        vantage="server",
        see="- Four connections with four streams each.",
    ),
    "h2load-haproxy-posts": Case(
        title="Posts, 40 ms away",
        client=h2load(
            "/wait-30/bytes-50",
            "/wait-200/status-204",
            options=("-n", "12", "-c", "1", "-m", "3", "--data", "body-6000"),
        ),
        delay_ms=40,
        see="- Three uploads of 6,000 bytes at a time.",
    ),
    "h2load-nginx-small-windows": Case(
        title="Downloads through small windows",
        client=h2load("/wait-20/bytes-30000", options=("-n", "4", "-c", "1", "-m", "2", "-w", "13", "-W", "14")),
        delay_ms=10,
        vantage="server",
        see="- 8,191 bytes to a stream, 16,383 to the connection: every further byte waits for a WINDOW_UPDATE. The\n"
        "  client sends in the middle of a response, and asks nothing.",
    ),
    "h2load-nginx-thirty": Case(
        title="Thirty streams at once, TLS 1.2",
        client=h2load(
            "/wait-50/bytes-400",
            "/wait-10/bytes-1500",
            "/wait-150/bytes-60",
            options=("-n", "60", "-c", "1", "-m", "30"),
        ),
        tls="1.2",
        delay_ms=20,
        see="- Thirty requests in one segment or two.",
    ),
    "java-apache-goaway": Case(
        title="Apache ends a silent connection, TLS 1.2",
        client=java(
            "GET:/wait-40/bytes-300:0",
            "pause-400",
            "GET:/wait-100/bytes-900:0",
            "pause-1800",
            "GET:/wait-20/bytes-500:0",
            "pause-300",
        ),
        tls="1.2",
        directives=("KeepAliveTimeout 1",),
        vantage="server",
        see="- 1 s after the second response: GOAWAY and the end. The third request has a connection of its own.",
    ),
    "java-apache-together": Case(
        title="Java asks for eight things at once",
        client=java(
            "GET:/wait-10/bytes-200:0",
            "+".join(
                f"GET:/wait-{wait}/bytes-{size}:0"
                for wait, size in (
                    (30, 500),
                    (5, 9000),
                    (100, 60),
                    (2, 250),
                    (60, 16500),
                    (250, 700),
                    (10, 40),
                    (40, 3000),
                )
            ),
            "pause-900",
            "POST:/wait-50/bytes-90:2000+GET:/wait-20/bytes-400:0",
        ),
        delay_ms=10,
        see="- One request opens the connection; eight more leave together. 0.9 s later two.",
    ),
    "java-haproxy-pieces": Case(
        title="Java reads pieces",
        client=java(
            "GET:/wait-50/pieces-10-400-200:0", "pause-500", "GET:/wait-100/pieces-3-20000-80:0+GET:/wait-20/bytes-90:0"
        ),
        delay_ms=20,
        vantage="middle",
        see="- A piece every 200 ms, which nobody asks for; later three large ones, overtaken by a small response.",
    ),
    "java-haproxy-visit": Case(
        title="Java asks, thinks, asks, TLS 1.2",
        client=java(
            "GET:/wait-60/bytes-800:0",
            "pause-700",
            "POST:/wait-200/bytes-60:900",
            "pause-250",
            "GET:/wait-5/bytes-18000:0",
            "pause-2000",
            "GET:/wait-450/bytes-30:0",
        ),
        tls="1.2",
        delay_ms=5,
        see="- One request, its response, 0.2 to 2 s until the next.",
    ),
    "java-nginx-again": Case(
        title="Java resumes a session",
        client=java(
            "GET:/wait-40/bytes-500:0",
            "pause-500",
            "GET:/wait-10/bytes-60000:0",
            "again",
            "GET:/wait-300/bytes-120:0+GET:/wait-20/bytes-5000:0",
        ),
        delay_ms=40,
        see="- A new client sends two requests at once, and opens a connection for each; it keeps one for both.\n"
        "  The other only shakes hands. The first client's connection lies idle until the program ends.",
    ),
    "java-nginx-uploads": Case(
        title="Java uploads beside the server",
        client=java(
            "POST:/wait-80/bytes-40:70000",
            "pause-600",
            "POST:/wait-20/status-204:9000+POST:/wait-40/bytes-70:300+GET:/wait-5/bytes-250:0",
        ),
        vantage="server",
        see="- DATA frames of 16,384 bytes do not fit into a record of 2^14: each has a second record of a few bytes.\n"
        "- Later three requests side by side, one of them with a body of 9,000 bytes.",
    ),
}

HELD_OUT = frozenset(sorted(CASES)[1::2])
"""Every second case in alphabetical order: not to be looked at while conchart is being taught to read such traffic.

Each client has two cases with each server, so of every pair one is held out. The names are such that either half has
pings, silent connections that end, sessions resumed, uploads, streams, think time, TLS 1.2, and hosts near and far.
"""

FRESH = {
    "chromium-apache-later": Case(
        title="Chromium asks later, TLS 1.2",
        client=chromium("search", 4),
        tls="1.2",
        delay_ms=10,
        vantage="middle",
        see="- Five requests 220 ms apart, after those of the page.",
    ),
    "chromium-haproxy-shop": Case(
        title="Chromium loads a page through HAProxy",
        client=chromium("shop", 5),
        delay_ms=20,
        see="- As `chromium-apache-page`, from another server.",
    ),
    "curl-haproxy-upload": Case(
        title="curl uploads to HAProxy, TLS 1.2",
        client=curl_upload("@body-40000", "/wait-120/bytes-60", then="/wait-80/bytes-2000"),
        tls="1.2",
        delay_ms=15,
        see="- An upload of three records, its response, another request.",
    ),
    "go-haproxy-walks": Case(
        title="Three goroutines between downloads and uploads, TLS 1.2",
        client=go(
            ("GET:/wait-30/bytes-25000:0", "pause-400", "GET:/wait-150/bytes-200:0"),
            ("pause-60", "POST:/wait-40/bytes-80:2500", "pause-200", "GET:/wait-5/bytes-7000:0"),
            ("pause-900", "POST:/wait-100/status-204:500", "pause-350", "GET:/wait-60/bytes-1000:0"),
        ),
        tls="1.2",
        delay_ms=10,
        vantage="server",
        see="- Three walks side by side; later one of them alone.",
    ),
    "h2load-haproxy-six": Case(
        title="Twenty-four downloads, six at a time",
        client=h2load(
            "/wait-80/bytes-9000",
            "/wait-20/bytes-600",
            "/wait-40/bytes-100",
            options=("-n", "24", "-c", "1", "-m", "6"),
        ),
        delay_ms=20,
        see="- Six streams are open; as one ends, the next request leaves.",
    ),
    "java-haproxy-walk": Case(
        title="Java asks, posts and thinks",
        client=java(
            "GET:/wait-30/bytes-1200:0",
            "pause-300",
            "GET:/wait-150/bytes-50:0+GET:/wait-40/bytes-6000:0",
            "pause-1200",
            "POST:/wait-70/bytes-90:4500",
            "pause-500",
            "GET:/wait-10/bytes-35000:0",
        ),
        delay_ms=15,
        vantage="middle",
        see="- Two requests together, an upload, a download, and 0.3 to 1.2 s in which nobody asks.",
    ),
}
"""Made after the rules that read such traffic without keys stood, and measured once: held out, too.

They turn nobody's place in :data:`HELD_OUT`.
"""
