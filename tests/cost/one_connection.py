"""Large captures of one connection each, for the law of cost of `explain`: N of one thing, in packets of their own.

In: N. Out: a pcap file. The name of the shape says what N counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tests.benchmarks.generate import FILE_HEADER, Script
from tests.cost.made_up import REQUEST_FIELDS, frame, lookups, one_by_one, played
from tests.laws.talk import ACK, PSH

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0)
UPGRADE = (
    b"GET /chat HTTP/1.1\r\nHost: www.example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
UPGRADED = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
)


def streams_open(n: int) -> Iterator[bytes]:
    """Streams of HTTP/2 which are all open before the first is answered; each message has a packet of its own."""
    script = opened_http2()
    numbers = [2 * number + 1 for number in range(n)]
    for number in numbers:
        script.say(True, frame(1, 5, number, REQUEST_FIELDS))
    for number in numbers:
        script.say(False, frame(1, 4, number, b"\x88") + frame(0, 1, number, b"hello"))
    return finished(script, 8080)


def streams_byte_by_byte(n: int) -> Iterator[bytes]:
    """Streams of HTTP/2 whose request fields come in a packet for each byte."""
    script = opened_http2()
    for number in range(1, 2 * n, 2):
        for byte in frame(1, 5, number, REQUEST_FIELDS):
            script.say(True, bytes([byte]))
        script.say(False, frame(1, 4, number, b"\x88") + frame(0, 1, number, b"hello"))
    return finished(script, 8080)


def lookups_of_a_socket(n: int) -> Iterator[bytes]:
    """Lookups of one socket, each answered before the next."""
    return lookups(n, batch=1)


def websocket_messages(n: int) -> Iterator[bytes]:
    """Messages of one byte through a WebSocket, from both sides in turns (RFC 6455 section 5.2)."""
    script = Script()
    script.open()
    script.say(True, UPGRADE)
    script.say(False, UPGRADED)
    for number in range(n):
        from_client = number % 2 == 0
        script.say(from_client, b"\x81\x81\0\0\0\0x" if from_client else b"\x81\x01x")
    return finished(script, 80)


def download(n: int) -> Iterator[bytes]:
    """Segments of one response, every second one acknowledged."""
    script = Script()
    script.open()
    script.say(True, b"GET /image.iso HTTP/1.1\r\nHost: www.example.com\r\n\r\n")
    script.say(False, b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (100 * n))
    for number in range(n):
        script.add(False, PSH | ACK, b"x" * 100)
        if number % 2:
            script.add(True, ACK)
    return finished(script, 80)


def opened_http2() -> Script:
    """A connection of HTTP/2 in clear, before its first stream."""
    script = Script()
    script.open()
    script.say(True, PREFACE)
    script.say(False, frame(4, 0, 0) + frame(4, 1, 0))
    return script


def finished(script: Script, port: int) -> Iterator[bytes]:
    """The packets of a script, and its end."""
    script.close()
    return one_by_one(iter([played(script, 0, port)]))


SHAPES: Mapping[str, Callable[[int], Iterator[bytes]]] = {
    "HTTP/2 streams, all open at once": streams_open,
    "HTTP/2 streams, byte by byte": streams_byte_by_byte,
    "lookups of one socket": lookups_of_a_socket,
    "WebSocket messages of a byte": websocket_messages,
    "segments of a response": download,
}


def make(shape: str, n: int, path: Path) -> Path:
    """Write a capture of N of one thing."""
    path.write_bytes(FILE_HEADER + b"".join(SHAPES[shape](n)))
    return path
