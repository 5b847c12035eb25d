"""Which server of the one capture is which of the other."""

from conchart.questions.compare.matching import Placed, match
from conchart.report.servers import Server


def placed(ip: str, port: int, *names: str, role: str = "server", tier: int = 0, datagrams: bool = False) -> Placed:
    handshakes = ("handshakes_full", "handshakes_resumed", "handshakes_failed", "handshakes_incomplete")
    counts = (
        "connections",
        "requests",
        "refused",
        "unanswered",
        "waited_ns",
        "users_ns",
        "total_ns",
        "wall_ns",
        *handshakes,
    )
    server = Server(
        server_ip=ip,
        server_port=port,
        names=names,
        role=role,
        unread=False,
        connection_median_ns=0,
        connection_max_ns=0,
        request_median_ns=None,
        request_max_ns=None,
        waited=(),
        besides=(),
        split=None,
        **dict.fromkeys(counts, 0),
    )
    return Placed(server=server, tier=tier, datagrams=datagrams)


def matches(before: list[Placed], after: list[Placed]) -> list[str]:
    """Write the pairs, and who is alone: ``a=b by name``, ``-a``, ``+b``."""
    pairs, gone, new = match(before, after)
    return [
        *(f"{pair.before.server.endpoint}={pair.after.server.endpoint} by {pair.by}" for pair in pairs),
        *(f"-{one.server.endpoint}" for one in gone),
        *(f"+{one.server.endpoint}" for one in new),
    ]


def test_the_same_address_and_port_is_the_same_server_whatever_its_name() -> None:
    before = [placed("10.0.0.1", 443, "a.example"), placed("10.0.0.2", 443, "b.example")]
    after = [placed("10.0.0.2", 443, "a.example"), placed("10.0.0.1", 443, "b.example")]
    assert matches(before, after) == ["10.0.0.1:443=10.0.0.1:443 by address", "10.0.0.2:443=10.0.0.2:443 by address"]


def test_a_name_tells_where_the_address_has_changed() -> None:
    before = [placed("10.0.0.1", 443, "www.example", "a.example"), placed("10.0.0.2", 443, "b.example")]
    after = [placed("10.9.0.2", 443, "b.example"), placed("10.9.0.1", 443, "a.example")]
    assert matches(before, after) == ["10.0.0.1:443=10.9.0.1:443 by name", "10.0.0.2:443=10.9.0.2:443 by name"]


def test_a_name_with_two_ports_is_matched_port_by_port() -> None:
    before = [placed("10.0.0.1", 80, "a.example"), placed("10.0.0.1", 443, "a.example")]
    after = [placed("10.9.0.1", 443, "a.example"), placed("10.9.0.1", 80, "a.example")]
    assert matches(before, after) == ["10.0.0.1:80=10.9.0.1:80 by name", "10.0.0.1:443=10.9.0.1:443 by name"]


def test_a_name_that_several_servers_have_tells_nothing() -> None:
    before = [placed("10.0.0.1", 443, "a.example"), placed("10.0.0.2", 443, "a.example")]
    after = [placed("10.9.0.1", 443, "a.example")]
    assert matches(before, after) == ["-10.0.0.1:443", "-10.0.0.2:443", "+10.9.0.1:443"]


def test_who_is_alone_at_its_place_is_matched_by_it() -> None:
    before = [placed("10.0.0.1", 443, role="front"), placed("10.0.0.2", 8080, role="backend", tier=1)]
    after = [placed("10.9.0.1", 443, role="front"), placed("10.9.0.2", 8081, role="backend", tier=1)]
    assert matches(before, after) == ["10.0.0.1:443=10.9.0.1:443 by place", "10.0.0.2:8080=10.9.0.2:8081 by place"]


def test_who_is_left_at_a_place_of_several_is_not_matched_by_it() -> None:
    front = placed("10.0.0.1", 443, role="front")
    matched = placed("10.0.0.2", 8080, role="backend", tier=1)
    before = [front, matched, placed("10.0.0.3", 8080, role="backend", tier=1)]
    after = [front, matched, placed("10.0.0.4", 8080, role="backend", tier=1)]
    assert matches(before, after)[2:] == ["-10.0.0.3:8080", "+10.0.0.4:8080"]


def test_a_server_of_datagrams_is_never_one_of_connections() -> None:
    assert matches([placed("10.0.0.1", 53, datagrams=True)], [placed("10.0.0.2", 80)]) == [
        "-10.0.0.1:53",
        "+10.0.0.2:80",
    ]
