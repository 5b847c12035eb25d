"""What tshark says about a capture, asked on the spot, in the vocabulary of the comparison.

In: a capture. Out: streams with TCP, TLS and HTTP/1 facts. TCP facts come from the headers that tshark decodes; bytes
are counted here, as the plain union of sequence ranges. What encryption hides, or tshark cannot tell, stays absent.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.agreement.facts import End, Exchange, Packets, Stream, Value
from tests.tshark import ask

PREFERENCES = {
    "tcp.desegment_tcp_streams": "TRUE",
    "tcp.reassemble_out_of_order": "TRUE",
    "tcp.check_checksum": "FALSE",
    "ip.check_checksum": "FALSE",
    "ip.defragment": "TRUE",
    "ipv6.defragment": "TRUE",
    "tls.desegment_ssl_records": "TRUE",
    "tls.desegment_ssl_application_data": "TRUE",
    "http.desegment_headers": "TRUE",
    # A message stands in the frame that completes it, and `tcp.segment` leads back to its first byte.
    "http.desegment_body": "TRUE",
    "http.decompress_body": "FALSE",
}
FIELDS = (
    "frame.number", "frame.time_epoch", "frame.protocols", "ip.src", "ip.dst", "ipv6.src", "ipv6.dst",
    "tcp.stream", "tcp.srcport", "tcp.dstport", "tcp.len", "tcp.seq_raw", "tcp.ack_raw", "tcp.flags", "tcp.segment",
    "tcp.analysis.retransmission", "tcp.analysis.out_of_order", "tcp.analysis.keep_alive",
    "tcp.analysis.lost_segment", "tcp.analysis.ack_lost_segment", "tcp.window_size_value", "ip.id",
    "tcp.options.timestamp.tsval", "frame.len", "frame.cap_len", "_ws.malformed",
    "tls.handshake.type", "tls.handshake.version", "tls.handshake.random", "tls.handshake.ciphersuite",
    "tls.handshake.extensions.supported_version", "tls.handshake.extensions_server_name",
    "tls.handshake.extensions_alpn_str", "tls.handshake.extension.type", "tls.handshake.extension.len",
    "tls.handshake.session_id", "tls.change_cipher_spec", "tls.handshake.challenge", "tls.handshake.ja3",
    "tls.handshake.extensions_key_share_group", "tls.handshake.server_named_curve",
    "tls.alert_message.level", "tls.alert_message.desc",
    "tls.record.content_type", "tls.handshake.certificate_length",
    "http.request.method", "http.request.uri", "http.host", "http.response.code",
)  # fmt: skip
HEADER = ("tcp.stream", "tcp.srcport", "tcp.dstport", "tcp.seq_raw", "tcp.flags")
"""What every TCP header has, once."""
SEPARATOR, AGGREGATOR = "\x1f", "\x1e"
TIMESTAMP = "tcp.options.timestamp.tsval"
FIN, SYN, RST, ACK = 1, 2, 4, 16
CHANGE_CIPHER_SPEC, HANDSHAKE = "20", "22"
ENCRYPTED_CLIENT_HELLO = "65037"
RETRY_RANDOM = "cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c"
VERSIONS = {0x0300: "SSLv3", 0x0301: "TLSv1.0", 0x0302: "TLSv1.1", 0x0303: "TLSv1.2", 0x0304: "TLSv1.3"}
NEWER_GROUPS = {0x11EB: "SecP256r1MLKEM768", 0x11EC: "X25519MLKEM768", 0x11ED: "SecP384r1MLKEM1024",
                0x6399: "X25519Kyber768Draft00"}  # fmt: skip
"""IANA's names of groups that tshark 4.0 does not know."""
TUNNELS = (
    "gre", "vxlan", "geneve", "gtp", "mpls", "pppoes", "ppp", "l2tp", "erspan", "teredo", "wlan", "ipcomp", "ayiya",
    "nvgre", "etherip", "lisp", "nflog", "llc", "fr", "chdlc", "vlan_tunnel", "capwap", "ppi", "juniper", "tzsp", "udp",
)  # fmt: skip


@functools.cache
def _value_names() -> dict[str, dict[int, str]]:
    names: dict[str, dict[int, str]] = {"tls.handshake.ciphersuite": {}, "tls.handshake.server_named_curve": {}}
    for line in ask(["-G", "values"]).splitlines():
        parts = line.split("\t")
        if len(parts) > 3 and parts[0] == "V" and parts[1] in names:
            names[parts[1]][int(parts[2], 0)] = parts[3]
    return names


