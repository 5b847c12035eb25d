"""What the table ``expected_log_lines`` says against the logs that real proxies wrote (``examples/logs``)."""

from pathlib import Path

import pytest

import conchart
from tests.conftest import ROOT

LOGS = ROOT / "captures" / "logs"
NGINX = (
    "nginx_request_ns", "nginx_upstream_connect_ns", "nginx_upstream_header_ns", "nginx_upstream_response_ns",
)  # fmt: skip
HAPROXY = (
    "haproxy_th_ns", "haproxy_ti_ns", "haproxy_head_ns", "haproxy_tw_ns", "haproxy_tc_ns", "haproxy_answer_ns",
    "haproxy_ta_ns",
)  # fmt: skip
FIELDS = {"nginx": NGINX, "nginx-slow-client": NGINX, "haproxy": HAPROXY, "apache": ("apache_ns",)}
"""In the order of each format (``examples/logs/conf``)."""
REQUESTS = 48
RESOLUTION_NS = 1_500_000
"""A millisecond, and what the kernel takes between packet and program."""


def logged_times(case: str) -> dict[str, list[float]]:
    """Give the times of each request by its number, in nanoseconds, as the log has them."""
    unit = {"nginx": 1e9, "nginx-slow-client": 1e9, "haproxy": 1e6, "apache": 1e3}[case]
    first = 2 if case.startswith("nginx") else 1
    lines = (line.split() for line in (LOGS / case / "access.log").read_text().splitlines())
    fields = len(FIELDS[case])
    return {
        words[0]: [float(word) * unit for word in words[first : first + fields]] for words in lines if words[0] != "-"
    }


def worked_out(path: Path, fields: tuple[str, ...]) -> dict[str, tuple[int | None, ...]]:
    """Give the same from the packets."""
    with conchart.read(path) as trace:
        rows = trace.sql(f"""
            SELECT split_part(ids[1], ':', 2), {", ".join(fields)}
            FROM expected_log_lines JOIN exchanges ON exchanges.stream = expected_log_lines.stream AND number = exchange
        """).fetchall()
    return {number: tuple(times) for number, *times in rows}


@pytest.mark.parametrize("case", FIELDS)
def test_every_field_is_what_the_proxy_wrote(case: str) -> None:
    log, wire = logged_times(case), worked_out(LOGS / case / "input.pcap", FIELDS[case])
    assert len(log) == REQUESTS
    assert wire.keys() == log.keys()
    for place, field in enumerate(FIELDS[case]):
        pairs = {number: (log[number][place], times[place]) for number, times in wire.items()}
        off = {
            number: (log_ns, wire_ns)
            for number, (log_ns, wire_ns) in pairs.items()
            if wire_ns is None or abs(wire_ns - log_ns) > RESOLUTION_NS
        }
        assert len(off) <= REQUESTS // 20, (field, off)


def test_the_log_ends_before_a_slow_client_has_the_response() -> None:
    """40 ms away, at 2 Mbit/s: 20 kB take 80 ms, of which the log says nothing."""
    with conchart.read(LOGS / "nginx-slow-client/input.pcap") as trace:
        rows = trace.sql("""
            SELECT nginx_request_ns, response_done_at - request_at, buffered_ns
            FROM expected_log_lines JOIN exchanges ON exchanges.stream = expected_log_lines.stream AND number = exchange
            WHERE response_bytes > 20000
        """).fetchall()
        assert len(rows) >= 10
        assert all(request + buffered == wire for request, wire, buffered in rows)
        assert sum(buffered > 20_000_000 for _, _, buffered in rows) >= len(rows) // 2


def test_envoys_times_are_parts_of_its_duration() -> None:
    with conchart.read(LOGS / "haproxy/input.pcap") as trace:
        rows = trace.sql("""
            SELECT envoy_request_ns, envoy_response_ns, envoy_response_tx_ns, envoy_ns, haproxy_ta_ns
            FROM expected_log_lines
        """).fetchall()
        assert len(rows) == REQUESTS
        for request, response, sending, whole, active in rows:
            assert 0 <= request <= response
            assert response + sending == whole == active


def test_a_capture_without_proxy_has_no_rows() -> None:
    with conchart.read(ROOT / "captures/handshakes/chromium-nginx-1.3-http1/input.pcap") as trace:
        assert trace.expected_log_lines.fetchall() == []
