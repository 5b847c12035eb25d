"""The packets of a connection as the rungs of its ladder: who sent what, and what it is for.

In: a connection. Out: a :class:`LadderRow` per packet, in the order in which they were seen.
"""

from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, replace

from conchart.labels.units import format_bytes, format_count, format_ns
from conchart.questions.explain.connection import Connection
from conchart.questions.explain.meanings import meaning
from conchart.questions.explain.payload_labels import PayloadLabel
from conchart.questions.explain.quic import describe_datagrams
from conchart.report.rows import Row

_MARKS = {
    "retransmit": ("sent again", "The same as before, sent again."),
    "out_of_order": ("out of order", "It was overtaken, or one before it was lost."),
    "gap": ("gap before", "What its sender sent before it is not in the capture, or comes later."),
    "duplicate": ("copy", "The same packet as before, captured twice."),
    "keepalive": ("keep-alive", "A TCP keep-alive probe: is the peer still there?"),
    "zero_window": ("window of zero", "Its sender can take no more: the peer has to wait."),
}
"""Of each mark: a word, and a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderRow:
    """One packet."""

    frame: int
    seen_at: int
    sender: str
    flags: str
    bytes: int
    seq: int | None
    ack: int | None
    window_bytes: int | None
    mark: str | None
    label: str
    """What it carries, for the arrow."""
    says: str
    """What it is for."""
    seen: tuple[tuple[str, int], ...] = ()
    """Of a connection that several places saw: the places in the order of the packet's way, and when each saw it."""
    lost_to: str | None = None
    """The place that it did not reach."""


def several_places(connection: Connection, steps: list[LadderRow]) -> list[LadderRow]:
    """Say of each packet when which place saw it; add those that the connection's own place did not see."""
    if len(connection.places) <= 1:
        return steps
    own = {step.frame: step for step in steps}
    found = []
    for row in connection.seen:
        step = own.pop(row["frame"], None) or LadderRow(
            frame=row["frame"],
            seen_at=row["seen_at"],
            sender=row["sender"],
            flags=row["flags"],
            bytes=row["bytes"],
            seq=None,
            ack=None,
            window_bytes=None,
            mark=None,
            label=_words_of(row),
            says="",
        )
        seen = tuple(zip(row["places"], row["instants"], strict=True))
        lost = f"It was lost between {seen[-1][0]} and {row['lost_to']}." if row["lost_to"] else ""
        says = " ".join(filter(None, (step.says, lost)))
        found.append(replace(step, seen=seen, lost_to=row["lost_to"], says=says))
    return sorted(
        [*found, *own.values()], key=lambda step: (min([step.seen_at, *(at for _, at in step.seen)]), step.frame)
    )


_FLAGS = (("S", "SYN"), ("R", "RST"), ("F", "FIN"))


def _words_of(packet: Row) -> str:
    """Say what a packet is that another place alone saw."""
    words = [word for letter, word in _FLAGS if letter in packet["flags"]]
    return ", ".join([*words, *([format_bytes(packet["bytes"])] if packet["bytes"] else [])]) or "ACK"


def rungs(
    connection: Connection, carried: Mapping[int, list[PayloadLabel]], shown: Container[int] | None = None
) -> Iterator[LadderRow]:
    """Give the packets one by one.

    Args:
        connection: With all its packets.
        carried: What each frame carries.
        shown: The frames that are shown; None for all.
    """
    tcp, quic = _Tcp(connection), describe_datagrams(connection, shown)
    for packet in connection.packets:
        tcp.note(packet)
        if shown is not None and packet["frame"] not in shown:
            continue
        here = [] if packet["mark"] in ("retransmit", "duplicate", "keepalive") else carried.get(packet["frame"], [])
        datagram = quic.get(packet["frame"]) if packet["mark"] != "duplicate" else None
        words, sentences = tcp.packet(packet, described=bool(here) or datagram is not None)
        if datagram is not None:
            words, sentences = [" + ".join(datagram.words)], [*datagram.sentences]
        words += [one.label for one in here]
        sentences += _meanings(here, packet["sender"])
        yield LadderRow(
            frame=packet["frame"],
            seen_at=packet["seen_at"],
            sender=packet["sender"],
            flags=packet["flags"],
            bytes=packet["bytes"],
            seq=packet["seq"],
            ack=packet["ack"],
            window_bytes=packet["window_bytes"],
            mark=packet["mark"],
            label=", ".join(_counted(words)),
            says=" ".join(sentences),
        )


def _counted(words: list[str]) -> Iterator[str]:
    """Several of the same in a row are counted."""
    for word, times in Counter(words).items():
        yield f"{times} × {word}" if times > 1 else word


