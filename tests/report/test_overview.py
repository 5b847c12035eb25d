"""What was captured, in numbers; and one origin of times for all outputs."""

import conchart
from conchart.outputs.terminal.lanes import lane_lines
from conchart.report.axis import first_instant, time_axis
from conchart.report.overview import overview
from conchart.report.report import Report
from tests.conftest import MS, ROOT, STORY, T0, empty_trace

CAPTURE = ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap"


def test_a_trace_is_counted() -> None:
    with empty_trace() as trace:
        trace.execute(STORY)
        counts = overview(trace)
    assert (counts.packets, counts.selected, counts.bytes, counts.first_at) == (1240, 1240, 345678, T0)
    assert (counts.connections, counts.clients, counts.servers, counts.hosts) == (3, 3, 2, 5)
    assert (counts.requests, counts.with_requests, counts.handshakes, counts.resumed) == (1, 1, 1, 0)
    assert counts.paths == ["story.pcap"]


def test_nothing_counts_nothing() -> None:
    with empty_trace() as trace:
        counts = overview(trace)
    assert (counts.packets, counts.connections, counts.hosts, counts.first_at, counts.paths) == (0, 0, 0, None, [])


def test_every_output_counts_times_from_the_first_packet() -> None:
    """Also where no connection opened with it: terminal and page have the same axis."""
    early = 1_000 * MS
    with conchart.read(CAPTURE) as trace:
        ((opened_at,),) = trace.fetch("SELECT min(opened_at) FROM connections")
        before = [line.plain for line in lane_lines(Report(trace), 100, colours=False, room=40)]
        trace.execute(f"UPDATE captures SET first_at = {opened_at - early}")
        assert first_instant(trace) == time_axis(trace).origin == opened_at - early
        after = [line.plain for line in lane_lines(Report(trace), 100, colours=False, room=40)]
    assert before != after
    assert any("1.00 s" in line or "1 s" in line for line in after[-6:]), after
