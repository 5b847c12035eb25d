"""A TCP conversation, written down packet by packet as a capture at one point would show it.

In: who says what, after how long. Out: Ethernet frames with exact times, valid checksums and the sequence numbers
that follow from what was said. A story can send any segment again, or leave one out, but cannot get an ordinary
number wrong. Nothing is random and no clock is read: the same story gives the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.utils import RawPcapWriter

START_AT = 1_767_571_200_000_000_000
"""2026-01-05 00:00:00 UTC, nanoseconds since the Unix epoch."""
MS = 1_000_000
MSS = 1460
WINDOW = 64_240

CLIENT, SERVER = "192.0.2.10", "198.51.100.20"
SYN_OPTIONS = [("MSS", MSS), ("SAckOK", b"")]


@dataclass
class Side:
    """One end: where it is, and where its stream stands."""

    mac: str
    address: str
    port: int
    isn: int
    next_seq: int
    """Sequence number of its next new byte."""
    ip_id: int


def _mac(address: str) -> str:
    return f"02:00:00:00:00:{int(address.rpartition('.')[2]):02}"


class Capture:
    """Frames in the order in which they were seen."""

    def __init__(self) -> None:
        """Start empty."""
        self.frames: list[tuple[int, bytes]] = []

    def write(self, path: Path) -> None:
        """Write a little-endian pcap file with microsecond times: several talks at once are put in order."""
        with RawPcapWriter(str(path), linktype=1, endianness="<") as file:
            file.write_header(None)
            for at, frame in sorted(self.frames, key=lambda entry: entry[0]):
                file.write_packet(frame, sec=at // 10**9, usec=at % 10**9 // 1000)


class Talk:
    """One connection between a client and a server."""

    def __init__(
        self,
        capture: Capture,
        *,
        after_ms: float = 0,
        port: int = 51_000,
        client: str = CLIENT,
        server: str = SERVER,
        server_port: int = 80,
        client_isn: int = 0x1A2B3C4D,
        server_isn: int = 0x7F001000,
    ) -> None:
        """Begin ``after_ms`` after the capture's start; the numbers have defaults, all fixed."""
        self.capture = capture
        self.now = START_AT + round(after_ms * MS)
        self.client_side = Side(_mac(client), client, port, client_isn, client_isn, 0x1000)
        self.server_side = Side(_mac(server), server, server_port, server_isn, server_isn, 0x8000)

    def wait(self, ms: float) -> None:
        """Let time pass."""
        self.now += round(ms * MS)

    def client(self, flags: str = "A", data: bytes = b"", **special: object) -> int:
        """Let the client send one segment; see :meth:`_send`."""
        return self._send(self.client_side, self.server_side, flags, data, **special)  # type: ignore[arg-type]

    def server(self, flags: str = "A", data: bytes = b"", **special: object) -> int:
        """Let the server send one segment; see :meth:`_send`."""
        return self._send(self.server_side, self.client_side, flags, data, **special)  # type: ignore[arg-type]

    def handshake(self, rtt_ms: float = 20) -> None:
        """SYN, SYN-ACK, ACK as the client sees them."""
        self.client("S", options=SYN_OPTIONS)
        self.wait(rtt_ms)
        self.server("SA", options=SYN_OPTIONS)
        self.wait(0.05)
        self.client()

    def goodbye(self, rtt_ms: float = 20) -> None:
        """The client closes, the server agrees."""
        self.wait(1)
        self.client("FA")
        self.wait(rtt_ms)
        self.server("FA")
        self.wait(0.05)
        self.client()

    def skip(self, side: Side, size: int) -> None:
        """Count bytes as said that the capture did not see; less than 0 takes back what the peer refused."""
        side.next_seq += size

    def _send(
        self,
        sender: Side,
        receiver: Side,
        flags: str,
        data: bytes,
        *,
        seq: int | None = None,
        ack: int | None = None,
        window: int = WINDOW,
        options: list[tuple[str, object]] | None = None,
        ttl: int = 64,
    ) -> int:
        """Write one segment down and return its sequence number.

        ``seq`` repeats or reorders: it leaves the stream where it stands unless the segment reaches further. ``ack``
        defaults to all that the receiver has said. ``ttl`` is the hop limit as it arrives.
        """
        first = sender.next_seq if seq is None else seq
        acknowledges = (receiver.next_seq if ack is None else ack) if "A" in flags else 0
        packet = (
            Ether(src=sender.mac, dst=receiver.mac)
            / IP(src=sender.address, dst=receiver.address, id=sender.ip_id, flags="DF", ttl=ttl)
            / TCP(
                sport=sender.port, dport=receiver.port, seq=first % 2**32, ack=acknowledges % 2**32, flags=flags,
                window=window, options=options or [],
            )
            / data
        )  # fmt: skip
        sender.ip_id += 1
        sender.next_seq = max(sender.next_seq, first + len(data) + ("S" in flags) + ("F" in flags))
        self.capture.frames.append((self.now, bytes(packet)))
        return first


def get(target: str) -> bytes:
    """Return a request head."""
    return f"GET {target} HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: crafted\r\nAccept: */*\r\n\r\n".encode()


def ok(size: int) -> bytes:
    """Return a response whose body is ``size`` bytes of numbered lines."""
    lines = b"".join(b"%07d the shelf is full of fine things\n" % number for number in range(size // 40 + 1))
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % size + lines[:size]


def segments(data: bytes) -> list[bytes]:
    """Cut a message at the segment size."""
    return [data[start : start + MSS] for start in range(0, len(data), MSS)]
