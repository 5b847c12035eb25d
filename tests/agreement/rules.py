"""What a class of disagreements claims, as a rule that every one of its places is held against.

The classes are the sections of ``docs/agreement.md``. A rule looks at tshark's fields of the stream's packets and at
both values. The strictest ones take the cause away: they read the stream anew without the packets, or the bytes, that
the class names, and the disagreement has to be gone. Not every class has a rule: what is in none has to be looked up
in the packets. In: a disagreement with its stream. Out: the classes whose rule holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from tests.agreement import tshark
from tests.agreement.facts import Outcome, Packets, Stream, compare_streams
from tests.agreement.tshark import ACK, FIN, RST, SYN, Frame

LINGER_NS = 30 * 10**9
"""How long a connection that is over waits for strays."""
STEP_NS = 315_576_000 * 10**9
"""Ten years: what conchart takes for a step of the clock, from one frame to the next."""
LONGEST_TARGET = 2048
CLOSED = ("sflow", "ayiya", "capwap", "ipcomp", "wlan")
"""Tunnels, as tshark calls them, that conchart does not open."""


@dataclass(frozen=True, slots=True)
class Case:
    """A disagreement with what tshark knows of its stream."""

    outcome: Outcome
    packets: list[Frame]
    mine: Stream | None

    def resent(self) -> tuple[list[Frame], list[Frame]]:
        """The packets of the sender that only tshark, and that only conchart, calls sent again."""
        sender, mine = self.outcome.sender, self.mine
        if self.outcome.fact not in ("resent", "resent_frames") or mine is None or mine.packets is None:
            return [], []
        own = mine.packets[sender] if sender in mine.packets else Packets()
        sent = [packet for packet in self.packets if packet.source == sender and packet.number not in own.copies]
        theirs = [packet for packet in sent if packet.resends() and packet.number not in own.resent]
        return theirs, [packet for packet in sent if not packet.resends() and packet.number in own.resent]

    def before(self, frame: Frame) -> list[Frame]:
        """What its sender had sent before a packet came."""
        return [packet for packet in self.packets if packet.source == frame.source and packet.number < frame.number]

    def at(self, number: int) -> Frame | None:
        """A packet by its frame."""
        return next((packet for packet in self.packets if packet.number == number), None)

    def settled_by(self, packets: list[Frame]) -> bool:
        """Whether the fact no longer disagrees when the stream consists of these packets."""
        if self.mine is None or not packets:
            return False
        anew = compare_streams(self.outcome.capture, tshark.stream(self.outcome.stream, packets), self.mine)
        mine = self.outcome
        about = [one for one in anew if (one.fact, one.sender) == (mine.fact, mine.sender)]
        if mine.fact in PER_EXCHANGE:
            about = [one for one in about if one.frame == mine.frame]
        # A fact that nobody states any more is one that conchart did not state either.
        return all(one.agrees for one in about) if about else mine.got is None


PER_EXCHANGE = ("request", "request_at", "method", "target", "host", "status", "response_at")


def late(packets: list[Frame]) -> list[Frame]:
    """What comes when the connection has been over for more than 30 s; it is forgotten then, for whatever follows."""
    finished: set[object] = set()
    over: int | None = None
    found: list[Frame] = []
    for packet in packets:
        if found or (over is not None and packet.at - over > LINGER_NS):
            found.append(packet)
            continue
        if packet.flags & FIN:
            finished.add(packet.source)
        if over is None and (packet.flags & RST or len(finished) == 2):
            over = packet.at
    return found


def stepped(case: Case) -> bool:
    """The times are ten years apart or more."""
    expected, got = case.outcome.expected, case.outcome.got
    are_instants = isinstance(expected, int) and isinstance(got, int) and case.outcome.fact.endswith("_at")
    return are_instants and abs(expected - got) >= STEP_NS


def long_after_the_end(case: Case) -> bool:
    """Without what comes later than 30 s after the end the two agree."""
    out = {id(packet) for packet in late(case.packets)}
    return bool(out) and case.settled_by([packet for packet in case.packets if id(packet) not in out])


def in_a_closed_tunnel(case: Case) -> bool:
    """Without what is in a tunnel of these kinds the two agree, or nothing is left of the stream."""
    out = {id(packet) for packet in case.packets if {*CLOSED} & {*packet.protocols}}
    rest = [packet for packet in case.packets if id(packet) not in out]
    return bool(out) and (not rest if case.outcome.fact.startswith("stream") else case.settled_by(rest))


def begins(packets: Iterable[Frame]) -> dict[object, int]:
    """The SYN's sequence number of each sender."""
    found: dict[object, int] = {}
    for packet in packets:
        if packet.flags & SYN:
            found.setdefault(packet.source, packet.seq)
    return found


