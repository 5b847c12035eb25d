"""Parts of captures: ranges of a large pcap file cut where records begin, and small files together."""

import os
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conchart.errors import CaptureError
from conchart.reading.parts.cutting import Part, cut, expanded, grouped

HEADER = 24
RECORDS = 200


def pcap(order: str = "<", magic: int = 0xA1B2C3D4, size: int = 60) -> tuple[bytes, list[int]]:
    """Give a pcap file, and where each record of it begins."""
    file = struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 65_535, 1)
    begins = []
    for number in range(RECORDS):
        begins.append(len(file))
        body = bytes([number % 251]) * (size + number % 7)
        file += struct.pack(f"{order}IIII", 1_700_000_000 + number, number, len(body), len(body)) + body
    return file, begins


def written(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    return str(path)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("magic", [0xA1B2C3D4, 0xA1B23C4D])
def test_ranges_touch_and_begin_where_records_do(order: str, magic: int, tmp_path: Path) -> None:
    content, begins = pcap(order, magic)
    parts = cut(5, written(tmp_path / "a.pcap", content), 3, least=1)
    assert [part.capture for part in parts] == [5, 5, 5]
    assert (parts[0].begin, parts[-1].end) == (0, None)
    assert [part.end for part in parts[:-1]] == [part.begin for part in parts[1:]]
    assert {part.begin for part in parts[1:]} <= {*begins}
    assert sum(part.size for part in parts) == len(content)
    for number, part in enumerate(parts[1:], 1):
        assert 0 <= part.begin - len(content) * number // 3 < 100, "at the first record from the proposed place on"
    assert all(part.is_range for part in parts)


def test_what_is_small_or_no_pcap_file_is_one_part(tmp_path: Path) -> None:
    content, _ = pcap()
    path = written(tmp_path / "a.pcap", content)
    for parts in (cut(0, path, 1, least=1), cut(0, path, 9, least=len(content) // 2 + 1)):
        assert [(part.begin, part.end, part.size, part.is_range) for part in parts] == [(0, None, len(content), False)]
    other = written(tmp_path / "a.pcapng", b"\x0a\x0d\x0d\x0a" + content)
    assert [part.is_range for part in cut(0, other, 4, least=1)] == [False]


def test_a_file_of_noise_is_not_cut(tmp_path: Path) -> None:
    content, _ = pcap()
    noise = written(tmp_path / "a.pcap", content[:HEADER] + b"\xff" * 20_000)
    assert [part.is_range for part in cut(0, noise, 4, least=1)] == [False]


def test_a_part_that_is_written_again_says_so(tmp_path: Path) -> None:
    path = written(tmp_path / "a.pcap", b"x")
    (before,) = cut(0, path, 1)
    os.utime(path, ns=(1, 1))
    (after,) = cut(0, path, 1)
    assert before.changed != after.changed == ("1",)


def test_the_bytes_of_ranges_are_those_of_the_file_with_its_header_in_front(tmp_path: Path) -> None:
    content, _ = pcap()
    parts = cut(0, written(tmp_path / "a.pcap", content), 3, least=1)
    read = []
    for part in parts:
        with part.opened() as (path,):
            read.append(Path(path).read_bytes())
    assert {some[:HEADER] for some in read} == {content[:HEADER]}
    assert read[0] + b"".join(some[HEADER:] for some in read[1:]) == content


def test_a_whole_file_is_read_under_its_own_name(tmp_path: Path) -> None:
    path = written(tmp_path / "a.pcap", b"x")
    with Part(0, (path, path)).opened() as paths:
        assert paths == [path, path]


def test_a_reader_that_stops_ends_the_thread_that_feeds_it(tmp_path: Path) -> None:
    content, _ = pcap(size=5_000)
    part = Part(0, (written(tmp_path / "a.pcap", content),), begin=HEADER)
    with part.opened() as (path,), Path(path).open("rb") as pipe:
        assert pipe.read(10) == content[:10]


def part(capture: int, size: int, **facts: int) -> Part:
    return Part(capture, (f"{capture}.pcap",), size=size, changed=(str(capture),), **facts)


def test_small_files_that_follow_each_other_are_one_part() -> None:
    groups = grouped([part(0, 40), part(1, 60), part(2, 1), part(3, 99), part(4, 200)], 100)
    assert [(one.capture, one.paths, one.size, one.changed) for one in groups] == [
        (0, ("0.pcap", "1.pcap"), 100, ("0", "1")),
        (2, ("2.pcap", "3.pcap"), 100, ("2", "3")),
        (4, ("4.pcap",), 200, ("4",)),
    ]


def test_ranges_and_files_of_unknown_size_stay_alone() -> None:
    parts = [part(0, 1), part(0, 1, begin=24), part(1, 1, end=9), part(2, 1), part(3, 0), part(4, 1)]
    assert grouped(parts, 100) == parts


@given(st.lists(st.integers(0, 60), max_size=12))
@settings(max_examples=50)
def test_grouping_keeps_every_file_in_order_and_is_done_once(sizes: list[int]) -> None:
    parts = [part(number, size) for number, size in enumerate(sizes)]
    groups = grouped(parts, 100)
    assert [path for one in groups for path in one.paths] == [path for one in parts for path in one.paths]
    assert sum(one.size for one in groups) == sum(sizes)
    assert all(one.size <= 100 for one in groups)


def test_paths_are_taken_as_they_are_and_patterns_of_urls_stand_for_files(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    for name in ("b", "a"):
        (tmp_path / f"{name}.pcap").touch()
    assert expanded("a*.pcap") == ["a*.pcap"]
    assert expanded(f"file://{tmp_path}/a.pcap") == [f"file://{tmp_path}/a.pcap"]
    assert expanded(f"file://{tmp_path}/*.pcap") == [f"file://{tmp_path}/a.pcap", f"file://{tmp_path}/b.pcap"]
    with pytest.raises(CaptureError, match="no file has such a name"):
        expanded(f"file://{tmp_path}/*.none")
