"""What is said of a server: parts, shares, the headline."""

import pytest

from conchart.report.report import Report
from conchart.report.servers import Totals, groups, headline, in_vain, shares, totals
from tests.charts.story import MS, US, Story
from tests.conftest import TellTrace

SERVER = ("10.0.0.2", 80)


def test_parts_add_up_to_the_lifetimes(trace_of: TellTrace, proxy_story: Story) -> None:
    for server in Report(trace_of(proxy_story)).servers():
        lifetimes = [
            c["closed_at"] - c["opened_at"] for c in proxy_story.connections if c["server_ip"] == server.server_ip
        ]
        assert sum(part.total_ns for part in (*server.waited, *server.besides)) == server.total_ns == sum(lifetimes)
        assert sum(part.total_ns for part in server.waited) == server.waited_ns
        assert server.connection_max_ns == max(lifetimes)
        assert server.connection_median_ns == sorted(lifetimes)[1]


def test_front_and_backend_are_counted_apart(trace_of: TellTrace, proxy_story: Story) -> None:
    front, backend = Report(trace_of(proxy_story)).servers()
    assert (front.connections, front.requests, front.handshakes_full, front.handshakes_failed) == (3, 3, 3, 0)
    assert (backend.connections, backend.requests, backend.handshakes_full) == (3, 3, 0)
    assert front.title == "www.example.com"
    assert backend.request_max_ns == 31 * US + 19 * MS + 80 * US + 1_200 * US


def test_a_connection_of_one_packet_has_no_time_and_no_headline(trace_of: TellTrace) -> None:
    story = Story()
    story.connect(("10.0.0.1", 1), SERVER, 0, [("unseen", 0)])
    story.capture()
    (server,) = listed = Report(trace_of(story)).servers()
    assert (server.total_ns, server.waited, server.besides) == (0, (), ())
    assert headline(listed) == []


def test_the_headline_counts_what_users_waited_for_the_most_first(trace_of: TellTrace) -> None:
    story = Story()
    story.connect(
        ("10.0.0.1", 1),
        SERVER,
        0,
        [("syn", MS), ("request", 9 * MS), ("wait", 30 * MS), ("transfer", 60 * MS), ("idle", 9 * MS), ("close", MS)],
    )
    story.capture()
    (server,) = headline(Report(trace_of(story)).servers())
    assert [(part.words, share) for part, share in shares(server)] == [
        ("transfer", "60 %"),
        ("wait for the server", "30 %"),
        ("request", "9 %"),
        ("TCP handshake", "1 %"),
    ]
    assert [(part.phase.name, part.total_ns) for part in server.besides] == [("idle", 9 * MS), ("close", MS)]


def test_the_headline_is_about_the_costliest_first(trace_of: TellTrace) -> None:
    story = Story()
    for client, server, wait in (("c", "small", 1), ("c", "front", 30), ("d", "other", 2)):
        story.connect((client, 1), (server, 80), 0, [("wait", wait * MS)])
    story.capture()
    assert [server.server_ip for server in headline(Report(trace_of(story)).servers())] == ["front", "other", "small"]


