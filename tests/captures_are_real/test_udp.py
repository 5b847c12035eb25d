"""DNS and QUIC."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import dpkt
import pytest

from tests.captures_are_real.seen import (
    CAPTURES,
    MS,
    Endpoint,
)


@dataclass(frozen=True, kw_only=True)
class Datagram:
    at: int
    """Nanoseconds since the Unix epoch."""
    sender: Endpoint
    receiver: Endpoint
    data: bytes


def datagrams(case: str) -> list[Datagram]:
    """The UDP datagrams of a capture taken on a TUN interface: packets begin with their IP header."""
    found = []
    with (CAPTURES / "udp" / case / "input.pcap").open("rb") as file:
        for at, packet in dpkt.pcap.Reader(file):
            ip = dpkt.ip.IP(packet)
            if isinstance(ip.data, dpkt.udp.UDP):
                ends = (
                    (dpkt.utils.inet_to_str(ip.src), ip.data.sport),
                    (dpkt.utils.inet_to_str(ip.dst), ip.data.dport),
                )
                found.append(Datagram(at=round(at * 10**9), sender=ends[0], receiver=ends[1], data=bytes(ip.data.data)))
    return found


def questions(case: str, name: str) -> list[tuple[Datagram, Any]]:
    """The DNS messages about a name, in the order of the capture."""
    messages = ((each, dpkt.dns.DNS(each.data)) for each in datagrams(case) if 53 in (each.sender[1], each.receiver[1]))
    return [(each, message) for each, message in messages if message.qd[0].name == name]


@pytest.mark.parametrize(
    ("name", "wait_ms", "rcode"), [("shop.example", 10, 0), ("slow.example", 130, 0), ("none.example", 10, 3)]
)
def test_a_name_is_answered_after_that_time(name: str, wait_ms: int, rcode: int) -> None:
    messages = [(each, message) for each, message in questions("dns-before-http", name) if message.qd[0].type == 1]
    (question, query), (answered, response) = messages
    assert (query.id, query.qr, response.qr, response.rcode) == (response.id, 0, 1, rcode)
    assert wait_ms * MS <= answered.at - question.at < (wait_ms + 20) * MS


def test_a_lost_query_is_sent_again_after_one_second() -> None:
    messages = [(each, message) for each, message in questions("dns-before-http", "lost.example") if not message.qr]
    first, again = ([each for each, message in messages if message.qd[0].type == kind] for kind in (1, 28))
    for lost, repeated in (first, again):
        assert lost.data == repeated.data
        assert lost.sender == repeated.sender
        assert 1000 * MS <= repeated.at - lost.at < 1100 * MS


def test_a_long_answer_is_truncated_over_udp() -> None:
    _, (answered, response) = questions("dns-truncated", "long.example")
    assert response.op & dpkt.dns.DNS_TC
    assert len(answered.data) <= 512


def test_quic_begins_with_padded_initial_packets_and_goes_on_in_all_types() -> None:
    sent = [each for each in datagrams("http3") if 443 in (each.sender[1], each.receiver[1])]
    assert len({frozenset((each.sender, each.receiver)) for each in sent}) == 1
    first = [each.data for each in sent[:2]]
    assert all(data[0] & 0xF0 == 0xC0 and data[1:5] == b"\0\0\0\1" and len(data) >= 1200 for data in first)
    assert any(data[0] & 0x80 == 0 for data in (each.data for each in sent))


def test_secrets_of_http3_are_beside_the_capture() -> None:
    assert "CLIENT_TRAFFIC_SECRET_0" in (CAPTURES / "udp/http3/keys.log").read_text()
