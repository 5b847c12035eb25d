"""Captures made messy: other traffic beside them, their beginning or end cut off, packets twice, other addresses.

In: our captures. Out: captures of which a law knows what must not change (metamorphic tests: Chen 1998), and what
conchart finds in them, as values that can be compared.

    capture = read(ROOT / "captures/findings/slow-server/input.pcap")
    with read_by_conchart(beside(capture, logins(capture))) as trace: ...
"""

from __future__ import annotations

import gzip
import heapq
import ipaddress
import re
import struct
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import conchart
from conchart import Trace
from conchart.store.sql import USERS_WAITED
from tests.laws.files import LINKS, Format, datagram
from tests.laws.talk import SYN, Finish, Packet, Pause, Say, Step, Talk, together

MS = 1_000_000
SECOND = 1_000 * MS
AHEAD_NS = SECOND // 2
"""What is crafted begins so long before the capture, and lasts over it."""
RAW, NULL, ETHERNET, LOOP, SLL, SLL2 = 101, 0, 1, 108, 113, 276
COOKED = {SLL: 1, SLL2: 10}
"""Link types of cooked captures, and where the packet type is: who sent it."""
SENT_BY_US, TO_US, TO_ANOTHER = 4, 0, 3
EPHEMERAL = range(32_768, 61_000)
"""Ports that Linux gives to clients."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One packet of a capture."""

    at: int
    """Nanoseconds since the Unix epoch."""
    data: bytes
    """From the link layer on."""
    length: int
    """On the wire."""


@dataclass(frozen=True, slots=True)
class Capture:
    """Packets of one link type, in the order of the file."""

    link: int
    """libpcap's number."""
    frames: tuple[Frame, ...]

    @property
    def first_at(self) -> int:
        """When it begins, in nanoseconds since the Unix epoch."""
        return min(frame.at for frame in self.frames)

    @property
    def last_at(self) -> int:
        """When it ends, in nanoseconds since the Unix epoch."""
        return max(frame.at for frame in self.frames)


@dataclass(frozen=True, slots=True)
class Where:
    """Where the parts of a packet are in its frame."""

    ip: int
    """Offset of the IP header."""
    six: bool
    protocol: int
    transport: int
    """Offset of the TCP or UDP header."""

    @property
    def addresses(self) -> tuple[slice, slice]:
        """Source and destination."""
        start, size = (self.ip + 8, 16) if self.six else (self.ip + 12, 4)
        return slice(start, start + size), slice(start + size, start + 2 * size)


TCP, UDP = 6, 17


# --- files


def read(path: Path) -> Capture:
    """Read a pcap file, or a pcapng file of one interface, compressed or not.

    Raises:
        ValueError: It is neither.
    """
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    if data[:4] == b"\n\r\r\n":
        return _read_blocks(data)
    magics = {b"\xd4\xc3\xb2\xa1": ("<", 1000), b"\xa1\xb2\xc3\xd4": (">", 1000)}
    magics |= {b"\x4d\x3c\xb2\xa1": ("<", 1), b"\xa1\xb2\x3c\x4d": (">", 1)}
    if data[:4] not in magics:
        msg = f"{path}: begins with {data[:4].hex()}, which is neither pcap nor pcapng"
        raise ValueError(msg)
    order, unit_ns = magics[data[:4]]
    (link,) = struct.unpack_from(f"{order}I", data, 20)
    frames, place = [], 24
    while place + 16 <= len(data):
        seconds, rest, captured, length = struct.unpack_from(f"{order}4I", data, place)
        frames.append(Frame(seconds * SECOND + rest * unit_ns, data[place + 16 : place + 16 + captured], length))
        place += 16 + captured
    return Capture(link & 0xFFFF, tuple(frames))


def _read_blocks(data: bytes) -> Capture:
    """Read the enhanced packet blocks of pcapng, whose byte order the section header tells."""
    order = "<" if data[8:12] == b"\x4d\x3c\x2b\x1a" else ">"
    units: list[int] = []
    links: set[int] = set()
    frames, place = [], 0
    while place + 12 <= len(data):
        kind, size = struct.unpack_from(f"{order}II", data, place)
        if kind == 1:
            links.add(struct.unpack_from(f"{order}H", data, place + 8)[0])
            resolution = re.search(struct.pack(f"{order}HH", 9, 1) + b"(.)", data[place + 16 : place + size], re.DOTALL)
            units.append(10 ** (9 - (resolution[1][0] if resolution else 6)))
        elif kind == 6:
            interface, high, low, captured, length = struct.unpack_from(f"{order}5I", data, place + 8)
            at = (high << 32 | low) * units[interface]
            frames.append(Frame(at, data[place + 28 : place + 28 + captured], length))
        place += size
    (link,) = links
    return Capture(link, tuple(frames))


