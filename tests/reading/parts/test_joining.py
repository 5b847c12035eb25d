"""The union of all parts, numbered as one reading numbers streams and frames."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from conchart.reading.parts.cutting import Part
from conchart.reading.parts.joining import join
from conchart.reading.parts.model import File, Flow, Surveyed, Torn
from conchart.reading.parts.sharing import Shared, share
from conchart.reading.parts.survey import _write
from conchart.store.tables import Tables
from tests.by_hand import Row, connection, tables_of

SERVER = "10.0.0.9:80"


def part(work: Path, number: int, ports: Sequence[int], *, begin: int = 0, **about: Any) -> Surveyed:  # noqa: ANN401
    """Write a part of ten frames with a connection from each port, whose first frames are 2, 4, 6 and so on."""
    folder = work / f"part-{number}"
    folder.mkdir()
    rows: list[Row] = [
        connection(
            stream, f"10.0.0.1:{port}", SERVER, first_frame=2 * stream + 2, last_frame=10, identity=port, isn_client=1
        )
        for stream, port in enumerate(ports)
    ]
    facts = about.pop("rows", {})
    rows = [row | facts for row in rows]
    tables = tables_of(
        captures=[
            {"capture": 0, "path": "", "packets": 10, "selected": 9, "bytes": 100, "undecodable": 1, "other": 2,
             "snapped": 0, "truncated": False, "first_frame": 1, "first_at": 100 * number, "last_at": 100 * number + 50}
        ],
        connections=rows,
        phases=[{"stream": row["stream"], "start_frame": row["first_frame"], "end_frame": 10} for row in rows],
    )  # fmt: skip
    _write(tables, folder)
    return Surveyed(
        part=Part(about.pop("capture", 0), ("a.pcap",), begin=begin, number=number),
        folder=str(folder), frames=10, packets=10, selected=9,
        files=(File(1, 100 * number, 100 * number + 50, about.pop("notes", ())),), truncated=False,
        torn=about.pop("torn", ()),
    )  # fmt: skip


def joined(
    work: Path, parts: Sequence[Surveyed], stitched: Sequence[Surveyed] = (), flows: dict[int, Any] | None = None
) -> Tables:
    found = share(parts, 1, work)
    shared = Shared(
        placed=found.placed, flows=found.flows if flows is None else flows, files=1, torn=found.torn,
        listed=found.listed, moved=False,
    )  # fmt: skip
    tables = tables_of()
    with tables.filling():
        join(tables, parts, stitched, shared)
    return tables


def test_frames_count_on_and_streams_are_numbered_by_their_first_frames(tmp_path: Path) -> None:
    parts = [part(tmp_path, 0, (1, 2)), part(tmp_path, 1, (3, 4), begin=24)]
    tables = joined(tmp_path, parts)
    assert tables.fetch(
        "SELECT stream, transport_stream, client_port, first_frame, last_frame FROM connections ORDER BY stream"
    ) == [(0, 0, 1, 2, 10), (1, 1, 2, 4, 10), (2, 2, 3, 12, 20), (3, 3, 4, 14, 20)]
    assert tables.fetch("SELECT stream, start_frame, end_frame FROM phases ORDER BY stream") == [
        (0, 2, 10), (1, 4, 10), (2, 12, 20), (3, 14, 20),
    ]  # fmt: skip


def test_ranges_of_a_file_are_one_capture_and_files_are_several(tmp_path: Path) -> None:
    columns = "capture, path, packets, selected, bytes, undecodable, other, first_frame, first_at, last_at"
    ranges = joined(tmp_path, [part(tmp_path, 0, (1,)), part(tmp_path, 1, (2,), begin=24)])
    assert ranges.fetch(f"SELECT {columns} FROM captures") == [(0, "a.pcap", 20, 18, 200, 2, 4, 1, 0, 150)]
    files = joined(tmp_path, [part(tmp_path, 2, (1,)), part(tmp_path, 3, (2,), capture=1)])
    assert files.fetch(f"SELECT {columns} FROM captures ORDER BY capture") == [
        (0, "a.pcap", 10, 9, 100, 1, 2, 1, 200, 250),
        (1, "a.pcap", 10, 9, 100, 1, 2, 11, 300, 350),
    ]
    assert files.fetch("SELECT capture FROM connections ORDER BY stream") == [(0,), (1,)]


def test_conversations_over_udp_between_the_same_ends_have_one_number(tmp_path: Path) -> None:
    """The second part has one long after the first: it is another conversation."""
    parts = [
        part(tmp_path, 0, (1, 2), rows={"transport": "udp"}),
        part(tmp_path, 1, (1, 3), begin=24, rows={"transport": "udp", "opened_at": 10**15}),
    ]
    tables = joined(tmp_path, parts)
    assert tables.fetch("SELECT stream, transport_stream, client_port FROM connections ORDER BY stream") == [
        (0, 0, 1), (1, 1, 2), (2, 0, 1), (3, 2, 3),
    ]  # fmt: skip


def test_a_flow_that_was_stitched_takes_the_place_of_its_pieces(tmp_path: Path) -> None:
    """The second part goes on with the first connection; stitched, it has the numbers of all parts."""
    parts = [part(tmp_path, 0, (1, 2)), part(tmp_path, 1, (1,), begin=24)]
    stitched = part(tmp_path, 7, (1,))
    tables = joined(tmp_path, parts, [stitched])
    assert tables.fetch("SELECT stream, client_port, first_frame, last_frame FROM connections ORDER BY stream") == [
        (0, 1, 2, 10),
        (1, 2, 4, 10),
    ]
    assert tables.count("phases") == 2


def test_notes_name_frames_and_streams_as_all_parts_are_numbered(tmp_path: Path) -> None:
    parts = [
        part(tmp_path, 0, (1,), notes=("frame 3 of stream 0 is cut",)),
        part(tmp_path, 1, (2,), begin=24, notes=("frame 7 of stream 0 is cut", "see stream 5")),
    ]
    ((notes,),) = joined(tmp_path, parts).fetch("SELECT notes FROM captures")
    assert notes == ["frame 3 of stream 0 is cut", "frame 17 of stream 1 is cut", "see stream 5"]


def test_pieces_that_are_whole_over_all_parts_count_as_decoded(tmp_path: Path) -> None:
    """Each part misses pieces of two frames; read together, none is missing."""
    torn = (Torn("10.0.0.1", "10.0.0.9", 4, 2, is_udp=False), Torn("10.0.0.1", "10.0.0.9", 5, 1, is_udp=True))
    flow: Flow = ("tcp", "10.0.0.1", 1, "10.0.0.9", 80)
    parts = [part(tmp_path, 0, (1,), torn=torn), part(tmp_path, 1, (1,), begin=24, torn=torn)]
    tables = joined(tmp_path, parts, [part(tmp_path, 7, (1,))], {0: [(flow, 0)], 1: [(flow, 0)]})
    assert tables.fetch("SELECT undecodable, other FROM captures") == [(2 - 4, 4 - 2)]
