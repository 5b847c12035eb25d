"""Whatever a capture's clock does, every connection is tiled and every duration is one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import conchart
from conchart.exports import SUFFIXES
from tests.laws.files import Format
from tests.laws.hello import Tls, application
from tests.laws.reading import Scratch, Tables
from tests.laws.strategies import Conversation, conversations
from tests.laws.talk import Finish, Packet, Say, Talk
from tests.laws.test_tiling import assert_tiled

LATEST = 2**62 - 1
"""Nanoseconds between 1970 and the last instant that conchart knows, and the first one."""
NANOSECONDS = Format(container="pcapng", resolution_ns=1)
EXTREMES = st.sampled_from((-(2**63), -(2**62), -(2**62) + 1, -1, 0, 1, 2**62 - 1, 2**62, 2**63 - 1))
STEPS = st.one_of(st.integers(-(10**9), 10**9), st.integers(-(2**61), 2**61))


def assert_sound(tables: Tables) -> None:
    """What holds whatever the times are."""
    assert_tiled(tables)
    (capture,) = tables.captures
    for row in tables.packets:
        assert -LATEST <= capture["first_at"] <= row["seen_at"] <= capture["last_at"] <= LATEST
    for table in (tables.connections, tables.handshakes, tables.exchanges):
        for row in table:
            assert all(value is None or value >= 0 for name, value in row.items() if name.endswith("_ns"))
    for row in tables.handshakes:
        ends = [row[name] for name in ("ready_at", "complete_at") if row[name] is not None]
        assert row["hello_at"] is None or all(end >= row["hello_at"] for end in ends)


@given(conversations(), st.lists(EXTREMES, min_size=1, max_size=8))
def test_times_at_the_ends_of_64_bits_break_nothing(
    scratch: Scratch, conversation: Conversation, times: list[int]
) -> None:
    played = conversation.talk.packets()
    packets = [replace(packet, at=times[number % len(times)]) for number, packet in enumerate(played)]
    if packets:
        assert_sound(scratch.read(NANOSECONDS.write(packets)))


@given(conversations(), st.lists(st.tuples(st.integers(0, 40), STEPS), min_size=1, max_size=4))
def test_a_clock_that_is_set_while_it_runs_breaks_nothing(
    scratch: Scratch, conversation: Conversation, steps: list[tuple[int, int]]
) -> None:
    def shown(number: int, at: int) -> int:
        return at + sum(by for when, by in steps if number >= when)

    packets = [
        replace(packet, at=shown(number, packet.at)) for number, packet in enumerate(conversation.talk.packets())
    ]
    if packets:
        assert_sound(scratch.read(NANOSECONDS.write(packets)))


def handshake(step_ns: int) -> list[Packet]:
    """A connection whose clock is set by ``step_ns`` between the two hellos."""
    tls = Tls(version="TLSv1.2", cipher=0xC02F)
    said = [Say(who, data) for who, data in tls.messages()]
    talk = Talk(steps=[*said, Say("client", application(100)), Say("server", application(900)), Finish("client")])
    hello = next(number for number, packet in enumerate(talk.packets()) if packet.payload)
    return [
        replace(packet, at=packet.at + step_ns if number > hello else packet.at)
        for number, packet in enumerate(talk.packets())
    ]


def test_a_handshake_in_which_the_clock_is_set_back_takes_no_time_and_says_so(scratch: Scratch) -> None:
    tables = scratch.read(NANOSECONDS.write(handshake(-900_000_000)))
    (row,) = tables.handshakes
    assert row["ready_at"] == row["complete_at"] == row["hello_at"]
    assert tables.captures[0]["notes"] == [
        "stream 0: the clock steps back inside a TLS handshake, which is charged no time for it"
    ]
    assert not scratch.read(NANOSECONDS.write(handshake(0))).captures[0]["notes"]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("times", [(-(2**63), 0, 5), (2**63 - 1, 0, 5), (0, 2**62, -(2**62))], ids=str)
def test_every_format_is_written_whatever_the_clock_shows(
    tmp_path: Path, times: tuple[int, int, int], suffix: str
) -> None:
    packets = [
        replace(packet, at=times[number % 3])
        for port in range(40_000, 40_008)
        for number, packet in enumerate(Talk(client=("10.0.0.5", port), steps=[Say("client", b"x")]).packets())
    ]
    capture, out = tmp_path / "input.pcapng", tmp_path / f"out{suffix}"
    capture.write_bytes(NANOSECONDS.write(packets))
    with conchart.read(capture) as trace:
        trace.write(out)
        ((notes,),) = trace.sql("SELECT notes FROM captures").fetchall()
    assert out.stat().st_size > 0
    if suffix == ".duckdb":
        with conchart.Trace.load(out) as again:
            assert again.connections.count("*").fetchall() == [(8,)]
    assert any("which no clock shows" in note for note in notes)
