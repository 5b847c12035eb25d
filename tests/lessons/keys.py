"""Where the figures in the lessons' answers come from, lesson by lesson: what a key says, and what it is held to.

``FIGURES``: a capture, or a folder with those of several places, and the SQL that gives the figure: nanoseconds, or per
cent. ``{zero}`` is the first instant.
``GIVEN``: what no capture tells: set up so, supposed, of an older study; or worked out from a table beside it.
Tables between marks (``<!-- table: … -->``) are generated from ``results.json``; each lesson's tests hold them to it.
"""

_WAITED = "SELECT sum(waited_ns) FROM servers WHERE role <> 'backend'"
_TCP = "SELECT ack_at - syn_at FROM connections WHERE stream = 0"
_TLS = "SELECT ready_at - hello_at FROM handshakes WHERE stream = 0"
_ALL_TLS = "SELECT sum(ready_at - hello_at) FROM handshakes"
_DONE = "SELECT max(response_done_at) - {zero} FROM exchanges"
_FRAME = "SELECT seen_at - {zero} FROM packets WHERE frame = "
_SLOW, _BEFORE, _AFTER = (
    f"reverse-proxy/{case}" for case in ("https-slow-client", "https-no-keepalive", "https-keepalive")
)
_RESUMED = "stalls/resumed-nodelay-client"
_BUYERS = "SELECT median(wait_ns) FROM exchanges WHERE method = 'Query' AND target LIKE '% FROM buyer %'"

_WAITS = """
    SELECT stream, exchange, kind, place, to_place, sum(end_at - start_at) AS ns
    FROM phase_places JOIN connections USING (stream) WHERE server_port = 443 AND phase = 'wait' GROUP BY ALL
"""
_FAULTS = [f"places/whose-fault-{number}" for number in (1, 2, 3)]
_TO_APP = f"SELECT median(ns) FROM ({_WAITS}) WHERE place = 'lb' AND to_place = 'app'"
_TO_LB = f"SELECT median(ns) FROM ({_WAITS}) WHERE place = 'client' AND to_place = 'lb'"
_BETWEEN = f"SELECT 2 * median(ns) FROM ({_WAITS}) WHERE kind = 'path' AND 'app' IN (place, to_place)"
_BEHIND_LB = f"""
    SELECT median(ns) FROM (SELECT sum(ns) AS ns FROM ({_WAITS})
    WHERE place <> 'client' AND to_place IS DISTINCT FROM 'client' GROUP BY stream, exchange)
"""

_CLOCKS = "logs/three-clocks"
_OF_LINE = "SELECT {} FROM log_differences WHERE line = {}"

