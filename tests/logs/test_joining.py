"""Which line is about which request: the truth is a number in each request, which conchart is not told."""

from __future__ import annotations

import gzip
from datetime import timedelta, timezone
from pathlib import Path

import pytest

import conchart
from conchart import CaptureError, UsageError
from tests.conftest import ROOT, logs_of
from tests.logs.making import LOGS, TIMED, encrypted, logged, moved, numbers, score

CROWDS = ("nginx-crowd", "haproxy-crowd", "apache-crowd")
PRECISION, RECALL = 0.99, 0.98
NEAR = LOGS / "nginx-near"


@pytest.mark.parametrize("case", [*CROWDS, "nginx-near", "nginx-far-backend", "nginx-aborted"])
def test_lines_are_beside_their_requests(case: str) -> None:
    with conchart.read(LOGS / case / "input.pcap", **logs_of(LOGS / case)) as trace:
        precision, recall = score(trace, numbers(case))
        assert precision >= PRECISION
        assert recall >= RECALL


@pytest.mark.parametrize("case", CROWDS)
def test_a_tenth_of_the_lines_may_be_missing(case: str, tmp_path: Path) -> None:
    lines = (LOGS / case / "access.log").read_text().splitlines(keepends=True)
    remaining = [number for number in range(len(lines)) if number % 10 != 3]
    (tmp_path / "access.log").write_text("".join(lines[number] for number in remaining))
    product = case.partition("-")[0]
    with conchart.read(LOGS / case / "input.pcap", access_logs=[f"{product}={tmp_path / 'access.log'}"]) as trace:
        truth = numbers(case)
        precision, recall = score(trace, [truth[number] for number in remaining])
        if product == "haproxy":
            assert precision >= PRECISION
            assert recall >= RECALL
        ((unlogged, requests),) = trace.sql("SELECT unlogged, requests FROM logs").fetchall()
        assert unlogged == requests - len(remaining)
        if product != "haproxy":  # of whole seconds and equal requests, nothing tells which lines are missing
            ((sure,),) = trace.sql("SELECT max(confidence) FROM log_lines").fetchall()
            assert sure < 0.4


def test_what_cannot_be_told_apart_is_not_said_to_be_sure() -> None:
    with conchart.read(LOGS / "nginx-crowd/input.pcap", **logs_of(LOGS / "nginx-crowd")) as trace:
        ((low, rivals),) = trace.sql("SELECT median(confidence), min(rivals) FROM log_lines").fetchall()
        assert low < 0.6
        assert rivals > 1
    with conchart.read(LOGS / "haproxy-crowd/input.pcap", **logs_of(LOGS / "haproxy-crowd")) as trace:
        ((low,),) = trace.sql("SELECT min(confidence) FROM log_lines").fetchall()
        assert low > 0.8


@pytest.mark.parametrize(
    ("by", "zone"),
    [
        (timedelta(0), timezone(timedelta(hours=5, minutes=30))),
        (timedelta(hours=2), timezone.utc),
        (timedelta(seconds=-3), timezone.utc),
    ],
)
def test_a_clock_of_whole_seconds_may_be_wrong_and_in_any_zone(by: timedelta, zone: timezone, tmp_path: Path) -> None:
    """The targets of the section without a crowd differ: rare requests tell the offset."""
    case = LOGS / "nginx"
    with conchart.read(case / "input.pcap") as trace:
        rows = trace.sql("""
            SELECT client_ip, response_done_at // 1000000000, method, target, status, response_bytes
            FROM exchanges JOIN connections USING (stream) WHERE server_port = 80 ORDER BY response_done_at
        """).fetchall()
    text = "".join(
        f'{ip} - - [{_clf(second)}] "{method} {target} HTTP/1.1" {status} {size} "-" "-"\n'
        for ip, second, method, target, status, size in rows
    )
    (tmp_path / "access.log").write_text(moved(text, by, zone))
    with conchart.read(case / "input.pcap", access_logs=[f"nginx={tmp_path / 'access.log'}"]) as trace:
        ((ahead, slack, matched),) = trace.sql("SELECT ahead_ns, uncertainty_ns, matched FROM logs").fetchall()
        assert matched == len(rows)
        assert abs(ahead - by / timedelta(microseconds=1) * 1000) <= slack + 10_000_000


def _clf(second: int) -> str:
    from datetime import datetime

    return f"{datetime.fromtimestamp(second, timezone.utc):%d/%b/%Y:%H:%M:%S %z}"


