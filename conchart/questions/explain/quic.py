"""The packets of a QUIC connection: their frames, what was lost of them, and what each frame is for.

Sources: RFC 9000 (frames: section 19), RFC 9001 (TLS in CRYPTO frames), RFC 9002 (loss), RFC 9114 (HTTP/3), RFC 9204
(QPACK), RFC 9221 (DATAGRAM). In: a connection. Out: of each capture frame the words for its arrow, and sentences. What
a frame is for is said where the connection has the first one of its kind.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

from conchart.labels.printable import printable
from conchart.labels.units import format_bytes, format_count
from conchart.questions.explain.connection import Connection
from conchart.report.rows import Row

_SILENT = ("ACK", "PADDING")
"""Frames that nobody acknowledges; CONNECTION_CLOSE is the last word."""
_BARE = ("Retry", "Version Negotiation", "unknown")
"""Packets without a number."""
_MOST_FRAMES = 12
"""Of one packet."""

_TRANSPORT_ERRORS = (
    "NO_ERROR",
    "INTERNAL_ERROR",
    "CONNECTION_REFUSED",
    "FLOW_CONTROL_ERROR",
    "STREAM_LIMIT_ERROR",
    "STREAM_STATE_ERROR",
    "FINAL_SIZE_ERROR",
    "FRAME_ENCODING_ERROR",
    "TRANSPORT_PARAMETER_ERROR",
    "CONNECTION_ID_LIMIT_ERROR",
    "PROTOCOL_VIOLATION",
    "INVALID_TOKEN",
    "APPLICATION_ERROR",
    "CRYPTO_BUFFER_EXCEEDED",
    "KEY_UPDATE_ERROR",
    "AEAD_LIMIT_REACHED",
    "NO_VIABLE_PATH",
)
"""By their code: RFC 9000 section 20.1."""
_HTTP3_ERRORS = {
    0x100: "H3_NO_ERROR",
    0x101: "H3_GENERAL_PROTOCOL_ERROR",
    0x102: "H3_INTERNAL_ERROR",
    0x103: "H3_STREAM_CREATION_ERROR",
    0x104: "H3_CLOSED_CRITICAL_STREAM",
    0x105: "H3_FRAME_UNEXPECTED",
    0x106: "H3_FRAME_ERROR",
    0x107: "H3_EXCESSIVE_LOAD",
    0x108: "H3_ID_ERROR",
    0x109: "H3_SETTINGS_ERROR",
    0x10A: "H3_MISSING_SETTINGS",
    0x10B: "H3_REQUEST_REJECTED",
    0x10C: "H3_REQUEST_CANCELLED",
    0x10D: "H3_REQUEST_INCOMPLETE",
    0x10E: "H3_MESSAGE_ERROR",
    0x10F: "H3_CONNECT_ERROR",
    0x110: "H3_VERSION_FALLBACK",
    0x200: "QPACK_DECOMPRESSION_FAILED",
    0x201: "QPACK_ENCODER_STREAM_ERROR",
    0x202: "QPACK_DECODER_STREAM_ERROR",
}
"""RFC 9114 section 8.1, RFC 9204 section 8.3."""
_FIRST_CRYPTO_ERROR = 0x100

_PACKETS = {
    "Initial": "its keys follow from a connection ID that everybody can read (RFC 9001 section 5.2), so everybody can "
    "open it.",
    "Handshake": "only the two ends can open it: the keys follow from both hellos.",
    "0-RTT": "early data, under keys of an earlier session: no round trip before it (RFC 9001 section 4.6).",
    "1-RTT": "a packet with a short header, under the keys of the finished handshake.",
    "Retry": "the server wants proof of the client's address before it does any work: the client begins again with the "
    "token in it, a round trip later (RFC 9000 section 8.1.2).",
    "Version Negotiation": "the server does not speak the client's version, and lists its own: the client begins "
    "again, a round trip later (RFC 9000 section 6).",
    "unknown": "a packet of a version that conchart does not read.",
}
_FRAMES = {
    "PADDING": "makes the packet larger: a client's first datagram has at least 1,200 bytes, so that the server may "
    "answer with more (RFC 9000 section 8.1).",
    "PING": "asks for an acknowledgement, and says nothing else.",
    "ACK": "lists the packet numbers that arrived; what it leaves out may be lost (RFC 9002 section 6).",
    "CRYPTO": "carries the TLS handshake, in order by offset, without TLS records (RFC 9001 section 4).",
    "STREAM": "carries bytes of one stream, at an offset; FIN ends that side of it. Streams do not wait for each "
    "other.",
    "NEW_TOKEN": "a token for the next connection: with it the server need not check the client's address again.",
    "MAX_DATA": "allows the peer to send more, over all streams together.",
    "MAX_STREAM_DATA": "allows the peer to send more on that stream.",
    "MAX_STREAMS": "allows the peer to open more streams.",
    "DATA_BLOCKED": "its sender has more to send than MAX_DATA allows: it waits for the peer.",
    "STREAM_DATA_BLOCKED": "its sender has more to send on that stream than MAX_STREAM_DATA allows: it waits.",
    "STREAMS_BLOCKED": "its sender wants to open more streams than the peer allows: it waits.",
    "NEW_CONNECTION_ID": "another name for this connection, for when the peer moves to another address.",
    "RETIRE_CONNECTION_ID": "a connection ID is not used any more; the peer supplies another one.",
    "PATH_CHALLENGE": "does the peer receive at this address? It must send the same 8 bytes back.",
    "PATH_RESPONSE": "the answer to PATH_CHALLENGE: this path works.",
    "TIME_STAMP": "when its sender sent it, by the sender's clock, so that each direction's delay can be told.",
    "ACK_FREQUENCY": "how often its sender wants acknowledgements.",
    "IMMEDIATE_ACK": "asks for an acknowledgement at once.",
    "HANDSHAKE_DONE": "the server confirms the handshake: both sides drop the Handshake keys.",
    "DATAGRAM": "data that is not sent again when it is lost (RFC 9221).",
    "RESET_STREAM": "its sender breaks off its side of that stream.",
    "STOP_SENDING": "its sender does not want more of that stream.",
    "CONNECTION_CLOSE": "the connection ends here; nothing answers it.",
    "APPLICATION_CLOSE": "the application ends the connection; nothing answers it.",
}
_HTTP3 = {
    "HEADERS": "the fields of a request or response, compressed by QPACK.",
    "DATA": "content of a request or response.",
    "SETTINGS": "what its sender's HTTP/3 allows, once for the connection.",
    "GOAWAY": "no new requests, please: those before the number it names are still answered.",
    "control stream": "carries SETTINGS and GOAWAY, one in each direction.",
    "QPACK encoder stream": "adds entries to the peer's table of header fields: headers that use one wait for it.",
    "QPACK decoder stream": "tells the peer which entries of the table have arrived.",
    "WebTransport stream": "a stream of a WebTransport session.",
}


@dataclass(slots=True)
class DatagramText:
    """What is said of one datagram."""

    words: list[str] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)


def describe_datagrams(connection: Connection, shown: Container[int] | None = None) -> dict[int, DatagramText]:
    """Say of each capture frame what packets and frames it has; nothing where it is not QUIC.

    Args:
        connection: With all its packets.
        shown: The capture frames that are shown; None for all.
    """
    teller = _Teller(connection)
    datagrams: dict[int, DatagramText] = {}
    for (number, _), rows in groupby(connection.quic_frames, key=lambda row: (row["frame"], row["packet"])):
        if shown is None or number in shown:
            teller.packet(datagrams.setdefault(number, DatagramText()), list(rows))
        else:
            teller.pass_by(rows)
    return datagrams


def quiet_frames(connection: Connection) -> set[int]:
    """Give the capture frames of datagrams that the peer does not acknowledge; copies are not among them."""
    copies = {packet["frame"] for packet in connection.packets if packet["mark"] == "duplicate"}
    speaking = {row["frame"] for row in connection.quic_frames if _speaks(row)}
    return {row["frame"] for row in connection.quic_frames} - speaking - copies


def _speaks(row: Row) -> bool:
    """Whether a frame has its packet acknowledged, or cannot be opened."""
    if row["packet_number"] is None or row["packet_type"] in _BARE:
        return True
    return row["kind"] is not None and row["kind"] not in _SILENT


class _Teller:
    def __init__(self, connection: Connection) -> None:
        self._explained: set[str] = set()
        self._begun = list(_begun(connection.quic_frames))
        self._number = 0
        """Which connection of this socket it is: each has streams of its own."""
        self._http3: dict[tuple[int, str, int], list[Row]] = defaultdict(list)
        for frame in connection.http3_frames:
            number = bisect_right(self._begun, frame["frame"])
            self._http3[number, frame["sender"], frame["stream_id"]].append(frame)
        self._lost = {(row["frame"], row["sender"], row["number"]): row for row in connection.lost_packets}
        self._missing: dict[int, list[Row]] = defaultdict(list)
        for row in connection.lost_packets:
            if row["frame"] is None and not row["arrived"]:
                self._missing[row["reported_frame"]].append(row)
        self._ends: dict[tuple[int, str, str, int | None], int] = {}
        """How far each side has sent each stream, and CRYPTO at each level."""
        self._names_http = any(x["protocol"] in ("h3", "grpc") for x in connection.exchanges)

    def packet(self, datagram: DatagramText, rows: list[Row]) -> None:
        """Add what is said of a packet, whose frames are the rows."""
        first = rows[0]
        self._number = bisect_right(self._begun, first["frame"])
        kind = first["packet_type"]
        words: list[str] = []
        sentences: list[str] = []
        self._explain(sentences, kind, _PACKETS.get(kind, ""))
        for name, several in groupby(rows, key=lambda row: row["kind"]):
            frames = list(several)
            if name == "NEW_CONNECTION_ID" and len(frames) > 1:
                self._explain(sentences, name, _FRAMES[name])
                words.append(f"{name} {frames[0]['value']}–{frames[-1]['value']}")
            elif name is not None:
                words += [self._frame(row, sentences) for row in frames]
        if len(words) > _MOST_FRAMES:
            words[_MOST_FRAMES:] = [f"and {len(words) - _MOST_FRAMES} more frames"]
        number = "" if first["packet_number"] is None else f" {first['packet_number']}"
        closed = first["packet_number"] is None and kind not in _BARE
        head = f"({kind}, {format_bytes(first['packet_bytes'])})" if closed else f"{kind}{number}"
        if lost := self._lost.get((first["frame"], first["sender"], first["packet_number"])):
            head += " overtaken" if lost["arrived"] else " LOST"
            sentences.append(
                f"Packet{number} was overtaken: the peer acknowledged later ones first."
                if lost["arrived"]
                else f"Packet{number} was lost behind the capture point: the acknowledgement in frame "
                f"{lost['reported_frame']} leaves it out."
            )
        if missing := self._missing.pop(first["frame"], []):
            numbers = ", ".join(format_count(row["number"]) for row in missing)
            peer = missing[0]["sender"]
            sentences.append(
                f"It leaves out what the capture point never saw: packet {numbers} of the {peer}, lost before it, or "
                "never sent."
            )
        datagram.words.append(f"{head}: {', '.join(words)}" if words else head)
        datagram.sentences += sentences

    def pass_by(self, rows: Iterable[Row]) -> None:
        """Keep in mind how far a packet goes that is not shown: a later one may send the same again."""
        for row in rows:
            if row["kind"] in ("CRYPTO", "STREAM"):
                self._number = bisect_right(self._begun, row["frame"])
                self._span(row)

    def _explain(self, sentences: list[str], name: str, meaning: str) -> None:
        if meaning and name not in self._explained:
            self._explained.add(name)
            sentences.append(f"{name}: {meaning}")

    def _frame(self, row: Row, sentences: list[str]) -> str:
        kind = row["kind"]
        words = "CONNECTION_CLOSE" if kind == "APPLICATION_CLOSE" else str(kind)
        self._explain(sentences, words, _FRAMES.get(kind, ""))
        if kind == "ACK":
            return f"{words} {row['text'].replace(' ', ', ')}"
        if kind == "CRYPTO":
            return " ".join(filter(None, (words, _crypto(row), self._span(row))))
        if kind == "STREAM":
            fin = " FIN" if row["fin"] else ""
            inside = ", ".join(self._http3_in(row, sentences))
            return f"{words} {row['stream_id']}{self._span(row, ' ')}{fin}{f' [{inside}]' if inside else ''}"
        if kind in ("PADDING", "NEW_TOKEN", "DATAGRAM"):
            return f"{words} {format_bytes(row['bytes'])}"
        if kind in ("CONNECTION_CLOSE", "APPLICATION_CLOSE", "RESET_STREAM", "STOP_SENDING"):
            code = error_name(row["value"], of_application=kind != "CONNECTION_CLOSE", http=self._names_http)
            stream = "" if row["stream_id"] is None else f" {row['stream_id']}"
            reason = f" “{printable(row['text'])}”" if row["text"] else ""
            return f"{words}{stream} ({code}{reason})"
        stream = "" if row["stream_id"] is None else f" {row['stream_id']}"
        value = "" if row["value"] is None else f" {format_count(row['value'])}"
        text = f" {row['text']}" if row["text"] else ""
        if kind == "NEW_CONNECTION_ID":
            identifier, _, retired = row["text"].partition(" ")
            text = f" {identifier}" + (f", retires those before {retired}" if retired else "")
        return f"{words}{stream}{value}{text}"

    def _span(self, row: Row, before: str = "") -> str:
        """Give offset and end of what a frame carries, and whether it was sent before."""
        level = row["packet_type"] if row["kind"] == "CRYPTO" else ""
        key = (self._number, row["sender"], level, row["stream_id"])
        if row["kind"] == "STREAM" and not row["bytes"]:
            return ""
        end = row["start_byte"] + row["bytes"]
        sent_to = self._ends.get(key, 0)
        again = ", sent again" if row["start_byte"] < sent_to else ""
        self._ends[key] = max(sent_to, end)
        return f"{before}({row['start_byte']}–{end}{again})"

    def _http3_in(self, row: Row, sentences: list[str]) -> Iterator[str]:
        """Name the frames of HTTP/3 that begin in a STREAM frame."""
        there = self._http3.get((self._number, row["sender"], row["stream_id"]), [])
        begin = bisect_left(there, row["start_byte"], key=lambda frame: frame["start_byte"])
        end = bisect_left(there, row["start_byte"] + row["bytes"], key=lambda frame: frame["start_byte"])
        for frame in there[begin:end]:
            self._explain(sentences, frame["kind"], _HTTP3.get(frame["kind"], ""))
            named = "stream" in frame["kind"]
            yield frame["kind"] if named else f"{frame['kind']} {format_bytes(frame['bytes'])}"


def _begun(frames: Iterable[Row]) -> Iterator[int]:
    """Give the capture frames with which other connections begin at the same socket: with the next ClientHello.

    One that comes again (RFC 9000 section 17.2.5, RFC 9002 section 6.2) comes before there is data.
    """
    has_data = False
    for row in frames:
        if row["packet_type"] == "1-RTT":
            has_data = True
        elif has_data and row["sender"] == "client" and row["kind"] == "CRYPTO" and row["packet_type"] == "Initial":
            yield row["frame"]
            has_data = False


def _crypto(row: Row) -> str:
    """Name the TLS messages of a CRYPTO frame by where they must be (RFC 9001 section 4, figure 5)."""
    if row["packet_type"] == "Initial":
        return "ClientHello" if row["sender"] == "client" else "ServerHello"
    if row["packet_type"] == "Handshake":
        return "Finished" if row["sender"] == "client" else "EncryptedExtensions … Finished"
    return "NewSessionTicket" if row["sender"] == "server" else ""


def error_name(code: int, *, of_application: bool, http: bool) -> str:
    """Name an error code of QUIC, or of HTTP/3 where that is spoken."""
    if of_application:
        return _HTTP3_ERRORS.get(code, hex(code)) if http else hex(code)
    if code < len(_TRANSPORT_ERRORS):
        return _TRANSPORT_ERRORS[code]
    if _FIRST_CRYPTO_ERROR <= code < 2 * _FIRST_CRYPTO_ERROR:
        return f"CRYPTO_ERROR, alert {code - _FIRST_CRYPTO_ERROR} of TLS"
    return hex(code)


def sealed(connection: Connection) -> int:
    """Count the packets after the handshake that stay closed."""
    rows = connection.quic_frames
    return sum(row["packet_number"] is None and row["packet_type"] in ("1-RTT", "0-RTT", "Handshake") for row in rows)
