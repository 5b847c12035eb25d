"""Where the time went: sums, medians, wall clock."""

from conchart.charts.attribution import attribute, headline
from tests.charts.conftest import TellTrace
from tests.charts.story import MS, US, Story


def test_slices_add_up_to_the_lifetimes(trace_of: TellTrace, proxy_story: Story) -> None:
    for share in attribute(trace_of(proxy_story)):
        lifetimes = [
            c["closed_at"] - c["opened_at"] for c in proxy_story.connections if c["server_ip"] == share.server.ip
        ]
        assert sum(s.total_ns for s in share.slices) == share.total_ns == sum(lifetimes)
        assert share.connection_max_ns == max(lifetimes)
        assert share.connection_median_ns == sorted(lifetimes)[1]


def test_front_and_backend_are_counted_apart(trace_of: TellTrace, proxy_story: Story) -> None:
    backend, front = attribute(trace_of(proxy_story))
    assert (front.connections, front.requests, front.full, front.resumed, front.failed) == (3, 3, 3, 0, 0)
    assert (backend.connections, backend.requests, backend.full) == (3, 3, 0)
    assert front.server.title == "www.example.com"
    assert backend.request_max_ns == 31 * US + 19 * MS + 80 * US + 1_200 * US


def test_wall_clock_counts_parallel_connections_once(trace_of: TellTrace) -> None:
    story = Story()
    for opened, duration in ((0, 10), (2, 3), (8, 6), (20, 1)):
        story.connect(("10.0.0.1", 1), ("10.0.0.2", 80), opened * MS, [("idle", duration * MS)])
    story.capture()
    (share,) = attribute(trace_of(story))
    assert share.total_ns == 20 * MS
    assert share.wall_ns == 15 * MS


def test_connection_of_one_packet_has_no_time_and_no_share(trace_of: TellTrace) -> None:
    story = Story()
    story.connect(("10.0.0.1", 1), ("10.0.0.2", 80), 0, [("unseen", 0)])
    story.capture()
    shares = attribute(trace_of(story))
    assert (shares[0].total_ns, shares[0].slices) == (0, ())
    assert headline(shares) == []


def test_headline_names_the_costliest_first_and_leaves_idle_out(trace_of: TellTrace) -> None:
    story = Story()
    story.connect(
        ("10.0.0.1", 1),
        ("10.0.0.2", 80),
        0,
        [("syn", MS), ("request", 9 * MS), ("wait", 30 * MS), ("transfer", 60 * MS), ("idle", 900 * MS)],
    )
    story.capture()
    assert [(s.kind.name, s.share) for s in headline(attribute(trace_of(story)))] == [
        ("transfer", 60.0),
        ("wait", 30.0),
        ("request", 9.0),
    ]


def test_headline_calls_stalled_time_what_it_was_and_not_idle(trace_of: TellTrace) -> None:
    story = Story()
    story.connect(("10.0.0.1", 1), ("10.0.0.2", 80), 0, [("wait", 25 * MS), ("idle", 975 * MS)])
    story.stall(0, "nagle", 25 * MS, 1_000 * MS)
    story.capture()
    shares = attribute(trace_of(story))
    assert [(s.title, s.share) for s in headline(shares)] == [("Held", 97.5), ("Wait for the server", 2.5)]
    assert sum(s.total_ns for s in shares[0].slices) == shares[0].total_ns


def test_a_handshake_whose_end_was_not_captured_did_not_fail(trace_of: TellTrace, proxy_story: Story) -> None:
    trace = trace_of(proxy_story)
    trace.execute("UPDATE handshakes SET outcome = 'incomplete' WHERE stream = (SELECT min(stream) FROM handshakes)")
    trace.execute("UPDATE handshakes SET outcome = 'failed' WHERE stream = (SELECT max(stream) FROM handshakes)")
    _, front = attribute(trace)
    assert (front.full, front.failed, front.incomplete) == (1, 1, 1)


def test_datagrams_that_nobody_reads_come_last_and_make_no_headline(trace_of: TellTrace) -> None:
    story = Story()
    story.connect(("10.0.0.1", 1), ("10.0.0.1", 1900), 0, [("unseen", 500 * MS)], transport="udp", app="unknown")
    story.connect(("10.0.0.1", 2), ("10.0.0.2", 80), 0, [("wait", MS)])
    story.capture()
    shares = attribute(trace_of(story))
    assert [share.server.endpoint for share in shares] == ["10.0.0.2:80", "10.0.0.1:1900"]
    assert [part.kind.name for part in headline(shares)] == ["wait"]
