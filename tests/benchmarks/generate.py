"""Large captures for the benchmark: deterministic, made in about a microsecond per packet.

In: a shape and a number of packets. Out: a little-endian microsecond pcap file. Every packet is one `struct.pack` of a
template whose constant parts are prepared once; addresses, ports, sequence numbers and times are what varies. Checksums
are zero, as in captures taken on a host that leaves them to its network card.

    python -m tests.benchmarks.generate full /tmp/full.pcap --packets 3060000
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

import click

from tests.laws.hello import Tls, application, filler
from tests.laws.talk import ACK, FIN, PSH, SYN

Shape = Literal["full", "resumed", "keepalive", "bulk", "headers", "small"]
MACS = bytes.fromhex("020000000001020000000002")
FILE_HEADER = struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 262_144, 1)
TIME = struct.Struct("<II").pack
START = 1_700_000_000
MSS = 1_448
OPEN = 1_000
"""Short connections that are open at the same time."""
HOSTS = 200
"""Different servers of short connections."""
REQUESTS = 100
"""Requests of one connection of `keepalive`."""
PACKETS_PER_CONNECTION = {"full": 17, "resumed": 16, "keepalive": 6 + 2 * REQUESTS}
BULK_CONNECTIONS = 8
SNAPSHOT = 128
"""Bytes that are kept of each packet of `headers`, as `tcpdump -s 128` does."""
PACKET_HEADER = struct.Struct("<IIII")


@dataclass(slots=True)
class Template:
    """One packet of a conversation; its place in both sequence spaces is relative to the ISNs."""

    from_client: bool
    seq: int
    """Relative to the sender's ISN."""
    ack: int | None
    """Relative to the receiver's ISN; None without the ACK flag."""
    pack: Callable[..., bytes]
    before: bytes
    """Captured and original length, Ethernet and IPv4 up to the addresses."""
    after: bytes
    """From the data offset of TCP to the payload's end."""


