"""The packet list says what the core's table of packets says, and reads the options of RFC 9293 and its neighbours."""

from __future__ import annotations

import struct

import pytest

from conchart.questions.dissect.packets import Packet, packet_list
from tests.laws.reading import read
from tests.questions.dissect.captured import PATHS, ip_packets

SOURCE, DESTINATION = bytes([192, 0, 2, 1]), bytes([198, 51, 100, 2])


def segment(options: bytes = b"", payload: bytes = b"", flags: int = 0x18) -> bytes:
    options += bytes(-len(options) % 4)
    offset = (20 + len(options)) // 4 << 4
    return struct.pack(">HHIIBBHHH", 443, 50_000, 2**32 - 1, 7, offset, flags, 512, 0, 0) + options + payload


def ipv4(carried: bytes, length: int | None = None) -> bytes:
    total = 20 + len(carried) if length is None else length
    return struct.pack(">BBHHHBBH4s4s", 0x45, 0, total, 0, 0, 61, 6, 0, SOURCE, DESTINATION) + carried


def ipv6(carried: bytes, next_header: int = 6) -> bytes:
    ends = bytes(15) + b"\x01" + bytes(15) + b"\x02"
    return struct.pack(">IHBB", 6 << 28, len(carried), next_header, 55) + ends + carried


def one(raw: bytes) -> Packet:
    (packet,) = packet_list([(3, 17, raw)])
    return packet


@pytest.mark.timeout(300)
@pytest.mark.thorough
def test_dpkt_and_the_core_agree_on_every_tcp_packet() -> None:
    compared = 0
    for path in PATHS:
        tables = read(path)
        ends = {
            row["stream"]: {
                "client": (row["client_ip"], row["client_port"], row["server_ip"], row["server_port"]),
                "server": (row["server_ip"], row["server_port"], row["client_ip"], row["client_port"]),
            }
            for row in tables.connections
            if row["transport"] == "tcp"
        }
        ours = {
            row["frame"]: (*ends[row["stream"]][row["sender"]], row["seen_at"], row["flags"], row["bytes"])
            for row in tables.packets
            if row["stream"] in ends
        }
        packets = packet_list(ip_packets(path))
        assert ours == {
            each.frame: (
                *(each.source, each.source_port, each.destination, each.destination_port),
                *(each.at, each.flags, each.bytes),
            )
            for each in packets
        }
        for stream, row in ((row["stream"], row) for row in tables.connections if row["stream"] in ends):
            of_stream = {row["frame"]: row["sender"] for row in tables.packets if row["stream"] == stream}
            first = {of_stream[each.frame]: each for each in reversed(packets) if each.frame in of_stream}
            opened = {sender: packet for sender, packet in first.items() if "S" in packet.flags}
            for sender, packet in opened.items():
                assert packet.seq == row[f"isn_{sender}"]
                assert packet.ttl == row[f"ttl_{sender}"]
                mss = row[f"mss_{sender}"]
                assert ([] if mss is None else [f"MSS {mss}"]) == [text for text in packet.options if "MSS" in text]
            windows = [
                each for each in packets if each.frame in of_stream and not each.window and "R" not in each.flags
            ]
            zeros = [each for each in windows if "S" not in each.flags]
            assert len(zeros) == row["zero_windows_client"] + row["zero_windows_server"]
        compared += len(packets)
    assert compared > 10_000


def test_header_fields_are_as_sent() -> None:
    assert one(ipv4(segment(payload=b"hello"))) == Packet(
        frame=3,
        at=17,
        source="192.0.2.1",
        source_port=443,
        destination="198.51.100.2",
        destination_port=50_000,
        flags="PA",
        seq=2**32 - 1,
        ack=7,
        window=512,
        bytes=5,
        ttl=61,
        options=[],
    )


def test_ipv6_extension_headers_are_stepped_over() -> None:
    options = bytes([6, 0, 1, 4, 0, 0, 0, 0])
    packet = one(ipv6(bytes([60, 0, 1, 4, 0, 0, 0, 0]) + options + segment(payload=b"hi"), next_header=0))
    assert (packet.source, packet.destination, packet.bytes, packet.ttl) == ("::1", "::2", 2, 55)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (
            b"\x02\x04\x05\xb4\x04\x02\x08\x0a\0\0\0\x01\0\0\0\0\x01\x03\x03\x07",
            "MSS 1460, SACK permitted, TS 1/0, WS 7",
        ),
        (b"\x01\x01\x05\x12\0\0\0\x01\0\0\0\x05\0\0\0\x09\0\0\0\x0c", "SACK 1-5 9-12"),
        (b"\x22\x02\0\0", "option 34, 0 bytes"),
        (b"\x02\x03\x05\x00", "option 2, 1 bytes"),
        (b"\x01\x01\x01\x02", "options cut off"),
    ],
)
def test_options_are_told_in_words(raw: bytes, words: str) -> None:
    assert one(ipv4(segment(raw))).options == words.split(
        ", " if "option 34" not in words and "option 2" not in words else "\n"
    )


def test_a_segment_that_the_card_was_yet_to_cut_has_the_length_of_its_bytes() -> None:
    assert one(ipv4(segment(payload=bytes(70)), length=0)).bytes == 70


def test_what_the_capture_left_off_counts() -> None:
    assert one(ipv4(segment(payload=bytes(70)))[:60]).bytes == 70


@pytest.mark.parametrize(
    "raw", [b"", b"\x45", b"\x60", ipv4(b""), ipv4(segment())[:30], ipv6(segment(), 17), b"\xff" * 60]
)
def test_what_is_no_tcp_is_left_out(raw: bytes) -> None:
    assert packet_list([(1, 1, raw)]) == []


def test_every_cut_of_a_packet_is_survived() -> None:
    whole = ipv6(bytes([6, 0, 1, 4, 0, 0, 0, 0]) + segment(b"\x02\x04\x05\xb4", b"hi"), next_header=60)
    assert packet_list((0, 0, whole[:length]) for length in range(len(whole)))
