"""Parts that an earlier run kept are read again only where something changed."""

from dataclasses import replace
from pathlib import Path

import pytest

from conchart.reading.options import ReadOptions
from conchart.reading.parts.cutting import Part
from conchart.reading.parts.model import File, Surveyed, Torn
from conchart.reading.parts.reuse import remember, reusable_parts
from conchart.reading.selection import Selection

PART = Part(0, ("a.pcap", "b.pcap"), size=10, number=3, changed=("1", "2"))
OPTIONS = ReadOptions(selection=Selection(filter="tcp"))


def remembered(work: Path) -> Surveyed:
    """Give what is known of a part, which is kept."""
    folder = work / "part-00003"
    folder.mkdir()
    surveyed = Surveyed(
        part=PART,
        folder=str(folder),
        frames=9,
        packets=8,
        selected=7,
        files=(File(1, 100, 200, ("a note",)), File(5, None, None, ())),
        truncated=True,
        torn=(Torn("10.0.0.1", "10.0.0.2", 4, 2, is_udp=True),),
    )
    remember(surveyed, OPTIONS, folder)
    return surveyed


def test_what_did_not_change_is_known_as_it_was(tmp_path: Path) -> None:
    surveyed = remembered(tmp_path)
    assert reusable_parts([PART], OPTIONS, tmp_path) == {3: surveyed}


@pytest.mark.parametrize(
    ("part", "options"),
    [
        (replace(PART, changed=("1", "3")), OPTIONS),
        (replace(PART, begin=1), OPTIONS),
        (replace(PART, paths=("a.pcap",)), OPTIONS),
        (PART.placed(4), OPTIONS),
        (PART, replace(OPTIONS, selection=Selection())),
        (PART, replace(OPTIONS, packets=True)),
        (PART, replace(OPTIONS, statements="full")),
    ],
)
def test_other_bytes_and_other_packets_are_read_anew(part: Part, options: ReadOptions, tmp_path: Path) -> None:
    remembered(tmp_path)
    assert reusable_parts([part], options, tmp_path) == {}


def test_how_much_memory_was_allowed_changes_nothing(tmp_path: Path) -> None:
    remembered(tmp_path)
    assert reusable_parts([PART], replace(OPTIONS, memory=1), tmp_path).keys() == {3}


@pytest.mark.parametrize("text", ["", "{", "{}", "[]", '{"of": 1}'])
def test_a_description_that_is_damaged_is_none(text: str, tmp_path: Path) -> None:
    surveyed = remembered(tmp_path)
    Path(surveyed.folder, "surveyed.json").write_text(text)
    assert reusable_parts([PART], OPTIONS, tmp_path) == {}


def test_another_version_reads_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remembered(tmp_path)
    monkeypatch.setattr("conchart.reading.parts.reuse.version", lambda: "99.0")
    assert reusable_parts([PART], OPTIONS, tmp_path) == {}
