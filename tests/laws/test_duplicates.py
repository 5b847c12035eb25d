"""A packet captured twice happened once."""

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from tests.laws.files import Format
from tests.laws.reading import Row, Scratch
from tests.laws.strategies import Conversation, conversations, cuts
from tests.laws.talk import Cut


def first_copies(rows: list[Row]) -> list[Row]:
    """Undo that frame ``n`` became frames ``2n - 1`` and ``2n``: rows as if only the first copies existed."""
    named = [name for name in (rows[0] if rows else {}) if name == "frame" or name.endswith("_frame")]
    for row in rows:
        for name in named:
            if row[name] is not None:
                assert row[name] % 2 == 1, f"{name} {row[name]} is a second copy"
    return [row | {name: (row[name] + 1) // 2 for name in named if row[name] is not None} for row in rows]


@given(conversations(), cuts(), st.sampled_from((0, 1_000, 4_000)))
def test_capturing_every_packet_twice_changes_nothing(
    scratch: Scratch, conversation: Conversation, cut: Cut, later: int
) -> None:
    packets = conversation.talk.packets(cut)
    doubled = [copy for packet in packets for copy in (packet, dataclasses.replace(packet, at=packet.at + later))]
    once, twice = scratch.read(Format().write(packets)), scratch.read(Format().write(doubled))
    assert twice.captures[0]["duplicates"] == len(packets)
    copies = [row for row in twice.packets if row["mark"] == "duplicate"]
    assert [row["frame"] for row in copies] == [2 * number for number in range(1, len(packets) + 1)]
    twice.packets[:] = [row for row in twice.packets if row["mark"] != "duplicate"]
    for name, rows in once.results().items():
        assert first_copies(twice.results()[name]) == rows, name
