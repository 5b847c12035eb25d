"""What is still growing, in the process of the tests: what a watcher is shown, and that watching changes nothing."""

import time
from pathlib import Path
from typing import Any

import pytest

from conchart import CaptureError, Trace, read
from conchart.reading.live.growing import Followed, Growing, write_all
from tests.conftest import ROOT

CAPTURE = ROOT / "captures" / "reverse-proxy" / "https-no-keepalive" / "input.pcap"
REQUEST = ROOT / "captures" / "findings" / "backend-service-dominates" / "input.pcap"
WORKED_OUT = ("connections", "handshakes", "exchanges", "phases", "stalls", "links", "servers", "times", "findings")


class Trickling(Growing):
    """A capture of which some bytes come, then nothing for a while, then the rest."""

    def __init__(self, data: bytes, *, first: int, seconds: float) -> None:
        super().__init__("trickling")
        self.data, self.first, self.seconds = data, first, seconds

    def _pump(self, sink: int) -> None:
        write_all(sink, self.data[: self.first])
        time.sleep(self.seconds)
        write_all(sink, self.data[self.first :])


def rows(trace: Trace, table: str) -> list[Any]:
    return sorted(map(repr, trace.sql(f"FROM {table}").fetchall()))


def frame_ends(data: bytes) -> list[int]:
    """Where each record of a little-endian pcap file ends."""
    ends, at = [], 24
    while at < len(data):
        at += 16 + int.from_bytes(data[at + 8 : at + 12], "little")
        ends.append(at)
    return ends


def test_a_watcher_sees_what_has_come_as_if_it_were_all_and_changes_nothing() -> None:
    data = CAPTURE.read_bytes()
    first = frame_ends(data)[129]
    seen: list[dict[str, Any]] = []

    def watch(trace: Trace) -> None:
        (packets,), *_ = trace.sql("SELECT packets FROM captures").fetchall()
        seen.append({"packets": packets} | {table: rows(trace, table) for table in WORKED_OUT})

    with read(CAPTURE) as plain, read(Trickling(data, first=first, seconds=2.5), watch=watch) as watched:
        assert [shown["packets"] for shown in seen] == [130]
        for table in WORKED_OUT:
            assert rows(watched, table) == rows(plain, table), table
        assert watched.sql("SELECT path, packets FROM captures").fetchall() == [("trickling", 265)]
    with read(CAPTURE, count=130) as half:
        # What is over in the first half is told as it will be; of what is open, the phases that are certain.
        ended = "SELECT stream, exchange, kind, start_at, end_at FROM phases JOIN connections USING (stream) WHERE {}"
        certain = half.sql(ended.format("state = 'complete'")).fetchall()
        assert certain
        assert len(seen[0]["connections"]) == len(rows(half, "connections"))
        assert len(seen[0]["handshakes"]) == len(rows(half, "handshakes"))
        assert seen[0]["findings"] != []


def test_who_waits_for_a_response_is_seen_to_wait() -> None:
    """The request has come, its response has not; something else shows that time goes on."""
    with read(REQUEST) as trace:
        (stream, frame, wait_ns), *_ = trace.sql(
            "SELECT stream, request_frame, wait_ns FROM exchanges WHERE method IS NOT NULL ORDER BY wait_ns DESC"
        ).fetchall()
        (response,), *_ = trace.sql(
            f"SELECT response_frame FROM exchanges WHERE stream = {stream} AND request_frame = {frame}"
        ).fetchall()
    data = REQUEST.read_bytes()
    waits: list[Any] = []

    def watch(trace: Trace) -> None:
        waits.extend(
            trace.sql(
                f"""SELECT end_at - start_at, end_at = closed_at, (SELECT max(last_at) FROM captures) = closed_at
                FROM phases JOIN connections USING (stream) WHERE stream = {stream} AND kind = 'wait'
                ORDER BY start_at DESC LIMIT 1"""
            ).fetchall()
        )

    with read(Trickling(data, first=frame_ends(data)[response - 2], seconds=2.0), watch=watch):
        pass
    assert len(waits) == 1
    ns, to_its_end, to_the_latest_frame = waits[0]
    assert to_its_end
    assert to_the_latest_frame
    assert 0 < ns <= wait_ns


def test_a_file_that_grows_is_read_to_the_end_that_somebody_tells(tmp_path: Path) -> None:
    data = CAPTURE.read_bytes()
    ends = frame_ends(data)
    path = tmp_path / "growing.pcap"
    path.write_bytes(data[: ends[99]])
    growing = Followed(path)
    seen: list[int] = []

    def watch(trace: Trace) -> None:
        (packets,), *_ = trace.sql("SELECT packets FROM captures").fetchall()
        seen.append(packets)
        if packets == 100:
            with path.open("ab") as file:
                file.write(data[ends[99] :])
        else:
            growing.end()

    with read(growing, watch=watch) as trace, read(CAPTURE) as plain:
        assert seen == [100, 265]
        assert rows(trace, "phases") == rows(plain, "phases")
        assert trace.sql("SELECT path, truncated FROM captures").fetchall() == [(str(path), False)]


def test_an_error_of_who_watches_ends_the_reading() -> None:
    def watch(_: Trace) -> None:
        raise ZeroDivisionError

    began = time.monotonic()
    with pytest.raises(ZeroDivisionError):
        read(Trickling(CAPTURE.read_bytes(), first=20_000, seconds=3), watch=watch)
    assert time.monotonic() - began < 10


def test_what_cannot_be_read_is_called_by_its_name() -> None:
    with pytest.raises(CaptureError, match="^trickling: "):
        read(Trickling(b"no capture at all", first=3, seconds=0))
    with pytest.raises(CaptureError, match=r"never\.pcap"):
        Followed("never.pcap")


def test_a_count_ends_what_would_go_on() -> None:
    data = CAPTURE.read_bytes()
    with read(Trickling(data + bytes(1 << 22), first=len(data), seconds=0), count=100) as trace:
        assert trace.sql("SELECT selected FROM captures").fetchall() == [(100,)]
