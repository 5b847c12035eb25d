"""Captures made up for the core's law of cost: each is N of one thing, and nothing else.

In: N. Out: a pcap file. What N counts is in the name of the shape: connections, requests, lookups, streams, records.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tests.benchmarks.generate import FILE_HEADER, MACS, START, TIME, Flow, Script, flow
from tests.laws.hello import Tls, application
from tests.laws.talk import ACK, PSH, SYN

RST = 4
REQUEST = b"GET /page HTTP/1.1\r\nHost: www.example.com\r\n\r\n"
RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
STEP_US = 20
LOOKUP_PORT = 53


def played(script: Script, number: int, port: int) -> Flow:
    """A script between two addresses, the ``number``-th of its capture."""
    return flow(number, script.packets, port)


def one_by_one(flows: Iterator[Flow]) -> Iterator[bytes]:
    """The flows one after the other."""
    micros = 0
    for current in flows:
        for step in current.templates:
            yield current.record(step, micros)
            micros += STEP_US


def side_by_side(flows: Iterator[Flow]) -> Iterator[bytes]:
    """The first packet of every flow, the second of every flow, and so on: all are open at once."""
    waiting, micros = list(flows), 0
    while waiting:
        left = []
        for current in waiting:
            step = next(current.templates, None)
            if step is not None:
                yield current.record(step, micros)
                micros += STEP_US
                left.append(current)
        waiting = left


def scan(n: int) -> Iterator[bytes]:
    """One client asks n ports; every second one refuses, the others stay silent."""
    for number in range(n):
        script = Script()
        script.add(True, SYN)
        if number % 2:
            script.add(False, RST | ACK)
        current = Flow(iter(script.packets), b"\x0a\0\0\1\x0a\0\0\2", b"\x0a\0\0\2\x0a\0\0\1", 40_000, number + 1, 1, 2)
        for step in current.templates:
            yield current.record(step, number * STEP_US)


def short_connection() -> Script:
    """One request and its response."""
    script = Script()
    script.open()
    script.say(True, REQUEST)
    script.say(False, RESPONSE)
    script.close()
    return script


def clients(n: int) -> Iterator[bytes]:
    """Connections of n clients, one after the other."""
    return one_by_one(played(short_connection(), number, 80) for number in range(n))


def open_at_once(n: int) -> Iterator[bytes]:
    """Connections of n clients, all open at the same time."""
    return side_by_side(played(short_connection(), number, 80) for number in range(n))


def sequential(n: int) -> Iterator[bytes]:
    """Requests on one connection, each answered before the next."""
    script = Script()
    script.open()
    for _ in range(n):
        script.say(True, REQUEST)
        script.say(False, RESPONSE)
    script.close()
    return one_by_one(iter([played(script, 0, 80)]))


def pipelined(n: int) -> Iterator[bytes]:
    """Requests on one connection, all sent before the first response."""
    script = Script()
    script.open()
    script.say(True, REQUEST * n)
    script.say(False, RESPONSE * n)
    script.close()
    return one_by_one(iter([played(script, 0, 80)]))


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """A frame of HTTP/2 (RFC 9113 section 4.1)."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


REQUEST_FIELDS = b"\x82\x86\x84\x41\x0fwww.example.com"
"""GET, http, /, and a literal authority, which enters the table (RFC 7541)."""


def streams_one_by_one(n: int) -> Iterator[bytes]:
    """Streams of one connection in clear, each answered before the next."""
    return http2(n, batch=1)


def streams_at_once(n: int) -> Iterator[bytes]:
    """Streams of one connection in clear, all open at the same time."""
    return http2(n, batch=n)


def http2(n: int, batch: int) -> Iterator[bytes]:
    """Streams of one connection, ``batch`` asked together and then answered."""
    script = Script()
    script.open()
    script.say(True, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0))
    script.say(False, frame(4, 0, 0) + frame(4, 1, 0))
    for first in range(0, n, batch):
        numbers = [2 * number + 1 for number in range(first, min(first + batch, n))]
        script.say(True, b"".join(frame(1, 5, number, REQUEST_FIELDS) for number in numbers))
        script.say(False, b"".join(frame(1, 4, number, b"\x88") + frame(0, 1, number, b"hello") for number in numbers))
    script.close()
    return one_by_one(iter([played(script, 0, 8080)]))


