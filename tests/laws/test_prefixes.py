"""A file may end anywhere, and anything may follow: what came before is read, and nothing is raised."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.laws.files import Format
from tests.laws.reading import CaptureError, Scratch
from tests.laws.strategies import Conversation, conversations, cuts
from tests.laws.talk import Cut, Talk

FORMATS = st.builds(
    Format, container=st.sampled_from(("pcap", "pcapng")), order=st.sampled_from(("<", ">")), link=st.just("ethernet")
)


@given(conversations(), cuts(), FORMATS, st.floats(min_value=0, max_value=1, exclude_max=True))
def test_a_capture_cut_at_any_byte_gives_all_packets_before_the_cut(
    scratch: Scratch, conversation: Conversation, cut: Cut, form: Format, where: float
) -> None:
    packets = conversation.talk.packets(cut)
    header, *records = form.parts(packets)
    data = header + b"".join(records)
    size = len(header) + int(where * (len(data) - len(header)))
    whole, left = 0, size - len(header)
    while left >= len(records[whole]):
        left -= len(records[whole])
        whole += 1
    if left and not whole:
        with pytest.raises(CaptureError, match="input"):
            scratch.read(data[:size])
        return
    tables = scratch.read(data[:size])
    (row,) = tables.captures
    assert row["packets"] == whole
    assert row["truncated"] == (left > 0)
    assert bool(row["notes"]) == (left > 0)
    assert tables.results() == scratch.read(header + b"".join(records[:whole])).results()


@pytest.mark.parametrize("container", ["pcap", "pcapng"])
def test_a_capture_cut_in_its_header_is_an_error_that_names_the_file(scratch: Scratch, container: str) -> None:
    form = Format(container="pcap" if container == "pcap" else "pcapng")
    header = form.parts(Talk().packets())[0]
    for size in range(24 if container == "pcap" else 28):
        with pytest.raises(CaptureError, match="input"):
            scratch.read(header[:size])


@pytest.mark.parametrize("compress", ["gzip", "zstd"])
@given(conversations(), st.floats(min_value=0.3, max_value=1, exclude_max=True))
def test_a_compressed_capture_cut_anywhere_gives_what_came_before(
    scratch: Scratch, compress: str, conversation: Conversation, where: float
) -> None:
    packets = conversation.talk.packets()
    form = Format(compress="gzip" if compress == "gzip" else "zstd")
    data = form.write(packets)
    try:
        tables = scratch.read(data[: int(len(data) * where)])
    except CaptureError:
        return  # not even the header of the capture was left
    (row,) = tables.captures
    assert row["truncated"]
    assert row["packets"] <= len(packets)
    assert tables.results() == scratch.read(Format().write(packets[: row["packets"]])).results()


@given(conversations(), FORMATS, st.binary(min_size=1, max_size=200))
def test_what_follows_a_capture_does_not_undo_it(
    scratch: Scratch, conversation: Conversation, form: Format, garbage: bytes
) -> None:
    packets = conversation.talk.packets()
    clean = scratch.read(form.write(packets))
    tables = scratch.read(form.write(packets) + garbage)
    assert tables.captures[0]["packets"] >= len(packets)
    assert tables.results() == clean.results()


@given(st.binary(max_size=400))
def test_arbitrary_bytes_are_an_error_or_a_capture(scratch: Scratch, data: bytes) -> None:
    try:
        tables = scratch.read(data)
    except CaptureError:
        return
    assert len(tables.captures) == 1


@given(conversations(), st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=8))
def test_flipped_bytes_raise_nothing(
    scratch: Scratch, conversation: Conversation, flips: list[tuple[float, int]]
) -> None:
    data = bytearray(Format().write(conversation.talk.packets()))
    assume(len(data) > 24)
    for where, value in flips:
        data[24 + int(where * (len(data) - 24))] = value
    tables = scratch.read(bytes(data))
    for connection in tables.connections:
        phases = [phase for phase in tables.phases if phase["stream"] == connection["stream"]]
        lasted = connection["closed_at"] - connection["opened_at"]
        assert sum(phase["end_at"] - phase["start_at"] for phase in phases) == lasted