def write(capture: Capture, path: Path) -> Path:
    """Write a pcap file with nanoseconds."""
    name = next(name for name, link in LINKS.items() if link.number == capture.link)
    header, *_ = Format(resolution_ns=1, link=name).of_frames([])
    records = (
        struct.pack("<4I", *divmod(frame.at, SECOND), len(frame.data), frame.length) + frame.data
        for frame in capture.frames
    )
    path.write_bytes(header + b"".join(records))
    return path


@contextmanager
def read_by_conchart(capture: Capture, **options: Any) -> Iterator[Trace]:  # noqa: ANN401  (those of ``conchart.read``)
    """Let conchart read a capture."""
    with (
        tempfile.TemporaryDirectory() as folder,
        conchart.read(write(capture, Path(folder) / "messy.pcap"), **options) as trace,
    ):
        yield trace


# --- what conchart says


@dataclass(frozen=True, slots=True, order=True)
class Found:
    """A finding, as laws compare it: frames and connections have other numbers in another capture."""

    rule: str
    server: str
    client: str


def findings_of(trace: Trace) -> dict[Found, int]:
    """Give what each finding cost users, in nanoseconds; findings about the capture itself are left out."""
    rows = trace.sql(
        """
        SELECT finding, coalesce(server_ip || ':' || server_port, server_ip, ''), coalesce(client_ip, ''),
            sum(critical_ns + vain_ns)::BIGINT
        FROM findings WHERE severity <> 'quality' AND finding <> 'capture-quality' GROUP BY ALL
        """
    ).fetchall()
    return {Found(rule, server, client): ns for rule, server, client, ns in rows}


def waited_of(trace: Trace) -> int:
    """Give what users waited in all, in nanoseconds."""
    ((waited_ns,),) = trace.sql(USERS_WAITED).fetchall()
    return int(waited_ns)


# --- what is inside a frame


def where(link: int, data: bytes) -> Where | None:
    """Find IP and TCP or UDP in a frame; None where there are none, or a later fragment."""
    start, kind = {
        ETHERNET: (14, data[12:14]),
        SLL: (16, data[14:16]),
        SLL2: (20, data[:2]),
        NULL: (4, b""),
        LOOP: (4, b""),
        RAW: (0, b""),
    }[link]
    while kind in (b"\x81\x00", b"\x88\xa8"):
        start, kind = start + 4, data[start + 2 : start + 4]
    if kind not in (b"", b"\x08\x00", b"\x86\xdd") or len(data) < start + 28:
        return None
    six = data[start] >> 4 == 6
    if six:
        return Where(start, True, data[start + 6], start + 40) if len(data) >= start + 48 else None
    if struct.unpack_from(">H", data, start + 6)[0] & 0x1FFF:
        return None
    return Where(start, False, data[start + 9], start + (data[start] & 15) * 4)


@dataclass(frozen=True, slots=True)
class Ends:
    """Who sent a packet to whom."""

    source: str
    source_port: int
    destination: str
    destination_port: int
    flags: int
    """Of TCP; 0 of UDP."""


def ends(link: int, data: bytes) -> Ends | None:
    """Give the ends of a TCP or UDP packet; None of all others."""
    place = where(link, data)
    if place is None or place.protocol not in (TCP, UDP):
        return None
    source, destination = (str(ipaddress.ip_address(data[part])) for part in place.addresses)
    from_port, to_port = struct.unpack_from(">HH", data, place.transport)
    flags = data[place.transport + 13] if place.protocol == TCP else 0
    return Ends(source, from_port, destination, to_port, flags)


def hosts(capture: Capture) -> list[str]:
    """Give the addresses of a capture's hosts, sorted: of those that speak TCP, or UDP where nobody does."""
    packets = [found for frame in capture.frames if (found := ends(capture.link, frame.data))]
    of_tcp = {address for found in packets if found.flags for address in (found.source, found.destination)}
    return sorted(of_tcp or {address for found in packets for address in (found.source, found.destination)})