def at_the_syn(case: Case) -> bool:
    """Data and FINs that begin at the SYN's own number: without that byte or that FIN the two agree."""
    syn = begins(case.packets)
    trimmed = []
    for packet in case.packets:
        if packet.seq == syn.get(packet.source) and not packet.flags & SYN:
            cut = min(packet.length, 1)
            flags = packet.flags if packet.length else packet.flags & ~FIN
            packet = replace(packet, seq=packet.seq + cut, length=packet.length - cut, flags=flags)
        trimmed.append(packet)
    if all(one is other for one, other in zip(case.packets, trimmed, strict=True)):
        return False
    match case.outcome.fact:
        case "resent" | "resent_frames":
            # For tshark its first byte was sent before, by the SYN, or it is a keep-alive.
            theirs, mine = case.resent()
            return all(packet.seq == syn.get(packet.source) for packet in theirs + mine)
        case "request":
            frame = case.at(case.outcome.frame)
            return case.outcome.got is True and frame is not None and frame.seq == syn.get(frame.source)
    return case.settled_by(trimmed)


def first_copies(case: Case) -> list[Frame]:
    """The packets that tshark alone calls sent again, if each brings only what nobody had seen."""
    theirs, mine = case.resent()
    if mine or not all(new_bytes(case, frame) == frame.length for frame in theirs):
        return []
    closed = {frame.source for frame in theirs for one in case.before(frame) if one.flags & FIN and not one.flags & RST}
    return theirs if all(frame.length or (frame.flags & FIN and not closed) for frame in theirs) else []


def acknowledged_first(case: Case) -> bool:
    """The receiver's acknowledgement was captured before what it acknowledges."""
    copies = first_copies(case)
    return bool(copies) and all(
        any(acknowledges(one, frame) for one in case.packets if answers(one, frame)) for frame in copies
    )


def acknowledges(one: Frame, frame: Frame) -> bool:
    """The whole packet, a FIN included."""
    return 0 <= (one.ack - frame.seq) % 2**32 - frame.length - bool(frame.flags & FIN) < 2**31


def answers(one: Frame, frame: Frame) -> bool:
    """An acknowledgement by the other end, captured before."""
    return one.number < frame.number and one.source != frame.source and bool(one.flags & ACK)


def reported_without_data(case: Case) -> bool:
    """A packet of the same sender without new data, captured before, has a later sequence number."""
    copies = first_copies(case)
    return bool(copies) and all(
        any(not one.length and 0 < (one.seq - frame.seq) % 2**32 < 2**31 for one in case.before(frame))
        for frame in copies
    )


def new_bytes(case: Case, frame: Frame) -> int:
    """How many bytes of a packet no earlier one had."""
    before = case.before(frame)
    return tshark.distinct([*before, frame]) - tshark.distinct(before)


def one_timestamp(case: Case) -> bool:
    """The two frames have one time."""
    frames = case.at(case.outcome.expected), case.at(case.outcome.got)
    return case.outcome.fact == "hello_frame" and all(frames) and len({one.at for one in frames if one}) == 1


