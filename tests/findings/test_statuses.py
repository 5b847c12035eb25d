"""A server error is an HTTP status from 500 to 599: larger numbers are errors of a database, such as MySQL's 1062."""

import re
from pathlib import Path

import pytest

import conchart
from tests.conftest import ROOT

CAPTURE = ROOT / "captures/findings/serial-fanout/input.pcap"


def found(packets: bytes, status: bytes, folder: Path) -> set[str]:
    """Give the findings of these packets, with another status in every response."""
    file = folder / "input.pcap"
    file.write_bytes(re.sub(rb"(HTTP/1\.[01]) 200", rb"\1 " + status, packets))
    with conchart.read(file) as trace:
        return {name for (name,) in trace.sql("SELECT finding FROM findings").fetchall()}


@pytest.mark.parametrize(("status", "failed"), [(b"200", False), (b"500", True), (b"599", True), (b"999", False)])
def test_a_backend_is_asked_again_after_a_server_error(status: bytes, failed: bool, tmp_path: Path) -> None:
    # The four requests to the backend become four attempts of one request.
    same = re.sub(rb"/wait-\d\d/bytes-20\d", b"/wait-20/bytes-200", CAPTURE.read_bytes())
    assert ("retries" in found(same, status, tmp_path)) == failed


@pytest.mark.parametrize(("status", "failed"), [(b"200", False), (b"500", True), (b"599", True), (b"999", False)])
def test_failed_attempts_are_no_fan_out(status: bytes, failed: bool, tmp_path: Path) -> None:
    assert ("serial-fanout" in found(CAPTURE.read_bytes(), status, tmp_path)) != failed
