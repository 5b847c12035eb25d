"""What a packet carries, in a word or two: what TCP does with it, the handshake messages, the parts of exchanges.

In: a connection. Out: of each packet a list of :class:`PayloadLabel`. What encryption hides is named by its place in
the handshake, as far as that tells, and marked.
"""

from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Container, Mapping
from dataclasses import dataclass
from itertools import accumulate

from conchart.questions.explain.connection import Connection
from conchart.questions.explain.spans import SIDES, Spans
from conchart.report.rows import Row

HELLO_RETRY = "HelloRetryRequest"


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadLabel:
    """A word of what a packet carries."""

    name: str
    """A handshake message as the RFCs name it, ``SYN``, ``request``, ``response`` …"""
    row: Row | None = None
    """The handshake or exchange that it belongs to."""
    part: str = ""
    """Of a request or response: ``begins``, ``goes on``, ``ends``; nothing where all of it is here."""
    number: int | None = None
    """Of the exchange, where the connection has several."""
    hidden: bool = False
    """It is sealed: its place tells what it is."""

    @property
    def label(self) -> str:
        """For the arrow."""
        words = self.name
        if words in ("request", "response") and self.row is not None:
            line = self.part in ("", "begins") and _line(words, self.row)
            place = "" if self.number is None else f" #{self.number}"
            return f"{words}{place} {self.part}".rstrip() + (f": {line}" if line else "")
        return f"({words})" if self.hidden else words


def _line(name: str, exchange: Row) -> str:
    """The first line of a message, shortened (RFC 9112 section 2.1)."""
    if name == "request":
        return " ".join(str(word) for word in (exchange["method"], exchange["target"]) if word)
    return str(exchange["answer"] or "")


def cargo(connection: Connection, shown: Container[int] | None = None) -> dict[int, list[PayloadLabel]]:
    """Say of each frame of the connection what it carries, but for what TCP says by itself.

    Args:
        connection: With all its packets.
        shown: The frames that are shown; None for all. Of others, no more than the records is said: a record has its
            name from those beside it.
    """
    carried: dict[int, list[PayloadLabel]] = defaultdict(list)
    sides = {sender: (name, Spans(connection.exchanges, name)) for name, sender in SIDES.items()}
    for frame, one in _records(connection, {sender: spans for sender, (_, spans) in sides.items()}):
        carried[frame].append(one)
    several = len(connection.exchanges) > 1
    for packet in sorted(connection.packets, key=lambda packet: packet["seen_at"]):
        if packet["bytes"] and (shown is None or packet["frame"] in shown):
            name, spans = sides[packet["sender"]]
            carried[packet["frame"]] += _parts(name, spans, packet["seen_at"], several=several)
    for message in connection.contents:
        if shown is not None and message["end_frame"] not in shown:
            continue
        kind = message["kind"]
        carried[message["end_frame"]].append(
            PayloadLabel(name=f"{kind} message" if kind in ("text", "binary") else kind)
        )
    return carried


def _records(connection: Connection, sides: Mapping[str, Spans]) -> list[tuple[int, PayloadLabel]]:
    """What the records carry, each in the frame that ends it."""
    found: list[tuple[int, PayloadLabel]] = []
    messages = _Messages(connection.messages)
    flights: dict[tuple[int, str], list[tuple[int, Row]]] = defaultdict(list)
    handshakes = _Handshakes(connection.handshakes)
    for record in connection.records:
        frame, sender = record["end_frame"], record["sender"]
        read = messages.read_in(record)
        handshake = handshakes.at(record["end_at"])
        if read:
            for message in read:
                name = HELLO_RETRY if messages.is_retry(message, handshake) else message["kind"]
                found.append((frame, PayloadLabel(name=name, row=handshake)))
        elif record["kind"] == "Handshake" and record["cover"] != "clear":
            found.append((frame, PayloadLabel(name="Finished", row=handshake, hidden=True)))
        elif record["kind"] in ("ChangeCipherSpec", "Alert", "SSLv2"):
            name = "SSLv2 hello" if record["kind"] == "SSLv2" else record["kind"]
            found.append((frame, PayloadLabel(name=name, row=handshake, hidden=record["cover"] == "sealed")))
        elif record["kind"] == "Handshake":
            continue  # a message that goes on in the next record
        elif handshake is not None and _in_flight(record, handshake):
            if record["cover"] == "opened":
                continue  # as above
            flights[handshake["number"], sender].append((len(found), record))
            found.append((frame, PayloadLabel(name="handshake message", row=handshake, hidden=True)))
        elif not sides[sender].any_between(record["start_at"], record["end_at"]):
            found.append((frame, _application(record, handshake)))
    by_number = {handshake["number"]: handshake for handshake in connection.handshakes}
    for (number, sender), flight in flights.items():
        handshake = by_number[number]
        names = _flight(handshake, sender)
        if len(names) == len(flight):
            for (place, record), name in zip(flight, names, strict=True):
                found[place] = (record["end_frame"], PayloadLabel(name=name, row=handshake, hidden=True))
        elif names and handshake["outcome"] == "complete":
            # In as many records as it pleased the sender: only the first and the last message are known.
            for count, (place, record) in enumerate(flight):
                last = count == len(flight) - 1
                name = names[-1] if last else names[0] if count == 0 else "handshake message"
                if len(flight) == 1:
                    name = " … ".join((names[0], names[-1]))
                found[place] = (record["end_frame"], PayloadLabel(name=name, row=handshake, hidden=True))
    return found


