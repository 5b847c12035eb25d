"""The cases: what either end does, what the line does to chosen packets, and what has to come of it.

A family makes cases of one kind; ``CASES`` are those that are committed, ``DICE`` draws others of the same families.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from conversation import Conversation

MSS = 1448
"""Bytes of data in a full segment: 1,500 less IP, TCP and its timestamps."""
Script = dict[str, Any]
NODELAY = {"TCP_NODELAY": 1}
ROOMY = {"SO_SNDBUFFORCE": 2_000_000}
"""The whole response fits into the kernel: what is not sent is not sent for the network's sake."""

LARGE = 25_000
"""Bytes of a conversation of which only the heads are kept."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One run, captured at both ends."""

    title: str
    see: str
    conversation: Conversation | None = None
    """What both ends of the one connection do; None: a shopper's connections to nginx."""
    shopper: tuple[str, ...] = ()
    """How the shopper goes about it: words of ``shopper.py``."""
    rtt_ms: float
    expects: tuple[str, ...]
    """Kinds of stalls of at least 5 ms that must have come of it, or the run is made again. None: it must be clean."""
    detail: str = ""
    """What kind of loss, for ``rto``."""
    rules: tuple[str, ...] = ()
    client: Script = field(default_factory=dict)
    server: Script = field(default_factory=dict)
    kernel: tuple[str, ...] = ()
    congestion: str = "cubic"
    initial_window: int | None = None
    offload: bool = False
    mtu: int | None = None

    @property
    def snapshot(self) -> int | None:
        """Bytes that tcpdump keeps of each packet: headers, and the head of a request or response; None: all."""
        is_large = self.conversation is not None and self.conversation.read > LARGE
        return 160 if is_large else None

    @property
    def port(self) -> int:
        """Return the port on which the server listens, as programs that go by ports expect it."""
        return 443 if self.shopper or "tls" in self.server else 80

    @property
    def routed(self) -> bool:
        """Say whether there is a router between the line and the server."""
        return self.offload or self.mtu is not None

    def script(self, role: str) -> Script:
        """Return what one end of a conversation is told to do."""
        script = self.client if role == "client" else self.server
        steps = getattr(self.conversation, role)
        options = {"TCP_CONGESTION": self.congestion, **script.get("options", NODELAY)}
        return {**script, "options": options, "steps": steps}


def warmed_up(times: int = 2) -> Conversation:
    """Begin with some exchanges: a new connection acknowledges at once, an older one delays it."""
    talk = Conversation()
    for _ in range(times):
        talk.ask().answer(200)
    return talk


def nagle_request(rtt_ms: float, body: int = 300, times: int = 2, quick: bool = False, nodelay: bool = False) -> Case:
    """Head and body of a request in two writes."""
    talk = warmed_up()
    for _ in range(times):
        talk.ask(body, apart=True).answer(200)
    return Case(
        title="Head and body of a request in two writes" + ", with TCP_NODELAY" * nodelay,
        see="- Nothing is held." if nodelay else "- The body is held until the head is acknowledged"
        + (": a round trip." if quick else ", which the server, having nothing to say yet, delays by 40 ms."),
        conversation=talk, rtt_ms=rtt_ms, expects=() if nodelay else ("nagle",),
        client={"options": NODELAY if nodelay else {}}, server={"quick_acks": quick},
    )  # fmt: skip


def nagle_response(rtt_ms: float, body: int = 700, times: int = 3, nodelay: bool = False) -> Case:
    """Head and body of a response in two writes."""
    talk = warmed_up()
    for _ in range(times):
        talk.ask().answer(body, apart=True)
    return Case(
        title="Head and body of a response in two writes" + ", with TCP_NODELAY" * nodelay,
        see="- Nothing is held." if nodelay else "- The body is held until the client acknowledges the head.",
        conversation=talk, rtt_ms=rtt_ms, expects=() if nodelay else ("nagle",),
        server={"options": NODELAY if nodelay else {}},
    )  # fmt: skip


def nagle_tls13(rtt_ms: float, tickets: int = 2) -> Case:
    """The client of TLS 1.3 speaks last: Finished, then the request."""
    return Case(
        title="TLS 1.3 from a client without TCP_NODELAY" + ", to a server without tickets" * (not tickets),
        see="- The request is held until Finished is acknowledged: "
        + ("a round trip that TLS 1.3 had saved." if tickets else "the server, having nothing to send, delays that."),
        conversation=Conversation().ask().answer(500), rtt_ms=rtt_ms, expects=("nagle",),
        client={"options": {}, "tls": "1.3"}, server={"tls": "1.3", "tickets": tickets},
    )  # fmt: skip