@pytest.mark.parametrize("ahead_ns", [0, 40_000_000, -700_000_000, 86_400 * 10**9])
def test_the_offset_of_a_fine_clock_is_told_with_its_bounds(ahead_ns: int, tmp_path: Path) -> None:
    case = LOGS / "haproxy-crowd"
    with conchart.read(case / "input.pcap") as trace:
        (tmp_path / "access.log").write_text(logged(trace, ahead_ns=ahead_ns))
    logs = {"access_logs": [f"nginx={tmp_path / 'access.log'}"], "log_formats": [TIMED]}
    with conchart.read(case / "input.pcap", **logs) as trace:  # type: ignore[arg-type]
        ((ahead, slack, matched, lines),) = trace.sql(
            "SELECT ahead_ns, uncertainty_ns, matched, lines FROM logs"
        ).fetchall()
        assert matched == lines
        assert abs(ahead - ahead_ns) <= slack + 1_000_000
        assert slack < 5_000_000


def test_lines_without_a_request_say_why(tmp_path: Path) -> None:
    text = (NEAR / "access.log").read_text()
    first = text.splitlines()[0]
    seconds = first.split()[-5]
    others = [
        first.replace(seconds, f"{float(seconds) + 3600:.3f}"),
        first.replace("/item", "/nobody-asked-for-it"),
        first,
        "this is no line of a log",
    ]
    (tmp_path / "access.log").write_text(text + "\n".join(others) + "\n")
    options = logs_of(NEAR) | {"access_logs": [f"nginx={tmp_path / 'access.log'}"]}
    with conchart.read(NEAR / "input.pcap", **options) as trace:
        assert trace.sql("""
            SELECT unmatched, count(*) FROM log_lines WHERE unmatched IS NOT NULL GROUP BY ALL ORDER BY ALL
        """).fetchall() == [("outside", 1), ("request", 1), ("taken", 1)]
        assert trace.sql("""
            SELECT lines, malformed, first_malformed, matched, outside, unmatched FROM logs
        """).fetchall() == [(28, 1, 28, 24, 1, 2)]
        assert trace.sql("SELECT count(DISTINCT (stream, exchange)) FROM log_lines WHERE stream >= 0").fetchall() == [
            (24,)
        ]


