"""Bytes that are sent again, in segments of other lengths and across the blocks in which they are compared."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import conchart
from tests.laws.files import Format
from tests.laws.talk import Packet, Say, Talk

PATH_NS = 500_000
BLOCK = 65_536
"""Bytes that are compared with each other (``conchart/analysis/changes.py``)."""


def written(path: Path, packets: Sequence[Packet]) -> Path:
    path.write_bytes(Format(resolution_ns=1).write(packets))
    return path


def at_server(packets: Sequence[Packet], server: tuple[str, int]) -> list[Packet]:
    """What the server's end of the path captures."""
    moved = [replace(one, at=one.at + (-PATH_NS if one.source == server else PATH_NS)) for one in packets]
    return sorted(moved, key=lambda one: one.at)


def repeating(talk: Talk) -> tuple[list[Packet], int]:
    """A talk in which the server sends again what the client has: parts of two segments, or the same three times."""
    packets, repeated = [], 0
    for number, packet in enumerate(talk.packets()):
        packets.append(packet)
        if packet.source == talk.server and len(packet.payload) == 1_448 and packet.seq > 10_000:
            first = packet.seq - 700 - talk.server_isn
            if number % 7 == 0 or first // BLOCK < (first + 1_447) // BLOCK:
                packets.append(replace(packet, seq=packet.seq - 700, ip_id=1_000 + number))
                repeated += 1
            if number % 11 == 0:
                packets += [replace(packet, ip_id=2_000 + 10 * number + again) for again in range(3)]
                repeated += 3
    return packets, repeated


def test_each_repetition_is_needless_once_wherever_it_begins(tmp_path: Path) -> None:
    talk = Talk(steps=[Say("client", b"GET / HTTP/1.1\r\n\r\n"), Say("server", b"x" * 200_000)])
    packets, repeated = repeating(talk)
    places = {
        "client": written(tmp_path / "client.pcap", packets),
        "server": written(tmp_path / "server.pcap", at_server(packets, talk.server)),
    }
    with conchart.read(places=places) as trace:
        rows = trace.sql(
            "SELECT kind, sender, count(*), count(DISTINCT to_frame) FROM disorders GROUP BY ALL"
        ).fetchall()
        assert rows == [("needless", "server", repeated, repeated)]
        assert trace.sql("SELECT sum(lacking), sum(overtaken), sum(late) FROM paths").fetchall() == [
            (0, 0, 2 * repeated)
        ]


def test_packets_that_a_place_captured_twice_are_not_doubled(tmp_path: Path) -> None:
    talk = Talk(steps=[Say("client", b"GET / HTTP/1.1\r\n\r\n"), Say("server", b"x" * 20_000)])
    packets = talk.packets()
    twice = [replace(one, at=one.at + later) for one in packets for later in (0, 3_000)]
    places = {
        "client": written(tmp_path / "client.pcap", sorted(twice, key=lambda one: one.at)),
        "server": written(tmp_path / "server.pcap", at_server(packets, talk.server)),
    }
    with conchart.read(places=places) as trace:
        assert trace.sql("FROM disorders").fetchall() == trace.sql("FROM losses").fetchall() == []
        seen = trace.sql("SELECT place, count(*), count(DISTINCT packet) FROM place_packets GROUP BY ALL ORDER BY ALL")
        assert seen.fetchall() == [(place, len(packets), len(packets)) for place in places]


def test_a_place_says_how_many_packets_it_lacks(tmp_path: Path) -> None:
    talk = Talk(steps=[Say("client", b"GET / HTTP/1.1\r\n\r\n"), Say("server", b"x" * 20_000)])
    packets = talk.packets()
    lost = next(one for one in packets if len(one.payload) == 1_448)
    places = {
        "client": written(tmp_path / "client.pcap", [one for one in packets if one is not lost]),
        "server": written(tmp_path / "server.pcap", at_server(packets, talk.server)),
    }
    with conchart.read(places=places) as trace:
        assert trace.sql("SELECT place, lacking FROM paths ORDER BY position").fetchall() == [
            ("client", 1),
            ("server", 0),
        ]
        assert trace.sql("SELECT from_place, to_place FROM losses").fetchall() == [("server", "client")]


def joined(packets: Sequence[Packet], talk: Talk, many: int) -> list[Packet]:
    """What a host captures that leaves it to its network card to cut segments: several of them are one."""
    whole: list[Packet] = []
    for one in packets:
        last = whole[-1] if whole else one
        follows = one.source == talk.server == last.source and one.payload and last.payload
        if follows and last.seq + len(last.payload) == one.seq and len(last.payload) < many * 1_448:
            whole[-1] = replace(last, payload=last.payload + one.payload)
        else:
            whole.append(one)
    return whole


def test_of_a_segment_that_was_cut_on_the_way_the_lost_pieces_are_told(tmp_path: Path) -> None:
    talk = Talk(steps=[Say("client", b"GET / HTTP/1.1\r\n\r\n"), Say("server", b"x" * 100_000)])
    packets = talk.packets()
    whole = [one for one in packets if len(one.payload) == 1_448]
    lost = [whole[8], whole[22], whole[23]]
    last = packets.index(whole[-1])
    again = [
        replace(one, at=packets[last].at + 1_000 * number, ip_id=9_000 + number) for number, one in enumerate(lost)
    ]
    sent = joined(packets[: last + 1], talk, many=5)
    places = {
        "client": written(
            tmp_path / "client.pcap",
            [*(one for one in packets[: last + 1] if one not in lost), *again, *packets[last + 1 :]],
        ),
        "server": written(tmp_path / "server.pcap", at_server([*sent, *again, *packets[last + 1 :]], talk.server)),
    }
    with conchart.read(places=places) as trace:
        rows = trace.sql("""
            SELECT seq, bytes, from_place, to_place, captured_elsewhere FROM losses WHERE bytes > 0 ORDER BY seq
        """).fetchall()
        expected = [(lost[0].seq, 1_448), (lost[1].seq, 2 * 1_448)]
        assert rows == [(seq, size, "server", "client", False) for seq, size in expected]
        sizes = trace.sql("SELECT max(bytes) FROM place_packets GROUP BY place ORDER BY place").fetchall()
        assert sizes == [(1_448,), (5 * 1_448,)]