def rto_tail(rtt_ms: float, body: int, copies: int = 1) -> Case:
    """The last segment of a response is lost."""
    segments = segments_of(body)
    return Case(
        title="The last segment of a response is lost" + ", and its copy" * (copies > 1),
        see="- No segment follows that could tell of the hole: only a timer ends the silence.",
        conversation=Conversation().ask().answer(body), rtt_ms=rtt_ms, expects=("rto",), detail="tail",
        rules=(f"drop:from=right,number={segments},copies={copies}",), server={"options": NODELAY | ROOMY},
        initial_window=segments + 2,
    )  # fmt: skip


def rto_request(rtt_ms: float, number: int = 2, copies: int = 1) -> Case:
    """A request is lost."""
    return Case(
        title="A request is lost" + ", and its copy" * (copies > 1),
        see="- The server never saw it: at the server, the client seems to think.",
        conversation=warmed_up(3), rtt_ms=rtt_ms, expects=("rto",), detail="tail",
        rules=(f"drop:from=left,number={number},copies={copies}",),
    )  # fmt: skip


def rto_middle(rtt_ms: float, body: int = 14_000, number: int = 3, copies: int = 2) -> Case:
    """A segment in the middle is lost, and so is its copy."""
    return Case(
        title="A segment in the middle of a response is lost, and its copy too",
        see="- The first copy comes as soon as three acknowledgements tell of the hole; the second needs the timer.",
        conversation=Conversation().ask().answer(body), rtt_ms=rtt_ms, expects=("rto",), detail="middle",
        rules=(f"drop:from=right,number={number},copies={copies}",), server={"options": NODELAY | ROOMY},
        initial_window=segments_of(body) + 2,
    )  # fmt: skip


def rto_handshake(rtt_ms: float, version: str, sender: str, number: int) -> Case:
    """A segment of the TLS handshake is lost."""
    return Case(
        title=f"A segment of a TLS {version} handshake is lost on its way from the {sender}",
        see="- The handshake takes 200 ms and more, and nobody computes.",
        conversation=Conversation().ask().answer(500), rtt_ms=rtt_ms, expects=("rto",), detail="handshake",
        rules=(f"drop:from={'left' if sender == 'client' else 'right'},number={number}",),
        client={"tls": version}, server={"tls": version},
    )  # fmt: skip


def rto_ack(rtt_ms: float, think_ms: float = 700, body: int = 400) -> Case:
    """A request arrives, but its acknowledgement is lost while the server thinks."""
    return Case(
        title="The acknowledgement of a request is lost while the server thinks",
        see="- The request is sent again though the server has it and works on it: nobody waited for the copy.",
        conversation=Conversation().ask(body).answer(300, think_ms=think_ms), rtt_ms=rtt_ms, expects=("rto",),
        detail="ack", rules=("drop:from=right,kind=ack,number=1",),
    )  # fmt: skip


def rto_spurious(rtt_ms: float, hold_ms: float = 400, body: int = 600, ack: bool = False) -> Case:
    """A segment, or its acknowledgement, takes longer than the timer waits."""
    rule = f"hold:from=left,kind=ack,number=2-99,ms={hold_ms}" if ack else f"hold:from=right,number=3,ms={hold_ms}"
    return Case(
        title=f"{'An acknowledgement' if ack else 'A response'} takes {hold_ms:g} ms longer than the others",
        see="- Nothing is lost, and yet a copy is sent; the receiver reports that it had it twice (D-SACK).",
        # The server thinks for so long that its acknowledgement of the request is not held back with the response.
        conversation=warmed_up(2).ask().answer(body, think_ms=60).rest(2 * hold_ms), rtt_ms=rtt_ms, expects=("rto",),
        detail="spurious", rules=(rule,),
    )  # fmt: skip


def fast_retransmit(
    rtt_ms: float, body: int = 40_000, number: int = 8, last: int | None = None, kernel: tuple[str, ...] = (),
    offload: bool = False,
) -> Case:  # fmt: skip
    """A segment in the middle of a flight is lost."""
    return Case(
        title="A segment in the middle of a response is lost"
        + "".join(f", with {setting}" for setting in kernel) + ", captured before the card cuts segments" * offload,
        see="- What arrives behind the hole tells of it within a round trip; what arrived waits for the copy.",
        conversation=Conversation().ask().answer(body), rtt_ms=rtt_ms, expects=("fast-retransmit",), detail="middle",
        rules=(f"drop:from=right,number={number}-{last or number}",), server={"options": NODELAY | ROOMY},
        kernel=kernel, initial_window=segments_of(body) + 2, offload=offload,
    )  # fmt: skip


