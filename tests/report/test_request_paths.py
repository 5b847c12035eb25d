"""Single exchanges as several places saw them."""

from conchart.report.request_paths import MAX_ARROWS, Arrow, Bar, PlaceLane, RequestPath, Stay, journeys
from conchart.store.tables import Tables
from tests.by_hand import Row, connection, tables_of

PLACES = ("client", "app")


def seen(packet: int, sender: str, *at: int | None, size: int = 100, flags: str = "PA") -> list[Row]:
    """Give the place_packets of a packet at the client and at the application; None: it was not seen there."""
    return [
        {"stream": 0, "packet": packet, "frame": packet + 1_000 * place, "sender": sender, "seen_at": instant,
         "place": PLACES[place], "bytes": size, "flags": flags}
        for place, instant in enumerate(at)
        if instant is not None
    ]  # fmt: skip


def travelled(*more: Row, beside: tuple[Row, ...] = (), on_behalf: tuple[Row, ...] = (), wait_ns: int = 100) -> Tables:
    """A request that leaves at 10 and arrives at 15; its response leaves at 105 and arrives at 110."""
    place_packets = [
        *seen(1, "client", 10, 15),
        *seen(2, "server", 110, 105),
        *seen(3, "client", 111, 116, size=0),
        *more,
    ]
    return tables_of(
        connections=[connection(0), *beside],
        exchanges=[
            {"stream": 0, "number": 0, "request_at": 10, "request_done_at": 10, "response_at": 110,
             "response_done_at": 110, "wait_ns": wait_ns, "method": "GET", "target": "/a", "request_frame": 1,
             "response_frame": 2}
        ],
        phases=[
            {"stream": 0, "exchange": 0, "kind": "wait", "start_at": 10, "end_at": 110, "start_frame": 1,
             "end_frame": 2},
            *({"stream": row["stream"], "kind": "wait", "start_at": 0, "end_at": 50} for row in beside),
        ],
        paths=[
            {"stream": stream, "position": position, "place": place}
            for stream in (0, *(row["stream"] for row in beside))
            for position, place in enumerate(PLACES)
        ],
        place_packets=place_packets,
        phase_places=[
            {"stream": 0, "exchange": 0, "phase": "wait", "of_stream": 0, "start_at": start, "end_at": end,
             "kind": kind, "place": place, "to_place": to_place, "uncertainty_ns": doubt}
            for start, end, kind, place, to_place, doubt in (
                (10, 15, "path", "client", "app", 2), (15, 60, "host", "app", None, None),
                (60, 105, "host", "app", None, None), (105, 110, "path", "app", "client", 2),
            )
        ],
        on_behalf=on_behalf,
    )  # fmt: skip


def only(tables: Tables) -> RequestPath:
    (journey,) = journeys(tables, 5)
    return journey


def test_packets_are_arrows_through_the_places_in_the_direction_of_their_sender() -> None:
    journey = only(travelled())
    assert journey.arrows == (
        Arrow(stream=0, frame=1, sender="client", bytes=100, flags="PA", seen=(("client", 10), ("app", 15)),
              lost_to=None, marks="request"),
        Arrow(stream=0, frame=2, sender="server", bytes=100, flags="PA", seen=(("app", 105), ("client", 110)),
              lost_to=None, marks="response"),
    )  # fmt: skip
    assert (journey.name, journey.wait_ns, journey.start_at, journey.end_at, journey.more) == (
        "GET /a",
        100,
        10,
        110,
        0,
    )


def test_stays_that_touch_at_one_place_are_one() -> None:
    assert only(travelled()).stays == (
        Stay(kind="path", place="client", to_place="app", start_at=10, end_at=15, uncertainty_ns=2),
        Stay(kind="host", place="app", to_place=None, start_at=15, end_at=105, uncertainty_ns=0),
        Stay(kind="path", place="app", to_place="client", start_at=105, end_at=110, uncertainty_ns=2),
    )


def test_a_phase_lies_at_each_place_between_its_sightings_there() -> None:
    lanes = only(travelled()).lanes
    assert lanes == (
        PlaceLane(place="client", stream=0, server="10.0.0.9:80", chosen=True,
                  bars=(Bar(kind="wait", start_at=10, end_at=110),)),
        PlaceLane(place="app", stream=0, server="10.0.0.9:80", chosen=True,
                  bars=(Bar(kind="wait", start_at=15, end_at=105),)),
    )  # fmt: skip
    assert lanes[1].has_part_of(104, 200)
    assert not lanes[1].has_part_of(105, 200)
    assert not lanes[1].has_part_of(0, 15)