FIGURES: dict[str, list[tuple[str, str, str]]] = {
    "reverse-proxy": [
        ("12.2 ms", "reverse-proxy/http", _WAITED),
        ("10.3 ms", "reverse-proxy/http", _TCP),
        ("1.8 ms", "reverse-proxy/http", "SELECT wait_ns FROM exchanges WHERE stream = 0"),
        ("0.03 ms", "reverse-proxy/http", "SELECT ack_at - syn_at FROM connections WHERE stream = 1"),
        ("1.2 ms", "reverse-proxy/http", "SELECT wait_ns FROM exchanges WHERE stream = 1"),
        ("59.9 ms", "reverse-proxy/http-page", _DONE),
        ("39.0 ms", "reverse-proxy/http-page", _WAITED),
        ("5 ms", "reverse-proxy/http-page", "SELECT sum(wait_ns) FROM exchanges WHERE stream = 0"),
        ("0.08 ms", "reverse-proxy/http-page", "SELECT sum(ack_at - syn_at) FROM connections WHERE stream > 0"),
        ("1.06 s", _SLOW, _TLS),
        ("1.08 s", _SLOW, _WAITED),
        ("98 %", _SLOW, f"SELECT 100.0 * ({_TLS}) / ({_WAITED})"),
        ("10.3 ms", _SLOW, _TCP),
        ("5.9 ms", _SLOW, "SELECT server_hello_at - hello_at FROM handshakes"),
        ("1,157.1 ms", _SLOW, "SELECT opened_at - {zero} FROM connections WHERE stream = 1"),
        ("1,081.5 ms", _SLOW, "SELECT ready_at - {zero} FROM handshakes"),
        ("12.2 ms", "reverse-proxy/http", _WAITED),
        ("26.0 ms", "reverse-proxy/https", _WAITED),
        ("13.7 ms", "reverse-proxy/https", _TLS),
        ("4.3 ms", "reverse-proxy/https", "SELECT hello_at - ack_at FROM handshakes JOIN connections USING (stream)"),
        ("30.5 ms", "reverse-proxy/https", _DONE),
        ("65.0 ms", _BEFORE, "SELECT ready_at - hello_at FROM handshakes WHERE stream = 4"),
        ("326.4 ms", _BEFORE, _DONE),
        ("205.3 ms", _BEFORE, _ALL_TLS),
        ("66.8 ms", _AFTER, _ALL_TLS),
        ("133.0 ms", _AFTER, _DONE),
        ("112 ms", _AFTER, _WAITED),
        ("304 ms", _BEFORE, _WAITED),
        ("23.5 ms", _BEFORE, _FRAME + "8"),
        ("70.1 ms", _BEFORE, _FRAME + "9"),
        ("80.4 ms", _BEFORE, _FRAME + "10"),
        ("80.4 ms", _BEFORE, _FRAME + "11"),
        ("57 ms", _BEFORE, "SELECT end_at - start_at FROM phase_stalls WHERE stream = 0 AND phase = 'tls'"),
        ("90.6 ms", _BEFORE, _FRAME + "14"),
    ],
    "resumed": [
        ("0.4 ms", "stalls/resumed-held-client", "SELECT median(rtt_server_ns) FROM connections"),
        ("0.05 ms", _RESUMED, "SELECT max(seen_at) - min(seen_at) FROM packets WHERE frame IN (8, 9)"),
    ],
    "far-away": [
        ("517 bytes", "far-away/modem-tls13", "SELECT client_hello_bytes + 5 FROM handshakes WHERE stream = 0"),
        ("0.6 ms", "far-away/directory-ldaps-kept", "SELECT median(wait_ns + transfer_ns) FROM exchanges"),
    ],
    "quiz": [("70 ms", _BEFORE, "SELECT median(ready_at - hello_at) FROM handshakes")],
    "places": [
        *(("20 ms", case, "SELECT median(rtt_server_ns) FROM connections WHERE server_port = 443") for case in _FAULTS),
        ("34 ms", _FAULTS[0], _TO_APP),
        *(("1 ms", case, _TO_APP) for case in _FAULTS[1:]),
        *(("10 ms", case, _TO_LB) for case in _FAULTS),
        ("68 ms", _FAULTS[0], _BETWEEN),
        ("77 ms", _FAULTS[0], _BEHIND_LB),
        ("74 ms", _FAULTS[1], f"SELECT median(ns) FROM ({_WAITS}) WHERE place = 'app' AND kind = 'host'"),
        ("44 ms", _FAULTS[2], f"SELECT median(ns) FROM ({_WAITS}) WHERE place = 'lb' AND kind = 'host'"),
    ],
    "versions": [
        (
            "58 bytes",
            "versions/h2-80ms",
            "SELECT median(bytes) FROM packets WHERE sender = 'server' AND bytes > 0 AND frame BETWEEN 40 AND 61",
        ),
    ],
    "three-clocks": [
        ("101 ms", _CLOCKS, _OF_LINE.format("logged_ns", 1)),
        ("263 ms", _CLOCKS, _OF_LINE.format("wire_ns", 1)),
        ("80.6 ms", _CLOCKS, _OF_LINE.format("setup_ns", 1)),
        ("420 ms", _CLOCKS, _OF_LINE.format("buffered_ns", 3)),
        (
            "40.2 ms",
            _CLOCKS,
            "SELECT nginx_upstream_connect_ns FROM expected_log_lines ORDER BY stream, exchange LIMIT 1",
        ),
    ],
    "one-page": [
        ("1.15 ms", "one-page/n-plus-one-1ms", _BUYERS),
        ("0.99 ms", "one-page/n-plus-one-1ms", "SELECT median(ack_at - syn_at) FROM connections WHERE app = 'mysql'"),
        ("0.16 ms", "one-page/n-plus-one-0.1ms", _BUYERS),
    ],
}
GIVEN: dict[str, dict[str, tuple[str, ...]]] = {
    "reverse-proxy": {
        "the round trip of the path, and what another would give": ("10 ms", "30 ms"),
        "measured in 2009": ("90 %", "77 ms", "156 ms"),
    },
    "resumed": {"the kernel's timer, and the round trip of another case": ("40 ms",)},
    "quiz": {
        "what the users said": ("40 ms",),
        "how long the backend sleeps": ("250 ms",),
        "the line as it is set up": ("20 ms",),
        "the median of the queries, less the round trip, rounded up": ("0.2 ms",),
    },
    "places": {
        "the line as it is set up, and half of the difference of its directions": ("28 ms", "40 ms", "6 ms"),
        "the wait of the question, less the round trip": ("75 ms",),
    },
    "versions": {"24 pictures of 8 kB, and the kernel's shortest timer": ("200 kB", "200 ms")},
    "three-clocks": {
        "the line as it is set up": ("40 ms",),
        "how long the application thinks": ("20 ms",),
    },
    "one-page": {"worked out from the table: measured over predicted, four pages in a row": ("3 %", "20.4 ms")},
    "handshake-cost": {"of the study of 1997": ("45 ms",)},
    "large-transfers": {"the padding, MAC and IV of CBC, less what TLS 1.3 adds to a record": ("35 bytes",)},
    "terminators": {
        "of the measurements that were made twice, and of nginx's CPU, in results.json": ("8 %", "73 %"),
        "worked out from the table: seconds over requests, and their differences": ("0.29 ms", "0.24 ms", "0.14 ms"),
        "what a connection to the backend costs here, and would cost at a distance": ("0.03 ms", "0.01 ms", "10 ms"),
    },
    "far-away": {
        "of the study of 2000": ("0.65 s", "0.3 s", "1.13 bytes", "300 ms"),
        "the line as it is set up": ("26,400 s", "400 ms"),
        "sizes that protocols and programs have": (
            "300 bytes",
            "29 bytes",
            "22 bytes",
            "16 kB",
            "52 bytes",
            "1,500 bytes",
            "64 kB",
        ),
        "bytes over rate, bytes by rate, rate by round trip": (
            "16 ms",
            "215 ms",
            "455 ms",
            "660 bytes",
            "0.34 s",
            "0.32 s",
            "0.45 s",
        ),
        "rows of the tables and their differences, rounded": (
            "800 bytes",
            "120 ms",
            "316 s",
            "1,400 bytes",
            "23 ms",
            "11 %",
            "160 ms",
            "0.9 ms",
        ),
    },
}
