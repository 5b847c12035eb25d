"""What a delay line writes down of a packet that it drops: enough to find the packet in a capture.

In: raw IP packets, whole. Out: what an address translation leaves as it is (IP ID, sequence numbers, payload), and
addresses and ports as they were on the line.
"""

from __future__ import annotations

import hashlib
import socket

TCP, UDP = 6, 17


def describe(raw: bytes) -> dict[str, object]:
    """Describe an IPv4 or IPv6 packet; what it does not have is None. Extension headers of IPv6 are not looked into."""
    if raw[0] >> 4 == 4:
        start = (raw[0] & 0x0F) * 4
        protocol, ip_id = raw[9], int.from_bytes(raw[4:6], "big")
        source, destination = (socket.inet_ntop(socket.AF_INET, raw[at : at + 4]) for at in (12, 16))
    else:
        start, protocol, ip_id = 40, raw[6], None
        source, destination = (socket.inet_ntop(socket.AF_INET6, raw[at : at + 16]) for at in (8, 24))
    facts: dict[str, object] = {
        "source": source, "destination": destination, "protocol": protocol, "ip_id": ip_id,
        "ports": None, "seq": None, "ack": None, "flags": None,
    }  # fmt: skip
    inner, payload = raw[start:], raw[start:]
    if protocol in (TCP, UDP):
        facts["ports"] = [int.from_bytes(inner[at : at + 2], "big") for at in (0, 2)]
        payload = inner[8:]
    if protocol == TCP:
        facts |= {"seq": int.from_bytes(inner[4:8], "big"), "ack": int.from_bytes(inner[8:12], "big")}
        facts["flags"] = inner[13]
        payload = inner[(inner[12] >> 4) * 4 :]
    return facts | {"length": len(payload), "payload": hash_of(payload)}


def hash_of(payload: bytes) -> str:
    """Return the first 8 bytes of a payload's BLAKE2b, in hexadecimal."""
    return hashlib.blake2b(payload, digest_size=8).hexdigest()
