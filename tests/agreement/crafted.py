"""For each class of disagreements a conversation that shows it, and the same one without the cause, which does not.

In: nothing. Out: ``CRAFTED``: how each class is played, and the facts that then disagree. A class is told by its
heading in ``docs/agreement.md``.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Callable
from dataclasses import dataclass

from tests.agreement.line import GET, MS, OK, SECOND, Line
from tests.laws.hello import (
    HANDSHAKE,
    Speaker,
    Tls,
    client_hello,
    extension,
    filler,
    message,
    record,
    server_hello,
    vector,
)
from tests.laws.talk import ACK, FIN, RST, SYN

URG, ECE, CWR = 32, 64, 128

Play = Callable[[Line, bool], None]


@dataclass(frozen=True, slots=True)
class Crafted:
    """A class: the facts that disagree when its cause is there."""

    facts: frozenset[str]
    play: Play
    server_port: int


CRAFTED: dict[str, Crafted] = {}


def shows(section: str, *facts: str, server_port: int = 80) -> Callable[[Play], Play]:
    """Note what plays a class."""

    def note(play: Play) -> Play:
        CRAFTED[section] = Crafted(frozenset(facts), play, server_port)
        return play

    return note


def capture(crafted: Crafted) -> bytes:
    """A file with two connections: stream 0 without the cause, stream 1, long after it, with it."""
    header = struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, 101)
    lines = [
        Line(port=40_000 + number, server_port=crafted.server_port, now=(1_700_000_000 + number * 1000) * SECOND)
        for number in (0, 1)
    ]
    for line, cause in zip(lines, (False, True), strict=True):
        crafted.play(line, cause)
    return header + b"".join(one for line in lines for one in line.records)


@shows("A FIN in a reset", "fin_by")
def fin_in_a_reset(line: Line, cause: bool) -> None:
    line.open()
    line.exchange()
    line.send("client", flags=RST | ACK | (FIN if cause else 0))


@shows("A SYN after the end", "resent", "resent_frames")
def syn_after_the_end(line: Line, cause: bool) -> None:
    line.send("server", flags=SYN | ACK, seq=5_000)
    line.exchange()
    line.close()
    if cause:
        line.send("client", flags=SYN, seq=1_000)


@shows("Acknowledged before it was captured", "resent", "resent_frames")
def acknowledged_first(line: Line, cause: bool) -> None:
    line.open()
    if cause:
        line.send("server", ack=1_001 + len(GET))
    line.send("client", GET)
    line.say("server", OK)


@shows("Acknowledgements of what was never sent", "ack_at")
def acknowledged_unsent(line: Line, cause: bool) -> None:
    line.send("client", flags=SYN, seq=1_000)
    line.send("server", flags=SYN | ACK, seq=5_000)
    line.send("client", seq=2_000_000_000 if cause else 1_001, ack=2_000_000_000 if cause else 5_001)
    line.send("server", flags=RST, seq=2_000_000_000 if cause else 5_001)


@shows("After missing packets", "response_at")
def after_missing_packets(line: Line, cause: bool) -> None:
    head, body = b"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n", filler(2_000)
    line.say("client", GET)
    if cause:
        line.next["server"] += len(head)
    else:
        line.say("server", head)
    line.say("server", body)


@shows("An interim response that nothing follows", "response_at")
def only_an_interim_response(line: Line, cause: bool) -> None:
    line.open()
    line.say("client", GET)
    if cause:
        line.say("server", b"HTTP/1.1 100 ok\r\nContent-Length: 5\r\n\r\nhello")
    line.close()


@shows("Behind what tshark cannot decode", "group", server_port=443)
def malformed_certificate(line: Line, cause: bool) -> None:
    tls = Tls(version="TLSv1.2", cipher=0xC02F)
    (_, hello), (_, flight), *_ = tls.messages()
    if cause:  # lengths inside the certificate that lead outside
        place = flight.index(b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b") - 2
        flight = flight[: place + 1] + b"\xff" + flight[place + 2 :]
    line.open()
    line.say("client", hello)
    line.say("server", flight)


@shows("Clocks that step by years", "syn_ack_at")
def clock_that_steps(line: Line, cause: bool) -> None:
    line.send("client", flags=SYN, seq=1_000)
    begun = line.now
    line.now += 20 * 365 * 86_400 * SECOND * cause
    line.send("server", flags=SYN | ACK, seq=5_000)
    line.now = begun + 2 * MS
    line.send("client")
    line.exchange()


@shows("Bytes of a body that look like a request", "request")
def request_in_a_body(line: Line, cause: bool) -> None:
    line.open()
    length = b"18446744073709551615" if cause else b"0"
    line.say("client", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + length + b"\r\n\r\n" + GET)
    if not cause:
        line.say("server", OK)
    line.say("server", OK)


@shows("Cruft between requests", "request")
def cruft(line: Line, cause: bool) -> None:
    line.open()
    line.exchange()
    if cause:
        line.say("client", b"how now?\r\n")
        line.say("server", b"HTTP/1.1 400 No\r\nContent-Length: 0\r\n\r\n")


@shows("Data at the SYN's own number", "bytes", "request", "resent_frames", "resent")
def at_the_syn(line: Line, cause: bool) -> None:
    line.open()
    if cause:
        line.next = {"client": 1_000, "server": 5_000}
    line.send("client", GET)
    line.send("server", OK)


@shows("Drafts of TLS 1.3", "group", server_port=443)
def draft(line: Line, cause: bool) -> None:
    tls = Tls()
    line.open()
    line.say("client", record(HANDSHAKE, client_hello(tls)))
    share = extension(40, b"\0\x17" + vector(b"\4" + filler(64), 2))
    old = message(2, b"\3\4" + filler(32) + b"\xc0\x2b" + vector(share, 2))  # no session, no compression
    line.say("server", record(HANDSHAKE, old if cause else server_hello(tls), 0x0301))


@shows("Encrypted bytes that look like a hello", "tls", server_port=443)
def encrypted_hello(line: Line, cause: bool) -> None:
    hidden = record(HANDSHAKE, (b"\2\0\0\0" if cause else b"\xa5\xd0\0\1") + filler(36))
    line.say("server", hidden + record(23, filler(60)))


@shows("Flags that no TCP sends", "fin_by", "resent", "resent_frames")
def impossible_flags(line: Line, cause: bool) -> None:
    line.open()
    line.exchange()
    line.send("server", flags=ACK | RST | ((SYN | FIN | URG | ECE | CWR) if cause else 0))


@shows("HTTP/0.9", "request")
def http_0_9(line: Line, cause: bool) -> None:
    line.open()
    line.say("client", b"GET /a\r\n" if cause else GET)
    line.say("server", b"<p>old</p>" if cause else OK)
    line.close()


@shows("Half-open connections", "resent", "resent_frames")
def half_open(line: Line, cause: bool) -> None:
    line.send("client", flags=SYN, seq=1_000)
    if cause:
        line.send("server", seq=900_000_000, ack=700_000_000)
        line.send("client", flags=RST, seq=700_000_000)
        line.send("client", flags=SYN, seq=1_000, after=SECOND)
    line.send("server", flags=SYN | ACK, seq=5_000)
    line.send("client")
    line.exchange()


@shows("Long texts", "target")
def long_text(line: Line, cause: bool) -> None:
    line.open()
    line.say("client", b"GET /" + b"a" * (3_000 if cause else 2_000) + b" HTTP/1.1\r\nHost: a\r\n\r\n")
    line.say("server", OK)


@shows("Messages that are not whole", "request")
def not_whole(line: Line, cause: bool) -> None:
    line.open()
    line.exchange()
    line.send("client", GET[: 30 if cause else None])


@shows("Only the server's hello", "resumed", server_port=443)
def only_the_server(line: Line, cause: bool) -> None:
    (_, hello), (_, reply), *_ = Tls(version="TLSv1.2", cipher=0xC02F, kind="session-id").messages()
    line.send("client", hello) if not cause else None
    line.send("server", reply)


@shows("Other protocols that tshark calls HTTP", "request", "response_at")
def covert_channel(line: Line, cause: bool) -> None:
    line.open()
    post = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\ncome"
    for _ in range(3):
        line.say("client", post)
        line.say("server", post if cause else OK)


@shows("Overlaps and probes", "resent", "resent_frames")
def overlap(line: Line, cause: bool) -> None:
    line.open()
    line.exchange()
    line.send("client", b"a", flags=ACK)
    line.send("client", b"\0\0\0", seq=line.next["client"] - (1 if cause else 0))


@shows("Packets long after the end", "packets", "frames", "last_frame")
def long_after_the_end(line: Line, cause: bool) -> None:
    line.open()
    line.exchange()
    line.close()
    line.send("server", after=(31 if cause else 29) * SECOND)


@shows("Packets that the snap length cut", "server_hello_at", server_port=443)
def snapped(line: Line, cause: bool) -> None:
    (_, hello), (_, flight), *_ = Tls(version="TLSv1.2", cipher=0xC02F).messages()
    answer = record(HANDSHAKE, b"".join(flight[start:end] for start, end in bodies(flight)))
    line.open()
    line.say("client", hello)
    line.send("server", answer[:800])
    line.send("server", answer[800:], cut=80 if cause else None)


def bodies(records: bytes) -> list[tuple[int, int]]:
    """Where the bodies of records are."""
    found, at = [], 0
    while at < len(records):
        length = int.from_bytes(records[at + 3 : at + 5], "big")
        found.append((at + 5, at + 5 + length))
        at += 5 + length
    return found


@shows("Packets with the same timestamp", "hello_frame", server_port=443)
def one_timestamp(line: Line, cause: bool) -> None:
    line.open()
    line.send("client", record(HANDSHAKE, client_hello(Tls())), after=0 if cause else MS)
    line.say("server", record(HANDSHAKE, server_hello(Tls())))


@shows("Reordered segments", "server_done_at", server_port=443)
def reordered(line: Line, cause: bool) -> None:
    (_, hello), (_, flight), *_ = Tls(version="TLSv1.2", cipher=0xC02F).messages()
    line.open()
    line.say("client", hello)
    parts = [(0, flight[:700]), (700, flight[700:])]
    for start, part in reversed(parts) if cause else parts:
        line.send("server", part, seq=5_001 + start)


@shows("Request lines with blanks, or without parts", "target")
def blanks(line: Line, cause: bool) -> None:
    line.open()
    line.say("client", b"GET /a" + (b" b" if cause else b"+b") + b" HTTP/1.1\r\nHost: a\r\n\r\n")
    line.say("server", OK)


@shows("Requests that only the responses tell of", "request")
def only_responses(line: Line, cause: bool) -> None:
    for _ in range(2):
        if cause:
            line.next["client"] += len(GET)
        else:
            line.send("client", GET)
        line.send("server")
        line.send("server", OK, after=20 * MS)


@shows("Responses that nobody asked for", "response_at")
def unasked(line: Line, cause: bool) -> None:
    line.open()
    line.say("client", GET)
    line.say("server", OK * (2 if cause else 1))
    line.exchange()


@shows("Responses that only ACKs tell of", "response_at")
def only_acks(line: Line, cause: bool) -> None:
    line.send("client", flags=SYN, seq=1_000)
    if not cause:
        line.send("server", flags=SYN | ACK, seq=5_000)
    line.send("client")
    line.send("client", GET)
    if cause:
        line.next["server"] += len(OK)
    else:
        line.send("server", OK)
    line.send("client", after=20 * MS)
    line.send("client", flags=FIN | ACK)


@shows("Sequence numbers that no TCP sends", "bytes", "resent", "resent_frames")
def impossible_numbers(line: Line, cause: bool) -> None:
    line.send("client", flags=SYN, seq=1_000)
    line.send("server", flags=SYN | ACK, seq=14_727 if cause else 5_000)
    line.send("client")
    line.send("client", GET)
    line.send("server", OK)


@shows("Several SYN-ACKs", "resent_frames")
def several_syn_acks(line: Line, cause: bool) -> None:
    line.send("client", flags=SYN, seq=1_000)
    line.send("server", flags=SYN | ACK, seq=5_000)
    if cause:
        line.send("server", flags=SYN | ACK, seq=160_000_000)
    line.send("client")
    line.exchange()


@shows("Status lines that are none", "status")
def no_status_line(line: Line, cause: bool) -> None:
    line.open()
    line.say("client", GET)
    line.say("server", OK.replace(b"1.1", b"1.\x91") if cause else OK)


@shows("TCP headers that are cut short", "packets", "frames", "last_frame")
def cut_header(line: Line, cause: bool) -> None:
    line.open()
    line.exchange()
    line.send("client", change=(lambda ip: ip[:32] + b"\xf0" + ip[33:]) if cause else (lambda ip: ip))


@shows("TLS inside another framing", "tls", server_port=1194)
def openvpn(line: Line, cause: bool) -> None:
    line.open()
    for number, (who, hello) in enumerate((("client", client_hello(Tls())), ("server", server_hello(Tls())))):
        start = b"\x38" if who == "client" else b"\x40"  # P_CONTROL_HARD_RESET_CLIENT_V2, _SERVER_V2
        reset = start + filler(8, who) + b"\0" + bytes(4)
        control = b"\x20" + filler(8, who) + b"\0" + (number + 1).to_bytes(4, "big") + record(HANDSHAKE, hello)
        speaker: Speaker = "client" if who == "client" else "server"
        for packet in (reset, control):
            line.say(speaker, len(packet).to_bytes(2, "big") + packet if cause else b"plain" + packet[:3])


@shows("Text in a reset", "bytes")
def text_in_a_reset(line: Line, cause: bool) -> None:
    line.open()
    line.exchange()
    line.send("server", b"go away" if cause else b"", RST | ACK)


@shows("The host of a CONNECT", "host")
def host_of_a_connect(line: Line, cause: bool) -> None:
    line.open()
    line.say("client", b"CONNECT b.example:443 HTTP/1.1\r\n" + (b"" if cause else b"Host: b.example:443\r\n") + b"\r\n")
    line.say("server", b"HTTP/1.1 200 OK\r\n\r\n")


@shows("The port of another protocol", "request", server_port=22)
def port_of_another(line: Line, cause: bool) -> None:
    line.open()
    line.say("client", GET if cause else b"SSH-2.0-crafted\r\n")
    line.say("server", b"SSH-2.0-crafted\r\n")


@shows("The server asks", "request")
def server_asks(line: Line, cause: bool) -> None:
    """SOCKS (RFC 1928) backwards: whoever opened the connection serves."""
    line.open()
    asks: Speaker = "server" if cause else "client"
    serves: Speaker = "client" if cause else "server"
    if cause:
        line.say("client", b"hello!")
    line.say(asks, b"\5\1\0")
    line.say(serves, b"\5\0")
    line.say(asks, b"\5\1\0\1\x0a\0\0\1\0\x50")
    line.say(serves, b"\5\0\0\1\x0a\0\0\1\0\x50")
    line.say(asks, GET)
    line.say(serves, OK)


@shows("Times that are none", "ack_at")
def impossible_times(line: Line, cause: bool) -> None:
    line.open()
    if cause:  # a fraction of 2^31 nanoseconds
        last = line.records[-1]
        line.records[-1] = last[:4] + struct.pack("<I", 2**31) + last[8:]


def ayiya(ip: bytes) -> bytes:
    """In AYIYA (draft-massar-v6ops-ayiya): UDP to port 5072, identity, signature, IPv6 in front of the packet."""
    addresses = [ipaddress.ip_address(f"2001:db8::{last}").packed for last in (ip[15], ip[19])]
    segment = ip[20:]
    # Addresses differ, so the TCP checksum is wrong; neither reader asks.
    inner = struct.pack(">IHBB", 6 << 28, len(segment), 6, 64) + b"".join(addresses) + segment
    head = b"\x41\x52\x11\x29" + bytes(4) + addresses[0] + filler(20)
    udp = struct.pack(">HHHH", 5_072, 5_072, 8 + len(head) + len(inner), 0) + head + inner
    return ip[:2] + (20 + len(udp)).to_bytes(2, "big") + ip[4:9] + b"\x11" + ip[10:20] + udp


@shows("Tunnels that stay closed", "stream in ayiya")
def closed_tunnel(line: Line, cause: bool) -> None:
    if cause:
        line.wrap = ayiya
    line.open()


@shows("Two contents for the same bytes", "response_at")
def two_contents(line: Line, cause: bool) -> None:
    line.open()
    line.send("client", GET)
    if cause:
        line.send("server", b"BANG! " * 5, ack=1_001, seq=5_001)
    line.say("server", OK)
    line.close()


@shows("What a packet without data tells of", "resent", "resent_frames")
def reported_without_data(line: Line, cause: bool) -> None:
    line.open()
    line.say("client", GET)
    if cause:
        line.send("server", flags=FIN | ACK, seq=5_001 + len(OK))
    line.send("server", OK)


@shows("Streams of more than four gibibytes", "bytes")
def numbers_come_round(line: Line, cause: bool) -> None:
    line.open()
    line.exchange()
    for _ in range(3):
        line.say("server", filler(700))
        line.next["server"] += (2**32 // 3 if cause else 1_000_000_000) - 700
        line.send("client", after=10 * SECOND)
    line.say("server", filler(700))