def cipher_names() -> dict[int, str]:
    """Code to IANA name, as tshark knows them."""
    return _value_names()["tls.handshake.ciphersuite"]


def group_names() -> dict[int, str]:
    """Code of a supported group to its name, as tshark knows them."""
    return NEWER_GROUPS | _value_names()["tls.handshake.server_named_curve"]


@dataclass(slots=True)
class Frame:
    """One TCP packet with the fields of its other protocols."""

    number: int
    at: int
    protocols: list[str]
    """From the link layer to what TCP carries."""
    source: End
    destination: End
    seq: int
    ack: int
    flags: int
    length: int
    values: dict[str, list[str]]

    def first_part(self, packets: dict[int, Frame]) -> Frame:
        """The packet with the first byte of what was reassembled here: in stream order, not in order of arrival."""
        parts = [packets[int(part)] for part in self.values["tcp.segment"] if int(part) in packets]
        return min(parts, key=lambda part: (part.seq - self.seq + 2**31) % 2**32, default=self)

    def began(self, packets: dict[int, Frame]) -> int:
        """When the first byte of what was reassembled here came."""
        return self.first_part(packets).at

    def looks(self) -> object:
        """What two captures of one packet have in common (a router changes the TTL)."""
        rest = (self.values["ip.id"][-1:], self.values["tcp.window_size_value"], self.values[TIMESTAMP])
        return self.source, self.seq, self.ack, self.flags, self.length, str(rest)

    def resends(self) -> bool:
        """Whether tshark says that these bytes were sent before, or that later ones overtook them.

        Which of the two it was is a guess about time in every tool; that it was one of them is not.
        """
        marks = ("tcp.analysis.retransmission", "tcp.analysis.out_of_order")
        return any(self.values[mark] for mark in marks) and not self.values["tcp.analysis.keep_alive"]


def frames(capture: Path) -> Iterator[tuple[int, Frame]]:
    """Every TCP packet with its stream number; TCP that an ICMP error quotes is none."""
    arguments = ["-n", "-r", str(capture), "-Y", "tcp", "-T", "fields", "-E", "occurrence=a"]
    arguments += ["-E", f"separator={SEPARATOR}", "-E", f"aggregator={AGGREGATOR}"]
    for preference, value in PREFERENCES.items():
        arguments += ["-o", f"{preference}:{value}"]
    for name in FIELDS:
        arguments += ["-e", name]
    for line in ask(arguments).split("\n"):
        cells = line.split(SEPARATOR)
        if len(cells) == len(FIELDS):
            yield from frames_of(dict(zip(FIELDS, cells, strict=True)))


def frames_of(cells: dict[str, str]) -> Iterator[tuple[int, Frame]]:
    """The TCP segments of one line: a frame can carry several (A-MSDU, a tunnel inside TCP).

    Of the fields above TCP nothing says to which of several segments they belong: the first one with data has them.
    """
    values = {name: cell.split(AGGREGATOR) if cell else [] for name, cell in cells.items()}
    protocols = values["frame.protocols"][0].split(":")
    headers = [values[name] for name in HEADER]
    whole = min(map(len, headers))
    among = whole if whole == max(map(len, headers)) else min(whole, 1)
    ends_at = [index for index, name in enumerate(protocols) if name == "tcp"]
    found: list[tuple[int, Frame]] = []
    for which, layer in enumerate(ends_at[:among]):
        if frame := _frame(values, which, protocols, layer):
            found.append((int(values["tcp.stream"][which]), frame))
    talking = next((frame for _, frame in found if frame.length), found[0][1] if found else None)
    for number, frame in found:
        yield number, frame if frame is talking else replace(frame, values=dict.fromkeys(FIELDS, []))


def _frame(values: dict[str, list[str]], which: int, protocols: list[str], layer: int) -> Frame | None:
    """The segment of the ``which``-th TCP header; None for one that an ICMP error quotes."""
    outer = protocols[:layer]
    networks = [name for name in outer if name in ("ip", "ipv6")]
    if "icmp" in outer or "icmpv6" in outer or not networks:
        return None
    network = networks.count(networks[-1]) - 1
    sources, destinations = values[f"{networks[-1]}.src"], values[f"{networks[-1]}.dst"]
    if len(sources) <= network:
        return None
    acknowledged, lengths = values["tcp.ack_raw"], values["tcp.len"]
    return Frame(
        number=int(values["frame.number"][0]),
        at=nanoseconds(values["frame.time_epoch"][0]),
        protocols=protocols,
        source=(sources[network], int(values["tcp.srcport"][which])),
        destination=(destinations[network], int(values["tcp.dstport"][which])),
        seq=int(values["tcp.seq_raw"][which]),
        ack=int(acknowledged[which]) if len(acknowledged) > which else 0,
        flags=int(values["tcp.flags"][which], 0),
        length=int(lengths[which]) if len(lengths) > which else 0,
        values=values,
    )


