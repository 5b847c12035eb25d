"""Which endpoint stands behind which."""

from conchart.charts.servers import join, servers
from tests.charts.conftest import TellTrace
from tests.charts.story import MS, Story


def talk(*pairs: tuple[str, str]) -> Story:
    """One connection per (client address, server address)."""
    story = Story()
    for i, (client, server) in enumerate(pairs):
        story.connect((client, 40_000 + i), (server, 80), i * MS, [("syn", MS)])
    story.capture()
    return story


def test_chain_of_proxies_is_ordered_from_the_farthest_backend_to_the_front(trace_of: TellTrace) -> None:
    found = servers(trace_of(talk(("c", "front"), ("front", "middle"), ("middle", "database"))))
    assert [(s.ip, s.tier) for s in found] == [("database", 2), ("middle", 1), ("front", 0)]


def test_servers_that_only_call_each_other_have_no_front(trace_of: TellTrace) -> None:
    found = servers(trace_of(talk(("a", "b"), ("b", "a"))))
    assert {s.role for s in found} == {"server"}


def test_loopback_is_no_backend_of_itself(trace_of: TellTrace) -> None:
    (server,) = servers(trace_of(talk(("127.0.0.1", "127.0.0.1"))))
    assert server.role == "server"


def test_proxy_with_two_addresses_is_told_by_its_clients_waits(trace_of: TellTrace) -> None:
    story = Story()
    for i in range(3):
        opened = i * 50 * MS
        story.connect(("c", 1), ("front", 80), opened, [("request", MS), ("wait", 20 * MS), ("transfer", MS)])
        story.connect(
            ("inside", 2), ("back", 80), opened + 5 * MS, [("request", MS), ("wait", 4 * MS), ("transfer", MS)]
        )
    story.capture()
    assert [(s.ip, s.role) for s in servers(trace_of(story))] == [("back", "backend"), ("front", "front")]


def test_one_client_that_asks_two_servers_at_once_is_no_chain(trace_of: TellTrace) -> None:
    story = Story()
    story.connect(("c", 1), ("slow", 80), 0, [("request", MS), ("wait", 20 * MS), ("transfer", MS)])
    story.connect(("c", 2), ("fast", 80), 5 * MS, [("request", MS), ("wait", 4 * MS), ("transfer", MS)])
    story.capture()
    assert {s.role for s in servers(trace_of(story))} == {"server"}


def test_host_that_is_only_the_address_is_no_name(trace_of: TellTrace) -> None:
    story = Story()
    story.connect(("c", 1), ("192.0.2.1", 80), 0, [("request", MS)], exchange={"host": "192.0.2.1:80"})
    story.capture()
    assert servers(trace_of(story))[0].title == ""


def test_names_are_listed_by_use_and_cut(trace_of: TellTrace) -> None:
    story = Story()
    for i, name in enumerate(["d", "c", "b", "a", "a", "e"]):
        story.connect(("c", i), ("s", 443), 0, [("tls", MS)], tls={"sni": name})
    story.capture()
    (server,) = servers(trace_of(story))
    assert server.title == "a, b, c and 2 more"


def test_ipv6_address_is_bracketed() -> None:
    assert join("2001:db8::1", 443) == "[2001:db8::1]:443"
    assert join("192.0.2.1", 443) == "192.0.2.1:443"
