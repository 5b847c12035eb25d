"""The captures of the lessons, read with dpkt and tshark, and with nothing of conchart's.

So what their READMEs claim can be held against conchart's own findings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import dpkt
import pytest

from tests.tshark import KEYLOG, ask, installed

CAPTURES = Path(__file__).resolve().parents[2] / "captures"
LAB_CASES = sorted(folder.name for folder in (CAPTURES / "reverse-proxy").iterdir())
CRAFTED_CASES = sorted(folder.name for folder in (CAPTURES / "crafted").iterdir())
ALL_CASES = sorted(f"{path.parent.parent.name}/{path.parent.name}" for path in CAPTURES.glob("*/*/input.pcap"))
HANDSHAKE_CASES = [case for case in ALL_CASES if case.startswith("handshakes/")]
MULTIPLEXED_CASES = [case for case in ALL_CASES if case.startswith("multiplexed/")]
ROUND_TRIP_CASES = [case for case in ALL_CASES if case.startswith("round-trips/")]
TLS_CASES = [case for case in LAB_CASES if case.startswith("https")]
MS = 1_000_000
BACKEND_PORT = 8080

FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
LINKS = {1: dpkt.ethernet.Ethernet, 276: dpkt.sll2.SLL2}

# TLS 1.3, RFC 8446: record and message types, extensions, and the sizes that encryption does not hide.
CHANGE_CIPHER_SPEC, HANDSHAKE, APPLICATION_DATA = 20, 22, 23
CLIENT_HELLO, SERVER_HELLO = 1, 2
PRE_SHARED_KEY, SUPPORTED_VERSIONS = 41, 43
FINISHED_SIZES = (53, 69)
"""Header 4, SHA-256 or SHA-384 digest, inner content type 1, tag 16."""
ALERT_SIZE = 19

FLAWS = ("retransmission", "out_of_order", "lost_segment", "ack_lost_segment", "duplicate_ack", "zero_window")
FIELDS = (
    "frame.number",
    "tcp.stream",
    "udp.stream",
    "_ws.malformed",
    "tcp.checksum_bad.expert",
    "ip.checksum_bad.expert",
    "tcp.analysis.flags",
    *(f"tcp.analysis.{flaw}" for flaw in FLAWS),
    "tcp.analysis.fast_retransmission",
    "tcp.analysis.reused_ports",
    "tcp.analysis.window_full",
    "tcp.analysis.window_update",
    "tcp.analysis.zero_window_probe",
)
"""What is asked of tshark, once per capture."""

Endpoint = tuple[str, int]


@dataclass(frozen=True, kw_only=True)
class Segment:
    at: int
    """Nanoseconds since the Unix epoch."""
    sender: Endpoint
    receiver: Endpoint
    tcp: Any
    """dpkt's TCP segment."""

    @property
    def data(self) -> bytes:
        return bytes(self.tcp.data)


@dataclass(frozen=True, kw_only=True)
class Connection:
    client: Endpoint
    server: Endpoint
    segments: list[Segment] = field(default_factory=list)

    @property
    def opened_at(self) -> int:
        return self.segments[0].at

    def sent_by(self, end: Endpoint) -> list[Segment]:
        return [segment for segment in self.segments if segment.sender == end]

    def data_sent_by(self, end: Endpoint) -> list[Segment]:
        return [segment for segment in self.sent_by(end) if segment.data]

    def stream(self, end: Endpoint) -> tuple[bytes, list[tuple[int, int]]]:
        """All bytes that ``end`` sent, in order; and up to which offset they were there at which instant."""
        isn = next(segment.tcp.seq for segment in self.sent_by(end) if segment.tcp.flags & SYN)
        whole, arrivals = b"", []
        for segment in sorted(self.data_sent_by(end), key=lambda each: (each.tcp.seq - isn) % 2**32):
            if (segment.tcp.seq - isn - 1) % 2**32 == len(whole):
                whole += segment.data
                arrivals.append((len(whole), segment.at))
        return whole, arrivals


@dataclass(frozen=True, kw_only=True)
class Record:
    kind: int
    body: bytes
    at: int
    """When its last byte was there."""


def segments(path: Path) -> Iterator[Segment]:
    with path.open("rb") as file:
        reader = dpkt.pcap.Reader(file)
        for at, packet in reader:
            ip = LINKS[reader.datalink()](packet).data
            yield Segment(
                at=round(at * 10**9),
                sender=(dpkt.utils.inet_to_str(ip.src), ip.data.sport),
                receiver=(dpkt.utils.inet_to_str(ip.dst), ip.data.dport),
                tcp=ip.data,
            )


