"""What is true of a run, read from what its two ends sent and received and from how the lab was set up.

The captures at both ends were taken at the same time, by one clock, on the hosts themselves: what lies between the
last byte that came in and the first byte that went out is that host's own time, and no network is in it. Nothing of
conchart's is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path as File

import dpkt
from cases import Case
from path import RTTS_NS

SERVER_PORT = 443
SLACK_NS = 100_000
"""How much longer than the TCP handshake's another round trip may be: more, and the run is not kept."""
SLACK_SHARE = 0.02
"""How much longer than the cable is set to be."""


class LateCableError(Exception):
    """The machine was too busy to carry packets in time."""


@dataclass(frozen=True)
class Packet:
    """A TCP segment as it passed."""

    at: int
    """Nanoseconds since the Unix epoch."""
    from_client: bool
    flags: int
    size: int
    """Bytes of payload."""


def truth(case: Case, vantage: str, ends: dict[str, File]) -> str:
    """Return truth.json of a capture: ``ends`` are the captures on the client and on the server."""
    at_client, at_server = (list(connections(ends[end])) for end in ("client", "server"))
    rtt_client, rtt_server = RTTS_NS[vantage]
    handshakes = [
        {
            "version": turns.version,
            "kind": turns.kind,
            "round_trips": turns.round_trips,
            "client_compute_ns": sum(answers(near_client, from_client=True)[: turns.by_client]),
            "server_compute_ns": sum(answers(near_server, from_client=False)[: turns.by_server]),
        }
        for turns, near_client, near_server in zip(case.handshakes, at_client, at_server, strict=True)
    ]
    document = {
        "how": "round trips: as the cables were set; compute: at that end, from the last byte in to the first byte out",
        "vantage": vantage,
        "rtt_client_ns": rtt_client,
        "rtt_server_ns": rtt_server,
        "handshakes": handshakes,
    }
    return json.dumps(document, indent=2) + "\n"


def check_cables(case: Case, captures: dict[str, File]) -> None:
    """Hold what each place saw against the cables.

    Raises:
        LateCableError: a packet of a handshake was late.
    """
    for vantage, rtts in RTTS_NS.items():
        seen = zip(
            case.handshakes, *(connections(captures[place]) for place in (vantage, "client", "server")), strict=True
        )
        for turns, here, near_client, near_server in seen:
            syn, syn_ack, ack = here[:3]
            for near, from_client, number, rtt, shaken in (
                (near_client, True, turns.by_client, rtts[0], ack.at - syn_ack.at),
                (near_server, False, turns.by_server, rtts[1], syn_ack.at - syn.at),
            ):
                answered, taken = (answers(packets, from_client)[:number] for packets in (here, near))
                late = max(abs(a - t - shaken) for a, t in zip(answered, taken, strict=True))
                if late > SLACK_NS or shaken - rtt > max(SLACK_NS, rtt * SLACK_SHARE):
                    raise LateCableError(f"{vantage}: {late / 1e6:.3f} ms, TCP handshake {(shaken - rtt) / 1e6:.3f} ms")


def connections(capture: File) -> Iterator[list[Packet]]:
    """Yield the packets of each connection, in order."""
    found: dict[int, list[Packet]] = {}
    with capture.open("rb") as file:
        for at, raw in dpkt.pcap.Reader(file):
            tcp = dpkt.ip.IP(raw).data
            from_client = tcp.dport == SERVER_PORT
            packet = Packet(round(at * 10**9), from_client, tcp.flags, len(tcp.data))
            found.setdefault(tcp.sport if from_client else tcp.dport, []).append(packet)
    yield from found.values()


def answers(packets: list[Packet], from_client: bool) -> list[int]:
    """Measure each turn of one end: from the last byte the other sent to the first byte of the answer."""
    found = []
    data = [packet for packet in packets if packet.size]
    for before, after in zip(data, data[1:], strict=False):
        if after.from_client == from_client and before.from_client != from_client:
            found.append(after.at - before.at)
    return found