def test_stalled_idling_is_called_what_it_was_and_counted(trace_of: TellTrace) -> None:
    story = Story()
    story.connect(("10.0.0.1", 1), SERVER, 0, [("wait", 25 * MS), ("idle", 975 * MS)])
    story.stall(0, "nagle", 5 * MS, 500 * MS)
    story.stall(0, "rto", 500 * MS, 700 * MS)
    story.capture()
    (server,) = Report(trace_of(story)).servers()
    assert [(part.title, part.total_ns // MS, part.why) for part in server.waited] == [
        ("Wait for the server", 25, "held 20.0 ms"),
        ("Held", 475, ""),
        ("Lost", 200, ""),
    ]
    assert [(part.title, part.total_ns // MS) for part in server.besides] == [("Idle", 300)]


def test_trifles_are_not_told_of_a_phase(trace_of: TellTrace) -> None:
    story = Story()
    story.connect(("10.0.0.1", 1), SERVER, 0, [("wait", 1_000 * MS)])
    story.stall(0, "nagle", 0, 9 * MS)
    story.capture()
    (server,) = Report(trace_of(story)).servers()
    assert [(part.total_ns, part.why) for part in server.waited] == [(1_000 * MS, "")]


def test_what_was_never_served_is_said_apart(trace_of: TellTrace) -> None:
    story = Story()
    for state in ("refused", "refused", "unanswered", "complete"):
        story.connect(("10.0.0.1", 1), SERVER, 0, [("syn", 3 * MS)], state=state)
    story.capture()
    trace = trace_of(story)
    assert in_vain(trace) == "2 refused (6.00 ms), 1 unanswered (3.00 ms) at 10.0.0.2:80"
    assert [server.waited_ns for server in Report(trace).servers()] == [3 * MS]
    trace.execute("UPDATE servers SET unread = true")
    assert in_vain(trace) == ""


def test_ports_of_one_server_are_no_servers(trace_of: TellTrace) -> None:
    story = Story()
    for port in range(81, 92):
        story.connect(("10.0.0.1", port), ("10.0.0.2", port), 0, [("syn", MS)], state="refused")
    story.capture()
    assert in_vain(trace_of(story)) == "11 refused (11.0 ms) at 11 ports of 10.0.0.2"


@pytest.mark.parametrize("group", ["224.0.0.251", "239.255.255.250", "255.255.255.255", "ff02::fb"])
def test_nobody_has_to_answer_what_goes_to_a_group(trace_of: TellTrace, group: str) -> None:
    story = Story()
    story.connect(("10.0.0.1", 5353), (group, 5353), 0, [("wait", MS)], state="unanswered")
    story.capture()
    trace = trace_of(story)
    assert in_vain(trace) == ""
    assert [(server.unanswered, server.waited_ns) for server in Report(trace).servers()] == [(0, 0)]


def test_datagrams_that_nobody_reads_come_last_and_make_no_headline(trace_of: TellTrace) -> None:
    story = Story()
    story.connect(("10.0.0.1", 1), ("10.0.0.1", 1900), 0, [("unseen", 500 * MS)], transport="udp", app="unknown")
    story.connect(("10.0.0.1", 2), SERVER, 0, [("wait", MS)])
    story.capture()
    listed = Report(trace_of(story)).servers()
    assert [server.endpoint for server in listed] == ["10.0.0.2:80", "10.0.0.1:1900"]
    assert [server.endpoint for server in headline(listed)] == ["10.0.0.2:80"]


def test_names_are_cut_and_counted(trace_of: TellTrace) -> None:
    story = Story()
    for i, name in enumerate(["d", "c", "b", "a", "a", "e"]):
        story.connect(("c", i), ("s", 443), 0, [("tls", MS)], tls={"sni": name})
    story.capture()
    (server,) = Report(trace_of(story)).servers()
    assert server.title == "a, b, c and 2 more"


def test_of_many_servers_those_that_are_shown_are_made_with_those_of_the_headline(trace_of: TellTrace) -> None:
    story = Story()
    for number in range(30):
        story.connect(("10.0.0.1", 1 + number), (f"10.1.0.{number}", 80), 0, [("wait", (40 - number) * MS)])
    story.capture()
    trace = trace_of(story)
    listed = Report(trace).servers()
    some = Report(trace).servers(2)
    assert some == listed[:3]
    assert headline(some) == headline(listed)
    assert totals(trace) == Totals(
        count=30,
        waited_ns=sum(server.waited_ns for server in listed),
        longest_ns=listed[0].waited_ns,
        total_ns=sum(server.total_ns for server in listed),
    )


def test_groups_are_the_servers_without_what_they_cost(trace_of: TellTrace, proxy_story: Story) -> None:
    trace = trace_of(proxy_story)
    for names in (True, False):
        listed = Report(trace, names=names).servers()
        assert groups(trace, names=names) == {
            "endpoint": [server.endpoint for server in listed],
            "title": [server.title for server in listed],
            "role": [server.role for server in listed],
        }