@cache
def connections(case: str) -> list[Connection]:
    """The connections of a capture, told apart by their addresses, ports and initial sequence number."""
    found: list[Connection] = []
    latest: dict[frozenset[Endpoint], Connection] = {}
    for segment in segments(CAPTURES / case / "input.pcap"):
        pair = frozenset((segment.sender, segment.receiver))
        connection = latest.get(pair)
        opens = segment.tcp.flags & (SYN | ACK) == SYN
        if connection is None or (opens and connection.segments[0].tcp.seq != segment.tcp.seq):
            server, client = sorted((segment.sender, segment.receiver), key=lambda end: end[1])
            connection = latest[pair] = Connection(client=client, server=server)
            found.append(connection)
        connection.segments.append(segment)
    return found


def front(case: str) -> list[Connection]:
    return [each for each in connections(f"reverse-proxy/{case}") if each.server[1] != BACKEND_PORT]


def back(case: str) -> list[Connection]:
    return [each for each in connections(f"reverse-proxy/{case}") if each.server[1] == BACKEND_PORT]


def crafted(case: str) -> Connection:
    (connection,) = connections(f"crafted/{case}")
    return connection


def records(connection: Connection, end: Endpoint) -> list[Record]:
    stream, arrivals = connection.stream(end)
    found, offset = [], 0
    while offset < len(stream):
        body_end = offset + 5 + int.from_bytes(stream[offset + 3 : offset + 5], "big")
        at = next(at for until, at in arrivals if until >= body_end)
        found.append(Record(kind=stream[offset], body=stream[offset + 5 : body_end], at=at))
        offset = body_end
    return found


def hello(connection: Connection, end: Endpoint) -> Record:
    """The one ClientHello or ServerHello of ``end``."""
    kind = CLIENT_HELLO if end == connection.client else SERVER_HELLO
    (found,) = (r for r in records(connection, end) if r.kind == HANDSHAKE and r.body[0] == kind)
    return found


def extensions(message: Record) -> dict[int, bytes]:
    """The extensions of a ClientHello or ServerHello, RFC 8446 sections 4.1.2 and 4.1.3."""
    body = message.body[4 + 2 + 32 :]
    body = body[1 + body[0] :]  # session id
    if message.body[0] == CLIENT_HELLO:
        body = body[2 + int.from_bytes(body[:2], "big") :]  # cipher suites
        body = body[1 + body[0] :]  # compression methods
    else:
        body = body[2 + 1 :]  # the one suite, the one method
    found, body = {}, body[2:]
    while body:
        size = int.from_bytes(body[2:4], "big")
        found[int.from_bytes(body[:2], "big")] = body[4 : 4 + size]
        body = body[4 + size :]
    return found


def finished_at(connection: Connection) -> int:
    """When the client's Finished was complete."""
    encrypted = (r for r in records(connection, connection.client) if r.kind == APPLICATION_DATA)
    return next(record.at for record in encrypted if len(record.body) in FINISHED_SIZES)


def answered_at(connection: Connection) -> int:
    """When the last byte of the last response was there."""
    if connection.server[1] != 443:
        return connection.data_sent_by(connection.server)[-1].at
    return max(r.at for r in records(connection, connection.server) if len(r.body) != ALERT_SIZE)


def handshake_share(case: str) -> float:
    """The handshake's part of the time from SYN to the last byte of the response."""
    (connection,) = front(case)
    handshake = finished_at(connection) - hello(connection, connection.client).at
    return handshake / (answered_at(connection) - connection.opened_at)


@cache
def wireshark(case: str) -> dict[str, list[int]]:
    """What tshark says of each frame: the frames for which a field of :data:`FIELDS` has a value."""
    if not installed():
        pytest.skip("tshark is not installed")
    options = ["-n", "-T", "fields", *(word for name in FIELDS for word in ("-e", name))]
    if case.startswith("crafted/"):
        options += ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
    rows = [line.split("\t") for line in ask([*options, "-r", str(CAPTURES / case / "input.pcap")]).splitlines()]
    return {
        name: [number for number, row in enumerate(rows, start=1) if row[column]] for column, name in enumerate(FIELDS)
    }


def tshark_fields(case: str, *words: str) -> list[list[str]]:
    """What tshark says of a capture, its secrets given, one row per frame."""
    wireshark(case)  # skips where there is none
    folder = CAPTURES / case
    options = ["-n", "-2", "-r", str(folder / "input.pcap"), "-T", "fields", "-E", "separator=|", *words]
    text = ask([*options, "-o", f"{KEYLOG}{folder / 'keys.log'}"])
    return [line.split("|") for line in text.splitlines()]