def fast_upload(rtt_ms: float, body: int = 12_000, number: int = 3) -> Case:
    """A segment in the middle of a request's body is lost."""
    return Case(
        title="A segment in the middle of an upload is lost",
        see="- As in a response, the other way round.",
        conversation=Conversation().ask(body).answer(200), rtt_ms=rtt_ms, expects=("fast-retransmit",), detail="middle",
        rules=(f"drop:from=left,number={number}",), client={"options": NODELAY | ROOMY},
    )  # fmt: skip


def fast_spurious(rtt_ms: float, hold_ms: float, body: int = 40_000, number: int = 8) -> Case:
    """A segment is overtaken by many."""
    return Case(
        title=f"A segment is overtaken: it comes {hold_ms:g} ms late",
        see="- Nothing is lost: three acknowledgements make the sender believe so.",
        conversation=Conversation().ask().answer(body), rtt_ms=rtt_ms, expects=("fast-retransmit",), detail="spurious",
        rules=(f"hold:from=right,number={number},ms={hold_ms}",), server={"options": NODELAY | ROOMY},
        initial_window=segments_of(body) + 2,
    )  # fmt: skip


def syn_lost(rtt_ms: float, times: int = 1, answer: bool = False) -> Case:
    """The connection's first packet, or the answer to it, is lost."""
    return Case(
        title=f"{'SYN-ACK' if answer else 'SYN'} lost {'twice' if times > 1 else 'once'}",
        see="- The first timer of a connection is a second. (The second copy follows 3 s after the first SYN; since "
        "Linux 6.5, after 2 s.)",
        conversation=Conversation().ask().answer(300), rtt_ms=rtt_ms, expects=("syn-rto",),
        detail="syn-ack" if answer else "syn",
        rules=(f"drop:from={'right,kind=syn-ack' if answer else 'left,kind=syn'},copies={times}",),
    )  # fmt: skip


def zero_window(
    rtt_ms: float, nap_ms: float, body: int = 60_000, room: int = 16_000, first: int = 4_000, upload: bool = False
) -> Case:
    """The receiver stops reading."""
    talk = Conversation()
    if upload:
        talk.ask(body).answer(200)
        talk.server[:1] = [["read", first], ["think", nap_ms], ["read", talk.server[0][1] - first]]
    else:
        talk.ask().answer(body, first=first, nap_ms=nap_ms)
    narrow, wide = {"options": NODELAY | {"SO_RCVBUF": room}}, {"options": NODELAY | ROOMY}
    return Case(
        title=f"The {'server' if upload else 'client'} stops reading for {nap_ms:g} ms",
        see="- The window shuts, and opens when the program reads on.",
        conversation=talk, rtt_ms=rtt_ms, expects=("zero-window",),
        client=wide if upload else narrow, server=narrow if upload else wide,
    )  # fmt: skip


def window_limited(rtt_ms: float, room: int = 12_000, body: int = 60_000, upload: bool = False) -> Case:
    """A small receive buffer on a long path."""
    talk = Conversation().ask(body).answer(200) if upload else Conversation().ask().answer(body)
    narrow, wide = {"options": NODELAY | {"SO_RCVBUF": room}}, {"options": NODELAY | ROOMY}
    return Case(
        title=f"A receive buffer of {room:,} bytes, {rtt_ms:g} ms away",
        see="- One window, one round trip, one window …: the path would carry more.",
        conversation=talk, rtt_ms=rtt_ms, expects=("window-limited",),
        client=wide if upload else narrow, server=narrow if upload else wide, initial_window=40,
    )  # fmt: skip


def slow_reader(rtt_ms: float, room: int = 60_000, body: int = 120_000, step: int = 6_000, ms: float = 15) -> Case:
    """A program that reads in small steps."""
    return Case(
        title=f"A client that takes {step:,} bytes every {ms:g} ms",
        see="- The window is small because the program has not read what came; it never shuts.",
        conversation=Conversation().ask().answer(body, slow=[step, ms]), rtt_ms=rtt_ms, expects=("receiver",),
        client={"options": NODELAY | {"SO_RCVBUF": room}}, server={"options": NODELAY | ROOMY}, initial_window=40,
    )  # fmt: skip


