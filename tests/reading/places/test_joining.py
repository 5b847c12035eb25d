"""The tables of all places: each connection once, frames counted on, all instants on one clock."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import duckdb

import conchart
from conchart import Trace
from conchart.reading.places.clocks import Clock, Piece
from conchart.reading.places.joining import _moved, _sides
from conchart.reading.places.views import Place
from tests.laws.files import Format
from tests.laws.talk import Packet
from tests.reading.places.test_matching import later, talk

S = 1_000_000_000


def read(folder: Path, near: Sequence[Packet], far: Sequence[Packet]) -> Trace:
    for name, packets in (("client", near), ("server", far)):
        (folder / f"{name}.pcap").write_bytes(Format(resolution_ns=1).write(packets))
    return conchart.read(places={name: [str(folder / f"{name}.pcap")] for name in ("client", "server")})


def test_frames_count_on_from_place_to_place(tmp_path: Path) -> None:
    packets = talk().packets()
    count = len(packets)
    with read(tmp_path, packets, later(packets, ("10.0.0.9", 80))) as trace:
        assert trace.fetch("SELECT place, first_frame, packets FROM captures ORDER BY capture") == [
            ("client", 1, count),
            ("server", count + 1, count),
        ]
        assert trace.fetch("SELECT place, first_frame, last_frame FROM paths ORDER BY position") == [
            ("client", 1, count),
            ("server", count + 1, 2 * count),
        ]
        frames = trace.fetch("SELECT place, min(frame), max(frame) FROM place_packets GROUP BY place ORDER BY place")
        assert frames == [("client", 1, count), ("server", count + 1, 2 * count)]


def test_the_place_nearest_to_the_client_tells_unless_it_lacks_the_beginning_or_bytes(tmp_path: Path) -> None:
    packets = talk().packets()
    far = later(packets, ("10.0.0.9", 80))
    with read(tmp_path, packets, far) as trace:
        assert trace.fetch("SELECT first_frame FROM connections") == [(1,)]
    middle = talk(sees_open=False).packets()
    with read(tmp_path, middle, far) as trace:
        assert trace.fetch("SELECT state = 'midstream', first_frame FROM connections") == [(False, len(middle) + 1)]
    answer = next(one for one in packets if len(one.payload) == 1_448)
    with read(tmp_path, [one for one in packets if one is not answer], far) as trace:
        assert trace.fetch("SELECT missing_server, first_frame FROM connections") == [(0, len(packets))]


def test_a_clock_that_is_hours_ahead_changes_no_time(tmp_path: Path) -> None:
    """But for what the fastest packets leave open: half a path at most."""
    packets = talk().packets()
    far = later(packets, ("10.0.0.9", 80))
    with read(tmp_path, packets, far) as trace:
        right = trace.fetch("SELECT place, seen_at FROM place_packets ORDER BY frame")
    with read(tmp_path, packets, [replace(one, at=one.at + 7_200 * S) for one in far]) as trace:
        moved = trace.fetch("SELECT place, seen_at FROM place_packets ORDER BY frame")
    for (place, at), (_, found_at) in zip(right, moved, strict=True):
        assert abs(found_at - at) <= (0 if place == "client" else 1_000_000)


def clock(number: int, offset: int) -> Clock:
    place = Place(number, "", None, [])  # type: ignore[arg-type]
    return Clock(place, "packets", (Piece(0, 10 * S, offset, 0, 0, 1),))


def test_instants_are_moved_by_the_clock_of_their_place() -> None:
    assert _moved("shown", [clock(0, 0), clock(1, 0)]) == "shown"
    moved = _moved("shown", [clock(0, 0), clock(1, 5)], "part")
    found = duckdb.sql(f"SELECT {moved} FROM (VALUES (0, 100), (1, 105)) AS t(part, shown)").fetchall()
    assert found == [(100,), (100,)]


def test_sides_are_swapped_where_a_place_takes_them_the_other_way_round() -> None:
    query = f"""
        SELECT {_sides(("rows.*_ip", "rows.mss_*"), "turned")}
        FROM (VALUES (true, 'c', 's', 1, 2), (false, 'c', 's', 1, 2))
            AS rows(turned, client_ip, server_ip, mss_client, mss_server)"""
    relation = duckdb.sql(query)
    assert relation.columns == ["client_ip", "server_ip", "mss_client", "mss_server"]
    assert relation.fetchall() == [("s", "c", 2, 1), ("c", "s", 1, 2)]
