"""Packets that one place saw and the next one did not: what is lost, and what only a capture lacks."""

from typing import Any

import pytest

from conchart.analysis.losses import find_losses
from tests.by_hand import Row, connection, tables_of

AT_SERVER = 100
"""Added to the frames of the second place."""


def seen(packet: int, place: str, seq: int, size: int = 100, **facts: Any) -> Row:  # noqa: ANN401
    """Give a sighting of the client's packet of a number: seen after ten times as many ns, at the server 5 later."""
    behind = place == "server"
    return {
        "stream": 0,
        "frame": packet + AT_SERVER * behind,
        "seen_at": 10 * packet + 5 * behind,
        "sender": "client",
        "flags": "A",
        "bytes": size,
        "seq": seq,
        "ack": 1,
        "place": place,
        "packet": packet,
        **facts,
    }


def acknowledged(upto: int) -> list[Row]:
    """The server acknowledges so much, in a packet that both places saw."""
    facts: Row = {"sender": "server", "bytes": 0, "ack": upto}
    return [seen(9, place, 1, **facts) for place in ("client", "server")]


def losses(
    *place_packets: Row,
    first_at: int = 0,
    last_at: int = 1_000,
    lacking: int = 1,
    at_server: int = 3,
    isn_client: tuple[int, int] = (1, 1),
    isn_server: tuple[int, int] = (1, 1),
    further: str = "",
) -> list[tuple[Any, ...]]:
    """Give sender, way, frame, first byte and length of what got lost, and whether it arrived all the same.

    Args:
        place_packets: Rows of the table.
        first_at: When the server begins to capture.
        last_at: When it ends.
        lacking: Packets of other places that the server lacks.
        at_server: Packets of the client that the server saw.
        isn_client: The client's first sequence number at either place.
        isn_server: The server's.
        further: A place behind the server.
    """
    names = ("client", "server", *([further] if further else []))
    tables = tables_of(
        places=[{"number": number, "place": place} for number, place in enumerate(names)],
        captures=[
            {"place": place, "first_at": first_at * (place == "server"), "last_at": min(last_at, 1_000)}
            for place in names
        ],
        connections=[connection(0)],
        paths=[
            {
                "stream": 0,
                "position": position,
                "place": place,
                "lacking": lacking * position,
                "client_ip": "10.0.0.1",
                "server_ip": "10.0.0.9",
                "server_port": 80,
                "packets_client": at_server if place == "server" else 3,
                "packets_server": 3,
                "isn_client": isn_client[min(position, 1)],
                "isn_server": isn_server[min(position, 1)],
            }
            for position, place in enumerate(names)
        ],
        place_packets=place_packets,
    )
    find_losses(tables)
    return tables.fetch(
        "SELECT sender, from_place, to_place, frame, seq, bytes, captured_elsewhere FROM losses ORDER BY frame"
    )


BOTH = (seen(1, "client", 1), seen(1, "server", 1))


def test_what_both_places_saw_is_not_lost() -> None:
    assert losses(*BOTH) == []


def test_a_packet_that_the_next_place_did_not_see_is_lost() -> None:
    assert losses(*BOTH, seen(2, "client", 101)) == [("client", "client", "server", 2, 101, 100, False)]


def test_a_packet_of_the_server_is_lost_on_the_way_to_the_client() -> None:
    lost = seen(2, "server", 1, sender="server")
    assert losses(*BOTH, lost) == [("server", "server", "client", 102, 1, 100, False)]


@pytest.mark.parametrize(("first_at", "last_at", "count"), [(20, 20, 1), (21, 90, 0), (0, 19, 0)])
def test_a_place_loses_nothing_while_it_does_not_capture(first_at: int, last_at: int, count: int) -> None:
    assert len(losses(*BOTH, seen(2, "client", 101), first_at=first_at, last_at=last_at)) == count


def test_what_is_acknowledged_and_not_sent_again_arrived() -> None:
    (lost,) = losses(*BOTH, seen(2, "client", 101), *acknowledged(201))
    assert lost[-1] is True
    (lost,) = losses(*BOTH, seen(2, "client", 101), *acknowledged(200))
    assert lost[-1] is False, "a byte of it was not acknowledged"


def test_what_was_sent_again_was_lost_though_it_is_acknowledged() -> None:
    again = (seen(3, "client", 101), seen(3, "server", 101))
    assert losses(*BOTH, seen(2, "client", 101), *again, *acknowledged(201)) == [
        ("client", "client", "server", 2, 101, 100, False)
    ]


