"""FastCGI: requests as PHP-FPM logged them, and as tshark has them."""

from __future__ import annotations

from collections import Counter

import conchart
from tests.conftest import ROOT
from tests.tshark import ask, needs_tshark

STORY = ROOT / "captures" / "stores" / "fastcgi"
PORT = 19000
MILLISECOND = 1_000_000


def logged() -> list[tuple[str, str, int, int]]:
    rows = (line.split(" ") for line in (STORY / "requests.txt").read_text().splitlines())
    return [(method, target, int(status), 1000 * int(time)) for method, target, status, time in rows]


def test_requests_are_those_that_the_server_logged() -> None:
    with conchart.read(STORY / "input.pcap") as trace:
        found = trace.sql(
            # PHP-FPM counts from the instant at which it has written the response before. Its end can leave later:
            # the page of 64 KiB ends with a small segment, which Nagle's algorithm holds.
            "SELECT method, target, status, wait_ns, wait_ns + request_done_at - coalesce("
            "lag(response_at) OVER (PARTITION BY stream ORDER BY number), request_at) "
            "FROM exchanges WHERE protocol = 'fastcgi' ORDER BY response_done_at"
        ).fetchall()
    expected = logged()
    assert [row[:3] for row in found] == [row[:3] for row in expected]
    assert len(found) == 21
    for (*_, at_server), (*_, wait, since_before) in zip(expected, found, strict=True):
        if wait is not None:  # a client that gave up waits for no response
            assert wait - MILLISECOND <= at_server <= since_before + MILLISECOND


def test_what_the_story_asks() -> None:
    with conchart.read(STORY / "input.pcap") as trace:
        statuses = dict(trace.sql("SELECT target, status FROM exchanges WHERE protocol = 'fastcgi'").fetchall())
        ((fresh,),) = trace.sql(
            "SELECT count(DISTINCT stream) FROM exchanges WHERE protocol = 'fastcgi' AND target LIKE '/fresh%'"
        ).fetchall()
        linked = trace.sql(
            "SELECT count(*), count(DISTINCT back.stream * 1000 + back.number), bool_and(front.target = back.target) "
            "FROM links JOIN exchanges front ON front.stream = front_stream AND front.number = front_exchange "
            "JOIN exchanges back ON back.stream = back_stream AND back.number = back_exchange"
        ).fetchall()
        ids = trace.sql("SELECT count(DISTINCT ids) FROM exchanges WHERE protocol = 'fastcgi'").fetchall()
        text = str(trace.sql("SELECT * FROM exchanges").fetchall())
    assert {target: status for target, status in statuses.items() if status != 200} == {
        "/missing.php": 404,
        "/moved.php": 302,
        "/wrong.php": 500,
    }
    assert fresh == 2
    assert linked == [(21, 21, True)]
    assert ids == [(21,)]
    assert "hunter2" not in text
    assert "secret" not in text


@needs_tshark
def test_requests_begin_and_end_where_tshark_has_them() -> None:
    with conchart.read(STORY / "input.pcap") as trace:
        begun = trace.sql("SELECT request_at FROM exchanges WHERE protocol = 'fastcgi'").fetchall()
        ended = trace.sql("SELECT response_done_at FROM exchanges WHERE protocol = 'fastcgi'").fetchall()
    chosen = ["-d", f"tcp.port=={PORT},fcgi", "-Y", "fcgi", "-T", "fields", "-e", "frame.time_epoch", "-e", "fcgi.type"]
    expected: dict[str, Counter[int]] = {"1": Counter(), "3": Counter()}
    for line in ask(["-n", "-r", str(STORY / "input.pcap"), *chosen]).splitlines():
        time, types = line.split("\t")
        for kind in types.split(","):
            if kind in expected:
                expected[kind][int(time.replace(".", ""))] += 1
    assert Counter(at for (at,) in begun) == expected["1"]
    assert Counter(at for (at,) in ended) == expected["3"]
