"""Every nanosecond of a connection is charged once, between two packets that exist."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import capture_of
from tests.laws.files import Format
from tests.laws.reading import Row, Scratch, Tables, read
from tests.laws.strategies import Conversation, conversations, cuts, orders
from tests.laws.talk import Cut, Order, together

KINDS = {"syn", "tls", "request", "wait", "transfer", "idle", "close", "unseen"}


def assert_tiled(tables: Tables) -> None:
    """The law, for every connection of a capture."""
    times = {row["frame"]: (row["stream"], row["seen_at"]) for row in tables.packets}
    by_stream: dict[int, list[Row]] = {row["stream"]: [] for row in tables.connections}
    for phase in tables.phases:
        by_stream[phase["stream"]].append(phase)
    for connection in tables.connections:
        phases = by_stream[connection["stream"]]
        opened, closed = connection["opened_at"], connection["closed_at"]
        assert sum(phase["end_at"] - phase["start_at"] for phase in phases) == closed - opened
        if phases:
            assert (phases[0]["start_at"], phases[-1]["end_at"]) == (opened, closed)
        for before, after in pairwise(phases):
            assert before["end_at"] == after["start_at"]
            assert before["end_frame"] == after["start_frame"]
        for phase in phases:
            assert phase["kind"] in KINDS
            assert phase["start_at"] <= phase["end_at"]
            for bound in ("start", "end"):
                assert times[phase[f"{bound}_frame"]] == (connection["stream"], phase[f"{bound}_at"])
        assert_apart(tables, connection, times)


def assert_apart(tables: Tables, connection: Row, times: dict[int, tuple[int, int]]) -> None:
    """Stalls lie inside their connection's life, and not over each other; packets bound them."""
    stalls = [row for row in tables.stalls if row["stream"] == connection["stream"]]
    for before, after in pairwise(stalls):
        assert before["end_at"] <= after["start_at"]
    for stall in stalls:
        assert connection["opened_at"] <= stall["start_at"] < stall["end_at"] <= connection["closed_at"]
        assert 0 < stall["confidence"] <= 1
        for bound in ("start", "end"):
            # Where phases cut a stall short, the packet that bounds the phase does.
            assert times[stall[f"{bound}_frame"]] == (connection["stream"], stall[f"{bound}_at"])
        assert stall["released_frame"] is None or stall["released_frame"] in times


@given(conversations(), cuts(), orders())
def test_phases_of_a_conversation_tile_it(scratch: Scratch, conversation: Conversation, cut: Cut, order: Order) -> None:
    packets = conversation.talk.packets(cut, order)
    tables = scratch.read(Format().write(packets))
    assert len(tables.connections) == bool(packets)
    assert_tiled(tables)


@given(st.lists(conversations(), min_size=2, max_size=4), st.integers(0, 10**9))
def test_phases_of_interleaved_conversations_tile_each(
    scratch: Scratch, several: list[Conversation], apart: int
) -> None:
    for number, conversation in enumerate(several):
        talk = conversation.talk
        talk.client = (talk.client[0], 2_000 + number)
        talk.opened_at += number * apart // 1_000 * 1_000
    played = together([conversation.talk.packets() for conversation in several])
    tables = scratch.read(Format().write(played))
    assert len(tables.connections) == len({frozenset((packet.source, packet.destination)) for packet in played})
    assert_tiled(tables)


def test_phases_of_real_captures_tile_every_connection(every_case: Path) -> None:
    assert_tiled(read(capture_of(every_case)))
