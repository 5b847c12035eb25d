"""What a delay line does to chosen packets: lose them, hold them back, or carry them twice.

A rule is one word of the command line, a verb and what it chooses:

    drop:from=right,number=3             the third data segment from right to left
    drop:from=right,number=3,copies=2    it and its first copy; the second copy passes
    drop:from=right,number=3-5           the third to the fifth
    drop:from=left,kind=syn              the first SYN
    drop:from=right,kind=ack,number=1-4  the first four acknowledgements without data
    drop:from=right,larger=1000          every packet of more than 1,000 bytes: a path MTU that nobody tells
    hold:from=right,number=5,ms=40       the fifth data segment comes 40 ms later, behind those that overtake it
    twice:from=right,number=4            the fourth data segment comes out twice, one right behind the other
    twice:from=right,number=4,ms=90      the second one comes 90 ms later

Kinds are ``data`` (the default), ``ack``, ``syn``, ``syn-ack`` and ``fin``. A segment sent again is no further one: it
has the number of the first, and ``copies`` says how many of the same are chosen. Of kind ``udp``, each datagram counts:

    drop:from=left,kind=udp,number=1-2   the first two datagrams from left to right

Of kind ``ip6``, each IPv6 packet counts, whatever is in it.

In: raw IP packets, in the order in which they enter the line. Other packets pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field

TCP, UDP = 6, 17
FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
EVERY = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Packet:
    """A TCP segment or UDP datagram on the line; a datagram has no numbers."""

    size: int
    """Bytes, with the IP header."""
    ports: tuple[int, int]
    """The sender's and the receiver's."""
    kind: str
    seq: int | None
    ack: int | None
    length: int
    """Bytes of data."""


def read_packet(raw: bytes) -> Packet | None:
    """Read a packet; None when it is IPv4 and neither TCP nor UDP. Of IPv6, what is in it is not read."""
    if raw[0] >> 4 == 6:
        return Packet(size=len(raw), kind="ip6", length=0, ports=(0, 0), seq=None, ack=None)
    if raw[0] >> 4 != 4 or raw[9] not in (TCP, UDP):
        return None
    at = (raw[0] & 0x0F) * 4
    ports = (int.from_bytes(raw[at : at + 2], "big"), int.from_bytes(raw[at + 2 : at + 4], "big"))
    if raw[9] == UDP:
        return Packet(size=len(raw), kind="udp", length=len(raw) - at - 8, ports=ports, seq=None, ack=None)
    flags = raw[at + 13]
    length = len(raw) - at - (raw[at + 12] >> 4) * 4
    return Packet(
        size=len(raw), kind=_kind(flags, length), length=length, ports=ports,
        seq=int.from_bytes(raw[at + 4 : at + 8], "big"), ack=int.from_bytes(raw[at + 8 : at + 12], "big"),
    )  # fmt: skip


def _kind(flags: int, length: int) -> str:
    if flags & SYN:
        return "syn-ack" if flags & ACK else "syn"
    if flags & RST:
        return "rst"
    return "data" if length else "fin" if flags & FIN else "ack"


@dataclass(slots=True, kw_only=True)
class Rule:
    """One rule, and what it has seen so far."""

    verb: str
    sender: str
    """``left`` or ``right``: the end at which the packet entered."""
    kind: str = "data"
    first: int = 1
    last: int = 1
    copies: int = 1
    larger: int = 0
    hold_ns: int = 0
    """How much later it comes out, or comes out again."""
    _numbers: dict[int, int] = field(default_factory=dict)
    _seen: dict[int, int] = field(default_factory=dict)
    _count: int = 0
    """Of packets without a sequence number of their own."""

    def chooses(self, sender: str, packet: Packet) -> bool:
        """Say whether the rule is about this packet; counts it, so ask once for each."""
        if sender != self.sender:
            return False
        if self.larger:
            return packet.size > self.larger
        if packet.kind != self.kind:
            return False
        if self.kind == "ack" or packet.seq is None:
            self._count += 1
            return self.first <= self._count <= self.last
        number = self._numbers.setdefault(packet.seq, len(self._numbers) + 1)
        copy = self._seen[packet.seq] = self._seen.get(packet.seq, 0) + 1
        return self.first <= number <= self.last and copy <= self.copies


def read_rule(word: str) -> Rule:
    """Read a rule as the command line has it.

    Raises:
        ValueError: it is none.
    """
    verb, _, rest = word.partition(":")
    settings = dict(part.split("=", 1) for part in rest.split(","))
    rule = Rule(verb=verb, sender=settings.pop("from"))
    rule.kind = settings.pop("kind", "data")
    first, _, last = settings.pop("number", "1").partition("-")
    rule.first, rule.last = int(first), int(last or first)
    rule.copies = EVERY if (copies := settings.pop("copies", "1")) == "all" else int(copies)
    rule.larger = int(settings.pop("larger", 0))
    rule.hold_ns = round(float(settings.pop("ms", 0)) * 1_000_000)
    is_valid = verb in ("drop", "hold", "twice") and rule.sender in ("left", "right")
    if not is_valid or settings or {"drop": rule.hold_ns, "hold": not rule.hold_ns}.get(verb):
        raise ValueError(f"no rule of a delay line: {word}")
    return rule