class _Messages:
    """The handshake messages that could be read, until the record that ends each is asked for."""

    def __init__(self, messages: list[Row]) -> None:
        self._waiting: dict[tuple[str, bool], deque[tuple[int, int]]] = defaultdict(deque)
        """By sender, and whether keys opened it: frame that ends a message, and its place."""
        for place, message in sorted(enumerate(messages), key=lambda numbered: (numbered[1]["end_frame"], numbered[0])):
            self._waiting[message["sender"], bool(message["opened"])].append((message["end_frame"], place))
        self._messages = messages
        self._hellos: dict[int | None, list[Row]] = defaultdict(list)
        for message in messages:
            if message["kind"] == "ServerHello":
                self._hellos[message["handshake"]].append(message)

    def read_in(self, record: Row) -> list[Row]:
        """Give the messages that end in a record, in their order, each once."""
        kinds = [False] if record["kind"] in ("Handshake", "SSLv2") else []
        kinds += [True] if record["cover"] == "opened" else []
        places = []
        for opened in kinds:
            waiting = self._waiting[record["sender"], opened]
            while waiting and waiting[0][0] <= record["end_frame"]:
                places.append(waiting.popleft()[1])
        return [self._messages[place] for place in sorted(places)]

    def is_retry(self, message: Row, handshake: Row | None) -> bool:
        """Tell a ServerHello that asks for another ClientHello (RFC 8446 section 4.1.4)."""
        if handshake is None or not handshake["hello_retry"] or message["kind"] != "ServerHello":
            return False
        hellos = self._hellos[message["handshake"]]
        return len(hellos) > 1 and hellos[0] is message


class _Handshakes:
    """The handshakes of a connection, by when they begin."""

    def __init__(self, handshakes: list[Row]) -> None:
        self._handshakes = handshakes
        begun = sorted((h["hello_at"] or 0, place) for place, h in enumerate(handshakes))
        self._at = [at for at, _ in begun]
        self._last = list(accumulate((place for _, place in begun), max))

    def at(self, instant: int) -> Row | None:
        """Give the handshake in which something was sent, or after which."""
        begun = bisect_right(self._at, instant)
        return self._handshakes[self._last[begun - 1]] if begun else None


def _in_flight(record: Row, handshake: Row) -> bool:
    """Is it a handshake message of TLS 1.3, sealed?"""
    if handshake["version"] != "TLSv1.3":
        return False
    begins = handshake["server_hello_at"]
    if begins is None or record["end_at"] < begins:
        return False
    ends = handshake["server_done_at"] if record["sender"] == "server" else handshake["client_finished_at"]
    # What a server sends in a handshake that does not end belongs to it; a client's may be the alert that ends it.
    return bool(record["end_at"] <= ends) if ends is not None else _is_cut_off(record, handshake)


def _is_cut_off(record: Row, handshake: Row) -> bool:
    return bool(record["sender"] == "server" and handshake["outcome"] != "complete" and record["bytes"] != _ALERT_BYTES)


def _flight(handshake: Row, sender: str) -> list[str]:
    """The messages of TLS 1.3 that stay sealed (RFC 8446 section 2)."""
    if sender == "client":
        identity = ["Certificate", "CertificateVerify"] if handshake["client_auth"] else []
        # RFC 8446 section 4.5: only where the server took the early data.
        ended = ["EndOfEarlyData"] if handshake["early_data"] else []
        return [*ended, *identity, "Finished"]
    request = ["CertificateRequest"] if handshake["client_auth"] else []
    proof = ["Certificate", "CertificateVerify"] if handshake["kind"] == "full" else []
    return ["EncryptedExtensions", *request, *proof, "Finished"]


def _application(record: Row, handshake: Row | None) -> PayloadLabel:
    """What a record of application data is that is no part of an exchange."""
    if handshake is None:
        return PayloadLabel(name="data", hidden=record["cover"] == "sealed")
    hidden = record["cover"] == "sealed"
    if hidden and handshake["version"] == "TLSv1.3" and record["bytes"] == _ALERT_BYTES:
        return PayloadLabel(name="Alert", row=handshake, hidden=True)
    if hidden and handshake["version"] == "TLSv1.3" and record["sender"] == "server":
        return PayloadLabel(name="NewSessionTicket", row=handshake, hidden=True)
    early = handshake["server_hello_at"] is None or record["end_at"] <= handshake["server_hello_at"]
    name = "early data" if handshake["early_data_offered"] and early else "data"
    return PayloadLabel(name=name, row=handshake, hidden=hidden)


_ALERT_BYTES = 24
"""Of TLS 1.3: header, level, description, type, and 16 of authentication. Nothing else is so short, but a KeyUpdate."""
_MOST_PARTS = 3
"""Exchanges told of one packet; HTTP/2 may have parts of dozens."""


def _parts(name: str, spans: Spans, seen_at: int, *, several: bool) -> list[PayloadLabel]:
    """Which parts of exchanges came with a packet."""
    touched, count = spans.touching(seen_at, _MOST_PARTS)
    parts = []
    for exchange in touched:
        begins, ends = seen_at == exchange[f"{name}_at"], seen_at == exchange[f"{name}_done_at"]
        part = "" if begins and ends else "begins" if begins else "ends" if ends else "goes on"
        parts.append(PayloadLabel(name=name, row=exchange, part=part, number=exchange["number"] if several else None))
    more = count - len(parts)
    return [*parts, PayloadLabel(name=f"and {more} more")] if more > 0 else parts