def slow_start(
    rtt_ms: float, window: int, body: int = 150_000, offload: bool = False, congestion: str = "cubic"
) -> Case:
    """A response that a new connection may not send at once."""
    return Case(
        title=f"{body:,} bytes, {rtt_ms:g} ms away, an initial window of {window} segments",
        see="- A flight, a round trip's wait, a flight twice as large.",
        conversation=Conversation().ask().answer(body), rtt_ms=rtt_ms, expects=("slow-start",),
        server={"options": NODELAY | ROOMY}, initial_window=window, offload=offload, congestion=congestion,
    )  # fmt: skip


def sender(rtt_ms: float, pieces: int = 4, pause_ms: float = 200, piece: int = 1_000, upload: bool = False) -> Case:
    """A program that gives its message piece by piece."""
    parts: dict[str, Any] = {"pieces": pieces, "pause_ms": pause_ms}
    talk = Conversation()
    if upload:
        talk.ask(piece * pieces, **parts).answer(200)
    else:
        talk.ask().answer(piece * pieces, **parts)
    return Case(
        title=f"A {'request' if upload else 'response'} in {pieces} pieces, {pause_ms:g} ms apart",
        see="- Both windows are open and nothing is unacknowledged: the program has nothing to give.",
        conversation=talk, rtt_ms=rtt_ms, expects=("sender",),
    )  # fmt: skip


def black_hole(
    rtt_ms: float, largest: int = 1_300, body: int = 9_000, upload: bool = False, probing: int = 1
) -> Case:  # fmt: skip
    """Large packets vanish, and nobody says so."""
    talk = Conversation().ask(body).answer(200) if upload else Conversation().ask().answer(body)
    return Case(
        title=f"Packets of more than {largest:,} bytes vanish, and nobody says so",
        see="- The handshake passes, and so do acknowledgements; full segments do not, until the sender tries smaller "
        "ones (`net.ipv4.tcp_mtu_probing`).",
        conversation=talk, rtt_ms=rtt_ms, expects=("pmtu",), detail="black-hole",
        rules=(f"drop:from={'left' if upload else 'right'},larger={largest}",),
        kernel=(f"net.ipv4.tcp_mtu_probing={probing}", "net.ipv4.tcp_retries1=2"),
    )  # fmt: skip


def too_big(rtt_ms: float, mtu: int = 1_200, body: int = 20_000) -> Case:
    """A router says that a packet is too big."""
    return Case(
        title=f"A router cannot pass on more than {mtu:,} bytes, and says so (ICMP)",
        see="- The first flight comes back as ICMP messages, and is sent again in smaller segments.",
        conversation=Conversation().ask(body).answer(200), rtt_ms=rtt_ms, expects=("pmtu",), detail="icmp",
        client={"options": NODELAY | ROOMY}, mtu=mtu,
    )  # fmt: skip


def shopping(kind: str, sockets: str, see: str, times: int = 20) -> Case:
    """Connect anew for each request."""
    return Case(
        title=f"{times} requests over TLS 1.2, each with a connection of its own: {kind} handshakes"
        + ", TCP_NODELAY" * (sockets == "nodelay"),
        see=f"{see}\n- The lesson: `examples/stalls/resumed.md`.", shopper=(str(times), kind, sockets), rtt_ms=0.4,
        expects=("nagle",) if (kind, sockets) == ("resumed", "held") else (),
    )  # fmt: skip


def clean(
    rtt_ms: float, title: str, conversation: Conversation, *, server: Script | None = None,
    rules: tuple[str, ...] = (), kernel: tuple[str, ...] = (),
) -> Case:  # fmt: skip
    """Nothing is wrong."""
    return Case(
        title=title, see="- No stall: what takes time here has other names.", conversation=conversation, rtt_ms=rtt_ms,
        expects=(), server=server or {}, rules=rules, kernel=kernel,
    )  # fmt: skip


def ping_pong(times: int, body: int = 40) -> Conversation:
    """Alternate small messages."""
    talk = Conversation()
    for _ in range(times):
        talk.ask(body).answer(body)
    return talk


