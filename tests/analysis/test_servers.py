"""Which endpoint stands behind which, and in which order they are listed."""

from conchart import Trace
from tests.charts.story import MS, Story
from tests.conftest import TellTrace


def talk(*pairs: tuple[str, str]) -> Story:
    """One connection per (client address, server address)."""
    story = Story()
    for i, (client, server) in enumerate(pairs):
        story.connect((client, 40_000 + i), (server, 80), i * MS, [("syn", MS)])
    story.capture()
    return story


def listed(trace: Trace, columns: str = "server_ip, role, tier") -> list[tuple[object, ...]]:
    return trace.sql(f"SELECT {columns} FROM servers ORDER BY rank").fetchall()


def test_a_chain_of_proxies_is_listed_from_the_front_to_the_farthest_backend(trace_of: TellTrace) -> None:
    rounds = [
        request
        for i in range(5)
        for request in (
            *(("c", "front", 80, 100 * i, 60), ("front", "middle", 80, 100 * i + 10, 40)),
            ("middle", "database", 80, 100 * i + 20, 9),
        )
    ]
    trace = trace_of(asking(*rounds))
    assert listed(trace) == [("front", "front", 0), ("middle", "backend", 1), ("database", "backend", 2)]


def test_a_host_that_is_logged_into_is_no_front_of_what_it_asks(trace_of: TellTrace) -> None:
    trace = trace_of(asking(("c", "host", 22, 0, 5), *(("host", "server", 80, 100 * i + 50, 20) for i in range(5))))
    assert set(listed(trace, "server_ip, role")) == {("host", "server"), ("server", "server")}
    assert trace.sql("SELECT sum(users_ns) = sum(waited_ns) FROM servers").fetchall() == [(True,)]


def test_servers_that_only_call_each_other_have_no_front(trace_of: TellTrace) -> None:
    assert {role for _, role, _ in listed(trace_of(talk(("a", "b"), ("b", "a"))))} == {"server"}


def test_loopback_is_no_backend_of_itself(trace_of: TellTrace) -> None:
    assert listed(trace_of(talk(("127.0.0.1", "127.0.0.1")))) == [("127.0.0.1", "server", 0)]


def test_a_server_that_nothing_stands_behind_is_no_front(trace_of: TellTrace) -> None:
    rounds = [
        request
        for i in range(5)
        for request in (("c", "front", 80, 100 * i, 60), ("front", "back", 80, 100 * i + 10, 9))
    ]
    trace = trace_of(asking(*rounds, ("c", "alone", 80, 700, 5)))
    assert set(listed(trace, "server_ip, role")) == {("front", "front"), ("back", "backend"), ("alone", "server")}


def test_a_proxy_with_two_addresses_is_told_by_its_clients_waits(trace_of: TellTrace) -> None:
    story = Story()
    for i in range(3):
        opened = i * 50 * MS
        story.connect(("c", 1), ("front", 80), opened, [("request", MS), ("wait", 20 * MS), ("transfer", MS)])
        story.connect(
            ("inside", 2), ("back", 80), opened + 5 * MS, [("request", MS), ("wait", 4 * MS), ("transfer", MS)]
        )
    story.capture()
    assert listed(trace_of(story), "server_ip, role") == [("front", "front"), ("back", "backend")]


