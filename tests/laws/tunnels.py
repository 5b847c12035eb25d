"""An IP packet inside another: every tunnel that the core opens, and IP fragments, header by header.

In: an IP packet as bytes. Out: an Ethernet frame, or several.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

MACS = bytes.fromhex("02 00 00 00 00 02  02 00 00 00 00 01")
OUTER = bytes([192, 0, 2, 1, 192, 0, 2, 2])
IPV4, IPV6, BRIDGED, MPLS, PPPOE, ERSPAN = 0x0800, 0x86DD, 0x6558, 0x8847, 0x8864, 0x88BE
HSR, EDSA = 0x892F, 0xDADA


def _checksum(data: bytes) -> bytes:
    """The Internet checksum (RFC 1071) of an even number of bytes."""
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack(">H", ~total & 0xFFFF)


def _type(ip: bytes) -> int:
    return IPV6 if ip[0] >> 4 == 6 else IPV4


def _frame(kind: int, payload: bytes) -> bytes:
    return MACS + struct.pack(">H", kind) + payload


def _ipv4(protocol: int, payload: bytes) -> bytes:
    header = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(payload), 7, 0, 9, protocol, 0) + OUTER
    return header[:10] + _checksum(header) + header[12:] + payload


def _ipv6(protocol: int, payload: bytes) -> bytes:
    ends = bytes.fromhex("20010db8" + "00" * 11 + "01" + "20010db8" + "00" * 11 + "02")
    return struct.pack(">IHBB", 6 << 28, len(payload), protocol, 64) + ends + payload


def _udp(port: int, payload: bytes) -> bytes:
    """A datagram without a checksum, as tunnels over IPv4 send them (RFC 768)."""
    return _ipv4(17, struct.pack(">HHHH", 50_000, port, 8 + len(payload), 0) + payload)


def _gre(kind: int, payload: bytes, flags: int = 0, options: bytes = b"") -> bytes:
    """RFC 2784 and 2890."""
    return _ipv4(47, struct.pack(">HH", flags, kind) + options + payload)


def _gre_with_all_options(ip: bytes) -> bytes:
    sealed = struct.pack(">HHHHII", 0xB000, _type(ip), 0, 0, 7, 3)
    checksum = _checksum(sealed + ip + bytes(len(ip) % 2))
    return _gre(_type(ip), ip, 0xB000, checksum + sealed[6:])


def _labels(payload: bytes, *labels: int) -> bytes:
    """RFC 3032: the last label says that it is the bottom of the stack."""
    entries = [label << 12 | (label == labels[-1]) << 8 for label in labels]
    return struct.pack(f">{len(labels)}I", *entries) + payload


def _vxlan(frame: bytes) -> bytes:
    """RFC 7348: network 7."""
    return _udp(4789, struct.pack(">II", 0x08000000, 7 << 8) + frame)


def _gtp_u(ip: bytes) -> bytes:
    """3GPP TS 29.281: version 1, a G-PDU of tunnel 7."""
    return _udp(2152, struct.pack(">BBHI", 0x30, 255, len(ip), 7) + ip)


def _ppp(ip: bytes) -> bytes:
    return struct.pack(">H", 0x57 if _type(ip) == IPV6 else 0x21) + ip


def _l2tp(ip: bytes) -> bytes:
    """RFC 2661: a data message with its length; tunnel 7, session 8."""
    inside = _ppp(ip)
    return _udp(1701, struct.pack(">HHHH", 0x4002, 8 + len(inside), 7, 8) + inside)


def _l2tpv3(ip: bytes, agreed: bytes = b"") -> bytes:
    """RFC 3931: session 7, what both ends agreed on (cookie, sublayer), Ethernet."""
    return struct.pack(">I", 7) + agreed + _frame(_type(ip), ip)


def _tzsp(ip: bytes) -> bytes:
    """A received frame of Ethernet; tags: a channel, padding, the end."""
    return _udp(37008, struct.pack(">BBH", 1, 0, 1) + bytes([18, 1, 6, 0, 1]) + _frame(_type(ip), ip))


def hsr(ip: bytes, path: int = 0) -> bytes:
    """IEC 62439-3: the path by which the frame came and its size, a sequence number, the EtherType."""
    return _frame(HSR, struct.pack(">HHH", path << 12 | (6 + len(ip)) & 0xFFF, 7, _type(ip)) + ip)


def prp(ip: bytes, path: int) -> bytes:
    """IEC 62439-3: a trailer of sequence number, network and size, suffix."""
    return _frame(_type(ip), ip + struct.pack(">HHH", 7, (0xA + path) << 12 | (6 + len(ip)) & 0xFFF, 0x88FB))


def _pppoe(ip: bytes) -> bytes:
    """RFC 2516: session 7."""
    inside = _ppp(ip)
    return struct.pack(">BBHH", 0x11, 0, 7, len(inside)) + inside


def _protocol(ip: bytes) -> int:
    return 41 if _type(ip) == IPV6 else 4


TUNNELS: dict[str, Callable[[bytes], bytes]] = {
    "ip in ip": lambda ip: _frame(IPV4, _ipv4(_protocol(ip), ip)),
    "ip in ipv6": lambda ip: _frame(IPV6, _ipv6(_protocol(ip), ip)),
    "gre": lambda ip: _frame(IPV4, _gre(_type(ip), ip)),
    "gre with all options": lambda ip: _frame(IPV4, _gre_with_all_options(ip)),
    "ethernet in gre": lambda ip: _frame(IPV4, _gre(BRIDGED, _frame(_type(ip), ip))),
    "erspan i": lambda ip: _frame(IPV4, _gre(ERSPAN, _frame(_type(ip), ip))),
    "erspan ii": lambda ip: _frame(
        IPV4, _gre(ERSPAN, bytes.fromhex("1000 0000 0000 0000") + _frame(_type(ip), ip), 0x1000, bytes([0, 0, 0, 3]))
    ),
    "vxlan": lambda ip: _frame(IPV4, _vxlan(_frame(_type(ip), ip))),
    "geneve": lambda ip: _frame(IPV4, _udp(6081, struct.pack(">HHI", 0, BRIDGED, 7 << 8) + _frame(_type(ip), ip))),
    "gtp-u": lambda ip: _frame(IPV4, _gtp_u(ip)),
    "l2tp": lambda ip: _frame(IPV4, _l2tp(ip)),
    "l2tp 3": lambda ip: _frame(IPV4, _udp(1701, bytes([0, 3, 0, 0]) + _l2tpv3(ip, bytes(4)))),
    "l2tp 3 without udp": lambda ip: _frame(IPV4, _ipv4(115, _l2tpv3(ip, bytes.fromhex("2b9c 51d3 0ea7 f846")))),
    "tzsp": lambda ip: _frame(IPV4, _tzsp(ip)),
    "hsr": hsr,
    "edsa": lambda ip: _frame(EDSA, struct.pack(">HIH", 0, 0xC0 << 24, _type(ip)) + ip),
    "pppoe": lambda ip: _frame(PPPOE, _pppoe(ip)),
    "mpls": lambda ip: _frame(MPLS, _labels(ip, 7, 8)),
    "vlan, mpls, gre": lambda ip: _frame(
        0x88A8, struct.pack(">HHHH", 5, 0x8100, 6, MPLS) + _labels(_gre(_type(ip), ip), 8)
    ),
    "gtp-u in vxlan": lambda ip: _frame(IPV4, _vxlan(_frame(IPV4, _gtp_u(ip)))),
}
"""Name to a function from an IP packet to an Ethernet frame."""


def fragments(ip: bytes, number: int, size: int) -> list[bytes]:
    """The IP packet in pieces of ``size`` bytes; one that is no longer stays whole. ``number`` tells packets apart."""
    four = ip[0] >> 4 == 4
    header, payload = (ip[:20], ip[20:]) if four else (ip[:40], ip[40:])
    if len(payload) <= size:
        return [ip]
    pieces = []
    for start in range(0, len(payload), size):
        piece, more = payload[start : start + size], start + size < len(payload)
        if four:
            changed = struct.pack(">HHH", 20 + len(piece), number, more << 13 | start // 8)
            part = header[:2] + changed + header[8:10] + bytes(2) + header[12:]
            pieces.append(part[:10] + _checksum(part) + part[12:] + piece)
        else:
            extension = struct.pack(">BBHI", header[6], 0, start | more, number)
            length = struct.pack(">H", 8 + len(piece))
            pieces.append(header[:4] + length + b"\x2c" + header[7:] + extension + piece)
    return pieces