def test_a_compressed_log_is_read_and_a_broken_one_up_to_where_it_breaks(tmp_path: Path) -> None:
    packed = gzip.compress((LOGS / "nginx-crowd/access.log").read_bytes())
    (tmp_path / "access.log.gz").write_bytes(packed)
    (tmp_path / "broken.gz").write_bytes(packed[: len(packed) // 2])
    logs = [f"nginx={tmp_path / name}" for name in ("access.log.gz", "broken.gz")]
    with conchart.read(LOGS / "nginx-crowd/input.pcap", access_logs=logs) as trace:
        (whole, half) = trace.sql("SELECT lines, broken FROM logs ORDER BY log").fetchall()
        assert whole == (384, None)
        assert 0 < half[0] < 384
        assert half[1]


def test_log_and_wire_differ_by_what_explains_it() -> None:
    case = LOGS / "nginx-slow-client"
    with conchart.read(case / "input.pcap", **logs_of(case)) as trace:
        rows = trace.sql("FROM log_differences").fetchall()
        assert len(rows) == 48
        for _, _, _, _, log, wire, difference, *parts, _ in rows:
            assert wire - log == difference == sum(parts)
        explained = dict(trace.sql("SELECT explained, count(*) FROM log_differences GROUP BY ALL").fetchall())
        assert {"setup", "buffered", "network"} <= explained.keys()
    with conchart.read(NEAR / "input.pcap", **logs_of(NEAR)) as trace:
        ((most,),) = trace.sql("SELECT max(abs(difference_ns)) FROM log_differences").fetchall()
        assert most < 5_000_000


def test_fields_of_the_log_are_beside_those_of_the_wire() -> None:
    with conchart.read(NEAR / "input.pcap", **logs_of(NEAR)) as trace:
        rows = trace.sql("SELECT field, count(*), max(abs(difference_ns)) FROM log_times GROUP BY ALL").fetchall()
        assert {field for field, _, _ in rows} == {
            *("$request_time", "$upstream_connect_time", "$upstream_header_time", "$upstream_response_time")
        }
        assert all(count == 24 and most < 3_000_000 for _, count, most in rows)


def test_the_log_names_what_encryption_hides(tmp_path: Path) -> None:
    with encrypted(tmp_path) as trace:
        rows = trace.sql("SELECT protocol, method, target, status, from_log FROM exchanges").fetchall()
        assert rows
        assert {row[2] for row in rows} >= {"/wait-2/bytes-100", "/wait-5/bytes-20000", "/wait-2/status-204"}
        assert all(
            protocol == "tls" and method and status and from_log for protocol, method, _, status, from_log in rows
        )


def test_without_a_log_nothing_is_said_to_be_from_one() -> None:
    with conchart.read(NEAR / "input.pcap") as trace:
        for table in ("logs", "log_lines", "log_times", "log_differences"):
            assert trace.sql(f"FROM {table}").fetchall() == []
        assert trace.sql("SELECT DISTINCT from_log FROM exchanges").fetchall() == [(None,)]


def test_a_log_that_cannot_be_read_is_an_error_that_says_what_was_expected(tmp_path: Path) -> None:
    (tmp_path / "access.log").write_text("\nnonsense\n" * 3)
    with pytest.raises(CaptureError, match=r"access\.log:2: no line of 3 has the format of nginx\n.*\$remote_addr"):
        conchart.read(NEAR / "input.pcap", access_logs=[f"nginx={tmp_path / 'access.log'}"])
    with pytest.raises(CaptureError, match="cannot read the access log"):
        conchart.read(NEAR / "input.pcap", access_logs=[f"nginx={tmp_path / 'missing'}"])
    for named, texts, words in (
        (["access.log"], [], "name the product"),
        (["iis=access.log"], [], "the product is one of"),
        ([], ["$request"], "it needs a log"),
        (["nginx=a"], ["$request"], "no time"),
        (["nginx=a"], ["nothing"], "no field"),
        (["nginx=a"], ["$msec", "$msec"], "one for all logs"),
    ):
        with pytest.raises(UsageError, match=words):
            conchart.read(NEAR / "input.pcap", access_logs=named, log_formats=texts)


def test_an_empty_log_has_no_lines(tmp_path: Path) -> None:
    (tmp_path / "access.log").write_text("")
    with conchart.read(NEAR / "input.pcap", access_logs=[f"nginx={tmp_path / 'access.log'}"]) as trace:
        assert trace.sql("SELECT lines, matched, unlogged FROM logs").fetchall() == [(0, 0, 0)]


def _combined(rows: list[tuple[str, int, str, str, int, int]]) -> str:
    """Write lines of whole seconds."""
    return "".join(
        f'{ip} - - [{_clf(at // 10**9)}] "{method} {target} HTTP/1.1" {status} {size} "-" "curl"\n'
        for ip, at, method, target, status, size in rows
    )


def test_only_requests_of_the_server_that_wrote_the_log_can_lack_a_line(tmp_path: Path) -> None:
    """On one machine, what nginx asks its backend has the same client, and the same target."""
    capture = ROOT / "captures/hops/same-nginx-close-16/input.pcap"
    with conchart.read(capture) as trace:
        ((port, requests),) = trace.sql("SELECT server_port, requests FROM servers WHERE role = 'front'").fetchall()
        rows = trace.sql(f"""
            SELECT client_ip, response_at, method, target, status, response_bytes
            FROM exchanges JOIN connections USING (stream) WHERE server_port = {port} ORDER BY response_at
        """).fetchall()
    (tmp_path / "access.log").write_text(_combined(rows))
    with conchart.read(capture, access_logs=[f"nginx={tmp_path / 'access.log'}"]) as trace:
        assert trace.sql("SELECT matched, requests, unlogged FROM logs").fetchall() == [(len(rows), requests, 0)]
        ports = trace.sql("SELECT DISTINCT server_port FROM log_lines JOIN connections USING (stream)").fetchall()
        assert ports == [(port,)]


def test_what_the_kernel_still_had_does_not_move_the_clock(tmp_path: Path) -> None:
    """A server writes its line between the first and the last byte of a response on the wire: here, at the end."""
    capture = LOGS / "nginx-slow-client/input.pcap"
    with conchart.read(capture) as trace:
        rows = trace.sql("""
            SELECT client_ip, response_done_at, method, target, status, response_bytes
            FROM exchanges JOIN connections USING (stream) JOIN expected_log_lines AS expected
                ON expected.stream = exchanges.stream AND exchange = exchanges.number
            ORDER BY 2
        """).fetchall()
    (tmp_path / "access.log").write_text(_combined(rows))
    with conchart.read(capture, access_logs=[f"nginx={tmp_path / 'access.log'}"]) as trace:
        ((ahead, slack, matched),) = trace.sql("SELECT ahead_ns, uncertainty_ns, matched FROM logs").fetchall()
    assert matched == len(rows)
    assert abs(ahead) <= slack
