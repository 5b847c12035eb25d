"""The lab of HTTP/3 makes a capture and its truth, and leaves nothing behind."""

import importlib.util
import json
from pathlib import Path

import pytest

import conchart
from tests.lessons.running import make_captures, skip_unless_root_with


def test_the_lab_makes_a_capture_that_agrees_with_its_truth(tmp_path: Path) -> None:
    skip_unless_root_with(("ip", "tcpdump", "openssl"))
    if importlib.util.find_spec("aioquic") is None:
        pytest.skip("not installed: aioquic")
    made = tmp_path / "made"
    make_captures("http3", "--into", str(made), "retry", temporary=tmp_path / "temporary")
    connections = json.loads((made / "retry/truth.json").read_text())["connections"]
    with conchart.read(made / "retry/input.pcap", keylog=made / "retry/keys.log") as trace:
        counts = trace.sql("SELECT count(*) FROM exchanges WHERE protocol = 'h3' GROUP BY stream").fetchall()
        retries = trace.sql("SELECT count(retry_at) FROM handshakes").fetchall()
    assert [count for (count,) in counts] == [len(connection["requests"]) for connection in connections]
    assert retries == [(len(connections),)]
