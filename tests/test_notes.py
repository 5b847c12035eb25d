"""What a person is told about a capture: the important first, counted, and never crowded out."""

from __future__ import annotations

from pathlib import Path

import pytest

import conchart
from conchart.errors import CaptureError, UsageError
from tests.laws.files import Format
from tests.laws.talk import Finish, Say, Talk

TALK = Talk(steps=[Say("client", b"GET / HTTP/1.1\r\n\r\n"), Finish("client"), Finish("server")]).packets()


def notes_of(path: Path) -> list[str]:
    with conchart.read(path) as trace:
        ((notes,),) = trace.sql("SELECT notes FROM captures").fetchall()
    return list(notes)


def test_a_cut_file_is_told_first_however_many_frames_are_unreadable(tmp_path: Path) -> None:
    broken = (TALK[0].at, bytes(12) + b"\x08\x00" + b"\x45")
    parts = Format().of_frames([broken] * 150)
    path = tmp_path / "input.pcap"
    path.write_bytes(b"".join(parts)[:-5])
    first, *others, total = notes_of(path)
    assert first.startswith("packet 150: the file ends inside a packet")
    assert [note.split(":")[0] for note in others] == ["frame 1", "frame 2", "frame 3"]
    assert total == "in all, 149 frames cannot be read: IPv4 header"


def test_zeros_after_the_packets_are_no_packets(tmp_path: Path) -> None:
    path = tmp_path / "input.pcap"
    path.write_bytes(Format().write(TALK) + bytes(1 << 20))
    with conchart.read(path) as trace:
        assert trace.sql("SELECT packets, truncated FROM captures").fetchall() == [(len(TALK), True)]
    (note,) = notes_of(path)
    assert note.startswith(f"packet {len(TALK) + 1}: zeros stand where its record header should be")
    path.write_bytes(Format().parts(TALK)[0] + bytes(1 << 20))
    with pytest.raises(CaptureError, match="There is no packet before it"):
        conchart.read(path)


@pytest.mark.parametrize("container", ["pcap", "pcapng"])
@pytest.mark.parametrize("packets", [[], TALK], ids=["empty", "none in the window"])
def test_a_wrong_filter_is_reported_also_where_it_is_never_asked(
    tmp_path: Path, packets: list[object], container: str
) -> None:
    path = tmp_path / "input"
    path.write_bytes(Format(container=container).write(packets))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="filter: .*syntax error"):
        conchart.read(path, filter="tcp prot 443", start="1h")
    with conchart.read(path, filter="tcp port 443", start="1h") as trace:
        assert trace.connections.count("*").fetchall() == [(0,)]
