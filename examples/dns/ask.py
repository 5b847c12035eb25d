"""Ask a resolver by dnspython, all questions on one connection.

    ask.py tls|https|https-get|http1|http1-chunked|h3|quic ADDRESS SERVER_NAME AUTHORITY KEYS NAME TYPE [NAME TYPE …]

Out: on standard output one JSON object for each question: ``name``, ``type``, ``rcode``, and ``ms`` by this program's
clock; the secrets of the connection in KEYS.
"""

from __future__ import annotations

import base64
import json
import socket
import ssl
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import dns.message
import dns.query
import dns.quic
import dns.rdatatype
import httpx
from aioquic.quic.configuration import QuicConfiguration

OVER, ADDRESS, SERVER_NAME, AUTHORITY, KEYS, *WORDS = sys.argv[1:]
IS_HTTP1 = OVER.startswith("http1")
IN_PIECES = OVER == "http1-chunked"
SECONDS = 5
Ask = Callable[[dns.message.Message], dns.message.Message]


@contextmanager
def over_quic(*, h3: bool) -> Iterator[Ask]:
    """Over one connection of QUIC: as HTTP/3, or as DNS over QUIC."""
    with Path(KEYS).open("a") as keys:
        configuration = QuicConfiguration(
            alpn_protocols=["h3" if h3 else "doq"], server_name=SERVER_NAME, cafile=AUTHORITY, secrets_log_file=keys
        )
        with dns.quic.SyncQuicManager(configuration, h3=h3) as manager:
            connection = manager.connect(ADDRESS, 443 if h3 else 853)
            if h3:
                url = f"https://{SERVER_NAME}/dns-query"
                # dns.query.https opens a connection for each question.
                yield lambda query: dns.query._http3(query, ADDRESS, url, SECONDS, connection=connection)  # noqa: SLF001
            else:
                yield lambda query: dns.query.quic(query, ADDRESS, SECONDS, connection=connection)


@contextmanager
def over_tls() -> Iterator[Ask]:
    """Over TLS or HTTP, by OpenSSL."""
    context = ssl.create_default_context(cafile=AUTHORITY)
    context.keylog_filename = KEYS
    with ExitStack() as stack:
        if OVER == "tls":
            context.set_alpn_protocols(["dot"])
            plain = stack.enter_context(socket.create_connection((ADDRESS, 853), SECONDS))
            sealed = stack.enter_context(context.wrap_socket(plain, server_hostname=SERVER_NAME))
            yield lambda query: dns.query.tls(query, ADDRESS, SECONDS, sock=sealed)
        else:
            client = stack.enter_context(httpx.Client(http1=IS_HTTP1, http2=not IS_HTTP1, verify=context))
            yield lambda query: over_http(client, query)


def over_http(client: httpx.Client, query: dns.message.Message) -> dns.message.Message:
    """Ask as RFC 8484 says, with ID 0."""
    query.id = 0
    url, kind, wire = f"https://{SERVER_NAME}/dns-query", "application/dns-message", query.to_wire()
    if OVER == "https-get" or (IN_PIECES and query.question[0].rdtype == dns.rdatatype.AAAA):
        variable = base64.urlsafe_b64encode(wire).rstrip(b"=").decode()
        answer = client.get(url, params={"dns": variable}, headers={"accept": kind})
    else:
        content = iter((wire[:5], wire[5:15], wire[15:])) if IN_PIECES else wire
        answer = client.post(url, content=content, headers={"accept": kind, "content-type": kind})
    return dns.message.from_wire(answer.raise_for_status().content)


with over_quic(h3=OVER == "h3") if OVER in ("h3", "quic") else over_tls() as ask:
    for name, kind in zip(WORDS[::2], WORDS[1::2], strict=True):
        begun = time.monotonic_ns()
        answer = ask(dns.message.make_query(name, kind))
        ms = (time.monotonic_ns() - begun) / 1e6
        row = {"name": name, "type": kind, "rcode": int(answer.rcode()), "ms": round(ms, 3)}
        sys.stdout.write(json.dumps(row) + "\n")