# --- transformations


def beside(capture: Capture, *others: Sequence[Packet] | Capture) -> Capture:
    """Put other traffic, or another capture of the same link type, beside a capture, in the order of time."""
    wrap = _wrapping(capture)
    crafted = [
        other.frames
        if isinstance(other, Capture)
        else tuple(Frame(packet.at, data, len(data)) for packet in other for data in (wrap(packet),))
        for other in others
    ]
    return Capture(capture.link, tuple(heapq.merge(capture.frames, *crafted, key=lambda frame: frame.at)))


def moved(capture: Capture, ns: int) -> Capture:
    """Capture everything so much later."""
    return replace(capture, frames=tuple(replace(frame, at=frame.at + ns) for frame in capture.frames))


def without_syn(capture: Capture) -> Capture:
    """Leave out all packets with SYN: every connection was open when the capture began."""
    remaining = (
        frame for frame in capture.frames if not (found := ends(capture.link, frame.data)) or not found.flags & SYN
    )
    return replace(capture, frames=tuple(remaining))


def since(capture: Capture, at: int) -> Capture:
    """Leave out what was before an instant, in nanoseconds since the Unix epoch."""
    return replace(capture, frames=tuple(frame for frame in capture.frames if frame.at >= at))


def until(capture: Capture, at: int) -> Capture:
    """Leave out what was at and after an instant, in nanoseconds since the Unix epoch."""
    return replace(capture, frames=tuple(frame for frame in capture.frames if frame.at < at))


def sliced(capture: Capture, start: int = 0, end: int | None = None) -> Capture:
    """Keep some of the packets, by their number from 0."""
    return replace(capture, frames=capture.frames[start:end])


def twice(capture: Capture, later_ns: int = 2_000) -> Capture:
    """Capture every packet twice, as a mirror port of both directions does."""
    copies = moved(capture, later_ns).frames
    return replace(capture, frames=tuple(heapq.merge(capture.frames, copies, key=lambda frame: frame.at)))


def other_address(address: str) -> str:
    """Give another address in the same /16 (IPv6: /48), which is as long when written."""
    found = ipaddress.ip_address(address)
    packed = bytearray(found.packed)
    if found.version == 6:
        packed[7] ^= 1
    else:
        size = len(str(packed[2]))
        packed[2] = {1: 9, 2: 109, 3: 355}[size] - packed[2]
    return str(ipaddress.ip_address(bytes(packed)))


def other_port(port: int) -> int:
    """Give another port that clients get; servers keep theirs."""
    return EPHEMERAL[(port - EPHEMERAL.start + 7_001) % len(EPHEMERAL)] if port in EPHEMERAL else port


def renumbered(
    capture: Capture,
    address: Callable[[str], str] = other_address,
    port: Callable[[int], int] = other_port,
) -> Capture:
    """Give all hosts other addresses, and clients other ports; where addresses are told in content, there too.

    Args:
        capture: Whose servers do not listen at a client's ports.
        address: Gives another address of the same length; no two hosts get the same one.
        port: Gives another port of the same number of digits.
    """
    replacements = {name: address(name) for name in _addresses(capture)}
    texts = {old.encode(): new.encode() for old, new in replacements.items()}
    packed = {ipaddress.ip_address(old).packed: ipaddress.ip_address(new).packed for old, new in replacements.items()}
    # Longer ones first: an address may begin like another one.
    written = re.compile(
        b"|".join(rb"(?<![\d.])" + re.escape(old) + rb"(?!\.?\d)" for old in sorted(texts, key=len, reverse=True))
        + b"|"
        + b"|".join(map(re.escape, packed))
    )

    def change(frame: Frame) -> Frame:
        place = where(capture.link, frame.data)
        if place is None or place.protocol not in (TCP, UDP):
            return frame
        data = bytearray(frame.data)
        for part in place.addresses:
            data[part] = packed[bytes(data[part])]
        ports = struct.unpack_from(">HH", data, place.transport)
        struct.pack_into(">HH", data, place.transport, *map(port, ports))
        start = place.transport + (8 if place.protocol == UDP else (data[place.transport + 12] >> 4) * 4)
        data[start:] = written.sub(lambda match: (texts | packed)[match[0]], bytes(data[start:]))
        return replace(frame, data=bytes(data))

    return replace(capture, frames=tuple(map(change, capture.frames)))