def holes(case: Case) -> bool:
    """Packets are missing where the reference knows nothing, or where a response begins that it then misses."""
    marks = ("tcp.analysis.lost_segment", "tcp.analysis.ack_lost_segment")
    until = case.outcome.frame if case.outcome.fact == "request" else math.inf
    missing = any(packet.values[mark] for packet in case.packets for mark in marks if packet.number <= until)
    unknown = case.outcome.expected in (None, False) and case.outcome.got not in (None, False)
    match case.outcome.fact:
        case "response_at" | "status":
            asking = [p for p in case.packets if "http" in p.protocols and p.values["http.request.method"]]
            return any(headless(case, frame) for frame in asking if frame.number <= case.outcome.frame)
        case "request" | "group":
            return missing and unknown
    return False


def headless(case: Case, request: Frame) -> bool:
    """The first that was captured of the response is not its beginning."""
    answer = next(
        (p for p in case.packets if p.number > request.number and p.source != request.source and p.length), None
    )
    return answer is not None and 0 < (answer.seq - request.ack) % 2**32 < 2**31


def cut_by_the_snap_length(case: Case) -> bool:
    """Frames are longer than what was captured of them, and one of the two knows nothing for that."""
    cut = any(packet.values["frame.len"] != packet.values["frame.cap_len"] for packet in case.packets)
    return (
        cut and case.outcome.fact in ("server_hello_at", "target") and None in (case.outcome.expected, case.outcome.got)
    )


def text_in_a_reset(case: Case) -> bool:
    """Without the text that resets carry (RFC 9293 section 3.5.3) the two agree."""
    if not any(packet.flags & RST and packet.length for packet in case.packets):
        return False
    theirs, mine = case.resent()
    if theirs or mine:
        return all(packet.flags & RST and packet.length for packet in theirs + mine)
    return case.settled_by([replace(packet, length=0) if packet.flags & RST else packet for packet in case.packets])


def fin_in_a_reset(case: Case) -> bool:
    """Without the FIN of a packet that is also a reset the two agree: the reset comes first."""
    both = FIN | RST
    if case.outcome.fact != "fin_by" or not any(packet.flags & both == both for packet in case.packets):
        return False
    plain = [replace(p, flags=p.flags & ~FIN) if p.flags & both == both else p for p in case.packets]
    return case.settled_by(plain)


def header_cut_short(case: Case) -> bool:
    """Without the packets whose TCP header ends before its options do the two agree, or nothing is left."""
    rest = [packet for packet in case.packets if packet.values["tcp.len"] or not packet.values["_ws.malformed"]]
    if len(rest) == len(case.packets):
        return False
    return case.settled_by(rest) if rest else case.outcome.fact.startswith("stream")


def by_port(case: Case) -> bool:
    """What only conchart sees is in a packet that tshark, by its port, takes for another protocol."""
    frame = case.at(case.outcome.frame)
    if case.outcome.fact not in ("tls", "request") or case.outcome.got is not True or frame is None:
        return False
    above = frame.protocols[frame.protocols.index("tcp") + 1 :]
    return bool(above) and ("tls" if case.outcome.fact == "tls" else "http") not in above


def inferred(case: Case) -> bool:
    """Only one end's packets were captured: the other's response is timed by what acknowledges it."""
    one_sided = len({packet.source for packet in case.packets}) == 1
    return one_sided and case.outcome.fact == "response_at" and case.outcome.expected is None


def unasked(case: Case) -> bool:
    """Only the server's packets were captured: conchart counts the requests that it answers."""
    senders = {packet.source for packet in case.packets}
    answering = case.mine is not None and len(senders) == 1 and case.mine.facts["client"] not in senders
    return answering and case.outcome.fact == "request" and case.outcome.got is True


