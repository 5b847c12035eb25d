"""Conversations about which conchart and tshark once disagreed, because conchart was wrong. Now they agree.

In: nothing. Out: ``MENDED``: how each is played, with and without what made the difference.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from tests.agreement.crafted import Crafted, Play
from tests.agreement.line import GET, MS, OK, SECOND, Line
from tests.laws.hello import Tls, filler, record
from tests.laws.talk import ACK, FIN, RST, SYN

MENDED: dict[str, Crafted] = {}


def mended(*facts: str, server_port: int = 80) -> Callable[[Play], Play]:
    """Note a conversation by its name; ``facts`` are those that tshark still sees otherwise."""

    def note(play: Play) -> Play:
        MENDED[play.__name__] = Crafted(frozenset(facts), play, server_port)
        return play

    return note


@mended()
def reported_keep_alive(line: Line, cause: bool) -> None:
    """The receiver reports a keep-alive's byte as received twice (RFC 2883); the keep-alive was captured twice."""
    line.open()
    line.exchange()
    last = line.next["client"] - 1
    line.send("client", b"\0", seq=last, after=60 * SECOND)
    line.send("client", b"\0", seq=last, after=MS // 20, again=True)
    duplicate_sack = b"\1\1\5\x0a" + struct.pack(">II", last, last + 1) if cause else b""
    line.send("server", options=duplicate_sack)


@mended()
def repeated_syn_ack_with_data(line: Line, cause: bool) -> None:
    text = b"hi" if cause else b""
    line.send("client", flags=SYN, seq=1_000)
    for after in (MS, SECOND):
        line.send("server", text, SYN | ACK, seq=5_000, after=after)
    line.send("client", ack=5_001 + len(text))


@mended()
def first_copy_after_it_was_given_up(line: Line, cause: bool) -> None:
    line.open()
    line.exchange()
    gap = line.next["server"]
    line.next["server"] += 1_000
    if not cause:
        line.send("server", filler(1_000), seq=gap)
    line.say("server", filler(2_000))
    line.send("server", filler(100), after=200 * MS)
    if cause:
        line.send("server", filler(1_000), seq=gap)


@mended()
def before_the_first_byte_seen(line: Line, cause: bool) -> None:
    """Joined midway, between two segments in the wrong order; the ACK between them tells."""
    late = filler(500)
    line.send("server", filler(22), seq=5_001 + (500 if cause else 0))
    line.send("client", ack=5_001 + (0 if cause else 22))
    line.send("server", late, seq=5_001 + (0 if cause else 22))
    line.send("client", ack=5_001 + 522)


@mended()
def long_before_the_first_byte_seen(line: Line, cause: bool) -> None:
    """Joined midway; what was sent much earlier stands much later in the capture."""
    line.next["server"] += 50_000 if cause else 0
    line.say("server", filler(700))
    if cause:
        line.send("server", filler(900), seq=5_001, after=-40 * SECOND)


def total_length(length: int) -> Callable[[bytes], bytes]:
    """An IP header that says another length."""
    return lambda ip: ip[:2] + length.to_bytes(2, "big") + ip[4:]


@mended()
def length_beyond_the_frame(line: Line, cause: bool) -> None:
    line.send("client", flags=SYN, seq=1_000)
    line.send("server", flags=SYN | ACK, seq=5_000, change=total_length(4_136 if cause else 40))
    line.send("client")
    line.exchange()
    line.send("server", b"more", change=total_length(4_044 if cause else 44))


@mended()
def length_beyond_the_frame_that_is_acknowledged(line: Line, cause: bool) -> None:
    """Something cut the frames after they were captured, and their lengths on the wire with them."""
    line.open()
    line.exchange()
    line.send("server", filler(54), change=total_length(1_040 if cause else 94))
    line.next["server"] += 946 if cause else 0
    line.send("client")
    line.say("server", filler(100))


@mended()
def fin_that_nobody_acknowledged(line: Line, cause: bool) -> None:
    line.open()
    line.exchange()
    line.send("client", flags=FIN | ACK)
    line.send("server", flags=FIN | ACK)
    if cause:
        for after in (20 * SECOND, 40 * SECOND, 80 * SECOND):
            line.send("server", flags=FIN | ACK, seq=line.next["server"] - 1, after=after)
        line.send("client", flags=RST | ACK, after=100 * SECOND)
    else:
        line.send("client")


@mended("resent", "resent_frames")
def damaged_acknowledgement(line: Line, cause: bool) -> None:
    """The request acknowledges what nobody has sent; the response, which comes late, seems to be sent again."""
    line.open()
    line.send("client", GET, ack=line.next["server"] + (487 if cause else 0))
    line.send("server", after=150 * MS)
    line.say("server", OK)
    line.exchange()
    line.close()


@mended()
def gap_of_more_than_a_gibibyte(line: Line, cause: bool) -> None:
    """A few packets of a long transfer: the receiver acknowledges what was left out."""
    line.open()
    line.exchange()
    line.next["server"] += 1_700_000_000 if cause else 1_000
    line.send("client", after=10 * SECOND)
    line.say("server", filler(700))


@mended(server_port=443)
def closed_before_the_finished(line: Line, cause: bool) -> None:
    """The client needs nothing any more, and closes; the server's Finished was on its way."""
    (_, hello), (_, flight), (_, keys), (_, done) = Tls(version="TLSv1.2", cipher=0xC02F).messages()
    line.open()
    line.say("client", hello)
    line.say("server", flight)
    line.send("client", keys)
    if cause:
        line.send("client", record(21, filler(26)), flags=FIN | ACK)
        line.send("server")
    line.send("server", done)


@mended("server_hello_at", server_port=443)
def handshake_after_a_gap(line: Line, cause: bool) -> None:
    """Before its second flight, bytes of the server are missing; that flight begins with a record of its own."""
    (_, hello), (_, flight), (_, keys), (_, done) = Tls(version="TLSv1.2", cipher=0xC02F).messages()
    line.open()
    line.say("client", hello)
    if cause:
        line.next["server"] += 700
        line.send("client")
    line.say("server", flight)
    line.send("client", keys)
    line.send("server", done)
