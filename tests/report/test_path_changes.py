"""What happened to packets on the way between two places, in a line for each way."""

from typing import Any

import pytest

from conchart.report.path_changes import changes, disorders, queues
from conchart.store.tables import Tables
from tests.by_hand import Row, tables_of

MS = 1_000_000


def change(field: str, before: str | None, after: str | None, stream: int = 0, there: str = "lb") -> Row:
    return {
        "stream": stream, "from_place": "client", "to_place": there, "sender": "client", "field": field,
        "before": before, "after": after,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("field", "before", "after", "words"),
    [
        ("ttl", "64", "63", "TTL 64 → 63 (1 router)"),
        ("ttl", "64", "62", "TTL 64 → 62 (2 routers)"),
        ("ttl", "64", "64", "TTL 64 → 64 (set anew)"),
        ("ttl", "60", "64", "TTL 60 → 64 (set anew)"),
        ("mss", "1460", None, "maximum segment size 1460 → none"),
        ("dscp", "0", "18", "DSCP 0 → 18"),
        ("client_ip", "10.0.0.1", "192.0.2.1", "client's address 10.0.0.1 → 192.0.2.1"),
        ("sack_permitted", "present", None, "SACK removed"),
        ("tcp_option_19", None, "present", "tcp option 19 added"),
        ("isn", "5", "6", "sequence numbers"),
        ("handshake", "server", "middlebox", "handshake answered by a middlebox"),
        ("tls", "TLSv1.3", None, "TLS ended (TLSv1.3 → none)"),
        ("tls_passed_through", "TLSv1.3", "TLSv1.3", "TLS passed through (TLSv1.3)"),
        ("proxy_header", None, "10.0.0.1 40000", "PROXY header added"),
        ("tunnel", None, "vxlan", "wrapped in VXLAN"),
        ("tunnel", "geneve", None, "Geneve taken off"),
        ("tunnel", "gre", "etherip", "tunnel GRE → EtherIP"),
    ],
)
def test_a_change_is_told_in_the_words_of_its_field(
    field: str, before: str | None, after: str | None, words: str
) -> None:
    assert list(changes(tables_of(changes=[change(field, before, after)]))) == [f"client → lb: {words}"]


def test_changes_of_a_way_are_one_line_with_the_hop_limit_last() -> None:
    rows = [
        *(change("ttl", "64", "63", stream) for stream in (0, 1)),
        *(change("mss", "1460", str(1300 + stream), stream) for stream in (0, 1, 2)),
        change("dscp", "0", "18", there="app"),
    ]
    assert list(changes(tables_of(changes=rows))) == [
        "client → app: DSCP 0 → 18",
        "client → lb: maximum segment size 1460 → 1300 and 2 more, TTL 64 → 63 (1 router)",
    ]


def test_a_translated_address_says_enough_and_a_port_alone_is_told() -> None:
    port = change("client_port", "40000", "50000")
    both = [port, change("client_ip", "10.0.0.1", "192.0.2.1")]
    assert list(changes(tables_of(changes=both))) == ["client → lb: client's address 10.0.0.1 → 192.0.2.1"]
    assert list(changes(tables_of(changes=[port]))) == ["client → lb: client's port 40000 → 50000"]
    elsewhere = [port, change("client_ip", "10.0.0.1", "192.0.2.1", stream=1)]
    assert len(next(changes(tables_of(changes=elsewhere))).split(", ")) == 2


def test_a_change_of_a_proxys_own_is_told_of_its_place() -> None:
    assert list(changes(tables_of(changes=[change("proxy_header", None, "x", there="client")]))) == [
        "client: PROXY header added"
    ]


def test_disorders_are_counted_and_the_worst_is_named() -> None:
    rows = [
        {"stream": 0, "kind": kind, "from_place": "client", "to_place": "lb", "frame": frame, "to_frame": frame + 100,
         "other_frame": frame + 50, "late_ns": late * MS}
        for kind, frame, late in (("reordered", 1, 5), ("reordered", 2, 13), ("needless", 3, 4), ("duplicated", 4, 1))
    ]  # fmt: skip
    rows.append({**rows[2], "frame": 9})
    assert list(disorders(tables_of(disorders=rows))) == [
        "client → lb: 1 packet doubled on the way, up to 1.00 ms later: frame 4 → 104, after 54",
        "client → lb: 2 packets sent again though they had arrived, up to 4.00 ms later: "
        "frame 3 → 103, which had come as 53",
        "client → lb: 2 packets overtaken, up to 13.0 ms later: frame 2 → 102, overtaken by 52",
    ]


def queued(*packets: tuple[int, int], usual: int = 2) -> Tables:
    """Packets of the client that leave and arrive at these instants, in ms; the fastest takes 2 ms."""
    place_packets = [
        {"stream": 0, "packet": number, "frame": number + 100 * far, "sender": "client", "seen_at": at * MS,
         "place": "lb" if far else "client"}
        for number, times in enumerate(packets, 1)
        for far, at in enumerate(times)
    ]  # fmt: skip
    slowest = max((there - here for here, there in packets), default=0)
    return tables_of(
        place_packets=place_packets,
        paths=[{"stream": 0, "position": number, "place": place} for number, place in enumerate(("client", "lb"))],
        crossings=[
            {"stream": 0, "sender": "client", "place": "client", "to_place": "lb", "packets": len(packets),
             "least_ns": usual * MS, "most_ns": slowest * MS}
        ],
    )  # fmt: skip


def test_packets_that_are_late_together_are_in_a_queue() -> None:
    assert list(queues(queued((0, 12), (1, 23), (2, 34), (50, 52)))) == [
        "client → lb: 3 packets took 20.0 ms longer than the fastest one (the median), up to 30.0 ms: frame 3 → 103"
    ]


@pytest.mark.parametrize(
    "packets",
    [((0, 11), (1, 12), (2, 13)), ((0, 12), (1, 23)), ((0, 12), (20, 32), (40, 52)), ()],
    ids=["hardly late", "two", "one after the other", "none"],
)
def test_what_is_late_by_itself_is_in_no_queue(packets: Any) -> None:  # noqa: ANN401
    assert list(queues(queued(*packets))) == []