def nanoseconds(text: str) -> int:
    """Since the Unix epoch.

    A time before 1970 is a count of ticks of 64 bits; tshark 4.0 prints it without its sign, near 2^64 ticks.
    """
    seconds, _, fraction = text.partition(".")
    sign = -1 if seconds.startswith("-") else 1
    at = int(seconds) * 10**9 + sign * int(fraction.ljust(9, "0"))
    for ticks_ns in (1, 10**3, 10**6, 10**9):  # whichever resolution makes it one
        if 2**63 <= at // ticks_ns < 2**64:
            return at - 2**64 * ticks_ns
    return at


def grouped(capture: Path) -> dict[int, list[Frame]]:
    """The packets of every TCP stream of a capture, streams in order.

    Raises:
        TsharkError: tshark could not read the capture at all.
        subprocess.TimeoutExpired: It took more than five minutes.
    """
    found: dict[int, list[Frame]] = {}
    for number, frame in frames(capture):
        found.setdefault(number, []).append(frame)
    return dict(sorted(found.items()))


def read(capture: Path) -> list[Stream]:
    """Every TCP stream of a capture, with what tshark knows of it; raises as ``grouped``."""
    return [stream(number, packets) for number, packets in grouped(capture).items()]


def stream(number: int, packets: list[Frame]) -> Stream:
    """What tshark knows of one stream."""
    first = packets[0]
    found = Stream(
        number=number,
        ends=frozenset((first.source, first.destination)),
        first_frame=first.number,
        tunnel=_tunnel(first.protocols),
    )
    _tcp(found, packets)
    _tls(found, packets)
    _http(found, packets)
    return found


def _tunnel(protocols: list[str]) -> str:
    outer = protocols[: protocols.index("tcp")]
    named = [name for name in outer if name in TUNNELS]
    return named[-1] if named else "ip" if sum(name in ("ip", "ipv6") for name in outer) > 1 else ""


def _tcp(stream: Stream, packets: list[Frame]) -> None:
    syn = next((p for p in packets if p.flags & (SYN | ACK) == SYN), None)
    syn_ack = next((p for p in packets if p.flags & (SYN | ACK) == SYN | ACK), None)
    facts = stream.facts
    facts["syn_at"] = syn.at if syn else None
    facts["syn_frame"] = syn.number if syn else None
    if syn or syn_ack:
        client = syn.source if syn else syn_ack.destination if syn_ack else None
        facts["client"] = client
        # A simultaneous open has no SYN-ACK of one side alone.
        syn_ack = next((p for p in packets if p.flags & (SYN | ACK) == SYN | ACK and p.source != client), None)
        facts["syn_ack_at"] = syn_ack.at if syn_ack else None
        if syn and syn_ack:
            done = (p for p in packets if p.source == client and p.number > syn_ack.number and _accepts(p, syn_ack))
            ack = next(done, None)
            facts["ack_at"] = ack.at if ack else None
            facts["ack_frame"] = ack.number if ack else None
    for fact, flag in (("fin_by", FIN), ("rst_by", RST)):
        facts[fact] = next((p.source for p in packets if p.flags & flag), None)
    sent = {end: [p for p in packets if p.source == end] for end in stream.ends}
    stream.by_end["packets"] = {end: len(some) for end, some in sent.items()}
    stream.packets = {end: _packets(some) for end, some in sent.items()}
    if len(stream.ends) == 2:
        stream.by_end["bytes"] = {end: distinct(some) for end, some in sent.items()}


def _packets(packets: list[Frame]) -> Packets:
    found = Packets()
    seen: set[object] = set()
    for packet in packets:
        found.frames.append(packet.number)
        if packet.resends():
            found.resent.append(packet.number)
        if packet.looks() in seen:
            found.twins.add(packet.number)
        seen.add(packet.looks())
    return found


def _accepts(packet: Frame, syn_ack: Frame) -> bool:
    if packet.flags & (SYN | RST) or not packet.flags & ACK:
        return False
    return 0 < (packet.ack - syn_ack.seq) % 2**32 < 2**31