def template(from_client: bool, seq: int, ack: int | None, flags: int, payload: bytes, ip_id: int) -> Template:
    """Prepare a packet that carries the TCP timestamps option, as nearly all do."""
    options = b"\2\4\5\xb4\1\3\3\7" if flags & SYN else b""
    options += b"\1\1\x08\x0a" + struct.pack(">II", 1_000 + ip_id, 1_000)
    size = 40 + len(options) + len(payload)
    lengths = struct.pack("<II", 14 + size, 14 + size)
    before = lengths + MACS + b"\x08\x00" + struct.pack(">BBHHHBBH", 0x45, 0, size, ip_id, 0x4000, 64, 6, 0)
    tcp = struct.pack(">BBHHH", (20 + len(options)) // 4 << 4, flags, 501, 0, 0)
    after = tcp + options + payload
    pack = struct.Struct(f">8s{len(before)}s8sHHII{len(after)}s").pack
    return Template(from_client, seq, ack, pack, before, after)


class Script:
    """Builds the templates of one conversation, keeping both sides' sequence numbers."""

    def __init__(self) -> None:
        self.packets: list[Template] = []
        self.sent = {True: 0, False: 0}

    def add(self, from_client: bool, flags: int, payload: bytes = b"") -> None:
        """One packet; SYN and FIN take a sequence number."""
        ack = self.sent[not from_client] if flags & ACK else None
        identification = len(self.packets) + 1
        self.packets.append(template(from_client, self.sent[from_client], ack, flags, payload, identification))
        self.sent[from_client] += len(payload) + bool(flags & (SYN | FIN))

    def say(self, from_client: bool, data: bytes) -> None:
        """One message in segments of a full MSS."""
        for start in range(0, len(data), MSS):
            self.add(from_client, PSH | ACK, data[start : start + MSS])

    def open(self) -> None:
        """The TCP handshake."""
        self.add(True, SYN)
        self.add(False, SYN | ACK)
        self.add(True, ACK)

    def close(self) -> None:
        """Both sides finish, the server first."""
        self.add(False, FIN | ACK)
        self.add(True, FIN | ACK)
        self.add(False, ACK)


def tls_connection(number: int, *, resumed: bool) -> list[Template]:
    """A TLS connection with one request; where nothing is resumed, TLS 1.3 and TLS 1.2 take turns."""
    modern = resumed or number % 2 == 0
    tls = Tls(
        version="TLSv1.3" if modern else "TLSv1.2",
        kind="psk" if resumed else "full",
        cipher=0x1301 if modern else 0xC02F,
        sni=f"host-{number:03}.example.com",
        alpn="http/1.1",
        certificate_bytes=1_100,
        tickets=1,
        seed=number,
    )
    script = Script()
    script.open()
    messages = tls.messages()
    for who, data in messages[:2]:
        script.say(who == "client", data)
    script.add(True, ACK)
    for who, data in messages[2:3] if modern else messages[2:]:
        script.say(who == "client", data)
    script.say(True, application(420, ("request", number)))
    for _, data in messages[3:] if modern else []:
        script.say(False, data)
    script.add(modern, ACK)
    script.say(False, application(1_900, ("response", number)))
    script.add(True, ACK)
    script.close()
    return script.packets


def http_connection(number: int) -> list[Template]:
    """An HTTP/1.1 connection that is kept alive: each response acknowledges its request, and the other way round."""
    script = Script()
    script.open()
    body = filler(1_200, number)
    for visit in range(REQUESTS):
        path = b"/page/%d?visit=%d" % (number, visit)
        script.say(True, b"GET " + path + b" HTTP/1.1\r\nHost: www.example.com\r\nUser-Agent: benchmark\r\n\r\n")
        head = b"HTTP/1.1 200 OK\r\nServer: benchmark\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n"
        script.say(False, head % len(body) + body)
    script.close()
    return script.packets


@dataclass(slots=True)
class Flow:
    """An open connection: what it still has to send, its addresses and initial sequence numbers."""

    templates: Iterator[Template]
    there: bytes
    """Client and server address, as in a packet to the server."""
    back: bytes
    client_port: int
    server_port: int
    client_isn: int
    server_isn: int

    def record(self, step: Template, micros: int) -> bytes:
        """The pcap record of one packet."""
        at = TIME(START + micros // 1_000_000, micros % 1_000_000)
        if step.from_client:
            addresses, source, destination = self.there, self.client_port, self.server_port
            isn, peer_isn = self.client_isn, self.server_isn
        else:
            addresses, source, destination = self.back, self.server_port, self.client_port
            isn, peer_isn = self.server_isn, self.client_isn
        seq = (isn + step.seq) % 2**32
        ack = 0 if step.ack is None else (peer_isn + step.ack) % 2**32
        return step.pack(at, step.before, addresses, source, destination, seq, ack, step.after)


def flow(number: int, templates: list[Template], server_port: int) -> Flow:
    """The ``number``-th connection; no two share a client address and port."""
    client = bytes((10, number // 12_800_000, number // 50_000 % 256, number % 250 + 1))
    server = bytes((192, 0, 2, number % HOSTS + 1))
    isn = number * 2_654_435_761
    port = 10_000 + number % 50_000
    return Flow(iter(templates), client + server, server + client, port, server_port, isn, isn + 77_777)


def full(packets: int) -> Iterator[bytes]:
    """Connections that begin with a full TLS handshake."""
    return short([tls_connection(number, resumed=False) for number in range(HOSTS)], 443, packets)


def resumed(packets: int) -> Iterator[bytes]:
    """Connections that resume a TLS 1.3 session."""
    return short([tls_connection(number, resumed=True) for number in range(HOSTS)], 443, packets)


def keepalive(packets: int) -> Iterator[bytes]:
    """Connections with many small requests each."""
    return short([http_connection(number) for number in range(HOSTS)], 80, packets)


def short(scripts: list[list[Template]], server_port: int, packets: int) -> Iterator[bytes]:
    """Short connections, 1,000 open at a time, each at another stage than its neighbours; all end."""
    connections = max(packets // len(scripts[0]), 1)
    flows: deque[Flow] = deque()
    opened = written = 0
    while flows or opened < connections:
        # One more every 8 packets until enough are open: that spreads them over all stages.
        if opened < connections and len(flows) < OPEN and (written % 8 == 0 or not flows):
            flows.append(flow(opened, scripts[opened % len(scripts)], server_port))
            opened += 1
        current = flows.popleft()
        step = next(current.templates, None)
        if step is not None:
            flows.append(current)
            yield current.record(step, written * 5)
            written += 1


def bulk_connection(responses: int) -> Iterator[Template]:
    """One HTTP/1.1 download of ``responses`` full segments, acknowledged two by two."""
    script = Script()
    script.open()
    script.say(True, b"GET /image.iso HTTP/1.1\r\nHost: mirror.example.com\r\nUser-Agent: benchmark\r\n\r\n")
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n"
    head %= responses * MSS
    script.say(False, head)
    yield from script.packets
    blocks = [filler(MSS, number) for number in range(16)]
    for number in range(responses):
        script.packets.clear()
        script.add(False, PSH | ACK, blocks[number % len(blocks)])
        if number % 2 or number == responses - 1:
            script.add(True, ACK)
        yield from script.packets
    script.packets.clear()
    script.close()
    yield from script.packets


def bulk(packets: int) -> Iterator[bytes]:
    """Eight downloads side by side, six packets of one and then six of the next."""
    responses = max((packets // BULK_CONNECTIONS - 8) * 2 // 3, 2)
    return interleaved([bulk_connection(responses) for _ in range(BULK_CONNECTIONS)])


def interleaved(connections: list[Iterator[Template]]) -> Iterator[bytes]:
    """Six packets of one connection and then six of the next."""
    flows: deque[Flow] = deque()
    for number, templates in enumerate(connections):
        flows.append(flow(number, [], 80))
        flows[-1].templates = templates
    written = 0
    while flows:
        current = flows.popleft()
        steps = list(islice(current.templates, 6))
        for step in steps:
            yield current.record(step, written * 3)
            written += 1
        if steps:
            flows.append(current)


def headers(packets: int) -> Iterator[bytes]:
    """The same downloads, of which only headers were captured."""
    for record in bulk(packets):
        seconds, micros, captured, length = PACKET_HEADER.unpack_from(record)
        stored = min(captured, SNAPSHOT)
        yield (
            PACKET_HEADER.pack(seconds, micros, stored, length)
            + record[PACKET_HEADER.size : PACKET_HEADER.size + stored]
        )


def trickle(chunks: int) -> Iterator[Template]:
    """One HTTP/1.1 response of tiny chunks, each in a segment of its own and acknowledged at once."""
    script = Script()
    script.open()
    script.say(True, b"GET /ticker HTTP/1.1\r\nHost: ticker.example.com\r\nUser-Agent: benchmark\r\n\r\n")
    script.say(False, b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(chunks):
        script.say(False, b"8\r\n12345678\r\n")
        script.add(True, ACK)
        yield from script.packets
        script.packets.clear()
    script.say(False, b"0\r\n\r\n")
    script.close()
    yield from script.packets


def small(packets: int) -> Iterator[bytes]:
    """Connections of small packets and nothing else, side by side."""
    return interleaved([trickle(max((packets // BULK_CONNECTIONS - 9) // 2, 1)) for _ in range(BULK_CONNECTIONS)])


SHAPES: dict[Shape, Callable[[int], Iterator[bytes]]] = {
    "full": full,
    "resumed": resumed,
    "keepalive": keepalive,
    "bulk": bulk,
    "headers": headers,
    "small": small,
}


def generate(shape: Shape, path: Path, packets: int) -> int:
    """Write about ``packets`` packets of a shape to ``path``.

    Returns:
        How many packets were written: whole connections only.
    """
    written = 0
    records = SHAPES[shape](packets)
    with path.open("wb") as file:
        file.write(FILE_HEADER)
        while block := list(islice(records, 20_000)):
            file.write(b"".join(block))
            written += len(block)
    return written


@click.command()
@click.argument("shape", type=click.Choice(list(SHAPES)))
@click.argument("path", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--packets", default=3_060_000, show_default=True, type=click.IntRange(min=1))
def main(shape: Shape, path: Path, packets: int) -> None:
    """Write a benchmark capture of SHAPE to PATH."""
    written = generate(shape, path, packets)
    click.echo(f"{path}: {written:,} packets, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
