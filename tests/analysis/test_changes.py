"""What was changed, overtaken or sent needlessly between two places, as the labs' rules did it."""

import re

import pytest

import conchart
from conchart import Trace
from conchart.report.path_changes import changes as path_changes
from conchart.report.path_changes import disorders, queues
from tests.conftest import ROOT, places_of
from tests.reading.places.truth import Packet, Truth, records

MOST_DRIFT = 500e-6
"""Of two clocks, as far as conchart assumes."""


def read(case: str) -> Trace:
    return conchart.read(places=places_of(ROOT / "captures/places" / case))


def changes(trace: Trace) -> set[tuple[object, ...]]:
    return set(trace.sql("SELECT field, sender, from_place, to_place, before, after FROM changes").fetchall())


def test_a_firewall_is_told_by_each_field_that_its_rules_change() -> None:
    with read("firewall") as trace:
        assert changes(trace) == {
            ("ttl", "client", "client", "lb", "64", "63"),
            ("ttl", "server", "lb", "client", "64", "63"),
            ("mss", "client", "client", "lb", "1460", "1300"),
            ("mss", "server", "lb", "client", "1460", "1300"),
            ("sack_permitted", "client", "client", "lb", "present", None),
            ("timestamps", "client", "client", "lb", "present", None),
            ("dscp", "client", "client", "lb", "0", "18"),
            ("ecn", "client", "client", "lb", "not ECT", "CE"),
            ("tls", "client", "lb", "lb", "TLSv1.3", None),
        }
        assert trace.sql("FROM losses").fetchall() == [], "a SYN without its options is the same packet"
        first = trace.sql("SELECT from_frame, to_frame FROM changes WHERE stream = 0 AND field = 'mss'").fetchall()
        seen = trace.sql("SELECT frame FROM place_packets WHERE stream = 0 AND contains(flags, 'S')").fetchall()
        assert {frame for pair in first for frame in pair} == {frame for (frame,) in seen}


def test_an_address_translation_changes_both_addresses_and_the_port() -> None:
    with read("nat") as trace:
        found = {(field, before, after) for field, _, _, _, before, after in changes(trace)}
        assert ("client_ip", "10.93.1.10", "10.93.3.1") in found
        assert ("server_ip", "10.93.1.1", "10.93.3.20") in found
        assert {field for field, _, _ in found} == {"client_ip", "client_port", "server_ip", "ttl", "tls"}


def test_tls_that_is_passed_through_is_told_from_tls_that_ends() -> None:
    with read("passthrough") as trace:
        assert changes(trace) == {("tls_passed_through", "client", "lb", "lb", "TLSv1.3", "TLSv1.3")}


def test_a_proxy_header_is_told_with_the_connections_that_it_joins() -> None:
    """The truth is what HAProxy wrote, and the frames of the SYNs before it."""
    folder = ROOT / "captures/places/proxy-header"
    truth = Truth(folder)
    syns = {
        packet.source: packet.frame + truth.first_frame("lb") - 1
        for packet in reversed(truth.packets["lb"])
        if packet.sender == "client"
    }
    announced = set()
    for frame, (_, _, raw) in enumerate(records(folder / "lb.pcap"), start=1):
        if b"PROXY TCP4 " in raw:
            (sender,) = (packet.source for packet in truth.packets["lb"] if packet.frame == frame)
            _, _, client_ip, server_ip, port, server_port = (
                raw[raw.index(b"PROXY ") :].split(b"\r\n")[0].decode().split()
            )
            assert (server_ip, server_port) == ("10.93.1.20", "443")
            announced.add(("lb", "lb", f"{client_ip} {port}", syns[client_ip, int(port)], syns[sender]))
    assert len(announced) == 3
    with read("proxy-header") as trace:
        rows = trace.sql("""
            SELECT from_place, to_place, after, from_frame, to_frame FROM changes WHERE field = 'proxy_header'
        """).fetchall()
        assert len(rows) == len(announced)
        assert set(rows) == announced
        others = trace.sql(
            "SELECT field, before, after, count(*) FROM changes WHERE field <> 'proxy_header' GROUP BY ALL"
        )
        assert others.fetchall() == [("tls_passed_through", "TLSv1.3", "TLSv1.3", 3)]
        assert trace.sql("FROM losses").fetchall() == trace.sql("FROM disorders").fetchall() == []
        ends = "SELECT count(*), count(DISTINCT (front_stream, back_stream)), count(DISTINCT back_stream) FROM links"
        assert trace.sql(ends).fetchall() == [(9, 3, 3)], "each request, on the one connection that its client's has"


def test_a_handshake_that_a_middlebox_answers_is_split() -> None:
    with read("syn-proxy") as trace:
        rows = trace.sql("""
            SELECT count(*) FILTER (field = 'handshake'), count(*) FILTER (field = 'isn'), count(DISTINCT stream)
            FROM changes WHERE stream IN (SELECT stream FROM paths WHERE position = 1)
        """).fetchall()
        assert rows == [(3, 3, 3)]
        assert trace.sql("FROM losses").fetchall() == []
        ((offset_ns, uncertainty_ns),) = trace.sql(
            "SELECT offset_ns, uncertainty_ns FROM clocks WHERE place = 'lb'"
        ).fetchall()
        assert abs(offset_ns - 37_000_000) < uncertainty_ns, "packets that the middlebox made are no clock's"


def test_a_direction_that_goes_another_way_is_not_lost() -> None:
    with read("detour") as trace:
        assert trace.sql("FROM losses").fetchall() == []


