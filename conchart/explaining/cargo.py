"""What a packet carries, in a word or two: what TCP does with it, the handshake messages, the parts of exchanges.

In: a connection. Out: of each packet a list of :class:`Cargo`. What encryption hides is named by its place in the
handshake, as far as that tells, and marked.
"""

from collections import defaultdict
from dataclasses import dataclass

from conchart.explaining.connection import Connection
from conchart.telling.rows import Row

HELLO_RETRY = "HelloRetryRequest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cargo:
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
            told = self.part in ("", "begins") and _line(words, self.row)
            place = "" if self.number is None else f" #{self.number}"
            return f"{words}{place} {self.part}".rstrip() + (f": {told}" if told else "")
        return f"({words})" if self.hidden else words


def _line(name: str, exchange: Row) -> str:
    """The first line of a message, shortened (RFC 9112 section 2.1)."""
    if name == "request":
        return " ".join(str(word) for word in (exchange["method"], exchange["target"]) if word)
    return str(exchange["answer"] or "")


def cargo(connection: Connection) -> dict[int, list[Cargo]]:
    """Say of each frame of the connection what it carries, but for what TCP says by itself."""
    carried: dict[int, list[Cargo]] = defaultdict(list)
    for frame, one in _records(connection):
        carried[frame].append(one)
    for packet in connection.packets:
        if packet["bytes"]:
            carried[packet["frame"]] += _parts(connection.exchanges, packet)
    return carried


def _records(connection: Connection) -> list[tuple[int, Cargo]]:
    """What the records carry, each in the frame that ends it."""
    found: list[tuple[int, Cargo]] = []
    messages = list(connection.messages)
    flights: dict[tuple[int, str], list[tuple[int, Row]]] = defaultdict(list)
    for record in connection.records:
        frame, sender = record["end_frame"], record["sender"]
        read = [m for m in messages if m["sender"] == sender and m["end_frame"] <= frame and _is_of(m, record)]
        handshake = _handshake(connection, record)
        if read:
            for message in read:
                messages.remove(message)
                name = HELLO_RETRY if _is_retry(message, handshake, connection) else message["kind"]
                found.append((frame, Cargo(name=name, row=handshake)))
        elif record["kind"] == "Handshake" and record["cover"] != "clear":
            found.append((frame, Cargo(name="Finished", row=handshake, hidden=True)))
        elif record["kind"] in ("ChangeCipherSpec", "Alert", "SSLv2"):
            name = "SSLv2 hello" if record["kind"] == "SSLv2" else record["kind"]
            found.append((frame, Cargo(name=name, row=handshake, hidden=record["cover"] == "sealed")))
        elif record["kind"] == "Handshake":
            continue  # a message that goes on in the next record
        elif handshake is not None and _in_flight(record, handshake):
            if record["cover"] == "opened":
                continue  # as above
            flights[handshake["number"], sender].append((len(found), record))
            found.append((frame, Cargo(name="handshake message", row=handshake, hidden=True)))
        else:
            found += [(frame, one) for one in _application(connection.exchanges, record, handshake)]
    for (number, sender), flight in flights.items():
        handshake = next(h for h in connection.handshakes if h["number"] == number)
        names = _flight(handshake, sender)
        if len(names) == len(flight):
            for (place, record), name in zip(flight, names, strict=True):
                found[place] = (record["end_frame"], Cargo(name=name, row=handshake, hidden=True))
        elif names:
            # In as many records as it pleased the sender: only the first and the last message are known.
            for count, (place, record) in enumerate(flight):
                last = count == len(flight) - 1
                name = names[-1] if last else names[0] if count == 0 else "handshake message"
                if len(flight) == 1:
                    name = " … ".join((names[0], names[-1]))
                found[place] = (record["end_frame"], Cargo(name=name, row=handshake, hidden=True))
    return found


def _is_of(message: Row, record: Row) -> bool:
    return bool(record["kind"] in ("Handshake", "SSLv2") if not message["opened"] else record["cover"] == "opened")


def _is_retry(message: Row, handshake: Row | None, connection: Connection) -> bool:
    """A ServerHello that asks for another ClientHello (RFC 8446 section 4.1.4)."""
    if handshake is None or not handshake["hello_retry"] or message["kind"] != "ServerHello":
        return False
    hellos = [m for m in connection.messages if m["kind"] == "ServerHello" and m["handshake"] == message["handshake"]]
    return len(hellos) > 1 and hellos[0] is message


def _handshake(connection: Connection, record: Row) -> Row | None:
    """The handshake in which a record was sent, or after which."""
    begun = [h for h in connection.handshakes if h["hello_at"] is None or h["hello_at"] <= record["end_at"]]
    return begun[-1] if begun else None


def _in_flight(record: Row, handshake: Row) -> bool:
    """Is it a handshake message of TLS 1.3, sealed?"""
    if handshake["version"] != "TLSv1.3":
        return False
    ends = handshake["server_done_at"] if record["sender"] == "server" else handshake["client_finished_at"]
    begins = handshake["server_hello_at"]
    return ends is not None and begins is not None and begins <= record["end_at"] <= ends


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


def _application(exchanges: list[Row], record: Row, handshake: Row | None) -> list[Cargo]:
    """What a record of application data is, if it is no part of an exchange."""
    if any(
        _overlaps(exchange, name, record["start_at"], record["end_at"], record["sender"])
        for exchange in exchanges
        for name in _SIDES
    ):
        return []
    if handshake is None:
        return [Cargo(name="data", hidden=record["cover"] == "sealed")]
    hidden = record["cover"] == "sealed"
    if hidden and handshake["version"] == "TLSv1.3" and record["bytes"] == _ALERT_BYTES:
        return [Cargo(name="Alert", row=handshake, hidden=True)]
    if hidden and handshake["version"] == "TLSv1.3" and record["sender"] == "server":
        return [Cargo(name="NewSessionTicket", row=handshake, hidden=True)]
    early = handshake["server_hello_at"] is None or record["end_at"] <= handshake["server_hello_at"]
    name = "early data" if handshake["early_data_offered"] and early else "data"
    return [Cargo(name=name, row=handshake, hidden=hidden)]


_SIDES = {"request": "client", "response": "server"}
_ALERT_BYTES = 24
"""Of TLS 1.3: header, level, description, type, and 16 of authentication. Nothing else is so short, but a KeyUpdate."""
_MOST_PARTS = 3
"""Exchanges told of one packet; HTTP/2 may have parts of dozens."""


def _overlaps(exchange: Row, name: str, start_at: int, end_at: int, sender: str) -> bool:
    first, last = exchange[f"{name}_at"], exchange[f"{name}_done_at"]
    return sender == _SIDES[name] and first is not None and end_at >= first and (last is None or start_at <= last)


def _parts(exchanges: list[Row], packet: Row) -> list[Cargo]:
    """Which parts of exchanges came with a packet."""
    found: list[Cargo] = []
    seen_at = packet["seen_at"]
    for exchange in exchanges:
        for name in _SIDES:
            if _overlaps(exchange, name, seen_at, seen_at, packet["sender"]):
                begins, ends = seen_at == exchange[f"{name}_at"], seen_at == exchange[f"{name}_done_at"]
                part = "" if begins and ends else "begins" if begins else "ends" if ends else "goes on"
                number = exchange["number"] if len(exchanges) > 1 else None
                found.append(Cargo(name=name, row=exchange, part=part, number=number))
    told = [one for one in found if one.part != "goes on"] or found
    more = len(told) - _MOST_PARTS
    return [*told[:_MOST_PARTS], Cargo(name=f"and {more} more")] if more > 0 else told