def records(n: int) -> Iterator[bytes]:
    """Sealed records of one TLS connection: small ones, from both sides in turns."""
    script = Script()
    script.open()
    tls = Tls(version="TLSv1.3", kind="full", cipher=0x1301, sni="www.example.com", alpn="http/1.1")
    for who, data in tls.messages():
        script.say(who == "client", data)
    for number in range(n):
        script.say(number % 2 == 0, application(100, number % 16))
    script.close()
    return one_by_one(iter([played(script, 0, 443)]))


def lost(n: int) -> Iterator[bytes]:
    """A transfer of n segments, of which every second one is captured after the one behind it."""
    script = Script()
    script.open()
    script.say(True, REQUEST)
    script.say(False, b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (n * 100))
    for _ in range(n):
        script.add(False, PSH | ACK, b"x" * 100)
    sent = script.packets[5:]
    swapped = [packet for first, second in zip(sent[::2], sent[1::2], strict=False) for packet in (second, first)]
    script.packets[5:] = swapped
    script.close()
    return one_by_one(iter([played(script, 0, 80)]))


def lookup(number: int, *, answered: bool) -> bytes:
    """A DNS message of the ``number``-th lookup of one socket."""
    name = b"".join(bytes([len(label)]) + label for label in (b"host-%d" % number, b"example", b"com")) + b"\0"
    question = name + struct.pack(">HH", 1, 1)
    head = struct.pack(">HHHHHH", number % 65_536, 0x8180 if answered else 0x0100, 1, int(answered), 0, 0)
    answer = b"\xc0\x0c" + struct.pack(">HHIH4s", 1, 1, 60, 4, b"\x0a\0\0\7")
    return head + question + (answer if answered else b"")


def datagram(payload: bytes, micros: int, *, from_client: bool) -> bytes:
    """The pcap record of a datagram between one client's socket and its DNS server."""
    ports = (40_000, LOOKUP_PORT) if from_client else (LOOKUP_PORT, 40_000)
    ends = (b"\x0a\0\0\1", b"\x0a\0\0\2") if from_client else (b"\x0a\0\0\2", b"\x0a\0\0\1")
    udp = struct.pack(">HHHH", *ports, 8 + len(payload), 0) + payload
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0x4000, 64, 17, 0) + b"".join(ends)
    packet = MACS + b"\x08\x00" + ip + udp
    at = TIME(START + micros // 1_000_000, micros % 1_000_000)
    return at + struct.pack("<II", len(packet), len(packet)) + packet


def lookups_one_by_one(n: int) -> Iterator[bytes]:
    """Lookups of one socket, each answered before the next."""
    return lookups(n, batch=1)


def lookups_at_once(n: int) -> Iterator[bytes]:
    """Lookups of one socket, all asked before the first answer."""
    return lookups(n, batch=n)


def lookups(n: int, batch: int) -> Iterator[bytes]:
    """Lookups of one socket, ``batch`` asked together and then answered."""
    micros = 0
    for first in range(0, n, batch):
        for answered in (False, True):
            for number in range(first, min(first + batch, n)):
                yield datagram(lookup(number, answered=answered), micros, from_client=not answered)
                micros += STEP_US


SHAPES: Mapping[str, Callable[[int], Iterator[bytes]]] = {
    "ports of a scan": scan,
    "clients, one after the other": clients,
    "clients, all open at once": open_at_once,
    "requests, one after the other": sequential,
    "requests, pipelined": pipelined,
    "HTTP/2 streams, one after the other": streams_one_by_one,
    "HTTP/2 streams, all open at once": streams_at_once,
    "sealed records": records,
    "segments out of order": lost,
    "lookups, one after the other": lookups_one_by_one,
    "lookups, all asked at once": lookups_at_once,
}


def make(shape: str, n: int, path: Path) -> Path:
    """Write a capture of N of one thing."""
    path.write_bytes(FILE_HEADER + b"".join(SHAPES[shape](n)))
    return path
