"""UDP, DNS and QUIC, packet by packet as tshark has them: conversations, sizes, answers, names in ClientHellos."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import conchart
from tests.conftest import ROOT
from tests.tshark import ask, needs_tshark

CORPUS = os.environ.get("CONCHART_CORPUS")
OF_OTHERS = (
    "csanders__dns_isp_hijack.pcapng",
    "markofu__dns.cap",
    "mercury__quic_reordered_frames.pcap",
    "ndpi__quic-v2.pcapng",
    "zeek__dns-inverse-query.pcap",
)
"""Without UDP that carries tunnels: Wireshark numbers those, too."""

pytestmark = needs_tshark


def captures() -> Iterator[Path]:
    yield from sorted((ROOT / "captures" / "udp").glob("*/input.pcap*"))
    yield from (path for name in OF_OTHERS if CORPUS and (path := Path(CORPUS) / name).exists())


def fields(capture: Path, display_filter: str, *names: str) -> list[list[str]]:
    """What tshark says about the frames that pass a filter: one list per frame."""
    chosen = [option for name in names for option in ("-e", name)]
    text = ask(["-n", "-r", str(capture), "-Y", display_filter, "-T", "fields", "-E", "occurrence=f", *chosen])
    return [line.split("\t") for line in text.splitlines()]


@pytest.mark.parametrize(
    "capture", list(captures()), ids=lambda path: path.parent.name if "udp" in path.parts else path.stem
)
class TestAgainstTshark:
    def test_every_datagram_is_in_the_conversation_where_tshark_has_it(self, capture: Path) -> None:
        datagrams = fields(capture, "udp and not icmp and not icmpv6", "frame.number", "udp.stream", "udp.length")
        with conchart.read(capture, packets=True) as trace:
            found = trace.sql(
                "SELECT frame, transport_stream, bytes FROM packets JOIN connections USING (stream) "
                "WHERE transport = 'udp' ORDER BY frame"
            ).fetchall()
        assert found == [(int(frame), int(stream), int(length) - 8) for frame, stream, length in datagrams]

    def test_answers_of_dns_take_as_long(self, capture: Path) -> None:
        answers = fields(
            capture, "udp and dns.time", "udp.stream", "frame.number", "dns.qry.name", "dns.flags.rcode", "dns.time"
        )
        with conchart.read(capture) as trace:
            found = trace.sql(
                "SELECT transport_stream, response_frame, target, status, wait_ns FROM exchanges "
                "JOIN connections USING (stream) WHERE protocol = 'dns' AND transport = 'udp' "
                "AND response_at IS NOT NULL AND request_at IS NOT NULL ORDER BY response_frame"
            ).fetchall()
        expected = [
            (int(stream), int(frame), name.rstrip("."), int(code), round(float(time) * 1e9))
            for stream, frame, name, code, time in answers
        ]
        assert found == expected

    def test_quic_connections_say_whom_they_are_for(self, capture: Path) -> None:
        connections = fields(
            capture, "quic and tls.handshake.type == 1", "udp.stream", "tls.handshake.extensions_server_name"
        )
        with conchart.read(capture) as trace:
            found = trace.sql(
                "SELECT transport_stream, sni FROM handshakes JOIN connections USING (stream) "
                "WHERE transport = 'udp' AND hello_at IS NOT NULL ORDER BY transport_stream"
            ).fetchall()
        assert found == sorted({(int(stream), name or None) for stream, name in connections})