def test_packets_that_the_line_carried_twice_are_doubled_and_no_others() -> None:
    """Each copy is the very packet, by IP identification and payload, and the place before the line has it once."""
    truth = Truth(ROOT / "captures/places/doubled")
    copies: dict[tuple[object, ...], int] = {}
    for place, other in (("client", "lb"), ("lb", "client")):
        sent = {(packet.core, packet.options): packet for packet in truth.packets[other]}
        came: dict[object, Packet] = {}
        for packet in truth.packets[place]:
            first = came.setdefault((packet.core, packet.options), packet)
            if first is not packet:
                once = sent[packet.core, packet.options]
                frames = [truth.first_frame(other) + once.frame - 1]
                frames += [truth.first_frame(place) + each.frame - 1 for each in (packet, first)]
                copies[("duplicated", packet.sender, other, place, *frames, packet.length)] = packet.at - first.at
    assert len(copies) == len(truth.document["lines"]["client-lb"]["rules"]) == 4
    with read("doubled") as trace:
        rows = trace.sql("""
            SELECT kind, sender::VARCHAR, from_place, to_place, frame, to_frame, other_frame, bytes, late_ns
            FROM disorders
        """).fetchall()
        assert sorted(row for *row, _ in rows) == sorted(map(list, copies))
        for *row, late_ns in rows:
            # The drift that the corridor allows is in it, too.
            assert late_ns == pytest.approx(copies[tuple(row)], rel=MOST_DRIFT, abs=1)
        assert trace.sql("FROM losses").fetchall() == []
        assert [line.partition(", up to")[0] for line in disorders(trace)] == [
            "client → lb: 2 packets doubled on the way",
            "lb → client: 2 packets doubled on the way",
        ]
        ((offset_ns, uncertainty_ns),) = trace.fetch("SELECT offset_ns, uncertainty_ns FROM clocks WHERE place = 'lb'")
        assert abs(offset_ns - 37_000_000) <= uncertainty_ns


def test_packets_that_were_held_back_are_overtaken_and_sent_again() -> None:
    with read("reordered") as trace:
        rows = trace.sql("""
            SELECT kind, disorders.sender::VARCHAR, from_place, to_place, here.bytes = disorders.bytes,
                here.packet = there.packet, other.bytes > 0, late_ns > 0
            FROM disorders JOIN place_packets here ON here.frame = disorders.frame
            JOIN place_packets there ON there.frame = to_frame JOIN place_packets other ON other.frame = other_frame
            ORDER BY ALL
        """).fetchall()
        assert rows == [
            ("needless", "client", "client", "lb", True, True, True, True),
            ("needless", "server", "lb", "client", True, True, True, True),
            ("reordered", "client", "client", "lb", True, True, True, True),
            ("reordered", "server", "lb", "client", True, True, True, True),
        ]  # fmt: skip


@pytest.mark.parametrize("case", ["plain", "asymmetric", "whose-fault-2"])
def test_nothing_is_changed_or_overtaken_on_a_plain_line(case: str) -> None:
    with read(case) as trace:
        assert {field for field, *_ in changes(trace)} == {"tls"}
        assert trace.sql("FROM disorders").fetchall() == []


@pytest.mark.parametrize(("case", "lines"), [
    ("plain", ["lb: TLS ended (TLSv1.3 → none)"]),
    ("passthrough", ["lb: TLS passed through (TLSv1.3)"]),
    ("proxy-header", ["lb: PROXY header added, TLS passed through (TLSv1.3)"]),
    ("nat", [
        "client → lb: client's address 10.93.1.10 → 10.93.3.1, server's address 10.93.1.1 → 10.93.3.20, "
        "TTL 64 → 63 (1 router)",
        "lb → client: TTL 64 → 63 (1 router)",
        "lb: TLS ended (TLSv1.3 → none)",
    ]),
    ("firewall", [
        "client → lb: DSCP 0 → 18, ECN not ECT → CE, maximum segment size 1460 → 1300, SACK removed, "
        "timestamps removed, TTL 64 → 63 (1 router)",
        "lb → client: maximum segment size 1460 → 1300, TTL 64 → 63 (1 router)",
        "lb: TLS ended (TLSv1.3 → none)",
    ]),
])  # fmt: skip
def test_what_is_changed_is_told_in_a_few_words(case: str, lines: list[str]) -> None:
    with read(case) as trace:
        assert [line.replace("\u2009", " ") for line in path_changes(trace)] == lines


def test_packets_that_were_overtaken_or_sent_needlessly_are_told_with_frames_of_both_places() -> None:
    with read("reordered") as trace:
        lines = list(disorders(trace))
        assert [line.partition(", up to")[0] for line in lines] == [
            "client → lb: 1 packet sent again though it had arrived",
            "client → lb: 1 packet overtaken",
            "lb → client: 1 packet sent again though it had arrived",
            "lb → client: 1 packet overtaken",
        ]
        for line, sender in zip(lines, ("client", "client", "server", "server"), strict=True):
            first, second, other = map(int, re.findall(r"frame (\d+) → (\d+), \D+ (\d+)$", line)[0])
            seen = {
                frame: (place, sender)
                for frame, place, sender in trace.fetch("SELECT frame, place, sender::VARCHAR FROM place_packets")
            }
            near, far = ("client", "lb") if sender == "client" else ("lb", "client")
            assert [seen[frame] for frame in (first, second, other)] == [(near, sender), (far, sender), (far, sender)]
        assert list(queues(trace)) == []


def test_a_queue_is_told_where_it_is_and_nowhere_else() -> None:
    with read("queue") as trace:
        (line,) = queues(trace)
        assert line.startswith("lb → client: ")
        most_ms = float(re.findall(r"up to ([\d.]+)\sms", line)[0])
        assert 70 <= most_ms <= 20_000 * 8 / 2_000_000 * 1000 + 2, "20,000 bytes at 2 Mbit/s"
    for case in ("plain", "loss", "whose-fault-1"):
        with read(case) as trace:
            assert list(queues(trace)) == [], case