def asking(*rounds: tuple[str, str, int, int, int]) -> Story:
    """One exchange per (client address, server address, port, start in ms, wait in ms), each with a size of its own."""
    story = Story()
    for i, (client, server, port, start, wait) in enumerate(rounds):
        story.connect(
            (client, 40_000 + i),
            (server, port),
            start * MS,
            [("syn", MS // 10), ("request", MS // 10), ("wait", wait * MS), ("transfer", MS // 10)],
        )
    story.capture()
    return story


def test_links_tell_ports_of_one_machine_apart(trace_of: TellTrace) -> None:
    rounds = [
        request
        for i in range(20)
        for request in (
            ("c", "m", 80, 100 * i, 60),
            ("m", "m", 8080, 100 * i + 10, 40),
            ("m", "db", 90, 100 * i + 20, 9),
        )
    ]
    trace = trace_of(asking(*rounds))
    assert listed(trace, "server_ip, server_port, role, tier") == [
        ("m", 80, "front", 0),
        ("m", 8080, "backend", 1),
        ("db", 90, "backend", 2),
    ]


def test_where_requests_are_linked_an_address_that_calls_is_no_proof(trace_of: TellTrace) -> None:
    rounds = [
        request
        for i in range(5)
        for request in (("c", "front", 80, 100 * i, 60), ("front", "back", 80, 100 * i + 10, 9))
    ]
    trace = trace_of(asking(*rounds, ("c", "cron", 80, 700, 5), ("cron", "mail", 25, 900, 5)))
    assert set(listed(trace, "server_ip, role")) == {
        ("front", "front"),
        ("back", "backend"),
        ("cron", "server"),
        ("mail", "server"),
    }


def test_the_parts_of_waits_add_up(trace_of: TellTrace) -> None:
    rounds = [
        request
        for i in range(5)
        for request in (("c", "front", 80, 100 * i, 60), ("front", "back", 80, 100 * i + 10, 9))
    ]
    trace = trace_of(asking(*rounds, ("c", "front", 80, 700, 5)))
    (split,) = trace.sql(
        "SELECT server_ip, requests, wait_ns, backend_ns, connect_ns, tls_ns, unlinked, unlinked_ns, proxy_ns "
        "FROM splits"
    ).fetchall()
    assert split[:8] == ("front", 6, 305 * MS, 5 * (9 * MS + MS // 10), 5 * MS // 10, 0, 1, 5 * MS)
    assert split[8] == 305 * MS - sum(split[3:6]) - split[7]


def test_one_client_that_asks_two_servers_at_once_is_no_chain(trace_of: TellTrace) -> None:
    story = Story()
    story.connect(("c", 1), ("slow", 80), 0, [("request", MS), ("wait", 20 * MS), ("transfer", MS)])
    story.connect(("c", 2), ("fast", 80), 5 * MS, [("request", MS), ("wait", 4 * MS), ("transfer", MS)])
    story.capture()
    assert {role for _, role, _ in listed(trace_of(story))} == {"server"}


def test_a_port_that_refuses_everybody_is_no_front(trace_of: TellTrace) -> None:
    story = talk(("c", "open"))
    story.connect(("open", 5), ("closed", 81), 0, [("syn", 9 * MS)], state="refused")
    story.connect(("c", 6), ("half", 82), 0, [("syn", 5 * MS)], state="unanswered")
    story.connect(("c", 7), ("half", 82), 0, [("syn", 2 * MS)])
    trace = trace_of(story)
    assert listed(trace, "server_ip, role, waited_ns, refused, refused_ns, unanswered, unanswered_ns") == [
        ("half", "server", 2 * MS, 0, 0, 1, 5 * MS),
        ("open", "server", MS, 0, 0, 0, 0),
        ("closed", "closed", 0, 1, 9 * MS, 0, 0),
    ]


def test_the_costliest_front_comes_first_with_its_backends_after_it(trace_of: TellTrace) -> None:
    rounds = [
        request
        for i in range(5)
        for request in (
            *(("c", "cheap", 80, 200 * i, 10), ("cheap", "cheap-back", 80, 200 * i + 1, 6)),
            *(("c", "dear", 80, 200 * i + 100, 30), ("dear", "dear-back", 80, 200 * i + 103, 5)),
            *(("dear", "dear-back-2", 80, 200 * i + 112, 8), ("c", "alone", 80, 200 * i + 150, 20)),
        )
    ]
    order = [ip for (ip,) in listed(trace_of(asking(*rounds)), "server_ip")]
    assert order == ["dear", "dear-back-2", "dear-back", "alone", "cheap", "cheap-back"]


def test_names_are_listed_by_use(trace_of: TellTrace) -> None:
    story = Story()
    for i, name in enumerate(["d", "c", "b", "a", "a", "e"]):
        story.connect(("c", i), ("s", 443), 0, [("tls", MS)], tls={"sni": name})
    story.capture()
    assert listed(trace_of(story), "names") == [(["a", "b", "c", "d", "e"],)]


def test_wall_clock_counts_parallel_connections_once(trace_of: TellTrace) -> None:
    story = Story()
    for opened, duration in ((0, 10), (2, 3), (8, 6), (20, 1)):
        story.connect(("10.0.0.1", 1), ("10.0.0.2", 80), opened * MS, [("idle", duration * MS)])
    story.capture()
    assert listed(trace_of(story), "total_ns, wall_ns") == [(20 * MS, 15 * MS)]


def test_a_handshake_whose_end_was_not_captured_did_not_fail(trace_of: TellTrace, proxy_story: Story) -> None:
    for handshake, outcome in zip(proxy_story.handshakes, ("incomplete", "complete", "failed"), strict=True):
        handshake["outcome"] = outcome
    columns = "handshakes_full, handshakes_resumed, handshakes_failed, handshakes_incomplete"
    assert listed(trace_of(proxy_story), columns) == [(1, 0, 1, 1), (0, 0, 0, 0)]