def distinct(packets: list[Frame]) -> int:
    """Bytes of all ranges of sequence numbers that one side's packets fill, each counted once.

    Nothing is left out and no order is assumed: whatever conchart cuts off or ignores shows as a difference.
    """
    ranges: list[tuple[int, int]] = []
    for packet in packets:
        start = (packet.seq + bool(packet.flags & SYN)) % 2**32
        end = start + packet.length
        ranges += [(start, end)] if end <= 2**32 else [(start, 2**32), (0, end - 2**32)]
    total = reached = 0
    for start, end in sorted(ranges):
        total += max(end - max(start, reached), 0)
        reached = max(reached, end)
    return total


@dataclass(slots=True)
class _Hellos:
    """The clear part of the first handshake."""

    client: Frame | None = None
    server: Frame | None = None
    done: Frame | None = None
    """Has the ServerHelloDone of TLS 1.2."""
    curve: int | None = None
    alert: int | None = None
    """The first fatal alert in clear, if it came before anything was encrypted."""
    opaque: bool = False
    retried: bool = False
    full: bool = False
    changed: set[End] = field(default_factory=set)
    """Who changed cipher specs."""
    finished: dict[End, Frame] = field(default_factory=dict)
    """Has the end of each side's Finished, the first handshake record after its ChangeCipherSpec."""
    requested: bool = False
    """The server asked for a certificate, in clear."""
    certificates: int | None = None


def _tls(stream: Stream, packets: list[Frame]) -> None:
    seen = _Hellos()
    for packet in packets:
        types = [int(kind) for kind in packet.values["tls.handshake.type"] if kind.isdigit()]
        if seen.client is None and 1 in types:
            seen.client = packet
        if 2 in types and seen.server is None and not (seen.client and packet.source == seen.client.source):
            randoms = [text.replace(":", "") for text in packet.values["tls.handshake.random"]]
            if RETRY_RANDOM in randoms:
                seen.retried = True
            else:
                seen.server = packet
        if {11, 12, 14, 16} & {*types}:
            seen.full = True
        if 14 in types:
            seen.done = seen.done or packet
        if curves := packet.values["tls.handshake.server_named_curve"]:
            seen.curve = seen.curve or int(curves[0], 0)
        alerts = zip(packet.values["tls.alert_message.level"], packet.values["tls.alert_message.desc"], strict=True)
        fatal = [int(number, 0) for level, number in alerts if level == "2"]
        if fatal and seen.client and seen.alert is None and not seen.opaque:
            seen.alert = fatal[0]
        seen.opaque = seen.opaque or bool(packet.values["tls.change_cipher_spec"])
        if seen.server:
            seen.requested = seen.requested or 13 in types
            if 11 in types and packet.source == seen.server.source and seen.certificates is None:
                seen.certificates = len(packet.values["tls.handshake.certificate_length"])
            _follow_cipher_change(seen, packet)
    if any(packet.values["tls.handshake.challenge"] for packet in packets):
        stream.tls = {}  # a hello of SSL 2.0, which has other fields
    elif seen.client or seen.server:
        stream.tls = _hello_facts(seen.client, seen, {packet.number: packet for packet in packets})


def _follow_cipher_change(seen: _Hellos, packet: Frame) -> None:
    """TLS 1.2 and older: after a ChangeCipherSpec comes the Finished, encrypted (RFC 5246 section 7.1)."""
    for kind in packet.values["tls.record.content_type"]:
        if kind == CHANGE_CIPHER_SPEC:
            seen.changed.add(packet.source)
        elif kind == HANDSHAKE and packet.source in seen.changed:
            seen.finished.setdefault(packet.source, packet)