def segments_of(body: int) -> int:
    """Count the segments of a response with so many bytes of body."""
    head = len(f"HTTP/1.1 200 OK\r\nContent-Length: {body}\r\n\r\n")
    return -(-(head + body) // MSS)


CASES = {
    "nagle-request-near": nagle_request(0.4),
    "nagle-request-far": nagle_request(40, body=900),
    "nagle-request-quick": nagle_request(40, quick=True),
    "nagle-response-near": nagle_response(0.4),
    "nagle-response-far": nagle_response(24, body=3_000),
    "nagle-tls13": nagle_tls13(40),
    "nagle-tls13-no-tickets": nagle_tls13(10, tickets=0),
    "resumed-held": shopping(
        "resumed", "held", "- Each request is held for 40 ms: the client spoke last, and speaks again."
    ),
    "resumed-nodelay": shopping("resumed", "nodelay", "- The same, and nothing is held."),
    "full-held": shopping("full", "held", "- Nothing is held, as the server spoke last."),
    "rto-tail": rto_tail(20, body=600),
    "rto-tail-probe": rto_tail(30, body=9_000),
    "rto-tail-twice": rto_tail(20, body=9_000, copies=2),
    "rto-request": rto_request(10),
    "rto-middle": rto_middle(20),
    "rto-handshake-hello": rto_handshake(20, "1.3", "client", 1),
    "rto-handshake-flight": rto_handshake(20, "1.3", "server", 1),
    "rto-handshake-finished": rto_handshake(40, "1.2", "client", 2),
    "rto-ack": rto_ack(20),
    "rto-ack-far": rto_ack(80, think_ms=900),
    "rto-spurious-data": rto_spurious(20),
    "rto-spurious-ack": rto_spurious(40, ack=True, body=5_000),
    "fast-retransmit-sack": fast_retransmit(40),
    "fast-retransmit-reno": fast_retransmit(30, kernel=("net.ipv4.tcp_sack=0",), number=6),
    "fast-retransmit-burst": fast_retransmit(60, number=5, last=7),
    "fast-retransmit-upload": fast_upload(30),
    "fast-retransmit-offload": fast_retransmit(40, offload=True, number=11),
    "fast-retransmit-spurious": fast_spurious(40, hold_ms=70),
    "syn-rto-once": syn_lost(20),
    "syn-rto-twice": syn_lost(1, times=2),
    "syn-rto-answer": syn_lost(30, answer=True),
    "zero-window-download": zero_window(10, nap_ms=400),
    "zero-window-far": zero_window(40, nap_ms=900),
    "zero-window-upload": zero_window(10, nap_ms=300, upload=True),
    "window-limited-download": window_limited(40),
    "window-limited-far": window_limited(90, room=24_000),
    "window-limited-upload": window_limited(60, upload=True),
    "receiver-steps": slow_reader(20),
    "receiver-far": slow_reader(60, step=8_000, ms=30),
    "receiver-near": slow_reader(1, room=40_000),
    "slow-start-2": slow_start(60, 2, body=100_000),
    "slow-start-10": slow_start(80, 10),
    "slow-start-40": slow_start(100, 40, body=200_000),
    "slow-start-offload": slow_start(50, 10, offload=True),
    "sender-near": sender(1, pause_ms=150),
    "sender-far": sender(40, pieces=3, pause_ms=400, piece=5_000),
    "sender-upload": sender(20, pieces=3, pause_ms=250, upload=True),
    "pmtu-black-hole": black_hole(20),
    "pmtu-black-hole-upload": black_hole(40, largest=1_400, upload=True),
    "pmtu-black-hole-probing": black_hole(20, probing=2),
    "pmtu-told": too_big(30),
    "pmtu-told-far": too_big(80, mtu=1_400),
    "clean-near": clean(0.4, "Small answers, near", ping_pong(8)),
    "clean-far": clean(60, "Small answers, far away", ping_pong(5, body=900)),
    "clean-idle": clean(
        20, "Pauses between requests", Conversation().ask().answer(3_000).ask(think_ms=300).answer(3_000)
        .ask(think_ms=150).answer(900),
    ),
    "clean-wait": clean(
        20, "A server that thinks", Conversation().ask().answer(2_000, think_ms=250).ask().answer(2_000, think_ms=60)
    ),
    "clean-bulk-near": clean(
        0.4, "A long response, near", Conversation().ask().answer(120_000), server={"options": NODELAY | ROOMY}
    ),
    "clean-small-segments": clean(
        20, "A path for small packets only, and a sender that begins with small ones (`net.ipv4.tcp_mtu_probing=2`)",
        Conversation().ask(9_000).answer(200), rules=("drop:from=left,larger=1300",),
        kernel=("net.ipv4.tcp_mtu_probing=2",),
    ),
    "clean-nodelay-request": nagle_request(0.4, nodelay=True),
    "clean-nodelay-response": nagle_response(24, nodelay=True),
}  # fmt: skip

Dice = random.Random


def _rtt(dice: Dice, least: float = 1, most: float = 100) -> float:
    return round(least * (most / least) ** dice.random(), 1)


DICE: dict[str, Callable[[Dice], Case]] = {
    "nagle-request": lambda d: nagle_request(_rtt(d, 0.4), d.randint(20, 1400), d.randint(1, 3)),
    "nagle-quick": lambda d: nagle_request(_rtt(d, 8), d.randint(20, 1400), d.randint(1, 3), quick=True),
    "nagle-response": lambda d: nagle_response(_rtt(d, 0.4), d.choice([300, 900, 1400, 2500, 4000]), d.randint(1, 4)),
    "nagle-tls13": lambda d: nagle_tls13(_rtt(d, 8), d.choice([0, 2])),
    "rto-tail": lambda d: rto_tail(_rtt(d), d.randint(100, 25_000), d.choice([1, 1, 2])),
    "rto-request": lambda d: rto_request(_rtt(d), d.randint(1, 3), d.choice([1, 1, 2])),
    "rto-middle": lambda d: rto_middle(_rtt(d), d.randint(9_000, 30_000), d.randint(1, 4), 2),
    "rto-handshake": lambda d: rto_handshake(
        _rtt(d), d.choice(["1.2", "1.3"]), *d.choice([("client", 1), ("client", 2), ("server", 1)])
    ),
    "rto-ack": lambda d: rto_ack(_rtt(d), d.randint(600, 1200), d.randint(100, 1200)),
    "rto-spurious": lambda d: rto_spurious(_rtt(d), d.randint(350, 700), d.randint(100, 6000), d.random() < 0.5),
    "fast-retransmit": lambda d: fast_retransmit(
        _rtt(d, 6), d.randint(20_000, 60_000), d.randint(2, 9), kernel=d.choice([(), (), ("net.ipv4.tcp_sack=0",)])
    ),
    "fast-burst": lambda d: fast_retransmit(_rtt(d, 6), d.randint(30_000, 60_000), 4, d.randint(5, 8)),
    "fast-upload": lambda d: fast_upload(_rtt(d, 6), d.randint(9_000, 13_000), d.randint(1, 4)),
    "fast-spurious": lambda d: fast_spurious(_rtt(d, 10), d.randint(30, 200), number=d.randint(2, 15)),
    "syn": lambda d: syn_lost(_rtt(d), d.choice([1, 1, 2]), d.random() < 0.5),
    "zero-window": lambda d: zero_window(
        _rtt(d), d.randint(200, 1200), d.randint(40_000, 90_000), d.randint(6_000, 30_000), upload=d.random() < 0.5
    ),
    "window-limited": lambda d: window_limited(
        _rtt(d, 10), d.randint(6_000, 30_000), d.randint(40_000, 90_000), d.random() < 0.3
    ),
    "receiver": lambda d: slow_reader(
        _rtt(d), d.randint(30_000, 80_000), 120_000, d.randint(3_000, 12_000), d.randint(8, 40)
    ),
    "slow-start": lambda d: slow_start(
        _rtt(d, 10), d.choice([2, 4, 10, 10, 20, 40]), d.randint(60_000, 300_000), d.random() < 0.3,
        d.choice(["cubic", "cubic", "reno"]),
    ),
    "sender": lambda d: sender(
        _rtt(d), d.randint(2, 5), d.randint(100, 500), d.randint(300, 9_000), d.random() < 0.4
    ),
    "pmtu": lambda d: black_hole(_rtt(d), d.randint(1_100, 1_450), d.randint(4_000, 15_000), d.random() < 0.5),
    "pmtu-told": lambda d: too_big(_rtt(d, 8), d.randint(700, 1_450), d.randint(6_000, 25_000)),
    "clean": lambda d: clean(
        _rtt(d, 0.4), "Nothing wrong", Conversation().ask(d.randint(0, 1200)).answer(d.randint(50, 12_000))
        .ask(think_ms=d.randint(20, 500)).answer(d.randint(50, 9_000), think_ms=d.randint(1, 400))
        .ask(d.randint(0, 900)).answer(d.randint(50, 9_000)),
    ),
    "clean-ping-pong": lambda d: clean(_rtt(d, 0.4), "Nothing wrong", ping_pong(d.randint(3, 9), d.randint(1, 1300))),
}  # fmt: skip
