"""Packet numbers, spaces and streams of QUIC, held against tshark with the same keys.

In: captures/http3, and captures of CONCHART_CORPUS that have a key log beside them and QUIC inside. tshark tells the
packet numbers of each frame; what conchart calls a lost packet has that number there, or no frame has it.
"""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

import pytest

import conchart
from tests.http3.test_truth import AFTER_RETRY, CAPTURES, CASES
from tests.tshark import ask, needs_tshark

CORPUS = Path(os.environ.get("CONCHART_CORPUS", "/nonexistent"))
FIELDS = ("frame.number", "quic.packet_number", "quic.stream.stream_id")
OURS = [(CAPTURES / case / "input.pcap", CAPTURES / case / "keys.log") for case in sorted(set(CASES) - AFTER_RETRY)]
FOREIGN = [(log.with_suffix(""), log) for log in sorted(CORPUS.glob("*.keylog"))]

pytestmark = needs_tshark


def _tshark_frames(capture: Path, keys: Path) -> dict[int, tuple[set[int], set[int]]]:
    """Give the packet numbers and stream ids of each frame."""
    words: list[str | Path] = ["-r", capture, "-o", f"tls.keylog_file:{keys}", "-Y", "quic.packet_number"]
    text = ask([*words, "-T", "fields", *(word for field in FIELDS for word in ("-e", field))])
    by_frame = {}
    for line in text.splitlines():
        frame, numbers, streams = ([int(each) for each in cell.split(",") if each] for cell in line.split("\t"))
        by_frame[frame[0]] = (set(numbers), set(streams))
    return by_frame


@pytest.mark.parametrize(("capture", "keys"), [*OURS, *FOREIGN], ids=lambda path: "-".join(path.parts[-2:]))
def test_tshark_sees_the_same_packet_numbers_and_streams(capture: Path, keys: Path) -> None:
    by_frame = _tshark_frames(capture, keys)
    if not by_frame:
        pytest.skip("no QUIC")
    with conchart.read(capture, keylog=keys, packets=True) as trace:
        lost = trace.sql("SELECT stream, sender, frame, number FROM lost_packets").fetchall()
        sides = trace.sql("SELECT frame, stream, sender FROM packets").fetchall()
        rows = trace.sql("""
            SELECT request_frame, stream, count(*) FROM exchanges WHERE protocol IN ('h3', 'quic', 'grpc')
            GROUP BY ALL""").fetchall()
    seen = defaultdict[tuple[int, str], set[int]](set)
    for frame, stream, sender in sides:
        seen[stream, sender] |= by_frame.get(frame, (set(), set()))[0]
    for stream, sender, frame, number in lost:
        assert number in by_frame[frame][0] if frame else number not in seen[stream, sender]
    for frame, _, count in rows:
        requests = {stream for stream in by_frame[frame][1] if stream % 4 == 0}
        assert len(requests) >= count


@pytest.mark.parametrize(
    "name", ["ndpi__quic-v2.pcapng", "waterfall__amazon2.cap.gz", "waterfall__www.google.com-tcpdump.cap.gz"]
)
def test_each_stream_of_a_foreign_capture_is_a_request_with_its_answer(name: str) -> None:
    """By picoquic (with frames of drafts) and by browsers; secrets are inside or beside it."""
    capture = CORPUS / name
    if not capture.exists():
        pytest.skip("CONCHART_CORPUS has no such capture")
    beside = [log for log in [capture.with_name(f"{name}.keylog")] if log.exists()]
    words: list[str | Path] = ["-r", capture, *(word for log in beside for word in ("-o", f"tls.keylog_file:{log}"))]
    text = ask([*words, "-Y", FIELDS[2], "-T", "fields", "-e", "quic.connection.number", "-e", FIELDS[2]])
    lines = [line.split("\t") for line in text.splitlines()]
    expected = {
        (line[0].split(",")[0], int(each)) for line in lines for each in line[1].split(",") if int(each) % 4 == 0
    }
    with conchart.read(capture, keylog=beside) as trace:
        exchanges = trace.sql("""
            SELECT target IS NOT NULL, status IS NOT NULL OR response_at IS NULL, inferred FROM exchanges
            WHERE protocol = 'h3'""").fetchall()
        unread = trace.sql("SELECT count(*) FROM quic_frames WHERE kind IS NULL").fetchone()
    assert len(exchanges) == len(expected) > 0
    assert set(exchanges) == {(True, True, False)}
    assert unread == (0,)
