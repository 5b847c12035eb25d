"""The cases: which client talks to which server in which way; what to see."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from clients import chromium, curl, gnutls, go, java, openssl, openssl_again, openssl_early, rustls
from lab.clients import Words

WALK = (
    "GET:/wait-2/bytes-100:0",
    "GET:/wait-50/bytes-250:0",
    "POST:/wait-2/status-204:400",
    "GET:/wait-2/status-304:0",
    "GET:/wait-5/bytes-20000:0",
)
"""Small, slow, with a body, without one, large."""
SMALL = ("GET:/wait-2/status-204:0", "GET:/wait-2/bytes-60:0")
POST_FIRST = ("POST:/wait-50/status-204:300", "GET:/wait-2/bytes-30:0")
LARGE_FIRST = ("GET:/wait-2/bytes-9000:0", "GET:/wait-2/status-304:0")
ONE = ("GET:/wait-2/bytes-40:0",)

UPLOAD = ("POST:/wait-2/bytes-10:20000", "GET:/wait-50/status-204:0")
TICKET_SIZED = ("GET:/wait-2/bytes-132:0", "GET:/wait-2/bytes-132:0")
"""Their responses are records of 298 bytes, as the tickets are that OpenSSL's server makes for curl."""

NO_TICKETS = ("ssl_conf_command NumTickets 0",)
ONE_TICKET = ("ssl_conf_command NumTickets 1",)
FOUR_TICKETS = ("ssl_conf_command NumTickets 4",)
NGINX_EARLY = ("ssl_early_data on",)
NGINX_SESSION_IDS = ("ssl_session_tickets off",)
APACHE_SESSION_IDS = ("SSLSessionTickets off", "SSLSessionCache shmcb:${LAB_RUN}/sessions")
CERTIFICATE_LATER = (f"Include {Path(__file__).parent}/conf/certificate-later.conf",)
NO_KEEPALIVE = ("KeepAlive Off",)
SHOW_CERTIFICATE = ("--cert", "keys/client.crt", "--key", "keys/client.key")


@dataclass(frozen=True, kw_only=True)
class Case:
    """One capture."""

    title: str
    clients: tuple[Words, ...]
    """Commands, run one after the other."""
    see: str
    together: bool = False
    """The commands run all at once instead."""
    server: str = "nginx"
    directives: tuple[str, ...] = ()
    keys: str = "rsa:2048"
    http2: bool = False
    client_keys: bool = False
    """The server asks for a client certificate."""
    delay_ms: float = 10
    vantage: str = "client"
    early: str | None = None
    """The request that the client sends as 0-RTT data."""

    @property
    def server_secrets(self) -> bool:
        """The client writes no secrets; the server does."""
        return self.clients[0][0] == "java"


AFTER_FINISHED = "The request follows the client's Finished at once; the server's two tickets come before the response."
ONE_TICKET_EACH = "The second connection is resumed: no certificate, one ticket."