def with_other_cards(capture: Capture) -> Capture:
    """Give all hosts other network cards, that no host of ours has; the host that captured is none of them."""
    places = {ETHERNET: (0, 6), SLL: (6,), SLL2: (12,)}.get(capture.link, ())

    def change(frame: Frame) -> Frame:
        data = bytearray(frame.data)
        for place in places:
            if not data[place] & 1:  # not to several
                data[place : place + 2] = bytes([data[place] | 2, data[place + 1] ^ 0x5A])
        if capture.link in COOKED:
            data[COOKED[capture.link]] = TO_ANOTHER
        return replace(frame, data=bytes(data))

    return replace(capture, frames=tuple(map(change, capture.frames)))


def _addresses(capture: Capture) -> set[str]:
    packets = (ends(capture.link, frame.data) for frame in capture.frames)
    return {address for found in packets if found for address in (found.source, found.destination)}


def _ours(capture: Capture) -> set[str]:
    """Give the addresses from which the capturing host sent, as a cooked capture tells."""
    place = COOKED.get(capture.link)
    sent = (frame for frame in capture.frames if place is not None and frame.data[place] == SENT_BY_US)
    return {found.source for frame in sent if (found := ends(capture.link, frame.data))}


def _wrapping(capture: Capture) -> Callable[[Packet], bytes]:
    """Wrap packets as the capture's own are: with its hosts' network cards, and who of them captured."""
    cards: dict[str, bytes] = {}
    ours = _ours(capture)
    for frame in capture.frames if capture.link == ETHERNET else ():
        if found := ends(capture.link, frame.data):
            cards.setdefault(found.source, frame.data[6:12])
            cards.setdefault(found.destination, frame.data[:6])
    name = next(name for name, link in LINKS.items() if link.number == capture.link)

    def card(address: str) -> bytes:
        last = ipaddress.ip_address(address).packed[-3:]
        return cards.get(address, b"\2\0\x5e" + last)

    def wrap(packet: Packet) -> bytes:
        source, destination = packet.source[0], packet.destination[0]
        data = bytearray(LINKS[name].wrap(packet.payload if packet.flags < 0 else datagram(packet)))
        if capture.link == ETHERNET:
            data[:12] = card(destination) + card(source)
        elif capture.link in COOKED:
            data[COOKED[capture.link]] = SENT_BY_US if source in ours else TO_US
            start = 6 if capture.link == SLL else 12
            data[start : start + 6] = card(source)
        return bytes(data)

    return wrap


# --- traffic that is unrelated to whatever the capture holds


def _stranger(address: str, number: int) -> str:
    """An address that no capture of ours has, of the same version of IP."""
    return f"2001:db8:99::{number:x}" if ":" in address else f"198.51.100.{number}"


