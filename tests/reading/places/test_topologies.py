"""Tunnels and containers: the same packets wrapped, under other addresses, and several times in one capture."""

from __future__ import annotations

import json
import struct
from collections import defaultdict
from pathlib import Path

import dpkt
import pytest

import conchart
from conchart import Trace
from conchart.report.path_changes import changes as path_changes
from tests.conftest import ROOT, places_of
from tests.laws.tunnels import TUNNELS
from tests.reading.places.truth import LINKS, records

CASES = ROOT / "captures" / "places"
VXLAN, VXLAN_HEADER, ETHERNET = 4789, 8, 14
TABLES = {
    "place_packets": "place, frame, packet, stream, sender::VARCHAR, seq, ack, bytes, flags, seen_at",
    "clocks": "*",
    "losses": "*",
    "disorders": "*",
    "phase_places": "*",
    "connections": "* EXCLUDE (mac_client, mac_server, local_end, tunnel_client, tunnel_server, vantage)",
}


def read(case: str) -> Trace:
    return conchart.read(places=places_of(CASES / case))


def outer(link: int, raw: bytes) -> dpkt.ip.IP:
    return LINKS[link](raw).data if link in LINKS else dpkt.ip.IP(raw)


def innermost(link: int, raw: bytes) -> dpkt.ip.IP:
    ip = outer(link, raw)
    if isinstance(ip.data, dpkt.udp.UDP) and ip.data.dport == VXLAN:
        return dpkt.ethernet.Ethernet(bytes(ip.data.data)[VXLAN_HEADER:]).data
    return ip