CASES = {
    "rustls-nginx-1.3-ticket-or-response": Case(
        title="Two tickets, then a response that took 2 ms",
        clients=(rustls("1.3", "full", ("GET:/wait-2/bytes-100:0",)),),
        delay_ms=0,
        vantage="server",
        see="""\
- The request is there with the client's Finished. The first bytes the server sends are two session tickets of 255
  bytes each, a fraction of a millisecond later. The response takes the backend's 2 ms.
- Wireshark's TRANSUM takes the first ticket for the response:

      tshark -2 -r input.pcap --enable-protocol transum -o transum.tcp_port_ranges:443 \\
          -Y transum -T fields -e frame.number -e transum.st

  With `-o tls.keylog_file:keys.log -Y http` it shows what is true.""",
    ),
    "curl-nginx-1.3-full": Case(
        title="curl and nginx, TLS 1.3", clients=(curl("1.3", WALK),), see=f"- {AFTER_FINISHED}"
    ),
    "curl-nginx-1.3-small": Case(
        title="Responses smaller than a ticket",
        clients=(curl("1.3", SMALL),),
        vantage="server",
        see="- A 204 comes first, its one record smaller than the tickets before it.",
    ),
    "curl-nginx-1.3-no-tickets": Case(
        title="A server that sends no ticket",
        clients=(curl("1.3", SMALL),),
        directives=NO_TICKETS,
        delay_ms=0,
        vantage="server",
        see="- The first record after the handshake **is** the response, and has the size of a ticket.",
    ),
    "curl-nginx-1.3-one-ticket": Case(
        title="A server that sends one ticket",
        clients=(curl("1.3", SMALL),),
        directives=ONE_TICKET,
        see="- One ticket, then a response of much the same size.",
    ),
    "curl-nginx-1.3-four-tickets": Case(
        title="A server that sends four tickets",
        clients=(curl("1.3", POST_FIRST),),
        directives=FOUR_TICKETS,
        vantage="server",
        see="- Four tickets at once, then nothing for 50 ms, then the response.",
    ),
    "curl-nginx-1.3-resumed": Case(
        title="curl and nginx, TLS 1.3, resumed",
        clients=(curl("1.3", SMALL, twice=True),),
        see=f"- {ONE_TICKET_EACH}",
    ),
    "curl-nginx-1.3-client-certificate": Case(
        title="curl shows nginx a certificate",
        clients=(curl("1.3", WALK, *SHOW_CERTIFICATE),),
        client_keys=True,
        see="- Certificate, CertificateVerify and Finished of the client; tickets of over 1,000 bytes, which hold its\n"
        "  certificate.",
    ),
    "curl-nginx-1.3-ecdsa": Case(
        title="A server with an ECDSA key",
        clients=(curl("1.3", LARGE_FIRST),),
        keys="ec",
        see="- Certificate and CertificateVerify are small; the first response is one large record.",
    ),
    "curl-nginx-1.2-full": Case(
        title="curl and nginx, TLS 1.2",
        clients=(curl("1.2", WALK),),
        see="- The ticket comes inside the handshake, in clear. Two round trips before the request.",
    ),
    "curl-apache-1.3-full": Case(
        title="curl and Apache, TLS 1.3",
        clients=(curl("1.3", WALK),),
        server="apache",
        see=f"- {AFTER_FINISHED}",
    ),
    "curl-apache-1.3-post": Case(
        title="curl posts to Apache",
        clients=(curl("1.3", POST_FIRST),),
        server="apache",
        delay_ms=0,
        vantage="server",
        see="- The first request has a body of 300 bytes, in a record of its own.",
    ),
    "curl-apache-1.2-client-certificate": Case(
        title="curl shows Apache a certificate, TLS 1.2",
        clients=(curl("1.2", SMALL, *SHOW_CERTIFICATE),),
        server="apache",
        client_keys=True,
        see="- CertificateRequest, Certificate and CertificateVerify are in clear.",
    ),
    "openssl-nginx-1.3-full": Case(
        title="s_client and nginx, TLS 1.3",
        clients=(openssl("1.3", WALK),),
        see="- s_client does not set TCP_NODELAY: the request waits in its kernel until the Finished is acknowledged.",
    ),
    "openssl-nginx-1.3-psk": Case(
        title="s_client and nginx, TLS 1.3, resumed",
        clients=openssl_again("1.3", ONE, SMALL),
        see=f"- {ONE_TICKET_EACH}",
    ),
    "openssl-nginx-1.3-0rtt": Case(
        title="s_client sends its request as 0-RTT data",
        clients=openssl_early(ONE, WALK),
        directives=NGINX_EARLY,
        early=WALK[0],
        see="- On the second connection the first request travels with the ClientHello, and is answered as early as\n"
        "  that allows.",
    ),
    "openssl-nginx-1.3-0rtt-near": Case(
        title="0-RTT data beside the server",
        clients=openssl_early(ONE, SMALL),
        directives=NGINX_EARLY,
        early=SMALL[0],
        delay_ms=0,
        vantage="server",
        see="- As `openssl-nginx-1.3-0rtt`, without a distance: the response comes after the client's Finished.",
    ),
    "openssl-nginx-1.2-ticket": Case(
        title="s_client and nginx, TLS 1.2, resumed with a ticket",
        clients=openssl_again("1.2", ONE, WALK),
        see="- One round trip less than the first connection.",
    ),
    "openssl-nginx-1.2-session-id": Case(
        title="s_client and nginx, TLS 1.2, resumed by session id",
        clients=openssl_again("1.2", ONE, SMALL, "-no_ticket"),
        directives=NGINX_SESSION_IDS,
        vantage="server",
        see="- The ServerHello repeats the ClientHello's session id.",
    ),
    "openssl-apache-1.2-session-id": Case(
        title="s_client and Apache, TLS 1.2, resumed by session id",
        clients=openssl_again("1.2", ONE, POST_FIRST, "-no_ticket"),
        server="apache",
        directives=APACHE_SESSION_IDS,
        see="- The ServerHello repeats the ClientHello's session id.",
    ),
    "openssl-apache-1.3-psk": Case(
        title="s_client and Apache, TLS 1.3, resumed",
        clients=openssl_again("1.3", SMALL, WALK),
        server="apache",
        vantage="server",
        see=f"- {ONE_TICKET_EACH}",
    ),
    "gnutls-nginx-1.3-full": Case(
        title="gnutls-cli and nginx, TLS 1.3",
        clients=(gnutls("1.3", WALK),),
        see="- gnutls-cli does not set TCP_NODELAY; a request is one record.",
    ),
    "gnutls-nginx-1.3-psk": Case(
        title="gnutls-cli and nginx, TLS 1.3, resumed",
        clients=(gnutls("1.3", SMALL, "--resume", "--waitresumption"),),
        see="- The first connection asks nothing: tickets, and no request. The second is resumed.",
    ),
    "gnutls-nginx-1.3-0rtt": Case(
        title="gnutls-cli sends its request as 0-RTT data",
        clients=(gnutls("1.3", SMALL, "--resume", "--waitresumption", early=True),),
        directives=NGINX_EARLY,
        early=SMALL[0],
        see="- The second connection's first request travels with the ClientHello.",
    ),
    "gnutls-apache-1.2-full": Case(
        title="gnutls-cli and Apache, TLS 1.2",
        clients=(gnutls("1.2", SMALL),),
        server="apache",
        vantage="server",
        see="- gnutls-cli does not set TCP_NODELAY; a request is one record.",
    ),
    "go-nginx-1.3-full": Case(
        title="Go and nginx, TLS 1.3", clients=(go("1.3", "full", WALK),), see=f"- {AFTER_FINISHED}"
    ),
    "go-nginx-1.3-psk": Case(
        title="Go and nginx, TLS 1.3, resumed",
        clients=(go("1.3", "resumed", SMALL),),
        vantage="server",
        see=f"- {ONE_TICKET_EACH}",
    ),
    "go-apache-1.2-ticket": Case(
        title="Go and Apache, TLS 1.2, resumed with a ticket",
        clients=(go("1.2", "resumed", POST_FIRST),),
        server="apache",
        see="- One round trip less on the second connection.",
    ),
    "go-apache-1.3-client-certificate": Case(
        title="Go shows Apache a certificate",
        clients=(go("1.3", "certificate", WALK),),
        server="apache",
        client_keys=True,
        delay_ms=0,
        vantage="server",
        see="- Tickets of over 1,000 bytes, which hold the client's certificate.",
    ),
    "rustls-nginx-1.3-full": Case(
        title="rustls and nginx, TLS 1.3", clients=(rustls("1.3", "full", WALK),), see=f"- {AFTER_FINISHED}"
    ),
    "rustls-nginx-1.3-0rtt": Case(
        title="rustls sends its request as 0-RTT data",
        clients=(rustls("1.3", "early", SMALL),),
        directives=NGINX_EARLY,
        see="- The second connection's first request travels with the ClientHello.",
    ),
    "rustls-apache-1.3-psk": Case(
        title="rustls and Apache, TLS 1.3, resumed",
        clients=(rustls("1.3", "resumed", LARGE_FIRST),),
        server="apache",
        vantage="server",
        see=f"- {ONE_TICKET_EACH}",
    ),
    "rustls-nginx-1.2-ticket": Case(
        title="rustls and nginx, TLS 1.2, resumed with a ticket",
        clients=(rustls("1.2", "resumed", SMALL),),
        see="- One round trip less on the second connection.",
    ),
    "java-apache-1.3-full": Case(
        title="Java and Apache, TLS 1.3",
        clients=(java("1.3", "full", WALK),),
        server="apache",
        see="- Java's HttpClient sends head and body of a request as two records.",
    ),
    "java-apache-1.3-psk": Case(
        title="Java and Apache, TLS 1.3, resumed",
        clients=(java("1.3", "resumed", SMALL),),
        server="apache",
        see=f"- {ONE_TICKET_EACH}",
    ),
    "java-apache-1.2-full": Case(
        title="Java and Apache, TLS 1.2",
        clients=(java("1.2", "full", SMALL),),
        server="apache",
        vantage="server",
        see="- Two round trips before the request.",
    ),
    "chromium-nginx-1.3-http1": Case(
        title="Chromium loads a page over HTTP/1.1",
        clients=(chromium("/wait-2/page"),),
        see="- Several connections; the handshakes use a post-quantum key share, so the ClientHello has two segments.",
    ),
    "chromium-nginx-1.3-http2": Case(
        title="Chromium loads a page over HTTP/2",
        clients=(chromium("/wait-2/page"),),
        http2=True,
        see="- One connection, requests side by side.",
    ),
    "chromium-apache-1.3-http1": Case(
        title="Chromium loads a page from Apache",
        clients=(chromium("/wait-50/page"),),
        server="apache",
        vantage="server",
        see="- Several connections; those opened ahead may carry no request.",
    ),
    "curl-nginx-1.3-ticket-sized": Case(
        title="A response as long as the tickets before it",
        clients=(curl("1.3", TICKET_SIZED),),
        see="- Two tickets and the first response are three records of one size; 2 ms lie between.",
    ),
    "curl-nginx-1.3-one-ticket-sized": Case(
        title="A response as long as the one ticket before it",
        clients=(curl("1.3", TICKET_SIZED),),
        directives=ONE_TICKET,
        vantage="server",
        see="- A ticket and the first response are two records of one size, as two tickets would be.",
    ),
    "curl-nginx-1.3-no-tickets-sized": Case(
        title="A response of a ticket's length, from a server that sends no ticket",
        clients=(curl("1.3", TICKET_SIZED),),
        directives=NO_TICKETS,
        see="- The first record after the handshake **is** the response.",
    ),
    "curl-nginx-1.3-upload": Case(
        title="A request of many segments",
        clients=(curl("1.3", UPLOAD),),
        see="- The request is larger than the first congestion window; the tickets arrive while it is being sent.",
    ),
    "curl-nginx-1.3-expect": Case(
        title="100 (Continue)",
        clients=(curl("1.3", ("POST:/wait-2/bytes-10:700",), "--header", "Expect: 100-continue"),),
        see="- The request is sent in two parts: its body follows `HTTP/1.1 100 Continue`, a record of 25 bytes\n"
        "  and its overhead, which is not the response (RFC 9110 section 15.2.1).",
    ),
    "curl-apache-1.3-certificate-later": Case(
        title="Apache asks for a certificate after the handshake",
        clients=(curl("1.3", WALK[:2], *SHOW_CERTIFICATE),),
        server="apache",
        directives=CERTIFICATE_LATER,
        see="- The second request is answered with a CertificateRequest, encrypted like a response; the client's\n"
        "  certificate looks like a request. The response comes 50 ms later.",
    ),
    "curl-apache-1.2-certificate-later": Case(
        title="Apache asks for a certificate by shaking hands again",
        clients=(curl("1.2", WALK, *SHOW_CERTIFICATE),),
        server="apache",
        directives=CERTIFICATE_LATER,
        see="- After the second request a second handshake, all of it encrypted, in records of type 22. The response\n"
        "  comes 50 ms later.",
    ),
    "go-apache-1.3-no-keepalive": Case(
        title="A connection for each request",
        clients=(go("1.3", "full", SMALL),),
        server="apache",
        directives=NO_KEEPALIVE,
        vantage="server",
        see="- The second connection is resumed. Each ends after its response: a server's close_notify follows.",
    ),
    "go-nginx-1.3-no-tickets": Case(
        title="Go and a server that sends no ticket",
        clients=(go("1.3", "full", POST_FIRST),),
        directives=NO_TICKETS,
        delay_ms=0,
        vantage="server",
        see="- The first record after the handshake **is** the response, and smaller than a ticket.",
    ),
    "rustls-nginx-1.3-0rtt-near": Case(
        title="rustls sends 0-RTT data beside the server",
        clients=(rustls("1.3", "early", POST_FIRST),),
        directives=NGINX_EARLY,
        delay_ms=0,
        vantage="server",
        see="- The second connection's first request, a POST, travels with the ClientHello.",
    ),
    "rustls-nginx-1.3-upload": Case(
        title="rustls sends a request of many segments",
        clients=(rustls("1.3", "full", UPLOAD),),
        vantage="server",
        see="- The tickets leave while the request is still arriving.",
    ),
    "java-apache-1.3-post": Case(
        title="Java posts to Apache",
        clients=(java("1.3", "full", POST_FIRST),),
        server="apache",
        vantage="server",
        see="- Java's HttpClient sends head and body of a request as two records; tickets can come between them.",
    ),
    "java-apache-1.2-session-id": Case(
        title="Java and Apache, TLS 1.2, resumed",
        clients=(java("1.2", "resumed", WALK),),
        server="apache",
        see="- One round trip less on the second connection.",
    ),
    "gnutls-nginx-1.2-ticket": Case(
        title="gnutls-cli and nginx, TLS 1.2, resumed with a ticket",
        clients=(gnutls("1.2", POST_FIRST, "--resume"),),
        see="- The first connection asks nothing. The second is resumed.",
    ),
    "gnutls-apache-1.3-post": Case(
        title="gnutls-cli posts to Apache",
        clients=(gnutls("1.3", POST_FIRST),),
        server="apache",
        delay_ms=0,
        vantage="server",
        see="- A request, 50 ms, a response without a body.",
    ),
}
