"""More cases: connections side by side, and messages larger than one TLS record. Their names begin with which."""

from __future__ import annotations

from cases import FOUR_TICKETS, NO_TICKETS, ONE_TICKET, Case
from clients import curl, curl_together, go, go_together, openssl, openssl_pipelined, python

MIXED = (
    "GET:/wait-20/bytes-300:0",
    "POST:/wait-2/status-204:600",
    "GET:/wait-50/bytes-1200:0",
    "GET:/wait-2/status-304:0",
    "GET:/wait-5/bytes-5000:0",
    "POST:/wait-10/bytes-90:2500",
    "GET:/wait-2/bytes-132:0",
    "GET:/wait-30/bytes-40:0",
)
SHORT = ("GET:/wait-10/bytes-200:0", "POST:/wait-20/bytes-60:300", "GET:/wait-2/status-204:0")
SAME = ("GET:/wait-20/bytes-132:0",) * 4
PIPELINED = ("GET:/wait-20/bytes-300:0", "GET:/wait-5/bytes-100:0", "GET:/wait-10/status-204:0")
SIZES = (20, 700, 132, 16_300, 90, 3_000, 250, 16_600, 40, 9_000)
DOZENS = tuple(
    f"POST:/wait-{wait}/bytes-{size}:900" if size == 16_300 else f"GET:/wait-{wait}/bytes-{size}:0"
    for wait in (2, 5, 12)
    for size in SIZES
)
"""Thirty on one connection, some of their responses a little shorter and longer than a record of 2^14 bytes."""
COOKIES = (
    "GET:/wait-5/bytes-100:0:8000",
    "POST:/wait-20/bytes-50:400:8000",
    "GET:/wait-2/status-304:0:7000",
    "POST:/wait-10/bytes-5000:30000:8000",
)
STREAMS = ("GET:/wait-10/pieces-6-3000-40:0", "GET:/wait-5/bytes-100:0", "GET:/wait-20/pieces-4-20000-25:0")

EXPECT = ("--header", "Expect: 100-continue")
PAUSES = ("POST:/wait-20/bytes-50:24000:0:30", "GET:/wait-5/bytes-100:0", "POST:/wait-10/status-204:600:0:25")
UNBUFFERED = ("proxy_buffering off",)
LARGE_HEADS = ("large_client_header_buffers 4 16k",)
WITHOUT_LENGTH = ("proxy_buffering off", "chunked_transfer_encoding off")
CLOSES = ("keepalive_timeout 0",)

