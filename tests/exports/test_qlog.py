"""qlog: packets, frames and times are those of the capture, as tshark reads it with the same keys."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import conchart
from conchart.errors import CaptureError
from tests.conftest import ROOT
from tests.http3.test_truth import AFTER_RETRY, CAPTURES, CASES, truth
from tests.tshark import ask, needs_tshark

FRAME_TYPES = {
    0x00: "padding",
    0x01: "ping",
    0x02: "ack",
    0x03: "ack",
    0x04: "reset_stream",
    0x05: "stop_sending",
    0x06: "crypto",
    0x07: "new_token",
    **dict.fromkeys(range(0x08, 0x10), "stream"),
    0x10: "max_data",
    0x11: "max_stream_data",
    0x12: "max_streams",
    0x13: "max_streams",
    0x14: "data_blocked",
    0x15: "stream_data_blocked",
    0x16: "streams_blocked",
    0x17: "streams_blocked",
    0x18: "new_connection_id",
    0x19: "retire_connection_id",
    0x1A: "path_challenge",
    0x1B: "path_response",
    0x1C: "connection_close",
    0x1D: "connection_close",
    0x1E: "handshake_done",
    0x30: "datagram",
    0x31: "datagram",
}
UNCOUNTED = {"negotiated", "restarted"}
"""The client's first packet is of a version that nobody opens; its log has packets that did not come by."""


def written(case: str, folder: Path) -> dict[str, Any]:
    """Write the qlog of a case; its times stay exact."""
    capture = CAPTURES / case
    with conchart.read(capture / "input.pcap", keylog=[capture / "keys.log"]) as trace:
        trace.write(folder / "out.qlog")
    document: dict[str, Any] = json.loads((folder / "out.qlog").read_text(encoding="utf-8"), parse_float=Decimal)
    return document


def packets(trace: dict[str, Any]) -> list[dict[str, Any]]:
    """Give its packets."""
    return [event for event in trace["events"] if event["name"] in ("quic:packet_sent", "quic:packet_received")]


def test_a_capture_without_quic_is_refused(tmp_path: Path) -> None:
    with (
        conchart.read(ROOT / "captures/reverse-proxy/http/input.pcap", packets=True) as trace,
        pytest.raises(CaptureError, match="no QUIC connection") as refused,
    ):
        trace.write(tmp_path / "out.qlog")
    assert refused.value.exit_code == 3
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("case", sorted(CASES))
def test_each_connection_is_a_trace_in_the_form_of_the_draft(case: str, tmp_path: Path) -> None:
    document = written(case, tmp_path)
    assert document["file_schema"] == "urn:ietf:params:qlog:file:contained"
    assert len(document["traces"]) == len(truth(case))
    for trace in document["traces"]:
        assert trace["vantage_point"] == {"name": "conchart", "type": "network", "flow": "client"}
        times = [event["time"] for event in trace["events"]]
        assert times == sorted(times)
        assert all(set(event) == {"time", "name", "data"} for event in trace["events"])


@pytest.mark.parametrize("case", sorted(set(CASES) - UNCOUNTED))
def test_the_ends_count_as_many_packets(case: str, tmp_path: Path) -> None:
    """The qlogs of aioquic: the client's packets pass the capture point, which lies beside it."""
    for trace, told in zip(written(case, tmp_path)["traces"], truth(case), strict=True):
        sent = {each["space"]: each["packets"] for each in told.get("sent", []) if each["by"] == "client"}
        counted = Counter(
            event["data"]["header"]["packet_type"]
            for event in packets(trace)
            if event["name"] == "quic:packet_sent" and "packet_number" in event["data"]["header"]
        )
        if sent:
            assert counted == sent


@needs_tshark
@pytest.mark.parametrize("case", sorted(set(CASES) - AFTER_RETRY))
def test_tshark_finds_the_same_frames_in_the_same_datagrams_at_the_same_time(case: str, tmp_path: Path) -> None:
    folder = CAPTURES / case
    words: list[str | Path] = ["-r", folder / "input.pcap", "-o", f"tls.keylog_file:{folder / 'keys.log'}"]
    fields = ("frame.number", "frame.time_epoch", "quic.packet_number", "quic.frame_type")
    text = ask([*words, "-Y", "quic.frame_type", "-T", "fields", *(word for name in fields for word in ("-e", name))])
    told = {}
    for line in text.splitlines():
        frame, at, numbers, kinds = line.split("\t")
        types = Counter(FRAME_TYPES[int(kind, 0)] for kind in kinds.split(",") if kind)
        told[int(frame)] = (Decimal(at) * 1000, [int(number) for number in numbers.split(",")], types)
    ours: dict[int, tuple[Decimal, list[int], Counter[str]]] = {}
    for trace in written(case, tmp_path)["traces"]:
        for event in packets(trace):
            data = event["data"]
            if "packet_number" not in data["header"]:
                continue
            known = ours.setdefault(data["datagram_id"], (event["time"], [], Counter()))
            known[1].append(data["header"]["packet_number"])
            known[2].update(frame["frame_type"] for frame in data["frames"])
    # tshark takes each byte of padding for a frame, or a run of them for one, as its version has it.
    for _, _, types in [*told.values(), *ours.values()]:
        del types["padding"]
    assert ours == told
