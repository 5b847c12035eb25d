"""The file is not the capture: the same packets give the same tables from every container and link layer."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws.files import LINKS, ByteOrder, Compression, Container, Format, Resolution, datagram
from tests.laws.reading import Row, Scratch, Tables
from tests.laws.strategies import Conversation, conversations, cuts
from tests.laws.talk import Cut, Talk, every, together
from tests.laws.tunnels import TUNNELS, fragments, hsr, prp

CONTAINERS = [
    Format(container=container, order=order, resolution_ns=resolution, compress=compress)
    for container in get_args(Container)
    for order in get_args(ByteOrder)
    for resolution in get_args(Resolution)
    for compress in get_args(Compression)
]
WRAPPED = [Format(link=link) for link in LINKS]


@pytest.mark.parametrize("form", [*CONTAINERS, *WRAPPED], ids=str)
@settings(max_examples=4)
@given(conversations(), cuts())
def test_same_packets_in_another_file_give_the_same_tables(
    scratch: Scratch, form: Format, conversation: Conversation, cut: Cut
) -> None:
    packets = conversation.talk.packets(cut)
    plain, other = scratch.read(Format().write(packets)), scratch.read(form.write(packets))
    assert other.results() == plain.results()
    (row,) = other.captures
    assert row["format"] == form.container + (f"+{form.compress}" if form.compress else "")
    assert row["packets"] == row["selected"] == len(packets)
    assert row["resolution_ns"] == form.resolution_ns
    assert not row["truncated"]
    assert (row["undecodable"], row["other"], row["snapped"], row["duplicates"]) == (0, 0, 0, 0)


@pytest.mark.parametrize("tunnel", TUNNELS)
@settings(max_examples=3)
@given(conversations(), cuts())
def test_same_packets_in_a_tunnel_give_the_same_tables(
    scratch: Scratch, tunnel: str, conversation: Conversation, cut: Cut
) -> None:
    packets = conversation.talk.packets(cut)
    form = Format()
    frames = [(packet.at, TUNNELS[tunnel](datagram(packet))) for packet in packets]
    plain, inside = scratch.read(form.write(packets)), scratch.read(b"".join(form.of_frames(frames)))
    assert untold(inside.results()) == untold(plain.results())
    assert {row["tunnel_client"] for row in plain.connections} <= {None}
    (row,) = inside.captures
    assert (row["undecodable"], row["other"], row["duplicates"]) == (0, 0, 0)


def untold(results: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """The results but for what names the tunnel."""
    return {
        table: [{name: value for name, value in row.items() if not name.startswith("tunnel_")} for row in rows]
        for table, rows in results.items()
    }


@pytest.mark.parametrize("redundant", [hsr, prp])
@settings(max_examples=4)
@given(conversations(), cuts())
def test_a_frame_that_comes_by_both_paths_counts_once(
    scratch: Scratch, redundant: Callable[[bytes, int], bytes], conversation: Conversation, cut: Cut
) -> None:
    packets = conversation.talk.packets(cut)
    form = Format()
    frames = [(packet.at + path * 7_000, redundant(datagram(packet), path)) for packet in packets for path in (0, 1)]
    frames.sort(key=lambda frame: frame[0])
    plain, both = scratch.read(form.write(packets)), scratch.read(b"".join(form.of_frames(frames)))
    one, two = (without_frames(tables) for tables in (plain, both))
    copies = [row for row in two.pop("packets") if row["mark"] == "duplicate"]
    del one["packets"]
    assert two == one
    (row,) = both.captures
    assert (row["undecodable"], row["other"], row["duplicates"], len(copies)) == (0, 0, len(packets), len(packets))


def without_frames(tables: Tables) -> dict[str, list[Row]]:
    """The results without frame numbers, which fragments change."""
    return {
        table: [{name: value for name, value in row.items() if not name.endswith("frame")} for row in rows]
        for table, rows in tables.results().items()
    }


@pytest.mark.parametrize("tunnel", [None, "gre", "vxlan"])
@settings(max_examples=10)
@given(conversations(), st.randoms(use_true_random=False), st.sampled_from((64, 256, 512)))
def test_same_packets_in_fragments_of_any_order_give_the_same_tables(
    scratch: Scratch, tunnel: str | None, conversation: Conversation, random: Random, size: int
) -> None:
    packets = conversation.talk.packets(every(1_300))
    form, raw = Format(), Format(link="raw")
    frames = []
    for number, packet in enumerate(packets, 1):
        ip = datagram(packet) if tunnel is None else TUNNELS[tunnel](datagram(packet))[14:]
        pieces = fragments(ip, number, size)
        random.shuffle(pieces)
        frames += [(packet.at, piece) for piece in pieces]
    plain, whole = scratch.read(form.write(packets)), scratch.read(b"".join(raw.of_frames(frames)))
    assert untold(without_frames(whole)) == untold(without_frames(plain))
    (row,) = whole.captures
    assert (row["undecodable"], row["other"], row["duplicates"]) == (0, 0, 0)


@settings(max_examples=15)
@given(conversations(), conversations())
def test_two_files_read_as_one(scratch: Scratch, one: Conversation, other: Conversation) -> None:
    other.talk.client = (other.talk.client[0], one.talk.client[1] ^ 1)
    packets = together([one.talk.packets(), other.talk.packets()])
    cut = len(packets) // 2
    whole = scratch.read(Format().write(packets))
    halves = scratch.read(Format().write(packets[:cut]), Format(container="pcapng").write(packets[cut:]))
    assert [row["packets"] for row in halves.captures] == [cut, len(packets) - cut]
    results = [
        {name: [row | {"capture": 0} for row in rows] for name, rows in tables.results().items()}
        for tables in (halves, whole)
    ]
    assert results[0] == results[1]


def test_every_link_layer_is_named_as_libpcap_names_it(scratch: Scratch) -> None:
    names = {"ethernet": "EN10MB", "vlan": "EN10MB", "qinq": "EN10MB", "sll": "LINUX_SLL", "sll2": "LINUX_SLL2"}
    names |= {"raw": "RAW", "null": "NULL", "loop": "LOOP"}
    packets = Talk().packets()
    read = {link: scratch.read(Format(link=link).write(packets)).captures[0]["link_types"] for link in LINKS}
    assert read == names
