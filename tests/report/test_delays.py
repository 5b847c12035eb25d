"""How much longer than the fastest packet others took from one place to the next."""

from hypothesis import given
from hypothesis import strategies as st

from conchart.report.axis import TimeAxis
from conchart.report.delays import MOST_POINTS, Delays, Point, _bucket, delays
from tests.by_hand import Row, tables_of

MS = 1_000_000
AXIS = TimeAxis(origin=0, span=MOST_POINTS * 10 * MS, folds=())
"""A point for each ten milliseconds."""


@given(st.integers(0, 10**19))
def test_parts_of_time_have_the_least_round_length_of_which_no_more_than_so_many_fill_the_capture(span: int) -> None:
    bucket = _bucket(span)
    assert str(bucket).rstrip("0") in ("1", "2", "5")
    assert bucket * MOST_POINTS >= span
    shorter = {"1": bucket // 2, "2": bucket // 2, "5": bucket * 2 // 5}[str(bucket)[0]]
    assert bucket == 1 or shorter * MOST_POINTS < span


def crossing(*packets: tuple[int, int], sender: str = "client", first: int = 1) -> list[Row]:
    """Give the place_packets of packets that leave one place and come to the other one at these instants, in ms."""
    near, far = ("client", "lb") if sender == "client" else ("lb", "client")
    return [
        {"stream": 0, "packet": number, "sender": sender, "seen_at": at * MS, "place": place}
        for number, (left, came) in enumerate(packets, first)
        for place, at in ((near, left), (far, came))
    ]


PATHS = [{"stream": 0, "position": position, "place": place} for position, place in enumerate(("client", "lb"))]


def found(place_packets: list[Row], losses: list[Row] | None = None) -> list[Delays]:
    return list(delays(tables_of(place_packets=place_packets, paths=PATHS, losses=losses or []), AXIS))


def test_delays_are_above_the_fastest_packet_of_the_direction() -> None:
    """Packets take 40, 41, 45 and 60 ms; the clocks of the two places need not agree."""
    (there,) = found(crossing((1, 41), (2, 43), (12, 57), (13, 73)))
    assert (there.name, there.packets, there.lost, there.bucket_ns) == ("client → lb", 4, 0, 10 * MS)
    assert (there.median_ns, there.most_ns) == (MS, 20 * MS)
    assert there.points == (
        Point(start_ns=0, packets=2, median_ns=0, most_ns=MS, lost=0),
        Point(start_ns=10 * MS, packets=2, median_ns=5 * MS, most_ns=20 * MS, lost=0),
    )
    assert str(there) == "4 packets: half took up to 1.00 ms longer than the fastest, the slowest 20.0 ms longer"


def test_either_direction_has_a_fastest_packet_of_its_own() -> None:
    both = crossing((0, 1), (10, 13)) + crossing((0, 100), (10, 150), sender="server", first=10)
    assert [(one.name, one.most_ns) for one in found(both)] == [("client → lb", 2 * MS), ("lb → client", 40 * MS)]


def test_lost_packets_are_counted_when_they_left() -> None:
    lost = [
        {"stream": 0, "sender": "client", "from_place": "client", "to_place": "lb", "seen_at": at * MS,
         "captured_elsewhere": elsewhere, "frame": at}
        for at, elsewhere in ((5, False), (25, False), (26, True))
    ]  # fmt: skip
    (there,) = found(crossing((1, 2), (2, 3)), lost)
    assert there.points == (
        Point(start_ns=0, packets=2, median_ns=0, most_ns=0, lost=1),
        Point(start_ns=20 * MS, packets=0, median_ns=None, most_ns=None, lost=1),
    )
    assert there.lost == 2
    assert str(there).startswith("4 packets, 2 of them lost: ")


def test_a_place_that_saw_nothing_of_a_direction_is_not_on_its_way() -> None:
    """What the client sends goes around the balancer."""
    paths = [{"stream": 0, "position": number, "place": place} for number, place in enumerate(("client", "lb", "app"))]
    there = [
        {"stream": 0, "packet": 1, "sender": "client", "seen_at": at, "place": place}
        for place, at in (("client", 0), ("app", 5))
    ]
    tables = tables_of(place_packets=there, paths=paths)
    assert [one.name for one in delays(tables, AXIS)] == ["client → app"]
    assert list(delays(tables_of(), AXIS)) == []
