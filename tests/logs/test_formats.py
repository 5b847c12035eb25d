"""Format strings as they stand in configurations, and lines as products write them."""

from __future__ import annotations

from pathlib import Path

import pytest

import conchart
from conchart.logs.formats import formats_of
from tests.conftest import ROOT

CAPTURE = ROOT / "captures/logs/nginx-near/input.pcap"
AT = 1_795_701_082_000_000_000
"""Thu Nov 26 13:51:22 UTC 2026."""
COLUMNS = "logged_at, client_ip, client_port, method, host, target, status, bytes, request_bytes, id, durations"

LINES = {
    "combined": (
        "nginx", None,
        '10.0.0.1 - bob [26/Nov/2026:14:51:22 +0100] "GET /a?b HTTP/1.1" 200 7 "-" "curl"',
        (AT, "10.0.0.1", None, "GET", None, "/a?b", 200, 7, None, None, None),
    ),
    "combined with times": (
        "nginx", None,
        '10.0.0.1 - - [26/Nov/2026:13:51:22 +0000] "GET / HTTP/2.0" 200 7 "-" "a \\x22b" 0.012 0.001 0.010, 0.011 -',
        (AT, "10.0.0.1", None, "GET", None, "/", 200, 7, None, None, [12_000_000, 1_000_000, 11_000_000, None]),
    ),
    "a format of nginx in quotes": (
        "nginx", "'$remote_addr:$remote_port $msec $host \"$request\" '  '$status $request_id $request_length'",
        '10.0.0.1:4242 1795701082.500 shop.example "PUT /x HTTP/1.1" 201 c0ffee 99',
        (AT + 500_000_000, "10.0.0.1", 4242, "PUT", "shop.example", "/x", 201, None, 99, "x-request-id:c0ffee", None),
    ),
    "JSON of nginx": (
        "nginx", '{"t": "$time_iso8601", "r": "$request", "s": "$status", "d": "$request_time"}',
        '{"d": "0.250", "s": "404", "r": "GET /q\\"x HTTP/1.1", "t": "2026-11-26T14:51:22+01:00"}',
        (AT, None, None, "GET", None, '/q"x', 404, None, None, None, [250_000_000]),
    ),
    "httplog": (
        "haproxy", None,
        '10.0.0.1:4242 [26/Nov/2026:13:51:22.125] web~ app/one 1/2/3/40/46 200 500 - - ---- 1/1/0/0/0 0/0 '
        '"GET /a HTTP/1.1"',
        (AT + 125_000_000, "10.0.0.1", 4242, "GET", None, "/a", 200, 500, None, None,
         [1_000_000, 2_000_000, 3_000_000, 40_000_000, 46_000_000]),
    ),
    "httplog behind syslog, aborted": (
        "haproxy", None,
        "Nov 26 13:51:22 lb haproxy[99]: ::ffff:10.0.0.1:4242 [26/Nov/2026:13:51:22.125] web app/<NOSRV> "
        '-1/-1/-1/-1/46 -1 0 - - CR-- 1/1/0/0/0 0/0 {shop|x} "<BADREQ>"',
        (AT + 125_000_000, "10.0.0.1", 4242, None, None, None, None, 0, None, None,
         [None, None, None, None, 46_000_000]),
    ),
    "absolute targets of HAProxy": (
        "haproxy", r'"%ci:%cp [%tr] %ST %{+Q}r"',
        '10.0.0.1:4242 [26/Nov/2026:13:51:22.125] 200 "GET https://shop.example/a?b HTTP/2.0"',
        (AT + 125_000_000, "10.0.0.1", 4242, "GET", "shop.example", "/a?b", 200, None, None, None, None),
    ),
    "common": (
        "apache", None,
        '10.0.0.1 - - [26/Nov/2026:13:51:22 +0000] "GET / HTTP/1.1" 304 -',
        (AT, "10.0.0.1", None, "GET", None, "/", 304, None, None, None, None),
    ),
    "a format of Apache": (
        "apache", r'"%a %{remote}p %{sec}t.%{usec_frac}t \"%r\" %>s %O %I %D \"%{X-Request-ID}i\" %{Host}i"',
        '10.0.0.1 4242 1795701082.000250 "GET /a HTTP/1.1" 200 7 99 1250 "abc" shop.example',
        (AT + 250_000, "10.0.0.1", 4242, "GET", "shop.example", "/a", 200, 7, 99, "x-request-id:abc", [1_250_000]),
    ),
    "the default of Envoy": (
        "envoy", None,
        '[2026-11-26T13:51:22.125Z] "POST /api HTTP/2" 204 - 154 0 226 100 "10.0.35.28" "ua" "cc21d9b0" "inventory" '
        '"tcp://10.0.2.1:80"',
        (AT + 125_000_000, None, None, "POST", "inventory", "/api", 204, 0, 154, "x-request-id:cc21d9b0",
         [226_000_000, 100_000_000]),
    ),
    "a format of Envoy": (
        "envoy",
        "%START_TIME(%Y/%m/%d %H:%M:%S.%3f)% %DOWNSTREAM_DIRECT_REMOTE_ADDRESS% %REQ(:METHOD)% %REQ(:PATH)% %DURATION% "
        "%REQ(TRACEPARENT)%\\n",
        "2026/11/26 13:51:22.125 10.0.0.1:4242 GET /a 12 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        (AT + 125_000_000, "10.0.0.1", 4242, "GET", None, "/a", None, None, None,
         "traceparent:0af7651916cd43dd8448eb211c80319c", [12_000_000]),
    ),
    "JSON that nobody described": (
        "json", None,
        '{"time": "2026-11-26T13:51:22Z", "method": "GET", "path": "/a", "status": 200, "x": {"y": [1]}, '
        '"duration_ms": 1.5}',
        (AT, None, None, "GET", None, "/a", 200, None, None, None, [1_500_000]),
    ),
}  # fmt: skip
"""Product, format, line, what it says."""


