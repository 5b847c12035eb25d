"""The file is not the capture: the same packets give the same tables from every container and link layer."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given, settings

from tests.laws.files import LINKS, ByteOrder, Compression, Container, Format, Resolution
from tests.laws.reading import Scratch
from tests.laws.strategies import Conversation, conversations, cuts
from tests.laws.talk import Cut, Talk, together

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


@settings(max_examples=15)
@given(conversations(), conversations())
def test_two_files_read_as_one(scratch: Scratch, one: Conversation, other: Conversation) -> None:
    other.talk.client = (other.talk.client[0], one.talk.client[1] ^ 1)
    packets = together([one.talk.packets(), other.talk.packets()])
    cut = len(packets) // 2
    whole = scratch.read(Format().write(packets))
    halves = scratch.read(Format().write(packets[:cut]), Format(container="pcapng").write(packets[cut:]))
    assert [row["packets"] for row in halves.captures] == [cut, len(packets) - cut]
    for rows in (*whole.results().values(), *halves.results().values()):
        for row in rows:
            row.pop("capture", None)
    assert halves.results() == whole.results()


def test_every_link_layer_is_named_as_libpcap_names_it(scratch: Scratch) -> None:
    names = {"ethernet": "EN10MB", "vlan": "EN10MB", "qinq": "EN10MB", "sll": "LINUX_SLL", "sll2": "LINUX_SLL2"}
    names |= {"raw": "RAW", "null": "NULL", "loop": "LOOP"}
    packets = Talk().packets()
    read = {link: scratch.read(Format(link=link).write(packets)).captures[0]["link_types"] for link in LINKS}
    assert read == names
