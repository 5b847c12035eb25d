"""The kinds of stall: why the next byte did not come, in words for people, the same in every text and chart.

In: nothing. Out: ``STALLS``. The native core finds stalls; what they are called, and drawn in, is decided here alone.
"""

from dataclasses import dataclass
from typing import Literal

_TELLING = ("ack", "challenged", "delayed-ack", "hello", "late-ack", "refused", "spurious", "unaccepted")
DETAIL = f"CASE WHEN detail IN {_TELLING} THEN detail END"
"""SQL, of ``stalls`` and ``phase_stalls``: what makes other words necessary for a kind."""
LISTED = """(
    FROM stalls UNION ALL BY NAME
    SELECT stream, kind, detail, side, start_at, end_at, side AS start_by, side AS end_by, start_frame, end_frame,
        confidence
    FROM phase_stalls WHERE detail = 'hello')"""
"""SQL: what is drawn and listed as stalls. A late ClientHello is no stall of the capture's, but users wait for it."""


COLOURS: dict[str, str] = {"held": "#D860C0", "deferred": "#D860C0", "limited": "#9F5139"}
"""By word, ``#RRGGBB``: what was ready and kept back has colours of its own, apart from those of all phases
(``tests/test_phases.py``); what has none here is drawn in the colour of the text. *Held* and *deferred* share one: no
third colour stays apart from all others for every kind of colour vision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StallKind:
    """One kind of stall."""

    name: str
    """As in ``stalls.kind``."""
    detail: str | None = None
    """As ``DETAIL`` has it."""
    word: str
    """What became of the byte."""
    meaning: str
    """One sentence, without a full stop."""
    doing: Literal["the program's", "the network's", "TCP's"]
    """Whose doing it is: who looks for a remedy begins there."""
    owner: Literal["side", "peer", "path"]
    """Whose time it is: of the side whose byte was late, of its peer, of the path between them."""

    @property
    def colour(self) -> str | None:
        """``#RRGGBB``, or None where it is the text's."""
        return COLOURS.get(self.word)


