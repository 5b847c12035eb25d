"""The lab's cable: what its rate makes of packets that stand in a row."""

from __future__ import annotations

import hashlib
import importlib
import json
from io import StringIO
from types import ModuleType
from typing import Protocol

import dpkt
import pytest

from tests.conftest import ROOT

SECOND = 10**9
PACKET = bytes(1_500)
"""No TCP: no rule is about it."""


class Judge(Protocol):
    """What is asked of it here."""

    def due_ns(self, sender: str, raw: bytes, now_ns: int) -> int | None: ...

    def all_due_ns(self, sender: str, raw: bytes, now_ns: int) -> list[int]: ...


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "examples/lab")
    return importlib.import_module("delay_line")


def judge_of(
    line: ModuleType, *, left: dict[str, object], right: dict[str, object] | None = None, **options: object
) -> Judge:
    """Make a judge of both directions; the second is like the first unless told."""
    judge: Judge = line.Judge({"left": line.Way(**left), "right": line.Way(**(right or left))}, **options)
    return judge


def test_packets_take_turns_each_until_its_last_bit_is_on_the_line(line: ModuleType) -> None:
    judge = judge_of(line, left={"delay_ns": SECOND // 10, "rate": 12_000})
    assert [judge.due_ns("left", PACKET, 0) for _ in range(3)] == [1.1 * SECOND, 2.1 * SECOND, 3.1 * SECOND]
    assert judge.due_ns("right", PACKET, 0) == 1.1 * SECOND, "the other direction is free"
    assert judge.due_ns("left", PACKET, 5 * SECOND) == 6.1 * SECOND, "a pause saves nothing up"


def test_without_a_rate_a_packet_takes_the_delay_whatever_its_size(line: ModuleType) -> None:
    judge = judge_of(line, left={"delay_ns": SECOND // 10})
    assert [judge.due_ns("left", PACKET, 0) for _ in range(2)] == [SECOND // 10] * 2


def test_a_packet_comes_out_twice_where_a_rule_says_so(line: ModuleType) -> None:
    rules = [line.read_rule(f"twice:from=left,kind=udp,number={number}") for number in ("1", "2,ms=4")]
    judge = judge_of(line, left={"delay_ns": 2}, rules=rules)
    datagram = bytes(dpkt.ip.IP(p=dpkt.ip.IP_PROTO_UDP, data=dpkt.udp.UDP(ulen=8)))
    assert [judge.all_due_ns("left", datagram, 0) for _ in range(3)] == [[2, 2], [2, 4_000_002], [2]]
    assert judge.all_due_ns("right", datagram, 0) == [2]


def test_each_direction_has_its_delay(line: ModuleType) -> None:
    judge = judge_of(line, left={"delay_ns": 2}, right={"delay_ns": 18})
    assert (judge.due_ns("left", PACKET, 0), judge.due_ns("right", PACKET, 0)) == (2, 18)


def test_a_full_queue_drops_the_packet_that_comes_last_and_the_line_is_no_longer_busy_for_it(line: ModuleType) -> None:
    judge = judge_of(line, left={"delay_ns": 0, "rate": 12_000, "queue": 3_000})
    assert [judge.due_ns("left", PACKET, 0) for _ in range(3)] == [SECOND, 2 * SECOND, None]
    assert judge.due_ns("left", PACKET, SECOND) == 3 * SECOND, "one has left, and there is room for one"


def test_what_is_dropped_is_written_down_so_that_it_can_be_found(line: ModuleType) -> None:
    log = StringIO()
    judge = judge_of(line, left={"delay_ns": 0, "loss": 0.2}, right={"delay_ns": 0}, drops=log, seed=7)
    packets = [segment(number) for number in range(500)]
    lost = [number for number, packet in enumerate(packets) if judge.due_ns("left", packet, 0) is None]
    assert 60 <= len(lost) <= 140
    assert all(judge.due_ns("right", packet, 0) == 0 for packet in packets)
    entries = [json.loads(text) for text in log.getvalue().splitlines()]
    assert [each["seq"] for each in entries] == lost
    assert {each["from"] for each in entries} == {"left"}
    assert {each["why"] for each in entries} == {"loss"}
    assert entries[0] | {"at": 0} == {
        "at": 0, "from": "left", "why": "loss", "source": "10.0.0.1", "destination": "10.0.0.2", "protocol": 6,
        "ip_id": lost[0], "ports": [40_000, 443], "seq": lost[0], "ack": 9, "flags": 24, "length": 5,
        "payload": hashlib.blake2b(b"hello", digest_size=8).hexdigest(),
    }  # fmt: skip
    again = judge_of(line, left={"delay_ns": 0, "loss": 0.2}, seed=7)
    assert [number for number, packet in enumerate(packets) if again.due_ns("left", packet, 0) is None] == lost


def segment(number: int) -> bytes:
    """Make a TCP segment of 5 bytes whose IP ID and sequence number are ``number``."""
    tcp = dpkt.tcp.TCP(sport=40_000, dport=443, seq=number, ack=9, flags=24, data=b"hello")
    packet = dpkt.ip.IP(src=bytes((10, 0, 0, 1)), dst=bytes((10, 0, 0, 2)), p=6, id=number, data=tcp, len=45)
    return bytes(packet)
