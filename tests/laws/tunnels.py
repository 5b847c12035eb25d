"""An IP packet inside another: every tunnel that the core opens, and IP fragments. Scapy writes the headers.

In: an IP packet as bytes. Out: an Ethernet frame, or several.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from scapy.contrib.erspan import ERSPAN_I, ERSPAN_II
from scapy.contrib.geneve import GENEVE
from scapy.contrib.gtp import GTP_U_Header
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import GRE, Dot1AD, Dot1Q, Ether
from scapy.layers.l2tp import L2TP
from scapy.layers.ppp import PPP, PPPoE
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet, Raw

if TYPE_CHECKING:
    from collections.abc import Callable

MACS = {"src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02"}
OUTER = {"src": "192.0.2.1", "dst": "192.0.2.2", "ttl": 9, "id": 7}


def _type(ip: bytes) -> int:
    return 0x86DD if ip[0] >> 4 == 6 else 0x0800


def _ppp(ip: bytes) -> Packet:
    return PPP(proto=0x57 if ip[0] >> 4 == 6 else 0x21) / Raw(ip)


def _inner(ip: bytes) -> Packet:
    return Ether(**MACS, type=_type(ip)) / Raw(ip)


def _over_ip(payload: Packet, protocol: int) -> bytes:
    return bytes(Ether(**MACS) / IP(**OUTER, proto=protocol) / payload)


def _over_gre(kind: int, payload: Packet, **options: int) -> bytes:
    return _over_ip(GRE(proto=kind, **options) / payload, 47)


def _over_udp(port: int, payload: Packet) -> bytes:
    return bytes(Ether(**MACS) / IP(**OUTER) / UDP(sport=50_000, dport=port) / payload)


def _six_in_six(ip: bytes) -> bytes:
    protocol = 41 if ip[0] >> 4 == 6 else 4
    return bytes(Ether(**MACS) / IPv6(src="2001:db8::1", dst="2001:db8::2", nh=protocol) / Raw(ip))


TUNNELS: dict[str, Callable[[bytes], bytes]] = {
    "ip in ip": lambda ip: _over_ip(Raw(ip), 41 if ip[0] >> 4 == 6 else 4),
    "ip in ipv6": _six_in_six,
    "gre": lambda ip: _over_gre(_type(ip), Raw(ip)),
    "gre with all options": lambda ip: _over_gre(
        _type(ip), Raw(ip), chksum_present=1, key_present=1, key=7, seqnum_present=1, sequence_number=3
    ),
    "ethernet in gre": lambda ip: _over_gre(0x6558, _inner(ip)),
    "erspan i": lambda ip: _over_gre(0x88BE, ERSPAN_I() / _inner(ip)),
    "erspan ii": lambda ip: _over_gre(0x88BE, ERSPAN_II() / _inner(ip), seqnum_present=1, sequence_number=3),
    "vxlan": lambda ip: _over_udp(4789, VXLAN(vni=7, flags=8) / _inner(ip)),
    "geneve": lambda ip: _over_udp(6081, GENEVE(vni=7, proto=0x6558) / _inner(ip)),
    "gtp-u": lambda ip: _over_udp(2152, GTP_U_Header(teid=7, gtp_type=255) / Raw(ip)),
    "l2tp": lambda ip: _over_udp(1701, L2TP(hdr="length", tunnel_id=7, session_id=8) / _ppp(ip)),
    "pppoe": lambda ip: bytes(Ether(**MACS) / PPPoE(sessionid=7) / _ppp(ip)),
    "mpls": lambda ip: bytes(Ether(**MACS, type=0x8847) / MPLS(label=7, s=0) / MPLS(label=8, s=1) / Raw(ip)),
    "vlan, mpls, gre": lambda ip: bytes(
        Ether(**MACS)
        / Dot1AD(vlan=5)
        / Dot1Q(vlan=6, type=0x8847)
        / MPLS(label=8, s=1)
        / IP(**OUTER, proto=47)
        / GRE(proto=_type(ip))
        / Raw(ip)
    ),
    "gtp-u in vxlan": lambda ip: _over_udp(
        4789,
        VXLAN(vni=7, flags=8)
        / Ether(**MACS)
        / IP(**OUTER)
        / UDP(sport=2152, dport=2152)
        / GTP_U_Header(teid=7, gtp_type=255)
        / Raw(ip),
    ),
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
            part = IP(header)
            part.flags, part.frag, part.len, part.id = "MF" if more else 0, start // 8, 20 + len(piece), number
            del part.chksum
            pieces.append(bytes(part)[:20] + piece)
        else:
            extension = struct.pack(">BBHI", header[6], 0, start | more, number)
            length = struct.pack(">H", 8 + len(piece))
            pieces.append(header[:4] + length + b"\x2c" + header[7:] + extension + piece)
    return pieces