@pytest.mark.parametrize("name", LINES)
def test_a_line_says_what_the_product_meant(name: str, tmp_path: Path) -> None:
    product, text, line, expected = LINES[name]
    (tmp_path / "access.log").write_text(f"{line}\n")
    texts = [] if text is None else [text]
    with conchart.read(CAPTURE, access_logs=[f"{product}={tmp_path / 'access.log'}"], log_formats=texts) as trace:
        ((*fields, times),) = trace.sql(f"SELECT {COLUMNS} FROM log_lines").fetchall()
    present = times and [time for time in times if time is not None or name != "JSON that nobody described"]
    assert (*fields, present) == expected


@pytest.mark.parametrize(
    ("product", "text", "instant"),
    [
        ("nginx", "$msec", "end"),
        ("apache", "%t", "start"),
        ("apache", "%{end:msec}t", "end"),
        ("haproxy", "%tr", "start"),
        ("haproxy", "%T", "end"),
        ("envoy", "%START_TIME%", "start"),
    ],
)
def test_a_time_is_the_start_or_the_end_of_a_request(product: str, text: str, instant: str) -> None:
    assert formats_of(product, text)[0].instant == instant


@pytest.mark.parametrize(
    "hostile", [b"\x00" * 100, b'\xff\xfe[["', b"{" * 5_000, b'{"time": ' + b"[" * 5_000, b"9" * 70_000]
)
def test_hostile_lines_are_counted_and_nothing_else(hostile: bytes, tmp_path: Path) -> None:
    good = (ROOT / "captures/logs/nginx-crowd/access.log").read_bytes()
    (tmp_path / "access.log").write_bytes(hostile + b"\n" + good)
    with conchart.read(CAPTURE, access_logs=[f"nginx={tmp_path / 'access.log'}"]) as trace:
        assert trace.sql("SELECT lines, malformed, first_malformed FROM logs").fetchall() == [(385, 1, 1)]