def _meanings(here: list[PayloadLabel], sender: str) -> list[str]:
    """Say what each is for, once; of several, by name."""
    meanings = {one.name: meaning(one, sender) for one in here}
    if len(meanings) == 1:
        return [sentence for sentence in meanings.values() if sentence]
    return [f"{name}: {sentence[0].lower()}{sentence[1:]}" for name, sentence in meanings.items() if sentence]


class _Tcp:
    """What TCP does with a packet (RFC 9293)."""

    def __init__(self, connection: Connection) -> None:
        self._about = connection.about
        self._ended = {exchange["ended_frame"]: exchange for exchange in connection.exchanges if exchange["ended_by"]}
        self._udp = connection.about["transport"] == "udp"
        self._ends: dict[str, dict[int, int]] = {"client": {}, "server": {}}
        """By sender: the frame whose last byte is before that number."""
        self._syn_acked = False

    def note(self, packet: Row) -> None:
        """Keep in mind which bytes a packet has: later ones acknowledge them, or are the same."""
        if packet["seq"] is None:
            return
        ends, end = self._ends[packet["sender"]], packet["seq"] + packet["bytes"]
        if packet["bytes"]:
            ends.setdefault(end, packet["frame"])
        if "F" in packet["flags"]:
            ends.setdefault(end + 1, packet["frame"])

    def packet(self, packet: Row, *, described: bool) -> tuple[list[str], list[str]]:
        """Give the words for its arrow and the sentences; ``described``: what it carries is described besides."""
        if self._udp:
            return ([], []) if described else ([f"{packet['bytes']} bytes"], ["A datagram."])
        sender, flags = packet["sender"], packet["flags"]
        peer = "server" if sender == "client" else "client"
        words: list[str] = []
        sentences: list[str] = []
        if packet["mark"] in _MARKS:
            words.append(_MARKS[packet["mark"]][0])
            sentences.append(self._marked(packet))
        if "S" in flags:
            words.insert(0, "SYN-ACK" if "A" in flags else "SYN")
            sentences.insert(0, self._syn(packet))
        if "R" in flags:
            words.append("RST")
            by = f"Something on the path, in the {sender}'s name," if self._is_foreign(packet) else f"The {sender}"
            sentences.append(f"{by} breaks the connection off{self._leaves(packet)}.")
        if "F" in flags:
            words.append("FIN")
            left = self._leaves(packet)
            sentences.append(f"The {sender} {'has sent everything: it ' * (not left)}closes its side{left}.")
        if not words and not described:
            if packet["bytes"]:
                words.append(format_bytes(packet["bytes"]))
                sentences.append("A piece of what is being sent.")
            else:
                words.append("ACK")
                sentences.append(self._acknowledges(packet, peer))
        return words, sentences

    def _syn(self, packet: Row) -> str:
        sender = packet["sender"]
        size = self._about[f"mss_{sender}"]
        most = f" It takes segments of up to {format_count(size)} bytes." if size else ""
        if "A" not in packet["flags"]:
            return f"The client asks for a connection.{most}"
        rtt = self._about["rtt_server_ns"]
        far = f" From the capture to the server and back it is {format_ns(rtt)}." if rtt is not None else ""
        return f"The server accepts.{most}{far}"

    def _leaves(self, packet: Row) -> str:
        """Say what an end leaves without an answer."""
        exchange = self._ended.get(packet["frame"])
        if exchange is None:
            return ""
        return ", in the middle of the response" if exchange["response_at"] else ", without an answer"

    def _is_foreign(self, packet: Row) -> bool:
        return bool(self._about["rst_foreign"]) and packet["frame"] == self._about["rst_frame"]

    def _marked(self, packet: Row) -> str:
        if packet["mark"] == "retransmit" and packet["bytes"]:
            first = self._ends[packet["sender"]].get((packet["seq"] or 0) + packet["bytes"])
            if first is not None and first != packet["frame"]:
                return f"The same bytes as frame {first}, sent again."
        return _MARKS[packet["mark"]][1]

    def _acknowledges(self, packet: Row, peer: str) -> str:
        """Name the segment that the acknowledgement covers."""
        if not self._syn_acked and packet["sender"] == "client" and packet["frame"] and packet["ack"] == 1:
            self._syn_acked = True
            rtt = self._about["rtt_client_ns"]
            far = f", {format_ns(rtt)} away and back" if rtt is not None else ""
            return f"The connection is open for the client{far}: it may send."
        covered = self._ends[peer].get(packet["ack"]) if packet["ack"] is not None else None
        if covered is None:
            return "An acknowledgement: nothing new is said."
        return f"An acknowledgement of everything up to frame {covered}: nothing new is said."
