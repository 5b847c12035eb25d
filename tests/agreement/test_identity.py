"""What tells that two captured connections are one, or two addresses one machine, as tshark has it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import conchart
from tests.conftest import ROOT, sampled
from tests.tshark import ask, needs_tshark

CORPUS = os.environ.get("CONCHART_CORPUS")
FOLDERS = ("crafted", "reverse-proxy", "round-trips", "udp")
OF_OTHERS = (
    "arkime__80211http.pcap",
    "arkime__gre-erspan-vxlan.pcap",
    "ndpi__quic-v2.pcapng",
    "ndpi__tls_multiple_synack_different_seq.pcapng",
)
"""Wireless, tunnels, another transport, SYN-ACKs that differ."""
NO_ADDRESS = ("", "00:00:00:00:00:00")

pytestmark = needs_tshark


def captures() -> Iterator[Path]:
    for folder in FOLDERS:
        yield from sorted((ROOT / "captures" / folder).glob("*/input.pcap*"))
    yield from (path for name in OF_OTHERS if CORPUS and (path := Path(CORPUS) / name).exists())


def fields(capture: Path, display_filter: str, occurrence: str, *names: str) -> list[list[str]]:
    """What tshark says of the frames that pass a filter; of several layers the first (``f``) or the last (``l``)."""
    chosen = [option for name in names for option in ("-e", name)]
    options = ["-n", "-r", str(capture), "-Y", display_filter, "-T", "fields", "-E", f"occurrence={occurrence}"]
    return [line.split("\t") for line in ask([*options, *chosen]).splitlines()]


@pytest.mark.parametrize("capture", sampled(captures(), 3), ids=lambda path: path.parent.name + "-" + path.stem)
class TestAgainstTshark:
    def test_connections_have_the_initial_sequence_numbers_of_their_syns(self, capture: Path) -> None:
        sequence_numbers: dict[tuple[int, bool], list[int]] = {}
        for stream, ack, number in fields(
            capture, "tcp.flags.syn == 1", "f", "tcp.stream", "tcp.flags.ack", "tcp.seq_raw"
        ):
            sequence_numbers.setdefault((int(stream), ack in ("1", "True")), []).append(int(number))
        with conchart.read(capture) as trace:
            rows = trace.sql(
                "SELECT transport_stream, isn_client, isn_server FROM connections WHERE transport = 'tcp'"
            ).fetchall()
        for stream, *found in rows:
            for is_answer, number in zip((False, True), found, strict=True):
                # Where a server answers twice, the client chooses.
                assert number in sequence_numbers.get((stream, is_answer), [None])

    def test_each_side_has_the_address_that_sent_its_first_packet(self, capture: Path) -> None:
        expected = {
            int(frame): next((address for address in addresses if address not in NO_ADDRESS), None)
            for frame, *addresses in fields(
                capture, "tcp or udp", "l", "frame.number", "eth.src", "wlan.sa", "sll.src.eth"
            )
        }
        with conchart.read(capture, packets=True) as trace:
            found = trace.sql(
                "SELECT min(frame), if(sender = 'client', mac_client, mac_server) AS mac "
                "FROM packets JOIN connections USING (stream) GROUP BY stream, sender, mac"
            ).fetchall()
        assert found
        assert found == [(frame, expected[frame]) for frame, _ in found]

    def test_handshakes_have_the_random_of_their_client(self, capture: Path) -> None:
        randoms: dict[int, str] = {}
        hellos = "tls.handshake.type == 1"
        for tcp, udp, random in fields(capture, hellos, "f", "tcp.stream", "udp.stream", "tls.handshake.random"):
            randoms.setdefault(int(tcp or udp), random.replace(":", ""))
        with conchart.read(capture) as trace:
            rows = trace.sql(
                "SELECT transport_stream, arg_min(client_random, number) FROM handshakes "
                "JOIN connections USING (stream) WHERE hello_at IS NOT NULL GROUP BY ALL"
            ).fetchall()
        assert dict(rows) == randoms