def own_method(case: Case) -> tuple[bool, str | None]:
    """Whether only conchart has this request, and its method, which is unknown for what is no request line."""
    only = case.outcome.fact == "request" and case.outcome.got is True and case.mine is not None
    found = [one.facts["method"] for one in case.mine.http if one.frame == case.outcome.frame] if case.mine else []
    return only and bool(found), found[-1] if found else None


def cruft(case: Case) -> bool:
    """What conchart counts as a request has no method, and follows one that has."""
    only, method = own_method(case)
    return only and method is None


def not_whole(case: Case) -> bool:
    """A request that tshark does not show: its sender does not end what it says, and shows no later one either."""
    frame = case.at(case.outcome.frame)
    only, method = own_method(case)
    if not only or method is None or frame is None:
        return False
    if any(packet.flags & FIN and packet.source == frame.source for packet in case.packets):
        return False
    if frame.protocols[-1] != "tcp" and "http" not in frame.protocols:
        return False
    later = [p for p in case.packets if p.source == frame.source and p.number >= frame.number]
    return not any("http" in p.protocols and p.values["http.request.method"] for p in later)


def blanks(case: Case) -> bool:
    """A target with blanks: tshark takes what is before the first one."""
    theirs, mine = case.outcome.expected, case.outcome.got
    return case.outcome.fact == "target" and mine is not None and (theirs is None or mine.startswith(f"{theirs} "))


def long_text(case: Case) -> bool:
    """The same target, cut at the length that conchart keeps."""
    theirs, mine = case.outcome.expected, case.outcome.got
    same = case.outcome.fact == "target" and theirs and mine and theirs.startswith(mine)
    return bool(same) and len(mine) == LONGEST_TARGET


def of_a_connect(case: Case) -> bool:
    """The target of a CONNECT, or nothing where the field is empty."""
    if case.outcome.fact != "host" or case.mine is None:
        return False
    requests = [one.facts for one in case.mine.http if one.facts["host"] == case.outcome.got]
    return case.outcome.expected is None and any(one["method"] == "CONNECT" for one in requests)


def openvpn(case: Case) -> bool:
    """Tshark itself says that OpenVPN carries the TLS."""
    return case.outcome.fact == "tls" and any("openvpn" in packet.protocols for packet in case.packets)


def never_answered(case: Case) -> bool:
    """Both ends send requests, and nobody ever responds."""
    asking = {p.source for p in case.packets if "http" in p.protocols and p.values["http.request.method"]}
    answered = any(p.values["http.response.code"] for p in case.packets if "http" in p.protocols)
    return len(asking) == 2 and not answered and case.outcome.fact in ("request", "response_at")


Rule = Callable[[Case], bool]
RULES: dict[str, Rule] = {
    "Data at the SYN's own number": at_the_syn,
    "Packets long after the end": long_after_the_end,
    "Clocks that step by years": stepped,
    "Tunnels that stay closed": in_a_closed_tunnel,
    "TCP headers that are cut short": header_cut_short,
    "Text in a reset": text_in_a_reset,
    "A FIN in a reset": fin_in_a_reset,
    "Packets with the same timestamp": one_timestamp,
    "Acknowledged before it was captured": acknowledged_first,
    "What a packet without data tells of": reported_without_data,
    "Responses that only ACKs tell of": inferred,
    "Requests that only the responses tell of": unasked,
    "The port of another protocol": by_port,
    "After missing packets": holes,
    "Messages that are not whole": not_whole,
    "Cruft between requests": cruft,
    "Packets that the snap length cut": cut_by_the_snap_length,
    "Request lines with blanks, or without parts": blanks,
    "Long texts": long_text,
    "The host of a CONNECT": of_a_connect,
    "TLS inside another framing": openvpn,
    "Other protocols that tshark calls HTTP": never_answered,
}


def holding(case: Case) -> tuple[str, ...]:
    """The classes whose rule holds for a disagreement."""
    return tuple(section for section, rule in RULES.items() if rule(case))
