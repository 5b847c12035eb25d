"""The tasks that processes run: a part becomes files, shared flows are copied out and read in one piece."""

from pathlib import Path
from typing import Any

import duckdb
import pytest

from conchart.errors import CaptureError
from conchart.reading.options import ReadOptions
from conchart.reading.parts.cutting import Part
from conchart.reading.parts.model import CORE, FlowSelection, files_of
from conchart.reading.parts.reuse import reusable_parts
from conchart.reading.parts.survey import frame_columns, spill, stitch, survey
from tests.conftest import ROOT

CAPTURE = str(ROOT / "captures/reverse-proxy/http-page/input.pcap")


def fetched(folder: str, table: str, columns: str) -> list[tuple[Any, ...]]:
    query = f"SELECT {columns} FROM read_parquet({files_of(folder, table)}) ORDER BY ALL"
    return duckdb.sql(query).fetchall()


def test_a_part_is_read_into_a_file_for_each_table_and_is_remembered(tmp_path: Path) -> None:
    part = Part(0, (CAPTURE,), number=4)
    surveyed = survey(part, ReadOptions(), tmp_path)
    assert surveyed.folder == str(tmp_path / "part-00004")
    assert all(files_of(surveyed.folder, table.name) for table in CORE)
    assert [path.name for path in tmp_path.iterdir()] == ["part-00004"], "nothing is left of the making"
    assert reusable_parts([part], ReadOptions(), tmp_path) == {4: surveyed}
    ((packets, first_at),) = fetched(surveyed.folder, "captures", "packets, first_at")
    assert (surveyed.packets, surveyed.first_at, surveyed.frames) == (packets, first_at, packets)


def test_a_part_that_cannot_be_read_leaves_no_folder_and_names_the_file(tmp_path: Path) -> None:
    bad = tmp_path / "bad.pcap"
    bad.write_bytes(b"no capture at all")
    with pytest.raises(CaptureError, match=r"bad\.pcap"):
        survey(Part(0, (str(bad),)), ReadOptions(), tmp_path / "work")
    assert list((tmp_path / "work").iterdir()) == []


def test_flows_that_are_copied_out_and_read_again_are_as_they_were(tmp_path: Path) -> None:
    """One flow of the capture, whose first frame has the number 101 among all parts."""
    surveyed = survey(Part(0, (CAPTURE,)), ReadOptions(), tmp_path)
    ends = "transport::VARCHAR, client_ip, client_port, server_ip, server_port"
    columns = "first_frame, last_frame, packets_client, packets_server, bytes_client, bytes_server, opened_at"
    wanted = fetched(surveyed.folder, "connections", ends)[0]
    (before,) = (row[5:] for row in fetched(surveyed.folder, "connections", f"{ends}, {columns}") if row[:5] == wanted)
    spilled = spill(surveyed, [(wanted, 1)], 2, 101, ReadOptions(), tmp_path)
    assert len(spilled) == 2
    stitched = stitch(1, [spilled[1]], FlowSelection([wanted], [wanted], []), ReadOptions(), tmp_path)
    (after,) = fetched(stitched.folder, "connections", columns)
    assert after == (before[0] + 100, before[1] + 100, *before[2:])
    empty = stitch(0, [spilled[0]], FlowSelection([], [wanted], []), ReadOptions(), tmp_path)
    assert (empty.frames, fetched(empty.folder, "connections", columns)) == (0, [])


def test_flows_that_came_along_are_not_kept(tmp_path: Path) -> None:
    surveyed = survey(Part(0, (CAPTURE,)), ReadOptions(), tmp_path)
    ends = "transport::VARCHAR, client_ip, client_port, server_ip, server_port"
    flows = fetched(surveyed.folder, "connections", ends)[:2]
    (spilled,) = spill(surveyed, [(flow, 0) for flow in flows], 1, 1, ReadOptions(), tmp_path)
    stitched = stitch(0, [spilled], FlowSelection(flows[:1], flows, []), ReadOptions(), tmp_path)
    assert fetched(stitched.folder, "connections", ends) == flows[:1]
    ((streams,),) = fetched(stitched.folder, "phases", "count(DISTINCT stream)")
    assert streams == 1


def test_columns_that_number_frames_are_known_by_their_names() -> None:
    types = dict.fromkeys(("frame", "start_frame", "frames", "first_frame", "frame_count", "frame_at"), "BIGINT")
    assert frame_columns(types) == ["frame", "start_frame", "first_frame"]