def _hello_facts(hello: Frame | None, seen: _Hellos, packets: dict[int, Frame]) -> dict[str, Value]:
    names = hello.values["tls.handshake.extensions_server_name"] if hello else []
    facts: dict[str, Value] = {"hello_at": hello.began(packets) if hello else None, "sni": names[0] if names else None}
    if hello:
        facts["hello_frame"] = hello.first_part(packets).number
        facts["ech"] = ENCRYPTED_CLIENT_HELLO in hello.values["tls.handshake.extension.type"]
        facts["version_offered"] = _highest_version(hello)
        if prints := hello.values["tls.handshake.ja3"]:
            facts["ja3"] = prints[0]
    if seen.alert is not None:
        facts["alert"] = seen.alert
    answer = seen.server
    facts["server_hello_at"] = answer.began(packets) if answer else None
    facts["hello_retry"] = seen.retried
    if answer is None:
        return facts
    versions = answer.values["tls.handshake.extensions.supported_version"] or answer.values["tls.handshake.version"]
    version = _plain_version(versions[0])
    facts["version"] = VERSIONS.get(version, f"0x{version:04x}")
    ciphers = answer.values["tls.handshake.ciphersuite"]
    if ciphers:
        code = int(ciphers[0], 0)
        facts["cipher"] = cipher_names().get(code, f"0x{code:04x}")
    groups = answer.values["tls.handshake.extensions_key_share_group"] if version >= 0x0304 else []
    group = int(groups[0], 0) if groups else seen.curve
    facts["group"] = group_names().get(group, f"0x{group:04x}") if group is not None else None
    if version >= 0x0304:
        facts["resumed"] = "41" in answer.values["tls.handshake.extension.type"]
        return facts
    if seen.done:
        facts["server_done_at"] = seen.done.at
        facts["client_auth"], facts["certificates"] = seen.requested, seen.certificates
    if len(seen.finished) == 2:
        facts["complete_at"] = max(packet.at for packet in seen.finished.values())
    protocols = answer.values["tls.handshake.extensions_alpn_str"]
    facts["alpn"] = protocols[0] if protocols else None
    if seen.full:
        facts["resumed"], facts["kind"] = False, "full"
    elif answer.source in seen.changed:
        facts["resumed"] = True
        if hello and not _offers_ticket(hello) and hello.values["tls.handshake.session_id"]:
            facts["kind"] = "session-id"
    return facts


def _plain_version(text: str) -> int:
    """The code of a version; that of TLS 1.3 for what became it."""
    version = int(text, 0)
    return 0x0304 if version >> 8 in (0x7E, 0x7F, 0xFB) else version  # Google's, a draft, Facebook's


def _highest_version(hello: Frame) -> str:
    """The highest version that is offered, without GREASE (RFC 8701)."""
    listed = [_plain_version(text) for text in hello.values["tls.handshake.extensions.supported_version"]]
    offered = [version for version in listed if version & 0x0F0F != 0x0A0A]
    highest = max(offered, default=_plain_version(hello.values["tls.handshake.version"][0]))
    return VERSIONS.get(highest, f"0x{highest:04x}")


def _offers_ticket(hello: Frame) -> bool:
    types, lengths = hello.values["tls.handshake.extension.type"], hello.values["tls.handshake.extension.len"]
    return any(kind == "35" and length != "0" for kind, length in zip(types, lengths, strict=True))


def _http(stream: Stream, packets: list[Frame]) -> None:
    """The k-th final response answers the k-th request (RFC 9112 section 9.3.2).

    tshark shows no message whose end is not captured: what follows the last whole message stays absent.
    """
    by_number = {packet.number: packet for packet in packets}
    requests: list[Exchange] = []
    answers: list[tuple[int, int]] = []
    ends: dict[End, int] = {}
    """The frame with the end of each side's last whole message."""
    for packet in packets:
        if "http" not in packet.protocols or "tls" in packet.protocols:
            continue
        values = packet.values
        ends[packet.source] = packet.number
        methods, codes = values["http.request.method"], values["http.response.code"]
        targets = values["http.request.uri"] or methods[:1] and [""]  # one that is empty leaves its column empty
        hosts = values["http.host"]
        # The first message of a packet may have begun in an earlier one; any other began here.
        starts = [packet.began(by_number), *[packet.at] * len(methods + codes)]
        for number, (method, target) in enumerate(zip(methods, targets, strict=True)):
            facts = {"method": method, "target": target or None}
            exchange = Exchange(request_at=starts[number], frame=packet.number, facts=facts)
            if len(hosts) == len(methods):
                exchange.facts["host"] = hosts[number]
            elif not hosts:
                exchange.facts["host"] = None
            requests.append(exchange)
        for number, status in enumerate(codes):
            if requests and (not status.startswith("1") or status == "101"):
                answers.append((int(status), starts[number]))
    for exchange, answer in zip(requests, answers, strict=False):  # what is left over has no partner
        exchange.facts["status"], exchange.facts["response_at"] = answer
    rest = {packet.source for packet in packets if packet.length and packet.number > ends.get(packet.source, 0)}
    if not rest:
        for exchange in requests[len(answers) :]:
            exchange.facts["status"] = exchange.facts["response_at"] = None
    stream.http = requests