def seen(case: str) -> dict[tuple[object, ...], dict[str, list[int]]]:
    """Of each packet, by what no translation changes, its frames at each place, numbered through."""
    found: dict[tuple[object, ...], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    frame = 0
    for place, path in places_of(CASES / case).items():
        for link, _, raw in records(Path(path)):
            frame += 1
            ip = innermost(link, raw)
            tcp = ip.data
            found[ip.id, tcp.seq, tcp.ack, tcp.flags, bytes(tcp.opts), bytes(tcp.data)][place].append(frame)
    return found


@pytest.mark.parametrize("case", ["tunnel", "containers"])
def test_a_packet_is_one_at_each_place_however_often_it_was_captured(case: str) -> None:
    expected = seen(case)
    with read(case) as trace:
        rows = trace.sql("SELECT packet, place, frame FROM place_packets").fetchall()
        assert trace.sql("SELECT count(*) FROM losses").fetchone() == (0,)
        assert trace.sql("SELECT count(*) FROM disorders").fetchone() == (0,)
    found: dict[int, dict[str, int]] = defaultdict(dict)
    for packet, place, frame in rows:
        assert place not in found[packet]
        found[packet][place] = frame
    packet_of = {
        (place, frame): core for core, of in expected.items() for place, frames in of.items() for frame in frames
    }
    for by_place in found.values():
        (core,) = {packet_of[place, frame] for place, frame in by_place.items()}
        assert by_place.keys() == expected[core].keys()
    assert len(found) == len(expected)
    assert max(len(frames) for of in expected.values() for frames in of.values()) > 1


@pytest.mark.parametrize("case", ["tunnel", "containers"])
def test_clocks_are_as_far_apart_as_they_are(case: str) -> None:
    clocks = {
        place: clock["pieces"][0]
        for place, clock in json.loads((CASES / case / "truth.json").read_text())["clocks"].items()
    }
    with read(case) as trace:
        rows = trace.sql("SELECT place, offset_ns, uncertainty_ns FROM clocks WHERE method = 'packets'").fetchall()
    assert {place for place, _, _ in rows} == clocks.keys() - {"client"}
    for place, offset_ns, uncertainty_ns in rows:
        assert abs(clocks[place]["written_at"] - clocks[place]["true_at"] - offset_ns) <= uncertainty_ns, place


def test_what_travels_in_a_tunnel_is_told_of_the_place_that_saw_it_so() -> None:
    with read("tunnel") as trace:
        wrapped = trace.sql("""
            SELECT from_place, to_place, sender::VARCHAR, before, after, sum(packets) FROM changes
            WHERE field = 'tunnel' GROUP BY ALL ORDER BY ALL
        """).fetchall()
        sent = dict(
            trace.sql(
                "SELECT sender::VARCHAR, count(*) FROM place_packets WHERE place = 'router' GROUP BY ALL"
            ).fetchall()
        )
        assert wrapped == [
            ("client", "router", "client", None, "vxlan", sent["client"]),
            # Captured with -i any: without the tunnel first.
            ("lb", "router", "server", None, "vxlan", sent["server"]),
            ("router", "client", "server", "vxlan", None, sent["server"]),
        ]
        assert list(path_changes(trace)) == [
            "client → router: wrapped in VXLAN",
            "lb: TLS ended (TLSv1.3 → none)",
            "lb → router: wrapped in VXLAN",
            "router → client: VXLAN taken off",
        ]


def test_a_node_has_one_row_of_a_connection_before_and_after_the_translation() -> None:
    with read("containers") as trace:
        ways = trace.sql("SELECT list(place ORDER BY position) FROM paths GROUP BY stream ORDER BY stream").fetchall()
        assert sorted(ways) == [(["client", "node", "pod"],)] * 2 + [(["pod", "node", "app"],)] * (len(ways) - 2)
        assert trace.sql("SELECT count(*) FROM links WHERE back_stream IS NOT NULL").fetchone() == (5,)
        found = {
            (here, there, field): (before, after)
            for here, there, field, before, after in trace.sql(
                "SELECT from_place, to_place, field, before, after FROM changes WHERE ends_with(field, '_ip')"
            ).fetchall()
        }
    assert found == {
        ("node", "pod", "server_ip"): ("10.93.1.1", "10.93.7.20"),
        ("node", "app", "client_ip"): ("10.93.7.20", "10.93.2.20"),
    }


@pytest.mark.parametrize(("tunnel", "name"), [("gre", "gre"), ("ip in ip", "ip"), ("gtp-u", "gtp-u")])
@pytest.mark.parametrize("case", ["loss", "nat"])
def test_wrapped_at_one_place_all_is_found_as_without(case: str, tunnel: str, name: str, tmp_path: Path) -> None:
    places = places_of(CASES / case)
    with conchart.read(places=places) as trace:
        usual = {
            table: trace.sql(f"SELECT {what} FROM {table} ORDER BY ALL").fetchall() for table, what in TABLES.items()
        }
    wrap(Path(places["client"]), tmp_path / "client.pcap", tunnel)
    with conchart.read(places=places | {"client": str(tmp_path / "client.pcap")}) as trace:
        for table, what in TABLES.items():
            assert trace.sql(f"SELECT {what} FROM {table} ORDER BY ALL").fetchall() == usual[table], table
        changes = trace.sql("SELECT DISTINCT sender::VARCHAR, before, after FROM changes WHERE field = 'tunnel'")
        assert sorted(changes.fetchall(), key=str) == [("client", name, None), ("server", None, name)]


def wrap(capture: Path, to: Path, tunnel: str) -> None:
    """Write the packets of a capture in a tunnel, without Ethernet: its addresses would be those of no host."""
    with to.open("wb") as file:
        file.write(struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, dpkt.pcap.DLT_RAW))
        for link, at, raw in records(capture):
            frame = TUNNELS[tunnel](bytes(outer(link, raw)))[ETHERNET:]
            file.write(struct.pack("<IIII", at // 10**9, at % 10**9, len(frame), len(frame)) + frame)


def behind(raw: bytes, link: int, client: bytes, inside: tuple[bytes, int]) -> tuple[bytes, bool] | None:
    """A packet of the client, or to it, as it is on the other side of the translation; whether it is the client's."""
    frame = LINKS[link](raw)
    ip = frame.data
    if (
        not isinstance(ip, dpkt.ip.IP)
        or client not in (ip.src, ip.dst)
        or not isinstance(ip.data, dpkt.tcp.TCP | dpkt.udp.UDP)
    ):
        return None
    is_own = ip.src == client
    if is_own:
        ip.src, ip.data.sport = inside[0], (ip.data.sport + inside[1]) % 65_536
    else:
        ip.dst, ip.data.dport = inside[0], (ip.data.dport + inside[1]) % 65_536
    ip.sum = ip.data.sum = 0
    return bytes(frame), is_own


@pytest.mark.parametrize("case", ["nat", "midstream", "udp"])
def test_a_node_that_captured_both_sides_of_its_translation_saw_each_connection_once(case: str, tmp_path: Path) -> None:
    """As ``tcpdump -i any`` does on a machine that translates addresses: before and after, 20 microseconds apart."""
    places = places_of(CASES / case)
    node = list(records(Path(places["lb"])))
    front = bytes([10, 93, 3, 1] if case == "nat" else [10, 93, 1, 10])
    both = []
    for link, at, raw in node:
        both.append((at, raw))
        if twin := behind(raw, link, front, (bytes([172, 16, 0, 9]), 7)):
            both.append((at - 20_000 if twin[1] else at + 20_000, twin[0]))
    assert len(both) > len(node)
    path = tmp_path / "lb.pcap"
    with path.open("wb") as file:
        writer = dpkt.pcap.Writer(file, linktype=node[0][0], nano=True)
        for at, raw in sorted(both, key=lambda one: one[0]):
            writer.writepkt(raw, at / 1e9)
    with read(case) as plain, conchart.read(places={**places, "lb": path}) as trace:
        counted = """
            SELECT place, count(*), count(DISTINCT stream) FROM place_packets WHERE packet IS NOT NULL
            GROUP BY place ORDER BY place
        """
        assert (
            trace.sql("FROM connections").count("*").fetchall() == plain.sql("FROM connections").count("*").fetchall()
        )
        assert trace.sql(counted).fetchall() == plain.sql(counted).fetchall()
        lost = "SELECT count(*) FROM losses"
        assert trace.sql(lost).fetchall() == plain.sql(lost).fetchall()
