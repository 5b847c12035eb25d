"""HAR 1.2: the requests of HTTP, for every tool that shows a browser's.

In: a trace. Out: one entry per request, as http://www.softwareishard.com/blog/har-12-spec/ has it. What is inside TLS
without keys is there, too, as far as it is known, marked with ``_inferred``. DNS, mail and the like are no HTTP.

``send``, ``wait`` and ``receive`` are the request's own times, ``connect`` and ``ssl`` those of the handshakes that its
connection began with, and stand right before it, also where the connection lay idle between. Their sum is ``time``, to
the nanosecond.
"""

import ipaddress
import json
import re
from collections.abc import Iterator
from typing import IO, Any
from urllib.parse import parse_qsl, quote

from conchart.analysis.sights import once
from conchart.labels.printable import endpoint
from conchart.labels.units import format_iso
from conchart.outputs.formats.exchanges import TIMED_EXCHANGES, first_after
from conchart.outputs.formats.json import fetched, lines
from conchart.store.sql import GRPC_STATUS
from conchart.store.tables import Tables
from conchart.version import version

_UNKNOWN = -1
_VERSIONS = {"http/1.0": "HTTP/1.0", "http/1.1": "HTTP/1.1", "h2": "HTTP/2", "h3": "HTTP/3", "grpc": "HTTP/2"}
"""As Firefox writes them; gRPC over QUIC is HTTP/3."""
_DEFAULT_PORTS = {"http": 80, "https": 443}
_ABSOLUTE = re.compile(r"(https?)://([^/?#]*)(.*)", re.IGNORECASE | re.DOTALL)
_STRAY_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_RESERVED = "%!$&'()*+,;=:@/?~-._"
"""What stays as it was sent in a path or query: RFC 3986 appendix A."""

_HTTP = """
    kind IN ('web', 'rpc')
    OR protocol = 'tls' AND coalesce(regexp_matches(coalesce(alpn, alpn_offered), '(^|,)(h2|http/)'), true)
"""
"""Of ``requests`` with its handshake: what is inside TLS may be HTTP, as far as anybody can tell."""

_ENTRIES = f"""
    WITH requests AS ({TIMED_EXCHANGES}),
    secured AS (SELECT stream, hello_at, sni, alpn, alpn_offered FROM handshakes WHERE number = 0),
    http AS (
        SELECT requests.*, sni, alpn, coalesce(hello_at <= start_at, false) AS secure
        FROM requests LEFT JOIN secured USING (stream) WHERE {_HTTP}),
    openings AS (SELECT stream, kind, start_at, end_at FROM phases WHERE kind IN ('syn', 'tls')),
    opened AS (
        SELECT stream, for_exchange AS number, sum(end_at - start_at)::BIGINT AS connect_ns,
            (sum(end_at - start_at) FILTER (kind = 'tls'))::BIGINT AS ssl_ns
        FROM ({first_after("openings", "http")}) WHERE number IS NOT NULL GROUP BY ALL),
    timed AS (
        SELECT http.*, connect_ns, ssl_ns, coalesce(request_ns, 0) AS send_ns,
            coalesce(wait_ns, CASE WHEN response_at IS NULL THEN end_at - request_done_at END, 0) AS await_ns,
            coalesce(transfer_ns, 0) AS receive_ns
        FROM http LEFT JOIN opened USING (stream, number))
    SELECT stream, number, start_at - coalesce(connect_ns, 0) AS started_at, transport, transport_stream,
        client_ip, server_ip, server_port, secure, sni, alpn, protocol, method, host, target,
        if({GRPC_STATUS}, 200, status) AS status, if({GRPC_STATUS}, status_text, NULL) AS grpc_status,
        user_agent, server_software, response_bytes, request_frame, response_frame, inferred, confidence,
        to_json({{
            time: 0.000001 * (coalesce(connect_ns, 0) + send_ns + await_ns + receive_ns),
            timings: {{
                blocked: {_UNKNOWN}, dns: {_UNKNOWN},
                connect: coalesce(0.000001 * connect_ns, {_UNKNOWN}), ssl: coalesce(0.000001 * ssl_ns, {_UNKNOWN}),
                send: 0.000001 * send_ns, wait: 0.000001 * await_ns, receive: 0.000001 * receive_ns
            }}
        }}) AS times
    FROM timed JOIN connections USING (stream)
"""
"""Milliseconds are decimals all the way: as floats of Python, sums would miss the last digit."""


