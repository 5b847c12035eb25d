"""What captures of several places tell together: their clocks, where the time was spent, what got lost."""

from typing import Any

import pytest

from conchart.report.places import Clock, Lost, Part, Spent, clocks, losses, spent, words_of
from conchart.store.tables import Tables
from tests.by_hand import Row, connection, tables_of

MS, S = 1_000_000, 1_000_000_000


def clock(**facts: Any) -> Clock:  # noqa: ANN401
    defaults: dict[str, Any] = {
        "place": "app", "reference": "client", "method": "packets", "offset_ns": 37_500_000, "drift_ppb": 0,
        "uncertainty_ns": 310_000, "through": "client", "through_ahead_ns": 37_500_000, "through_ns": 310_000,
        "packets": 1_204, "piece": 1, "pieces": 1, "from_ns": 0, "lasts_ns": 100 * S,
    }  # fmt: skip
    return Clock(**defaults | facts)


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        ({}, "37.5 ms ± 310 µs ahead of client (1 204 packets)"),
        ({"offset_ns": -37_500_000}, "37.5 ms ± 310 µs behind client (1 204 packets)"),
        ({"offset_ns": 0, "packets": 1}, "0 ns ± 310 µs ahead of client (1 packet)"),
        ({"drift_ppb": 40_000}, "37.5 ms ± 310 µs ahead of client, 40 ppm fast (1 204 packets)"),
        ({"drift_ppb": -40_000}, "37.5 ms ± 310 µs ahead of client, 40 ppm slow (1 204 packets)"),
        ({"pieces": 2, "from_ns": 5 * S}, "from 5.00 s on 37.5 ms ± 310 µs ahead of client (1 204 packets)"),
        ({"method": "reference"}, "all times are by this clock"),
        ({"method": "trusted"}, "taken to be right (--clock)"),
        (
            {"method": "causality"},
            "37.5 ms ± 310 µs ahead of client (no packet in common: by what was handed on)",
        ),
        (
            {"method": "likeness", "packets": 3},
            "37.5 ms ± 310 µs ahead of client (no packet in common: by 3 requests that look alike, with a wide ±; "
            "capture at the proxy between them for a narrow one)",
        ),
        (
            {"method": "unknown"},
            "unknown: app shares neither packets nor requests with the places before it; "
            "capture at the proxy between them, too",
        ),
        (
            {"uncertainty_ns": None},
            "37.5 ms ahead of client at least: packets went in one direction alone (1 204 packets)",
        ),
        (
            {"uncertainty_ns": None, "through": "lb", "through_ahead_ns": -2 * MS},
            "2.00 ms ± 310 µs behind lb; nothing bounds both against client (1 204 packets)",
        ),
    ],
)
def test_a_clock_says_how_far_it_is_ahead_and_how_sure_that_is(facts: dict[str, Any], text: str) -> None:
    assert str(clock(**facts)).replace("\N{THIN SPACE}", " ").replace("\N{NARROW NO-BREAK SPACE}", " ") == text


def test_a_drift_is_told_where_it_is_more_than_the_offset_may_be_wrong_on_either_side() -> None:
    """40 ppm over 100 s are 4 ms."""
    assert clock(drift_ppb=40_000, uncertainty_ns=2 * MS - 1).keeps_rate
    assert not clock(drift_ppb=40_000, uncertainty_ns=2 * MS).keeps_rate
    assert not clock(drift_ppb=40_000, uncertainty_ns=None).keeps_rate
    assert "ppm" not in str(clock(drift_ppb=400, uncertainty_ns=0)), "less than half a ppm"


def test_clocks_are_listed_in_the_order_of_places_and_pieces() -> None:
    """``through_ahead_ns`` is against that place's piece of the same time."""
    rows = [
        {"place": "app", "reference": "client", "from_at": from_at, "to_at": from_at + 10, "offset_ns": offset,
         "drift_ppb": 0, "method": "packets", "through": "lb", "packets": 1}
        for from_at, offset in ((120, 50), (110, 40))
    ]  # fmt: skip
    rows += [
        {"place": "lb", "reference": "client", "from_at": from_at, "to_at": 130, "offset_ns": offset, "drift_ppb": 0,
         "method": "packets", "through": "client", "packets": 1}
        for from_at, offset in ((105, 7), (115, 9))
    ]  # fmt: skip
    places = [{"number": number, "place": name} for number, name in enumerate(("client", "lb", "app"))]
    found = clocks(tables_of(clocks=rows, places=places, connections=[connection(0, opened_at=100)]))
    pieces = [(one.place, one.piece, one.pieces, one.from_ns, one.lasts_ns, one.through_ahead_ns) for one in found]
    assert pieces == [
        ("lb", 1, 2, 5, 25, None),
        ("lb", 2, 2, 15, 15, None),
        ("app", 1, 2, 10, 10, 40 - 7),
        ("app", 2, 2, 20, 10, 50 - 9),
    ]