def test_the_wait_says_what_it_consists_of() -> None:
    wait = only(travelled()).wait
    assert wait is not None
    assert str(wait) == "wait 100 ns = path client–app 10 ns, at app 90 ns"


def test_a_lost_packet_names_the_place_that_it_did_not_reach() -> None:
    tables = travelled(*seen(4, "client", 12, None))
    tables.execute(
        "INSERT INTO losses BY NAME SELECT 0 AS stream, 4 AS frame, 'client' AS from_place, 'app' AS to_place, "
        "false AS captured_elsewhere"
    )
    assert [(arrow.frame, arrow.lost_to) for arrow in only(tables).arrows] == [(1, None), (4, "app"), (2, None)]


def test_acknowledgements_and_packets_of_other_times_are_no_arrows() -> None:
    """Of what carries no bytes, SYN and FIN are shown."""
    fin = seen(4, "client", 50, 55, size=0, flags="FA")
    assert [arrow.frame for arrow in only(travelled(*fin, *seen(5, "client", 900, 905))).arrows] == [1, 4, 2]


def test_of_a_long_transfer_the_middle_is_left_out_but_for_what_was_lost() -> None:
    """Of 307 packets, numbers 200 to 206 in the order of time: the request is the first, the last one the response."""
    packets = range(10, 10 + MAX_ARROWS + 5)
    journey = only(travelled(*(row for packet in packets for row in seen(packet, "client", 50, 55))))
    frames = [1, *packets, 2]
    assert [arrow.frame for arrow in journey.arrows] == frames[:200] + frames[207:]
    assert journey.more == 7
    lost = (row for packet in packets for row in seen(packet, "client", 50, None if packet == 210 else 55))
    tables = travelled(*lost)
    tables.execute(
        "INSERT INTO losses BY NAME SELECT 0 AS stream, 210 AS frame, 'client' AS from_place, 'app' AS to_place, "
        "false AS captured_elsewhere"
    )
    assert (only(tables).more, [arrow.frame for arrow in only(tables).arrows if arrow.lost_to]) == (6, [210])


def test_connections_of_the_same_server_at_the_same_time_stand_beside_it() -> None:
    lanes = only(travelled(beside=(connection(7), connection(8, server="10.0.0.8:80")))).lanes
    assert [(lane.place, lane.stream, lane.chosen) for lane in lanes] == [
        ("client", 7, False),
        ("client", 0, True),
        ("app", 0, True),
        ("app", 7, False),
    ]


def test_the_longest_wait_comes_first_and_has_stays_of_its_own() -> None:
    tables = travelled()
    tables.execute("""
        INSERT INTO exchanges BY NAME SELECT 0 AS stream, number, 200 AS request_at, 300 AS response_done_at,
            ns AS wait_ns
        FROM (VALUES (1, 99), (2, 101), (3, NULL)) AS t(number, ns);
        INSERT INTO phase_places BY NAME SELECT 0 AS stream, 2 AS exchange, 'wait' AS phase, 0 AS of_stream,
            210 AS start_at, 290 AS end_at, 'host' AS kind, 'app' AS place""")
    assert [found.exchange for found in journeys(tables, 5)] == [2, 0, 1]
    longest, first = journeys(tables, 2)
    assert [(stay.start_at, stay.end_at) for stay in longest.stays] == [(210, 290)]
    assert len(first.stays) == 3


def test_of_connections_beside_it_those_that_went_on_the_longest_meanwhile_are_shown() -> None:
    """The second one was longer, but for the most part at another time."""
    tables = travelled(beside=tuple(connection(stream) for stream in range(1, 7)))
    tables.execute("UPDATE phases SET start_at = 0, end_at = 20 + stream WHERE stream > 0")
    tables.execute("UPDATE phases SET start_at = -10000, end_at = 11 WHERE stream = 6")
    assert {lane.stream for lane in only(tables).lanes if not lane.chosen} == {2, 3, 4, 5}


def test_what_was_made_for_others_is_followed_from_its_front_alone() -> None:
    assert list(journeys(travelled(on_behalf=({"stream": 0, "exchange": 0},)), 5)) == []
    assert list(journeys(travelled(), 0)) == []
    assert list(journeys(tables_of(), 5)) == []