@once
def dump_har(tables: Tables, sink: IO[str]) -> None:
    """Write the log, entries in the order of their instants, a page per client."""
    head = {"version": "1.2", "creator": {"name": "conchart", "version": version()}}
    sink.write(f'{{"log": {json.dumps(head)[:-1]}, "pages": [')
    pages = tables.sql(f"SELECT client_ip, min(started_at) AS first_at FROM ({_ENTRIES}) GROUP BY ALL ORDER BY ALL")
    sink.writelines(lines(json.dumps(_page(*row)) for row in pages.fetchall()))
    sink.write('],\n"entries": [')
    sink.writelines(lines(_entries(tables)))
    sink.write("]}}\n")


def _page(client_ip: str, first_at: int) -> dict[str, Any]:
    return {"id": client_ip, "title": client_ip, "startedDateTime": format_iso(first_at), "pageTimings": {}}


def _entries(tables: Tables) -> Iterator[str]:
    relation = tables.sql(f"FROM ({_ENTRIES}) ORDER BY started_at, stream, number")
    for values in fetched(relation):
        row = dict(zip(relation.columns, values, strict=True))
        yield f"{json.dumps(_entry(row))[:-1]}, {row['times'][1:]}"


def _entry(row: dict[str, Any]) -> dict[str, Any]:
    """Give an entry but for its times."""
    spoken = row["alpn"] if row["inferred"] and row["protocol"] == "tls" else row["protocol"]
    http = "HTTP/3" if spoken == "grpc" and row["transport"] == "udp" else _VERSIONS.get(spoken, "unknown")
    url = _url(row)
    query = url.partition("?")[2]
    extensions = {
        "_grpc_status": row["grpc_status"],
        "_request_frame": row["request_frame"],
        "_response_frame": row["response_frame"],
        "_confidence": row["confidence"] if row["inferred"] else None,
        "_inferred": row["inferred"] or None,
    }
    return {
        "pageref": row["client_ip"],
        "startedDateTime": format_iso(row["started_at"]),
        "serverIPAddress": row["server_ip"],
        "connection": str(row["stream"]),
        "comment": f"{row['transport']}.stream eq {row['transport_stream']}",
        "request": {
            "method": row["method"] or "unknown",
            "url": url,
            "httpVersion": http,
            "cookies": [],
            "headers": _headers(Host=row["host"], User_Agent=row["user_agent"]),
            "queryString": [{"name": name, "value": value} for name, value in parse_qsl(query, keep_blank_values=True)],
            "headersSize": _UNKNOWN,
            "bodySize": _UNKNOWN,
        },
        "response": {
            "status": row["status"] or 0,
            "statusText": "",
            "httpVersion": http,
            "cookies": [],
            "headers": _headers(Server=row["server_software"]),
            "content": {"size": _UNKNOWN, "mimeType": "x-unknown"},
            "redirectURL": "",
            "headersSize": _UNKNOWN,
            "bodySize": _UNKNOWN,
            **({} if row["response_bytes"] is None else {"_transferSize": row["response_bytes"]}),
        },
        "cache": {},
        **{name: value for name, value in extensions.items() if value is not None},
    }


def _headers(**headers: str | None) -> list[dict[str, str]]:
    return [{"name": name.replace("_", "-"), "value": value} for name, value in headers.items() if value is not None]


def _url(row: dict[str, Any]) -> str:
    """Give the address that was asked for, as RFC 3986 allows it: what was sent is hostile, and may be no address."""
    target = row["target"] or "/"
    if absolute := _ABSOLUTE.fullmatch(target):
        scheme, authority, rest = absolute.groups()
        return f"{scheme.lower()}://{_authority(authority)}{_path(rest)}"
    scheme = "https" if row["secure"] else "http"
    if row["method"] == "CONNECT":
        return f"{scheme}://{_authority(target)}/"
    authority = _authority(row["host"] or row["sni"] or endpoint(row["server_ip"], row["server_port"]))
    has_port = authority.rpartition("]")[2].count(":") == 1
    if not has_port and row["server_port"] != _DEFAULT_PORTS[scheme]:
        authority += f":{row['server_port']}"
    return f"{scheme}://{authority.removesuffix(f':{_DEFAULT_PORTS[scheme]}')}{_path(target)}"


def _path(text: str) -> str:
    escaped = quote(_STRAY_PERCENT.sub("%25", text), safe=_RESERVED)
    return escaped if escaped.startswith("/") else f"/{escaped}"


def _authority(text: str) -> str:
    """Write host and port so that they can be nothing else."""
    name, colon, port = text.rpartition(":")
    if not colon or not re.fullmatch("[0-9]{1,5}", port):
        name, colon, port = text, "", ""
    try:
        return f"[{ipaddress.IPv6Address(name.strip('[]').partition('%')[0])}]{colon}{port}"
    except ValueError:
        return quote(name, safe="!$&'()*+,;=~-._") + colon + port