TRAFFIC = {
    "concurrent-curl-nginx-1.3": Case(
        title="curl on four connections",
        clients=(curl_together("1.3", MIXED * 2, 4),),
        see="- Four connections from one process, opened at once; each takes the next request when it is free.",
    ),
    "concurrent-curl-apache-1.2": Case(
        title="curl on four connections to Apache, TLS 1.2",
        clients=(curl_together("1.2", MIXED * 2, 4),),
        server="apache",
        vantage="server",
        see="- Four connections from one process, opened at once; each takes the next request when it is free.",
    ),
    "concurrent-go-nginx-1.3": Case(
        title="Go with five goroutines",
        clients=(go_together("1.3", 5, MIXED),),
        see="- Five goroutines share the connections; each thinks 7 ms before it asks again.",
    ),
    "concurrent-go-nginx-1.2-two-clients": Case(
        title="Two Go programs at once, TLS 1.2",
        clients=(go_together("1.2", 2, SHORT), go_together("1.2", 3, MIXED)),
        together=True,
        vantage="server",
        see="- Two processes ask the same server side by side; the server is one process.",
    ),
    "concurrent-python-nginx-1.3": Case(
        title="Python with four threads",
        clients=(python("1.3", 4, MIXED),),
        see="- `http.client` sends head and body of a request as two records.",
    ),
    "concurrent-python-apache-1.2": Case(
        title="Python with three threads and Apache, TLS 1.2",
        clients=(python("1.2", 3, MIXED),),
        server="apache",
        see="- `http.client` sends head and body of a request as two records.",
    ),
    "concurrent-python-apache-1.3-near": Case(
        title="Python with four threads beside the server",
        clients=(python("1.3", 4, SHORT, think_ms=3),),
        server="apache",
        delay_ms=0,
        vantage="server",
        see="- Without a distance, packets of four connections stand between a request and its response.",
    ),
    "concurrent-all-nginx-1.3": Case(
        title="curl, Go, Python and s_client at once",
        clients=(
            curl_together("1.3", SHORT * 2, 2),
            go_together("1.3", 2, SHORT),
            python("1.3", 2, SHORT),
            openssl("1.3", SHORT),
        ),
        together=True,
        directives=ONE_TICKET,
        see="- Four programs, seven connections.",
    ),
    "concurrent-all-nginx-1.3-near": Case(
        title="curl, Go and Python at once beside the server",
        clients=(curl_together("1.3", SAME, 2), go_together("1.3", 2, SAME), python("1.3", 2, SAME)),
        together=True,
        directives=FOUR_TICKETS,
        delay_ms=0,
        vantage="server",
        see="- Tickets of several connections and responses of their size, one after the other on the wire.",
    ),
    "concurrent-openssl-nginx-1.3-pipelined": Case(
        title="Pipelined requests",
        clients=(openssl_pipelined("1.3", PIPELINED),),
        see="- Three requests before the first response (RFC 9112 section 9.3.2): to who sees no text, one long turn.",
    ),
    "large-curl-nginx-1.3-download": Case(
        title="Downloads",
        clients=(curl("1.3", ("GET:/wait-20/bytes-60000:0", "GET:/wait-5/bytes-190000:0")),),
        see="- Records of 16 kB over a dozen segments each; the response outgrows the congestion window.",
    ),
    "large-curl-apache-1.2-download": Case(
        title="A download from Apache, TLS 1.2",
        clients=(curl("1.2", ("GET:/wait-20/bytes-120000:0", "GET:/wait-2/status-204:0")),),
        server="apache",
        vantage="server",
        see="- Records of 8 kB, as Apache's proxy reads its backend.",
    ),
    "large-curl-nginx-1.3-upload": Case(
        title="Uploads",
        clients=(curl("1.3", ("POST:/wait-20/bytes-10:150000", "POST:/wait-5/status-204:100000")),),
        see="- The first request outgrows the congestion window while the tickets arrive.",
    ),
    "large-curl-nginx-1.3-expect": Case(
        title="An upload that waits for 100 (Continue)",
        clients=(curl("1.3", ("POST:/wait-20/bytes-10:60000", "POST:/wait-5/status-204:40000"), *EXPECT),),
        see="- Each request is sent in two parts: its body follows `HTTP/1.1 100 Continue`.",
    ),
    "large-curl-apache-1.2-expect": Case(
        title="An upload that waits for Apache's 100 (Continue), TLS 1.2",
        clients=(curl("1.2", ("POST:/wait-20/bytes-10:60000", "POST:/wait-5/bytes-100:3000"), *EXPECT),),
        server="apache",
        vantage="server",
        see="- Each request is sent in two parts: its body follows `HTTP/1.1 100 Continue`.",
    ),
    "large-curl-nginx-1.3-stream": Case(
        title="Responses that come in pieces",
        clients=(curl("1.3", STREAMS),),
        directives=UNBUFFERED,
        see="- Chunks of 3,000 bytes 40 ms apart, and of 20,000 bytes 25 ms apart: nobody asked for them again.",
    ),
    "large-go-apache-1.3-stream": Case(
        title="Responses from Apache that come in pieces",
        clients=(go("1.3", "full", STREAMS),),
        server="apache",
        vantage="server",
        see="- Chunks with pauses inside one response.",
    ),
    "large-curl-nginx-1.3-until-close": Case(
        title="A response that ends with the connection",
        clients=(curl("1.3", ("GET:/wait-20/pieces-3-15000-30:0",)), curl("1.3", ("GET:/wait-5/bytes-60000:0",))),
        directives=WITHOUT_LENGTH,
        see="- The first response has neither a length nor chunks (RFC 9112 section 6.3): its end is the end of the\n"
        "  stream. The second has a length.",
    ),
    "large-go-nginx-1.3-close": Case(
        title="A connection for each response",
        clients=(go("1.3", "full", ("GET:/wait-5/bytes-50000:0", "POST:/wait-20/bytes-70000:20000")),),
        directives=CLOSES,
        see="- The server's close_notify and FIN follow the last byte of the response at once.",
    ),
    "large-go-nginx-1.2-mixed": Case(
        title="Thirty requests on one connection, TLS 1.2",
        clients=(go("1.2", "full", DOZENS),),
        see="- Responses from 20 to 16,600 bytes: one record, several, one over several segments.",
    ),
    "large-python-nginx-1.3-mixed": Case(
        title="Thirty requests on one connection, TLS 1.3",
        clients=(python("1.3", 1, DOZENS, think_ms=2),),
        vantage="server",
        see="- Responses from 20 to 16,600 bytes: one record, several, one over several segments.",
    ),
    "large-python-nginx-1.3-heads": Case(
        title="Requests with cookies of 8 kB",
        clients=(python("1.3", 1, COOKIES),),
        directives=LARGE_HEADS,
        see="- A head of one record over six segments, a body in the next.",
    ),
    "large-curl-apache-1.3-heads": Case(
        title="Requests with cookies of 8 kB to Apache",
        clients=(curl("1.3", COOKIES),),
        server="apache",
        vantage="server",
        see="- The tickets leave while the first head is still arriving.",
    ),
    "large-python-apache-1.3-upload": Case(
        title="Python uploads to Apache",
        clients=(python("1.3", 1, ("POST:/wait-50/status-204:100000", "POST:/wait-5/bytes-2000:40000")),),
        server="apache",
        see="- Head and body are separate records; Apache passes the body on while it arrives.",
    ),
    "large-python-nginx-1.3-pauses": Case(
        title="Requests with pauses inside",
        clients=(python("1.3", 1, PAUSES),),
        see="- The client pauses after the head and in the middle of the body; tickets come in the first pause.",
    ),
    "large-python-apache-1.2-pauses": Case(
        title="Requests to Apache with pauses inside, TLS 1.2",
        clients=(python("1.2", 1, PAUSES),),
        server="apache",
        vantage="server",
        see="- The client pauses after the head and in the middle of the body.",
    ),
    "large-go-nginx-1.3-refused": Case(
        title="Uploads that the server does not want",
        clients=(go("1.3", "full", ("POST:/wait-0/bytes-10:70000", "POST:/wait-0/bytes-10:2000")),),
        directives=("client_max_body_size 10k",),
        see="- 413 (Content Too Large) is there before the upload is over, and the connection closes. The second\n"
        "  request is small enough; its connection is resumed.",
    ),
    "large-go-nginx-1.3-near": Case(
        title="Down and up beside the server",
        clients=(go_together("1.3", 2, ("GET:/wait-5/bytes-70000:0", "POST:/wait-10/bytes-300:50000")),),
        delay_ms=0,
        vantage="server",
        directives=NO_TICKETS,
        see="- Two connections at full speed: the segments of a download between those of an upload.",
    ),
}