def test_bytes_that_arrive_in_other_segments_are_not_missing() -> None:
    joined = seen(2, "client", 101, 200)
    cut = (seen(102, "server", 101), seen(103, "server", 201))
    assert losses(*BOTH, joined, *cut) == []
    assert losses(*BOTH, joined, cut[0]) == [("client", "client", "server", 2, 201, 100, False)]
    assert losses(*BOTH, joined, cut[1]) == [("client", "client", "server", 2, 101, 100, False)]


def test_of_bytes_in_the_middle_the_first_that_did_not_arrive_is_told() -> None:
    ends = (seen(102, "server", 101, 50), seen(103, "server", 201, 100))
    assert losses(*BOTH, seen(2, "client", 101, 200), *ends) == [("client", "client", "server", 2, 151, 50, False)]


def test_acknowledgements_count_on_and_the_last_one_decides() -> None:
    rising = (
        seen(8, "client", 1, sender="server", bytes=0, ack=101),
        seen(8, "server", 1, sender="server", bytes=0, ack=101),
    )
    (lost,) = losses(*BOTH, seen(2, "client", 101), *rising, *acknowledged(201))
    assert lost[-1] is True


def test_of_a_long_segment_each_block_is_compared_once() -> None:
    """Bytes are compared by blocks of 64 KiB: what lies over the edge of one is not counted twice."""
    long = seen(2, "client", 101, 150_000)
    cut = [seen(102 + number, "server", 101 + 50_000 * number, 50_000) for number in range(3)]
    assert losses(*BOTH, long, *cut) == []
    assert losses(*BOTH, long, cut[0], cut[2]) == [("client", "client", "server", 2, 50_101, 50_000, False)]


def test_a_connection_that_lacks_nothing_is_not_looked_at() -> None:
    """``lacking`` of its places says so: the packet is one that the core did not compare."""
    assert losses(*BOTH, seen(2, "client", 101), lacking=0) == []


def test_a_direction_of_which_the_next_place_saw_nothing_goes_another_way() -> None:
    """A place behind both has its packets: nothing is lost."""
    app = [seen(packet, "app", 1 + 100 * (packet - 1), frame=200 + packet) for packet in (1, 2)]
    lost = ("client", "client", "server", 2, 101, 100, True)
    assert losses(*BOTH, seen(2, "client", 101), *app, further="app") == [lost]
    assert losses(seen(2, "client", 101), app[1], further="app", at_server=0) == []


def test_acknowledgements_of_a_middlebox_are_not_lost() -> None:
    """It opened the connection to the server by itself: the client has the same number there, the server another."""
    alone = seen(2, "client", 101, 0)
    assert len(losses(*BOTH, alone)) == 1
    assert losses(*BOTH, alone, isn_server=(1, 2)) == []
    assert len(losses(*BOTH, alone, isn_server=(1, 2), isn_client=(3, 4))) == 1, "numbers changed on the way"
    assert len(losses(*BOTH, seen(2, "client", 101), isn_server=(1, 2))) == 1, "bytes are the client's"


def one_way(*, at_server: bool) -> list[tuple[Any, ...]]:
    """A client sends at one place alone, and other connections of the same ends pass the next one, too."""
    ends = {"client_ip": "10.0.0.1", "server_ip": "10.0.0.9", "server_port": 80}
    paths = [
        {"stream": 0, "position": position, "place": place, "lacking": 0, **ends}
        for position, place in enumerate(("client", "server"))
    ]
    paths.append({"stream": 1, "position": 0, "place": "client", "lacking": 0, **ends})
    connections = [connection(0), connection(1, packets_server=0)]
    if at_server:
        paths.append({"stream": 2, "position": 0, "place": "server", "lacking": 0, **ends})
        connections.append(connection(2, packets_server=0))
    tables = tables_of(
        places=[{"number": number, "place": place} for number, place in enumerate(("client", "server"))],
        captures=[{"place": place, "first_at": 0, "last_at": 1_000} for place in ("client", "server")],
        connections=connections,
        paths=paths,
        place_packets=[*BOTH, {**seen(2, "client", 1), "stream": 1, "packet": None}],
    )
    find_losses(tables)
    return tables.fetch("SELECT stream, from_place, to_place, frame FROM losses")


def test_what_one_place_alone_saw_is_lost_where_others_go_on() -> None:
    assert one_way(at_server=False) == [(1, "client", "server", 2)]
    assert one_way(at_server=True) == [], "it may be the one that the next place saw, and is not recognised"


def test_without_places_nothing_is_compared() -> None:
    tables = tables_of(connections=[connection(0)], place_packets=[seen(1, "client", 1)])
    find_losses(tables)
    assert tables.count("losses") == 0
