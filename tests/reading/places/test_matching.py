"""The connections and the packets that several places saw, of talks that are made by hand."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import conchart
from tests.laws.files import Format
from tests.laws.talk import Packet, Say, Talk

PATH_NS = 500_000


def talk(**facts: Any) -> Talk:  # noqa: ANN401
    steps = [Say("client", b"GET / HTTP/1.1\r\n\r\n"), Say("server", b"x" * 3_000)]
    return Talk(server=("10.0.0.9", 80), **{"steps": steps, **facts})


def later(packets: Sequence[Packet], server: tuple[str, int]) -> list[Packet]:
    """Give what the server's end of the path captures."""
    moved = [replace(one, at=one.at + (-PATH_NS if one.source == server else PATH_NS)) for one in packets]
    return sorted(moved, key=lambda one: one.at)


def translated(packets: Sequence[Packet], old: tuple[str, int], new: tuple[str, int]) -> list[Packet]:
    swap = {old: new}
    return [
        replace(one, source=swap.get(one.source, one.source), destination=swap.get(one.destination, one.destination))
        for one in packets
    ]


def seen(folder: Path, near: Sequence[Packet], far: Sequence[Packet]) -> tuple[list[Any], list[Any]]:
    """Give the places of each connection, and of each place how many packets it saw, and how many others saw, too."""
    for name, packets in (("client", near), ("server", far)):
        (folder / f"{name}.pcap").write_bytes(Format(resolution_ns=1).write(packets))
    with conchart.read(places={name: [str(folder / f"{name}.pcap")] for name in ("client", "server")}) as trace:
        ways = trace.fetch("SELECT list(place ORDER BY position) FROM paths GROUP BY stream ORDER BY stream")
        shared = trace.fetch("""
            SELECT place, count(*), count(*) FILTER (packet IN (
                SELECT packet FROM place_packets GROUP BY packet HAVING count(DISTINCT place) > 1))
            FROM place_packets GROUP BY place ORDER BY place""")
    return [way for (way,) in ways], shared


def test_a_connection_and_its_packets_are_the_same_at_both_places(tmp_path: Path) -> None:
    packets = talk().packets()
    ways, shared = seen(tmp_path, packets, later(packets, ("10.0.0.9", 80)))
    assert ways == [["client", "server"]]
    assert shared == [(place, len(packets), len(packets)) for place in ("client", "server")]


def test_initial_sequence_numbers_tell_it_behind_an_address_translation(tmp_path: Path) -> None:
    packets = talk().packets()
    far = translated(later(packets, ("10.0.0.9", 80)), ("10.0.0.5", 51_344), ("192.0.2.1", 9_999))
    assert seen(tmp_path, packets, far)[0] == [["client", "server"]]


def test_connections_with_other_sequence_numbers_between_other_ends_are_others(tmp_path: Path) -> None:
    near, far = talk(), talk(client=("10.0.0.6", 40_000), client_isn=77_000, server_isn=88_000)
    ways, shared = seen(tmp_path, near.packets(), later(far.packets(), far.server))
    assert sorted(ways) == [["client"], ["server"]]
    assert [alike for _, _, alike in shared] == [0, 0]


def test_where_the_beginning_is_missing_the_packets_decide(tmp_path: Path) -> None:
    whole, cut = talk(), talk(sees_open=False)
    far = translated(later(cut.packets(), cut.server), ("10.0.0.5", 51_344), ("192.0.2.1", 9_999))
    assert seen(tmp_path, whole.packets(), far)[0] == [["client", "server"]]


def test_of_two_connections_between_the_same_ends_each_has_its_own(tmp_path: Path) -> None:
    first = talk()
    second = talk(opened_at=first.opened_at + 60 * 10**9, client_isn=500_000, server_isn=600_000)
    packets = [*first.packets(), *second.packets()]
    ways, shared = seen(tmp_path, packets, later(packets, first.server))
    assert ways == [["client", "server"]] * 2
    assert shared == [(place, len(packets), len(packets)) for place in ("client", "server")]
    alone = seen(tmp_path, packets, later(second.packets(), first.server))[0]
    assert sorted(alone) == [["client"], ["client", "server"]]
