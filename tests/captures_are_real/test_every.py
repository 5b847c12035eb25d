"""Every capture is small, sound and explained."""

from __future__ import annotations

import pytest

from tests.captures_are_real.seen import (
    ALL_CASES,
    CAPTURES,
    CRAFTED_CASES,
    LAB_CASES,
    wireshark,
)
from tests.conftest import is_sample

WITH_UDP = ("udp/", "http3/", "dns/", "versions/h3-", "findings/dns-", "crafted/late-greeting")
OVERLAPPING = ("findings/path-outage",)
"""A kernel that sends several lost segments again sends them as one; tshark's reassembly calls that malformed."""


def test_all_cases_are_there() -> None:
    assert LAB_CASES == [
        "http",
        "http-page",
        "https",
        "https-keepalive",
        "https-no-keepalive",
        "https-slow-client",
    ]
    assert set(CRAFTED_CASES) >= {
        "gap",
        "midstream",
        "port-reuse",
        "reordering",
        "syn-retransmission",
        "zero-window",
    }


OURS = [case for case in ALL_CASES if not case.startswith("wild/")]
"""Captures that scripts in `examples` make. Those in `wild` reproduce public reports; `tests/wild` has their truths."""


@pytest.mark.parametrize("case", OURS)
def test_capture_is_small_and_explained(case: str) -> None:
    assert (CAPTURES / case / "input.pcap").stat().st_size < 400_000
    assert "make-captures" in (CAPTURES / case / "README.md").read_text()


@pytest.mark.parametrize("case", [case for case in OURS if is_sample(case, 4)])
def test_every_frame_is_sound(case: str) -> None:
    frames = wireshark(case)
    assert sorted(frames["tcp.stream"] + frames["udp.stream"]) == frames["frame.number"]
    assert case.startswith(WITH_UDP) or not frames["udp.stream"]
    assert frames["_ws.malformed"] == [] or case in OVERLAPPING


def test_no_private_key_is_committed() -> None:
    marker = b"PRIVATE" + b" KEY-----"
    files = (path for folder in ("captures", "examples") for path in (CAPTURES.parent / folder).rglob("*"))
    assert [path for path in files if path.is_file() and marker in path.read_bytes()] == []