STALLS: tuple[StallKind, ...] = (
    StallKind(
        name="nagle",
        word="held",
        meaning="a small segment waits for an acknowledgement (Nagle)",
        doing="TCP's",
        owner="side",
    ),
    StallKind(
        name="nagle",
        detail="delayed-ack",
        word="held",
        meaning="a small segment waits for a delayed acknowledgement (Nagle)",
        doing="TCP's",
        owner="side",
    ),
    StallKind(
        name="nagle",
        detail="late-ack",
        word="held",
        meaning="a small segment waits for an acknowledgement that the path brings late (Nagle)",
        doing="the network's",
        owner="path",
    ),
    StallKind(
        name="delayed-ack",
        word="held",
        meaning="the sender waits for an acknowledgement that the peer delays",
        doing="TCP's",
        owner="peer",
    ),
    StallKind(
        name="delayed-ack",
        detail="late-ack",
        word="held",
        meaning="the sender waits for an acknowledgement that the path brings late",
        doing="the network's",
        owner="path",
    ),
    StallKind(
        name="rto",
        word="lost",
        meaning="a segment was lost, and sent again when a timer ran out",
        doing="the network's",
        owner="path",
    ),
    StallKind(
        name="rto",
        detail="ack",
        word="lost",
        meaning="an acknowledgement was lost, and its data sent again when a timer ran out",
        doing="the network's",
        owner="path",
    ),
    StallKind(
        name="rto",
        detail="spurious",
        word="late",
        meaning="an acknowledgement came too late, and its data was retransmitted needlessly",
        doing="the network's",
        owner="path",
    ),
    StallKind(
        name="rto",
        detail="refused",
        word="again",
        meaning="the server left the data of the SYN, which was sent again after the SYN-ACK (TCP Fast Open)",
        doing="TCP's",
        owner="peer",
    ),
    StallKind(
        name="rto",
        detail="unaccepted",
        word="dropped",
        meaning="the server's accept queue was full: it dropped the client's ACK and data, and repeated its SYN-ACK",
        doing="the program's",
        owner="peer",
    ),
    StallKind(
        name="fast-retransmit",
        word="lost",
        meaning="a segment was lost, and sent again when later ones were acknowledged",
        doing="the network's",
        owner="path",
    ),
    StallKind(
        name="fast-retransmit",
        detail="spurious",
        word="late",
        meaning="a segment arrived after later ones, and was retransmitted needlessly",
        doing="the network's",
        owner="path",
    ),
    StallKind(
        name="pto",
        word="lost",
        meaning="a QUIC packet was lost, and its data sent again when a timer ran out (probe timeout)",
        doing="the network's",
        owner="path",
    ),
    StallKind(
        name="pto",
        detail="spurious",
        word="late",
        meaning="a QUIC packet or its acknowledgement came too late, and its data was sent again needlessly",
        doing="the network's",
        owner="path",
    ),
    StallKind(
        name="loss",
        word="lost",
        meaning="a QUIC packet was lost, and its data sent again when later ones were acknowledged",
        doing="the network's",
        owner="path",
    ),
    StallKind(
        name="loss",
        detail="spurious",
        word="late",
        meaning="a QUIC packet arrived after later ones, and its data was sent again needlessly",
        doing="the network's",
        owner="path",
    ),
    StallKind(
        name="qpack",
        word="blocked",
        meaning="header fields wait for table entries of another stream (QPACK)",
        doing="the network's",
        owner="path",
    ),
    StallKind(
        name="migration",
        word="lost",
        meaning="the client has moved to another address or port, and the server's packets do not reach it",
        doing="the network's",
        owner="path",
    ),
    StallKind(
        name="syn-rto",
        word="lost",
        meaning="a SYN or its answer was lost, and sent again when a timer ran out",
        doing="the network's",
        owner="path",
    ),
    StallKind(
        name="syn-rto",
        detail="challenged",
        word="refused",
        meaning="the server still had an older connection of the same ports, and answered for that one",
        doing="TCP's",
        owner="peer",
    ),
    StallKind(
        name="pmtu",
        word="lost",
        meaning="large segments do not get through, smaller ones do (path MTU)",
        doing="the network's",
        owner="path",
    ),
    StallKind(
        name="zero-window",
        word="blocked",
        meaning="the receiver's window is closed: its program does not read",
        doing="the program's",
        owner="peer",
    ),
    StallKind(
        name="receiver",
        word="blocked",
        meaning="the receiver's window is full: its program reads too slowly",
        doing="the program's",
        owner="peer",
    ),
    StallKind(
        name="flow-control",
        word="blocked",
        meaning="the receiver's window of HTTP/2 is closed: it allows no more content",
        doing="the program's",
        owner="peer",
    ),
    StallKind(
        name="window-limited",
        word="limited",
        meaning="the receiver's window is too small for this path, though its program reads",
        doing="TCP's",
        owner="peer",
    ),
    StallKind(
        name="slow-start",
        word="limited",
        meaning="the sender waits a round trip until it may send more (slow start)",
        doing="TCP's",
        owner="path",
    ),
    StallKind(
        name="sender",
        word="paused",
        meaning="the sending program pauses in the middle of a message",
        doing="the program's",
        owner="side",
    ),
    StallKind(
        name="sender",
        detail="hello",
        word="deferred",
        meaning="the client's program waits with its ClientHello",
        doing="the program's",
        owner="side",
    ),
)


def _owned(owner: str) -> tuple[str, ...]:
    return tuple(sorted({stall.name for stall in STALLS if stall.owner == owner and stall.detail is None}))


_LEFT_BY_PEER = ("challenged", "refused", "unaccepted")
"""Details of what had arrived, and of which the peer made nothing."""
OWNER = f"""CASE WHEN phase = 'wait' AND detail IN ('ack', 'spurious') THEN 'server'
    WHEN detail IN {_LEFT_BY_PEER} THEN if(side = 'client', 'server', 'client')
    WHEN detail = 'late-ack' OR kind IN {_owned("path")} THEN 'path'
    WHEN kind IN {_owned("peer")} THEN if(side = 'client', 'server', 'client') ELSE side::VARCHAR END"""
"""SQL, of a stall inside a phase: whose time it is. A request that had arrived kept no server from working on it."""

STALL_BY_NAME: dict[tuple[str, str | None], StallKind] = {(stall.name, stall.detail): stall for stall in STALLS}


def stall_kind(name: str, detail: str | None) -> StallKind:
    """Find the words for a stall; ``detail`` is as ``DETAIL`` has it."""
    return STALL_BY_NAME.get((name, detail)) or STALL_BY_NAME[name, None]
