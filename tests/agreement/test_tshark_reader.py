"""The reference itself is tested: what a script says is what our reading of tshark's output gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agreement import tshark
from tests.agreement.facts import Stream
from tests.laws.files import Format
from tests.laws.hello import CIPHERS, Tls, application
from tests.laws.talk import Finish, Packet, Pause, Reset, Say, Talk, every, together
from tests.tshark import needs_tshark

pytestmark = [
    needs_tshark,
    pytest.mark.timeout(60),
]
HANDSHAKES = [
    Tls(),
    Tls(retry=True, cipher=0x1302),
    Tls(kind="psk", sni=None),
    Tls(version="TLSv1.2", cipher=0xC02F, alpn="h2"),
    Tls(version="TLSv1.2", cipher=0xC030, kind="ticket"),
    Tls(version="TLSv1.2", cipher=0xC030, kind="session-id"),
]


def read(path: Path, *talks: list[Packet]) -> list[Stream]:
    path.write_bytes(Format(resolution_ns=1).write(together(talks)))
    return tshark.read(path)


def test_hellos_split_over_segments_are_read_from_their_first_byte(tmp_path: Path) -> None:
    played = []
    for number, tls in enumerate(HANDSHAKES):
        talk = Talk(client=("10.0.0.5", 40_000 + number), opened_at=10**18 + number * 10**9)
        talk.steps = [*(Say(who, data) for who, data in tls.messages()), Say("client", application(200))]
        played.append(talk.packets(every(150)))
    streams = read(tmp_path / "input.pcap", *played)
    assert len(streams) == len(HANDSHAKES)
    for stream, tls, packets in zip(streams, HANDSHAKES, played, strict=True):
        facts = stream.tls
        assert facts is not None
        first = next(packet.at for packet in packets if packet.payload)
        hellos = [packet for packet in packets if packet.payload[:1] + packet.payload[5:6] == b"\x16\x02"]
        assert facts["hello_at"] == first
        assert facts["server_hello_at"] == hellos[-1].at  # the one before it is a HelloRetryRequest
        assert (facts["version"], facts["cipher"]) == (tls.version, CIPHERS[tls.cipher])
        assert facts["version_offered"] == tls.version
        assert (facts["sni"], facts["hello_retry"]) == (tls.sni, tls.retry)
        assert facts["resumed"] == (tls.kind != "full")
        assert facts.get("alpn", tls.alpn) == tls.alpn


def test_exchanges_have_the_times_of_their_first_bytes(tmp_path: Path) -> None:
    talk = Talk(server=("10.0.0.9", 80))
    talk.steps = [
        Say("client", b"POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 900\r\n\r\n" + b"x" * 900),
        Pause(5_000_000),
        Say("server", b"HTTP/1.1 200 OK\r\nContent-Length: 3000\r\n\r\n" + b"y" * 3_000),
        Pause(7_000_000),
        Say("client", b"GET /b HTTP/1.1\r\nHost: a.example\r\n\r\nHEAD /c HTTP/1.1\r\nHost: a.example\r\n\r\n"),
        Say("server", b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"),
        Say("server", b"HTTP/1.1 204 Empty\r\n\r\n"),
        Finish("server"),
        Reset("client"),
    ]
    packets = talk.packets(every(400))
    (stream,) = read(tmp_path / "input.pcap", packets)
    client_starts = [packet.at for packet in packets if packet.payload[:4] in (b"POST", b"GET ")]
    server_starts = [packet.at for packet in packets if packet.payload[:4] == b"HTTP"]
    read_facts = [(one.request_at, one.facts["method"], one.facts["response_at"]) for one in stream.http]
    starts = [client_starts[0], client_starts[1], client_starts[1]]
    assert read_facts == list(zip(starts, ["POST", "GET", "HEAD"], server_starts, strict=True))
    assert [one.facts["status"] for one in stream.http] == [200, 404, 204]
    assert [one.facts["target"] for one in stream.http] == ["/a", "/b", "/c"]
    assert (stream.facts["fin_by"], stream.facts["rst_by"]) == (talk.server, talk.client)
    for end in (talk.client, talk.server):
        size = sum(len(packet.payload) for packet in packets if packet.source == end)
        assert stream.by_end["bytes"][end] == size
    assert stream.facts["syn_at"] == packets[0].at
    assert stream.facts["syn_ack_at"] == packets[1].at
    assert stream.facts["ack_at"] == packets[2].at


def test_a_request_without_a_target_does_not_hide_its_neighbours(tmp_path: Path) -> None:
    talk = Talk(server=("10.0.0.9", 80))
    talk.steps = [
        Say("client", b"GET  HTTP/1.1\r\nHost: a\r\n\r\n"),
        Say("client", b"GET /b HTTP/1.1\r\n\r\nGET  HTTP/1.1\r\n\r\nGET /c HTTP/1.1\r\n\r\n"),
    ]
    (stream,) = read(tmp_path / "input.pcap", talk.packets())
    assert [one.facts["target"] for one in stream.http] == [None, "/b", None, "/c"]


def test_times_before_1970_are_times() -> None:
    assert tshark.nanoseconds("1.000000001") == 1_000_000_001
    assert tshark.nanoseconds("-1.5") == -1_500_000_000
    # 2^64 ticks less 505391422 of a microsecond, and less one of a nanosecond.
    assert tshark.nanoseconds("18446744073204.160194000") == -505_391_422_000
    assert tshark.nanoseconds("18446744073.709551615") == -1


def test_every_segment_of_a_frame_is_read_but_those_that_icmp_quotes() -> None:
    cells = dict.fromkeys(tshark.FIELDS, "")
    two = {"tcp.stream": "4", "tcp.srcport": "1", "tcp.dstport": "2", "tcp.seq_raw": "9", "tcp.flags": "0x10"}
    cells |= {name: f"{value}{tshark.AGGREGATOR}{value}" for name, value in two.items()}
    cells |= {"frame.number": "7", "frame.time_epoch": "1.0", "tcp.len": f"0{tshark.AGGREGATOR}5"}
    cells |= {"ip.src": f"a{tshark.AGGREGATOR}c", "ip.dst": f"b{tshark.AGGREGATOR}d", "http.host": "x"}
    cells["frame.protocols"] = "wlan:llc:ip:tcp:llc:ip:tcp"
    first, second = [frame for _, frame in tshark.frames_of(cells)]
    assert (first.source, second.source) == (("a", 1), ("c", 1))
    assert (first.values["http.host"], second.values["http.host"]) == ([], ["x"])  # the one with data
    cells["frame.protocols"] = "eth:ip:icmp:ip:tcp"
    assert list(tshark.frames_of(cells)) == []
