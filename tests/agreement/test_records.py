"""TLS records, packet by packet as tshark has them: how many end in a packet, how long."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import conchart
from tests.agreement import tshark
from tests.conftest import ROOT, sampled
from tests.tshark import ask, needs_tshark

CORPUS = os.environ.get("CONCHART_CORPUS")
FOLDERS = ("handshakes", "reverse-proxy")
OF_OTHERS = (
    "arkime__mysql-tls.pcap",
    "arkime__tls13.pcap",
    "ndpi__smtps.pcapng",
    "ptcpdump__testdata-format-tls.pcap",
    "zeek__tls-tls-1.2-handshake-failure.pcap",
)
HEADER = 5
"""Bytes of a record before its body, which tshark's length leaves out (RFC 8446 section 5.1)."""

pytestmark = needs_tshark


def captures() -> Iterator[Path]:
    for folder in FOLDERS:
        yield from sorted((ROOT / "captures" / folder).glob("*/input.pcap*"))
    yield from (path for name in OF_OTHERS if CORPUS and (path := Path(CORPUS) / name).exists())


def record_lengths(capture: Path) -> dict[int, list[int]]:
    """Lengths of the records that end in each frame, as tshark has them."""
    preferences = [option for name, value in tshark.PREFERENCES.items() for option in ("-o", f"{name}:{value}")]
    fields = [
        "-T",
        "fields",
        "-E",
        "occurrence=a",
        "-E",
        "aggregator=,",
        "-e",
        "frame.number",
        "-e",
        "tls.record.length",
    ]
    text = ask(["-n", "-r", str(capture), *preferences, "-Y", "tls.record && tcp", *fields])
    lines = (line.split("\t") for line in text.splitlines())
    return {int(frame): [int(length) + HEADER for length in lengths.split(",")] for frame, lengths in lines}


@pytest.mark.parametrize("capture", sampled(captures(), 3), ids=lambda path: path.parent.name)
def test_as_many_records_end_in_each_frame_and_they_are_as_long(capture: Path) -> None:
    found: dict[int, list[int]] = defaultdict(list)
    with conchart.read(capture) as trace:
        for frame, length in trace.sql(
            "SELECT end_frame, bytes FROM records SEMI JOIN (FROM connections WHERE transport = 'tcp') USING (stream) "
            "WHERE end_frame IS NOT NULL ORDER BY stream, number"
        ).fetchall():
            found[frame].append(length)
    assert {frame: sorted(lengths) for frame, lengths in found.items()} == {
        frame: sorted(lengths) for frame, lengths in record_lengths(capture).items()
    }
