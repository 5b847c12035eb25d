"""One TCP connection, written down packet by packet, for the crafted captures.

In: who sends what, with which numbers. Out: records of a pcap file. The packets are those of ``tests.laws``; a story
can give any of them numbers, flags and lengths that no TCP would.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.laws.files import datagram
from tests.laws.hello import Speaker
from tests.laws.talk import ACK, FIN, PSH, SYN, Packet

MS, SECOND = 10**6, 10**9
GET = b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@dataclass
class Line:
    """One connection, written down packet by packet."""

    port: int
    server_port: int = 80
    now: int = 1_700_000_000 * SECOND
    wrap: Callable[[bytes], bytes] = lambda ip: ip
    records: list[bytes] = field(default_factory=list)
    """Of a pcap file with times in nanoseconds and frames that begin with IP."""
    next: dict[Speaker, int] = field(default_factory=lambda: {"client": 1_001, "server": 5_001})
    ip_id: int = 0

    def send(
        self,
        who: Speaker,
        data: bytes = b"",
        flags: int = ACK,
        *,
        seq: int | None = None,
        ack: int | None = None,
        after: int = MS,
        options: bytes = b"",
        cut: int | None = None,
        change: Callable[[bytes], bytes] = lambda ip: ip,
        again: bool = False,
    ) -> None:
        """One packet. ``cut`` is how much of it was captured; ``change`` spoils it; ``again`` keeps the IP number."""
        ends = ("10.0.0.5", self.port), ("10.0.0.9", self.server_port)
        source, destination = ends if who == "client" else ends[::-1]
        peer: Speaker = "server" if who == "client" else "client"
        self.now += after
        self.ip_id += not again
        at = self.next[who] if seq is None else seq
        acknowledged = (self.next[peer] if ack is None else ack) if flags & ACK else 0
        packet = Packet(
            at=self.now, source=source, destination=destination, seq=at % 2**32, ack=acknowledged % 2**32,
            flags=flags | (PSH if data else 0), payload=data, options=options, ip_id=self.ip_id,
        )  # fmt: skip
        frame = self.wrap(change(datagram(packet)))
        second, rest = divmod(self.now, SECOND)
        captured = frame[:cut]
        self.records.append(struct.pack("<4I", second, rest, len(captured), len(frame)) + captured)
        if seq is None:
            self.next[who] += len(data) + bool(flags & (SYN | FIN))

    def open(self) -> None:
        """SYN, SYN-ACK, ACK."""
        self.send("client", flags=SYN, seq=self.next["client"] - 1)
        self.send("server", flags=SYN | ACK, seq=self.next["server"] - 1)
        self.send("client")

    def say(self, who: Speaker, data: bytes) -> None:
        """Data and its acknowledgement."""
        self.send(who, data)
        self.send("server" if who == "client" else "client")

    def exchange(self) -> None:
        """A request and its response."""
        self.say("client", GET)
        self.say("server", OK)

    def close(self) -> None:
        """Both sides end."""
        self.send("client", flags=FIN | ACK)
        self.send("server", flags=FIN | ACK)
        self.send("client")