@pytest.mark.parametrize(
    ("kind", "to_place", "words", "gone"),
    [
        ("path", "lb", "path client–lb", "on the path client–lb"),
        ("between", "lb", "between client and lb", "between client and lb"),
        ("host", None, "at client", "at client"),
        ("before", None, "before client", "before client"),
        ("behind", None, "behind client", "behind client"),
        ("loss", "lb", "losses client → lb", "until lost packets came again (losses client → lb)"),
        ("loss", None, "losses", "until lost packets came again (losses)"),
        ("pace", "lb", "pace client → lb", "waiting for acknowledgements (pace client → lb)"),
    ],
)
def test_a_part_is_named_by_host_or_path(kind: str, to_place: str | None, words: str, gone: str) -> None:
    part = Part(kind=kind, place="client", to_place=to_place, total_ns=1, uncertainty_ns=None)
    assert (part.words, part.spent) == (words, gone)
    assert words_of(kind, "client", to_place) == words


def test_a_length_says_what_clocks_may_make_of_it() -> None:
    texts = [
        Part(kind="path", place="a", to_place="b", total_ns=21_300_000, uncertainty_ns=doubt).length
        for doubt in (310_000, 0, None)
    ]
    assert texts == ["21.3 ms ± 310 µs", "21.3 ms", "21.3 ms (clocks unknown)"]


def test_what_is_not_known_is_the_rest() -> None:
    parts = (
        Part(kind="path", place="client", to_place="lb", total_ns=21 * MS, uncertainty_ns=0),
        Part(kind="host", place="app", to_place=None, total_ns=60 * MS, uncertainty_ns=0),
    )
    whole = Spent(server_ip="2001:db8::1", server_port=80, total_ns=84 * MS, parts=parts)
    assert whole.rest_ns == 3 * MS
    assert whole.endpoint == "[2001:db8::1]:80"
    assert str(whole) == "of 84.0 ms: path client–lb 21.0 ms, at app 60.0 ms, not known 3.00 ms"
    full = Spent(server_ip="10.0.0.9", server_port=80, total_ns=81 * MS, parts=parts)
    assert "not known" not in str(full)


def divided(**more: list[Row]) -> Tables:
    """A wait of 100 ns at one server: 30 there, 50 at the server, 20 back; the clocks may be wrong by 4."""
    parts = [
        {"start_at": 0, "end_at": 30, "kind": "path", "place": "client", "to_place": "app", "uncertainty_ns": 4},
        {"start_at": 30, "end_at": 80, "kind": "host", "place": "app"},
        {"start_at": 80, "end_at": 100, "kind": "path", "place": "app", "to_place": "client", "uncertainty_ns": 4},
    ]
    return tables_of(
        connections=[connection(0), connection(1, server="10.0.0.8:80")],
        phases=[
            {"stream": 0, "exchange": 0, "kind": "wait", "start_at": 0, "end_at": 100},
            {"stream": 0, "kind": "idle", "start_at": 100, "end_at": 900},
            {"stream": 1, "exchange": 0, "kind": "wait", "start_at": 0, "end_at": 5_000},
        ],
        paths=[{"stream": 0, "position": position, "place": place} for position, place in enumerate(("client", "app"))],
        phase_places=[{"stream": 0, "exchange": 0, "phase": "wait", "of_stream": 0, **part} for part in parts],
        **more,
    )


def test_both_directions_of_a_path_are_one_and_their_doubts_cancel() -> None:
    """A clock's error adds to one direction and lacks in the other. What no place told of is not listed."""
    assert spent(divided()) == [
        Spent(
            server_ip="10.0.0.9", server_port=80, total_ns=100,
            parts=(
                Part(kind="path", place="client", to_place="app", total_ns=50, uncertainty_ns=0),
                Part(kind="host", place="app", to_place=None, total_ns=50, uncertainty_ns=0),
            ),
        )
    ]  # fmt: skip


def test_what_was_made_for_others_is_no_wait_of_users() -> None:
    assert spent(divided(on_behalf=[{"stream": 0, "exchange": 0}])) == []


def test_losses_are_counted_among_the_packets_that_left_in_that_direction() -> None:
    place_packets = [
        {"stream": stream, "frame": 10 * stream + number, "sender": sender, "place": "client"}
        for stream, number, sender in (
            *((0, 1, "client"), (0, 2, "client"), (0, 3, "client"), (0, 4, "server")),
            *((1, 1, "client"), (2, 1, "client")),
        )
    ]
    tables = tables_of(
        place_packets=place_packets,
        paths=[{"stream": 0, "place": "lb"}],
        losses=[
            {"stream": 0, "sender": "client", "from_place": "client", "to_place": "lb", "frame": 2,
             "captured_elsewhere": False},
            {"stream": 0, "sender": "client", "from_place": "client", "to_place": "lb", "frame": 3,
             "captured_elsewhere": True},
            # A connection of which the next place saw nothing: it counts because of the loss.
            {"stream": 1, "sender": "client", "from_place": "client", "to_place": "lb", "frame": 11,
             "captured_elsewhere": False},
        ],
    )  # fmt: skip
    (lost,) = losses(tables)
    assert lost == Lost(from_place="client", to_place="lb", packets=4, lost=2, uncaptured=1, frame=2, streams=2)
    assert str(lost) == (
        "client → lb: 2 of 4 packets lost (50 %), 1 arrived, but lb's capture lacks them, "
        "on 2 connections, the first at frame 2"
    )
