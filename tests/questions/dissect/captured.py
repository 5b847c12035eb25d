"""What the captures of this repository hold, read by dpkt and put together here.

In: a capture, and which frame is of which stream. Out: IP packets, and the handshake messages that were sent in clear.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import dpkt

from conchart.questions.dissect import HandshakeMessage
from tests.conftest import ROOT

WRAPPED = {"hsr-prp", "l2tpv3-udp1701", "lt-pktap149-user2", "tzsp-mikrotik"}
"""Encapsulations that dpkt does not take off; `tests/wild` has the truth of what is inside."""
PATHS = sorted(path for path in (ROOT / "captures").glob("*/*/input.pcap") if path.parent.name not in WRAPPED)
BEFORE_IP = {1: 14, 101: 0, 276: 20}
"""Bytes of Ethernet, of nothing and of Linux's cooked capture, by link type."""

CHANGE_CIPHER_SPEC, HANDSHAKE = 20, 22
CLIENT_HELLO, SERVER_HELLO = 1, 2


def ip_packets(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Frame, instant and IP packet of each."""
    with path.open("rb") as file:
        reader = dpkt.pcap.Reader(file)
        skipped = BEFORE_IP[reader.datalink()]
        for frame, (seconds, packet) in enumerate(reader, 1):
            # Microseconds come as a float, which is exact to one of them, nanoseconds as a decimal number.
            at = int(seconds * 10**9) if isinstance(seconds, Decimal) else round(seconds * 10**6) * 1000
            yield frame, at, bytes(packet)[skipped:]


@dataclass
class Stream:
    """What both ends of a connection sent."""

    sent: dict[str, dict[int, bytes]] = field(default_factory=lambda: defaultdict(dict))
    """By sender: sequence number to payload."""

    def messages(self, version: str | None) -> list[HandshakeMessage]:
        """The handshake messages of a connection that begins with TLS, up to what is encrypted: the client's first."""
        return [
            HandshakeMessage(kind=kind, version=version, body=body, sender=sender)
            for sender in ("client", "server")
            for kind, body in _messages(_whole(self.sent[sender]))
        ]


def streams(path: Path, senders: dict[int, tuple[int, str]]) -> dict[int, Stream]:
    """The streams of a capture; ``senders`` has stream and sender of each frame."""
    found: dict[int, Stream] = defaultdict(Stream)
    for frame, _at, raw in ip_packets(path):
        if frame in senders:
            stream, sender = senders[frame]
            tcp = (dpkt.ip6.IP6 if raw[0] >> 4 == 6 else dpkt.ip.IP)(raw).data
            if isinstance(tcp, dpkt.tcp.TCP) and tcp.data:
                found[stream].sent[sender].setdefault(tcp.seq, bytes(tcp.data))
    return found


def _whole(sent: dict[int, bytes]) -> bytes:
    """The bytes from the first one on, up to a gap."""
    whole, start = b"", next(iter(sent), 0)
    for seq in sorted(sent, key=lambda seq: (seq - start) % 2**32):
        if (seq - start) % 2**32 == len(whole):
            whole += sent[seq]
    return whole


def _messages(stream: bytes) -> Iterator[tuple[int, bytes]]:
    buffer, sealed = b"", False
    while len(stream) >= 5 and stream[0] in {CHANGE_CIPHER_SPEC, HANDSHAKE}:
        end = 5 + int.from_bytes(stream[3:5], "big")
        body, kind, stream = stream[5:end], stream[0], stream[end:]
        if kind == CHANGE_CIPHER_SPEC:
            sealed = True
            continue
        buffer += body
        while len(buffer) >= 4 and len(buffer) >= (length := 4 + int.from_bytes(buffer[1:4], "big")):
            # After a HelloRetryRequest, hellos follow what looks like the beginning of encryption for middleboxes.
            if not sealed or buffer[0] in {CLIENT_HELLO, SERVER_HELLO}:
                yield buffer[0], buffer[4:length]
            buffer = buffer[length:]
