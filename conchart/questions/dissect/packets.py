"""The packets of a TCP connection, header by header, as dpkt reads them (RFC 9293 section 3.1).

In: IP packets, each with its frame and instant. Out: a ``Packet`` for each that carries TCP; what dpkt cannot read is
left out. Nothing is put together and no byte is judged: that is the core's.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address

import dpkt

_LETTERS = ((0x02, "S"), (0x01, "F"), (0x04, "R"), (0x08, "P"), (0x10, "A"))
"""SYN, FIN, RST, PSH, ACK, in the order in which tcpdump writes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packet:
    """One TCP segment, and what of its IP header tells of the way it came."""

    frame: int
    at: int
    """Nanoseconds since the Unix epoch."""
    source: str
    source_port: int
    destination: str
    destination_port: int
    flags: str
    """As in ``packets.flags``: ``SA``, ``PA``."""
    seq: int
    ack: int
    """Both as sent, counted from no initial sequence number."""
    window: int
    """As sent, not scaled."""
    bytes: int
    """Of payload, as the IP header has it: the capture may have fewer."""
    ttl: int
    """Time to live; IPv6's hop limit."""
    options: list[str]
    """``MSS 1460``, ``SACK permitted``, ``WS 7``, ``TS 17/4`` (value/echo reply), ``SACK 1-5``; without padding."""


def packet_list(raw: Iterable[tuple[int, int, bytes]]) -> list[Packet]:
    """Read frame, instant and IP packet of each."""
    return [packet for frame, at, ip_packet in raw if (packet := _packet(frame, at, ip_packet))]


@lru_cache(maxsize=64)
def _address(raw: bytes) -> str:
    """Write an address; a connection has two."""
    return str(ip_address(raw))


def _packet(frame: int, at: int, raw: bytes) -> Packet | None:
    try:
        ip = dpkt.ip6.IP6(raw) if raw[0] >> 4 == 6 else dpkt.ip.IP(raw)
    except (dpkt.UnpackError, IndexError):
        return None
    tcp = ip.data
    if not isinstance(tcp, dpkt.tcp.TCP):
        return None
    return Packet(
        frame=frame,
        at=at,
        source=_address(ip.src),
        source_port=tcp.sport,
        destination=_address(ip.dst),
        destination_port=tcp.dport,
        flags="".join(letter for bit, letter in _LETTERS if tcp.flags & bit),
        seq=tcp.seq,
        ack=tcp.ack,
        window=tcp.win,
        bytes=_payload(ip, len(raw)) - 4 * tcp.off,
        ttl=ip.hlim if ip.v == 6 else ip.ttl,
        options=list(_options(tcp.opts)),
    )


def _payload(ip: dpkt.ip.IP | dpkt.ip6.IP6, captured: int) -> int:
    """Give the length of what IP carries. A length of 0 is that of a segment that the network card was yet to cut."""
    if ip.v == 6:
        return int(ip.plen or captured - 40) - sum(int(header.length) for header in ip.all_extension_headers)
    return int(ip.len or captured) - 4 * int(ip.hl)


def _options(raw: bytes) -> Iterator[str]:
    for option in dpkt.tcp.parse_opts(raw):
        match option:
            case (dpkt.tcp.TCP_OPT_EOL, _):
                return
            case (dpkt.tcp.TCP_OPT_NOP, _):
                pass
            case (dpkt.tcp.TCP_OPT_MSS, data) if len(data) == 2:
                yield f"MSS {int.from_bytes(data, 'big')}"
            case (dpkt.tcp.TCP_OPT_WSCALE, data) if len(data) == 1:
                yield f"WS {data[0]}"
            case (dpkt.tcp.TCP_OPT_SACKOK, _):
                yield "SACK permitted"
            case (dpkt.tcp.TCP_OPT_SACK, data) if data and len(data) % 8 == 0:
                yield " ".join(["SACK", *(f"{left}-{right}" for left, right in struct.iter_unpack(">II", data))])
            case (dpkt.tcp.TCP_OPT_TIMESTAMP, data) if len(data) == 8:
                yield "TS {}/{}".format(*struct.unpack(">II", data))
            case (kind, data):
                yield f"option {kind}, {len(data)} bytes"
            case _:
                yield "options cut off"
