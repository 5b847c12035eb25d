"""qlog: packets, frames and times are those of the capture, as tshark reads it with the same keys."""

from __future__ import annotations

import json
import shutil
import subprocess
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


def of_clients(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Give its traces with the flow of a client: one for each connection."""
    return [trace for trace in document["traces"] if trace["vantage_point"]["flow"] == "client"]


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
    flows = [trace["vantage_point"]["flow"] for trace in document["traces"]]
    assert flows.count("client") == len(truth(case))
    for trace in document["traces"]:
        assert {**trace["vantage_point"], "flow": ""} == {"name": "conchart", "type": "network", "flow": ""}
        times = [event["time"] for event in trace["events"]]
        assert times == sorted(times)
        assert all(set(event) == {"time", "name", "data"} for event in trace["events"])


@pytest.mark.parametrize("case", sorted(set(CASES) - UNCOUNTED))
def test_the_ends_count_as_many_packets(case: str, tmp_path: Path) -> None:
    """The qlogs of aioquic: the client's packets pass the capture point, which lies beside it."""
    for trace, connection in zip(of_clients(written(case, tmp_path)), truth(case), strict=True):
        sent = {each["space"]: each["packets"] for each in connection.get("sent", []) if each["by"] == "client"}
        counted = Counter(
            event["data"]["header"]["packet_type"]
            for event in packets(trace)
            if event["name"] == "quic:packet_sent" and "packet_number" in event["data"]["header"]
        )
        if sent:
            assert counted == sent


@pytest.mark.parametrize("case", ["lossy", "steps-lossy", "tail-lost"])
def test_what_the_server_lost_is_in_a_trace_of_its_flow(case: str, tmp_path: Path) -> None:
    """Its packets are the same, seen from the other side; each loss of its qlog is there."""
    document = written(case, tmp_path)
    (client,) = of_clients(document)
    (server,) = (trace for trace in document["traces"] if trace not in of_clients(document))
    assert server["common_fields"]["group_id"] == client["common_fields"]["group_id"]
    turned = {"quic:packet_sent": "quic:packet_received", "quic:packet_received": "quic:packet_sent"}
    assert [(each["time"], turned[each["name"]], each["data"]) for each in packets(client)] == [
        (each["time"], each["name"], each["data"]) for each in packets(server)
    ]
    lost = [event["data"]["header"] for event in server["events"] if event["name"] == "quic:packet_lost"]
    (connection,) = truth(case)
    spaces = {"initial": "initial", "handshake": "handshake", "1rtt": "1RTT", "1RTT": "1RTT"}
    expected = {(spaces[each["space"]], each["number"]) for each in connection["lost"] if each["by"] == "server"}
    assert expected <= {(each["packet_type"], each["packet_number"]) for each in lost}


def test_transport_parameters_are_those_that_both_ends_set(tmp_path: Path) -> None:
    """The client's are those of ``ask.py``; the defaults are aioquic's, as its own qlog has them."""
    (trace,) = written("one", tmp_path)["traces"]
    client, server = (event["data"] for event in trace["events"] if event["name"] == "quic:parameters_set")
    assert (client.pop("initiator"), server.pop("initiator")) == ("local", "remote")
    common = {"max_idle_timeout": 60_000, "initial_max_data": 1 << 24, "initial_max_streams_bidi": 128}
    assert common.items() <= client.items()
    assert common.items() <= server.items()
    assert client["initial_max_stream_data_uni"] == 1 << 24
    assert server["initial_max_stream_data_uni"] == 1 << 20
    assert client["unknown_parameters"] == [{"id": 0x11, "value": "0000000100000001"}]
    assert len(server["stateless_reset_token"]) == 32
    assert "stateless_reset_token" not in client
    with conchart.read(CAPTURES / "one/input.pcap", packets=True) as keyless:
        keyless.write(tmp_path / "keyless.qlog")
    assert (tmp_path / "keyless.qlog").read_text().count("quic:parameters_set") == 1


@pytest.mark.parametrize("case", ["visits", "lossy"])
def test_a_sequence_has_the_same_events(case: str, tmp_path: Path) -> None:
    document = written(case, tmp_path)
    capture = CAPTURES / case
    with conchart.read(capture / "input.pcap", keylog=[capture / "keys.log"], packets=True) as trace:
        trace.write(tmp_path / "out.sqlog")
    before, *records = (tmp_path / "out.sqlog").read_text(encoding="utf-8").split("\x1e")
    assert before == ""
    assert all(record.endswith("}\n") for record in records)
    head, *events = (json.loads(record, parse_float=Decimal) for record in records)
    assert head["file_schema"] == "urn:ietf:params:qlog:file:sequential"
    assert head["serialization_format"] == "application/qlog+json-seq"
    assert head["trace"]["vantage_point"]["flow"] == "client"
    assert events == [
        {"group_id": trace["common_fields"]["group_id"], **event}
        for trace in of_clients(document)
        for event in trace["events"]
    ]


@pytest.fixture(scope="module")
def reader() -> Path:
    """Build the reader of quiche, an independent implementation of the drafts."""
    if not shutil.which("cargo"):
        pytest.skip("cargo is not installed: the reader of quiche is a crate")
    folder = Path(__file__).parent / "qlog"
    built = subprocess.run(["cargo", "build", "--locked", "--quiet"], cwd=folder, capture_output=True, text=True)
    if "failed to download" in built.stderr or "failed to fetch" in built.stderr:
        pytest.skip("cargo cannot fetch the reader of quiche")
    assert built.returncode == 0, built.stderr
    return folder / "target/debug/conchart-qlog-reader"


@pytest.mark.thorough
@pytest.mark.timeout(120)
@pytest.mark.parametrize("case", sorted(CASES))
def test_quiche_reads_every_field(case: str, tmp_path: Path, reader: Path) -> None:
    """It reads both forms, and understands each field: what it writes again is what we wrote."""
    capture = CAPTURES / case
    with conchart.read(capture / "input.pcap", keylog=[capture / "keys.log"], packets=True) as trace:
        trace.write(tmp_path / "out.qlog")
        trace.write(tmp_path / "out.sqlog")

    def understood(name: str) -> str:
        return subprocess.run([reader, tmp_path / name], check=True, capture_output=True, text=True).stdout

    assert json.loads(understood("out.qlog")) == json.loads((tmp_path / "out.qlog").read_text(encoding="utf-8"))
    records = (tmp_path / "out.sqlog").read_text(encoding="utf-8").split("\x1e")[1:]
    assert [json.loads(line) for line in understood("out.sqlog").splitlines()] == [json.loads(one) for one in records]


def test_frames_of_http3_say_what_the_draft_demands(tmp_path: Path) -> None:
    """Settings and priorities are those of Chromium and of Caddy; a HEADERS frame has no fields."""
    events = written("chromium", tmp_path)["traces"][0]["events"]
    frames = [event["data"]["frame"] for event in events if event["name"].startswith("http3:frame_")]
    of = {kind: [frame for frame in frames if frame["frame_type"] == kind] for kind in ("settings", "headers")}
    assert {"name": "settings_qpack_max_table_capacity", "value": 65536} in of["settings"][-1]["settings"]
    assert all(frame["headers"] == [] for frame in of["headers"])
    priority = next(frame for frame in frames if frame["frame_type"] == "priority_update")
    assert priority["stream_id"] == 0
    assert priority["priority_field_value"]
    assert all("frame_type_bytes" in frame for frame in frames if frame["frame_type"] in ("reserved", "unknown"))
    types = [event["data"] for event in events if event["name"] == "http3:stream_type_set"]
    assert {each["initiator"] for each in types} == {"local", "remote"}


@needs_tshark
@pytest.mark.parametrize("case", sorted(set(CASES) - AFTER_RETRY))
def test_tshark_finds_the_same_frames_in_the_same_datagrams_at_the_same_time(case: str, tmp_path: Path) -> None:
    folder = CAPTURES / case
    words: list[str | Path] = ["-r", folder / "input.pcap", "-o", f"tls.keylog_file:{folder / 'keys.log'}"]
    fields = ("frame.number", "frame.time_epoch", "quic.packet_number", "quic.frame_type")
    text = ask([*words, "-Y", "quic.frame_type", "-T", "fields", *(word for name in fields for word in ("-e", name))])
    theirs = {}
    for line in text.splitlines():
        frame, at, numbers, kinds = line.split("\t")
        types = Counter(FRAME_TYPES[int(kind, 0)] for kind in kinds.split(",") if kind)
        theirs[int(frame)] = (Decimal(at) * 1000, [int(number) for number in numbers.split(",")], types)
    ours: dict[int, tuple[Decimal, list[int], Counter[str]]] = {}
    for trace in of_clients(written(case, tmp_path)):
        for event in packets(trace):
            data = event["data"]
            if "packet_number" not in data["header"]:
                continue
            datagram = ours.setdefault(data["datagram_id"], (event["time"], [], Counter()))
            datagram[1].append(data["header"]["packet_number"])
            datagram[2].update(frame["frame_type"] for frame in data["frames"])
    # tshark takes each byte of padding for a frame, or a run of them for one, as its version has it.
    for _, _, types in [*theirs.values(), *ours.values()]:
        del types["padding"]
    assert ours == theirs