_BANNERS = (b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", b"SSH-2.0-OpenSSH_9.6\r\n")
_KEYS = b"\0\0\5\xdc\6\x14" + bytes(range(64)) * 23


def _keystrokes(times: int) -> Iterator[Step]:
    """What somebody types, whose echo comes at once, and what programs print meanwhile, with pauses."""
    for number in range(times):
        yield Say("client", bytes([number + 128]) * 36)
        yield Say("server", bytes([number + 64]) * 36)
        yield Pause(40 * MS)
        for piece in range(3):
            yield Say("server", bytes([number + piece + 96]) * 120)
            yield Pause(150 * MS)


def login(capture: Capture, host: str, *, sees_open: bool = True, number: int = 1) -> list[Packet]:
    """Somebody logs in to a host by SSH, and works there while the capture lasts."""
    steps: list[Step] = []
    if sees_open:
        steps = [Say("server", _BANNERS[0]), Say("client", _BANNERS[1]), Say("client", _KEYS), Say("server", _KEYS)]
        steps += [Say("client", _KEYS[:48]), Say("server", _KEYS[:564]), Say("client", _KEYS[:16]), Pause(5 * MS)]
    lasts_ns = capture.last_at - capture.first_at
    steps += _keystrokes(int(max(4, min(40, lasts_ns // (500 * MS)))))
    return Talk(
        client=(_stranger(host, number), 50_000 + number),
        server=(host, 22),
        opened_at=capture.first_at - AHEAD_NS + number * 1_300_000,
        rtt=10 * MS,
        steps=steps,
        sees_open=sees_open,
    ).packets()


def logins(capture: Capture, *, sees_open: bool = True) -> list[Packet]:
    """Log in to every host."""
    return together(
        login(capture, host, sees_open=sees_open, number=number) for number, host in enumerate(hosts(capture), 1)
    )


def _get(path: str, host: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: monitor/1\r\n\r\n".encode()


def _response(size: int) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % size + b"m" * size


def _regular_requests(
    capture: Capture, server: tuple[str, int], client: tuple[str, int], *, path: str, size: int, takes_ns: int
) -> list[Packet]:
    """Somebody asks the same at equal intervals, each time on another connection, while the capture lasts."""
    every_ns = max(capture.last_at - capture.first_at + AHEAD_NS, SECOND) // 4
    return together(
        Talk(
            client=(client[0], client[1] + turn),
            server=server,
            opened_at=capture.first_at
            - AHEAD_NS
            + turn * every_ns
            + client[1] % 1_000 * 700_000,  # no two hosts at once
            rtt=MS // 2,
            steps=[
                Say("client", _get(path, server[0])),
                Pause(takes_ns),
                Say("server", _response(size)),
                Pause(MS),
                Finish("client"),
                Finish("server"),
            ],
        ).packets()
        for turn in range(5)
    )


def scrapes(capture: Capture) -> list[Packet]:
    """Prometheus asks an exporter on every host."""
    return together(
        _regular_requests(
            capture,
            (host, 9100),
            (_stranger(host, 200), 41_000 + 10 * number),
            path="/metrics",
            size=8_000,
            takes_ns=15 * MS,
        )
        for number, host in enumerate(hosts(capture))
    )


def health_checks(capture: Capture) -> list[Packet]:
    """A load balancer elsewhere asks every host how it is, at a port of its own."""
    return together(
        _regular_requests(
            capture,
            (host, 8086),
            (_stranger(host, 210), 43_000 + 10 * number),
            path="/healthz",
            size=2,
            takes_ns=MS // 2,
        )
        for number, host in enumerate(hosts(capture))
    )


def to_themselves(capture: Capture) -> list[Packet]:
    """A program asks another one on the same host, by the host's own address: only the capturing host sees its own."""
    host = min(_ours(capture) or hosts(capture))
    return _regular_requests(capture, (host, 9901), (host, 45_000), path="/ready", size=20, takes_ns=MS)


def lookups(capture: Capture) -> list[Packet]:
    """Every host asks a resolver for a name, and is answered."""
    crafted = []
    for number, host in enumerate(hosts(capture)):
        resolver = _stranger(host, 53)
        query_at = capture.first_at - AHEAD_NS + (capture.last_at - capture.first_at) // 2 + number * MS
        name = b"\x04time\x07example\0"
        query = struct.pack(">6H", 700 + number, 0x0100, 1, 0, 0, 0) + name + struct.pack(">HH", 1, 1)
        answer = struct.pack(">6H", 700 + number, 0x8180, 1, 1, 0, 0) + query[12:]
        answer += struct.pack(">HHHIH", 0xC00C, 1, 1, 300, 4) + bytes([203, 0, 113, 7])
        client, server = (host, 47_000 + number), (resolver, 53)
        crafted += [_udp(query_at, client, server, query), _udp(query_at + 2 * MS, server, client, answer)]
    return sorted(crafted, key=lambda packet: packet.at)


def _udp(at: int, source: tuple[str, int], destination: tuple[str, int], content: bytes) -> Packet:
    """A datagram: a packet whose flags are below 0 and whose payload is all of the IP packet."""
    ends = [ipaddress.ip_address(end[0]).packed for end in (source, destination)]
    header = struct.pack(">4H", source[1], destination[1], 8 + len(content), 0) + content
    if len(ends[0]) == 16:
        ip = struct.pack(">IHBB", 6 << 28, len(header), UDP, 64) + b"".join(ends)
    else:
        ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(header), 1, 0, 64, UDP, 0) + b"".join(ends)
        total = sum(struct.unpack(">10H", ip))
        total = (total & 0xFFFF) + (total >> 16)
        ip = ip[:10] + struct.pack(">H", ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF) + ip[12:]
    return Packet(at=at, source=source, destination=destination, seq=0, ack=0, flags=-1, payload=ip + header)
