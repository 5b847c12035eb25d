"""HTTP/2 inside TLS: with the secrets, conchart and tshark read the same requests and responses."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest

import conchart
from tests.conftest import ROOT
from tests.tshark import KEYLOG, ask, needs_tshark

CASES = sorted((ROOT / "captures" / "multiplexed").iterdir())
NAMES = ("method", "path", "status")


def messages(case: Path) -> dict[str, list[str]]:
    """What tshark says of every HEADERS frame of a capture; of one packet's frames, with commas between."""
    fields = [word for name in NAMES for word in ("-e", f"http2.headers.{name}")]
    options = ["-n", "-r", str(case / "input.pcap"), "-o", f"{KEYLOG}{case / 'keys.log'}", "-Y", "http2.headers"]
    rows = [line.split("\t") for line in ask([*options, "-T", "fields", *fields]).splitlines()]
    columns = zip(*rows, strict=True)
    return {
        name: list(chain.from_iterable(text.split(",") for text in column if text))
        for name, column in zip(NAMES, columns, strict=True)
    }


@needs_tshark
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_tshark_reads_the_same_requests_and_responses(case: Path) -> None:
    expected = messages(case)
    with conchart.read(case / "input.pcap", keylog=case / "keys.log") as trace:
        rows = trace.sql("SELECT method, target, CAST(status AS text) FROM exchanges WHERE protocol = 'h2'").fetchall()
    requests = zip(expected["method"], expected["path"], strict=True)
    assert sorted(requests) == sorted((method, target) for method, target, _ in rows)
    assert sorted(expected["status"]) == sorted(status for *_, status in rows)
