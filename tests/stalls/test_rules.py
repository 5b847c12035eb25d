"""The line of the lab does to packets what its rules say, and nothing to others."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import dpkt
import pytest

from tests.conftest import ROOT


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("lab_rules", ROOT / "examples/lab/rules.py")
    assert spec
    assert spec.loader
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RULES = load()
SYN, ACK, FIN = 0x02, 0x10, 0x01


def packet(seq: int, size: int = 100, flags: int = ACK) -> bytes:
    tcp = dpkt.tcp.TCP(sport=1, dport=2, seq=seq, flags=flags, data=b"x" * size)
    ip = dpkt.ip.IP(src=b"\1\1\1\1", dst=b"\2\2\2\2", p=dpkt.ip.IP_PROTO_TCP, data=tcp)
    ip.len = 40 + size
    return bytes(ip)


def chosen(rule: str, *raw: bytes, sender: str = "right") -> list[int]:
    """Number the packets, from 1, that a rule chooses."""
    judge = RULES.read_rule(rule)
    return [n for n, each in enumerate(raw, start=1) if judge.chooses(sender, RULES.read_packet(each))]


FLIGHT = [packet(100 * number) for number in range(1, 7)]


def test_number_counts_data_segments_of_one_end() -> None:
    assert chosen("drop:from=right,number=3", packet(100, 0), *FLIGHT) == [4]
    assert chosen("drop:from=right,number=3", *FLIGHT, sender="left") == []


def test_a_range_is_inclusive() -> None:
    assert chosen("drop:from=right,number=2-4", *FLIGHT) == [2, 3, 4]


def test_a_copy_has_the_number_of_the_first() -> None:
    twice = [FLIGHT[0], FLIGHT[1], FLIGHT[0], FLIGHT[1], FLIGHT[1], FLIGHT[2]]
    assert chosen("drop:from=right,number=2", *twice) == [2]
    assert chosen("drop:from=right,number=2,copies=2", *twice) == [2, 4]
    assert chosen("drop:from=right,number=2,copies=all", *twice) == [2, 4, 5]
    assert chosen("drop:from=right,number=3", *twice) == [6]


def test_acknowledgements_without_data_are_counted_by_themselves() -> None:
    assert chosen("drop:from=right,kind=ack,number=2", packet(1, 0), FLIGHT[0], packet(1, 0), packet(1, 0)) == [3]


@pytest.mark.parametrize(("kind", "flags"), [("syn", SYN), ("syn-ack", SYN | ACK), ("fin", FIN | ACK)])
def test_kinds(kind: str, flags: int) -> None:
    assert chosen(f"drop:from=right,kind={kind}", packet(1, 0), packet(1, 0, flags), *FLIGHT) == [2]


def test_larger_counts_the_whole_packet() -> None:
    assert chosen("drop:from=right,larger=1000", packet(1, 960), packet(2, 961), packet(3, 1400)) == [2, 3]


def test_hold_says_how_long() -> None:
    assert RULES.read_rule("hold:from=left,number=5,ms=2.5").hold_ns == 2_500_000


def test_twice_may_say_how_much_later() -> None:
    assert chosen("twice:from=right,number=4", *FLIGHT) == [4]
    assert RULES.read_rule("twice:from=right,number=4").hold_ns == 0
    assert RULES.read_rule("twice:from=right,number=4,ms=90").hold_ns == 90_000_000


@pytest.mark.parametrize(
    "word", ["lose:from=left", "drop:from=above", "drop:from=left,colour=red", "hold:from=left", "drop:from=left,ms=5"]
)
def test_what_is_no_rule_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match=f"no rule of a delay line: {word}"):
        RULES.read_rule(word)
