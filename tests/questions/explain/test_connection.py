"""What is known of a connection, gathered from every table that speaks of it."""

from typing import Any

from conchart.questions.explain.connection import Connection, connections, count_complete
from conchart.store.tables import Tables
from tests.by_hand import Row, connection, tables_of


def connections_waiting(*waited: int, missing: int = -1, **more: Any) -> Tables:  # noqa: ANN401
    """Give connections of three packets each, for which so much was waited; of one, a packet was not kept."""
    rows: list[Row] = [
        connection(stream, packets_client=2, packets_server=1, waited_ns=ns, rtt_client_ns=5)
        for stream, ns in enumerate(waited)
    ]
    packets: list[Row] = [
        {"stream": stream, "frame": 10 * stream + number, "seen_at": 100 - number, "sender": "client"}
        for stream in range(len(waited))
        for number in range(3 - (stream == missing))
    ]
    return tables_of(**{"connections": rows, "packets": [*packets, *more.pop("packets", [])], **more})


def streams(tables: Tables, **options: Any) -> list[int]:  # noqa: ANN401
    return [one.stream for one in connections(tables, **options)]


def test_connections_of_which_every_packet_is_kept_are_gathered() -> None:
    tables = connections_waiting(1, 2, 3, missing=1)
    assert streams(tables) == [0, 2]
    assert count_complete(tables) == 2
    assert streams(tables, stream=2) == [2]
    assert streams(tables, stream=1) == []


def test_a_copy_of_a_packet_stands_for_none_that_is_missing() -> None:
    copy = {"stream": 0, "frame": 99, "seen_at": 1, "sender": "client", "mark": "duplicate"}
    assert streams(connections_waiting(1, missing=0, packets=[copy])) == []
    assert streams(connections_waiting(1, missing=0, packets=[{**copy, "mark": "retransmit"}])) == [0]


def test_of_many_packets_those_of_the_longest_waits_are_gathered_first() -> None:
    """Three packets each: the one that reaches the limit is still gathered."""
    tables = connections_waiting(1, 9, 5)
    assert streams(tables, most=3) == [1]
    assert streams(tables, most=4) == [1, 2]
    assert streams(tables, most=7) == [0, 1, 2]
    assert streams(tables, most=3, first=0) == [0]
    assert streams(tables, most=4, first=0) == [0, 1]


def only(tables: Tables, *, names: bool = True) -> Connection:
    (found,) = connections(tables, names=names)
    return found


def test_rows_are_those_of_the_connection_in_the_order_of_time() -> None:
    phases = [
        {"stream": stream, "kind": "wait", "start_at": at, "end_at": at + 1} for stream, at in ((0, 5), (0, 2), (7, 1))
    ]
    exchanges = [
        {"stream": 0, "number": number, "protocol": "dns", "status": 3, "status_text": "NXDOMAIN", "outcome": "unknown"}
        for number in (1, 0)
    ]
    found = only(connections_waiting(1, phases=phases, exchanges=exchanges))
    assert [row["start_at"] for row in found.phases] == [2, 5]
    assert [row["seen_at"] for row in found.packets] == [98, 99, 100]
    assert [(row["number"], row["answer"], row["unfinished"]) for row in found.exchanges] == [
        (0, "NXDOMAIN", True),
        (1, "NXDOMAIN", True),
    ]
    assert (found.handshakes, found.seen, found.places) == ([], [], [])
    assert found.rtt_ns == {"client": 5, "server": 0}


def test_names_are_told_only_where_they_are_wanted() -> None:
    handshakes = [{"stream": 0, "number": 0, "sni": "shop.example"}]
    assert only(connections_waiting(1, handshakes=handshakes)).handshakes[0]["sni"] == "shop.example"
    assert only(connections_waiting(1, handshakes=handshakes), names=False).handshakes[0]["sni"] is None


def test_where_places_are_named_each_packet_has_those_that_saw_it_in_the_order_of_its_way() -> None:
    place_packets = [
        {"stream": 0, "frame": frame, "seen_at": at, "sender": sender, "place": place, "packet": packet, "flags": "A",
         "bytes": size}
        for frame, at, sender, place, packet, size in (
            (15, 20, "client", "app", 5, 100), (5, 10, "client", "lb", 5, 100),
            (16, 30, "server", "app", 6, 7), (6, 35, "server", "lb", 6, 7),
        )
    ]  # fmt: skip
    tables = connections_waiting(
        1,
        place_packets=place_packets,
        captures=[{"capture": 0, "place": "app"}],
        places=[{"number": number, "place": place} for number, place in enumerate(("lb", "app"))],
        paths=[{"stream": 0, "position": number, "place": place} for number, place in enumerate(("lb", "app"))],
        losses=[{"stream": 0, "frame": 16, "to_place": "lb", "captured_elsewhere": False}],
    )
    found = only(tables)
    assert [(row["frame"], row["is_own"], row["places"], row["instants"], row["lost_to"]) for row in found.seen] == [
        (15, True, ["lb", "app"], [10, 20], None),
        (16, True, ["app", "lb"], [30, 35], "lb"),
    ]
    assert [row["place"] for row in found.places] == ["lb", "app"]
