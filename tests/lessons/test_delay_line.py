"""The lab's cable: what its rate makes of packets that stand in a row."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest

from tests.conftest import ROOT

SECOND = 10**9
PACKET = bytes(1_500)
"""No TCP: no rule is about it."""


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "examples/lab")
    return importlib.import_module("delay_line")


def test_packets_take_turns_each_until_its_last_bit_is_on_the_line(line: ModuleType) -> None:
    judge = line.Judge(SECOND // 10, 12_000, [], None)
    assert [judge.due_ns("left", PACKET, 0) for _ in range(3)] == [1.1 * SECOND, 2.1 * SECOND, 3.1 * SECOND]
    assert judge.due_ns("right", PACKET, 0) == 1.1 * SECOND, "the other direction is free"
    assert judge.due_ns("left", PACKET, 5 * SECOND) == 6.1 * SECOND, "a pause saves nothing up"


def test_without_a_rate_a_packet_takes_the_delay_whatever_its_size(line: ModuleType) -> None:
    judge = line.Judge(SECOND // 10, None, [], None)
    assert [judge.due_ns("left", PACKET, 0) for _ in range(2)] == [SECOND // 10] * 2
