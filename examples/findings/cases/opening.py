"""How TCP connections open: full queues, answers that go another way, ports that are taken, data in the SYN."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from talk import SYN_OPTIONS, Capture, Talk, get, ok

README = """\
# {title}

Written by `examples/findings/make-captures` with scapy (`examples/crafted/talk.py`): addresses, times and
sequence numbers are fixed, and nothing on the network was touched.

## Topology

    192.0.2.10 client ──── 198.51.100.20:80 server, seen at the {seen}

## What to see

{see}
"""
BESIDE = (
    "- Beside it, a connection that was open before the capture began, and on which a request is answered each 300 ms."
)
TURNS = 6
PORT = 51_100


def beside(capture: Capture) -> None:
    """A client that has been connected for long, and asks now and then."""
    talk = Talk(capture, client="192.0.2.77", port=40_001, server="198.51.100.20", server_port=8080)
    for turn in range(TURNS * 3):
        talk.client("PA", get(f"/status/{turn}"))
        talk.wait(1)
        talk.server("PA", ok(200))
        talk.wait(0.1)
        talk.client()
        talk.wait(300)


def answered(talk: Talk, rtt_ms: float, target: str = "/list") -> None:
    """A request that is answered, and the end."""
    talk.wait(0.1)
    talk.client("PA", get(target))
    talk.wait(rtt_ms)
    talk.server("A")
    talk.wait(5)
    talk.server("PA", ok(700))
    talk.wait(0.1)
    talk.client()
    talk.goodbye(rtt_ms)


def write_case(folder: Path, capture: Capture, *, title: str, seen: str, see: list[str], messy: bool) -> None:
    """Write the capture and what it shows; a messy one begins in the middle of something else."""
    if messy:
        beside(capture)
        see = [*see, BESIDE]
    capture.write(folder / "input.pcap")
    (folder / "README.md").write_text(README.format(title=title, seen=seen, see="\n".join(see)))


def queue(folder: Path, *, full: bool, messy: bool = False) -> None:
    """A server with a full accept queue; or one that has room in it."""
    capture = Capture()
    for turn in range(TURNS):
        talk = Talk(
            capture, after_ms=900 * turn + 137 * turn % 400, port=PORT + turn, client_isn=0x1A2B3C4D + turn * 7_919
        )
        talk.client("S", options=SYN_OPTIONS)
        talk.wait(0.05)
        talk.server("SA", options=SYN_OPTIONS)
        talk.wait(10)
        talk.client()
        talk.wait(0.1)
        if turn % 2 or not full:
            talk.client("PA", get("/list"))
        else:
            seq = talk.client("PA", get("/list"))
            for ms in (210, 420):
                talk.wait(ms)
                talk.client("PA", get("/list"), seq=seq)
            talk.wait(380)
            talk.server("SA", seq=talk.server_side.isn, ack=talk.client_side.isn + 1, options=SYN_OPTIONS)
            talk.wait(10)
            talk.client()
            talk.wait(450)
            talk.client("PA", get("/list"), seq=seq)
        talk.wait(0.05)
        talk.server("A")
        talk.wait(5)
        talk.server("PA", ok(700))
        talk.wait(10)
        talk.client()
        talk.goodbye(0.1)
    write_case(
        folder, capture, messy=messy, seen="server",
        title="A server whose accept queue is full" if full else "A server whose accept queue has room",
        see=["- Every second connection: the client's ACK and its request are seen, and the server says its SYN-ACK",
             "  again after a second, as if it had not got them. Only then does it take the request."] if full else
            ["- Each request is answered at once."],
    )  # fmt: skip


def bypass(folder: Path, *, around: bool, messy: bool = False) -> None:
    """A machine that translates the server's address, and answers that go past it; or that come back through it."""
    capture = Capture()
    for turn in range(3):
        isn, port = 0x2A2B3C4D + turn * 7_919, PORT + turn
        front = Talk(capture, after_ms=4_000 * turn, port=port, client_isn=isn)
        back = Talk(
            capture, after_ms=4_000 * turn + 0.02, port=port, server="198.51.100.31", server_port=8080, client_isn=isn
        )
        back.client_side.mac = "02:00:00:00:00:77"
        for wait in (1_000, 2_000) if around else (0,):
            front.client("S", seq=isn, options=SYN_OPTIONS)
            if not messy:
                back.client("S", seq=isn, options=SYN_OPTIONS)
            back.now = front.now + 5_000_000
            back.server("SA", seq=back.server_side.isn, ack=isn + 1, options=SYN_OPTIONS)
            back.wait(0.03)
            if around:
                back.client("R", seq=isn + 1, window=0)
            else:
                front.now = back.now
                front.server("SA", options=SYN_OPTIONS)
                for talk in (front, back):
                    talk.wait(0.05)
                    talk.client()
                for talk in (front, back):
                    answered(talk, 5)
            front.wait(wait)
    write_case(
        folder, capture, messy=messy, seen="client" if messy else "machine that translates",
        title="Answers that go past the machine that translates addresses" if around
        else "Answers that come back through the machine that translates addresses",
        see=["- The client asks 198.51.100.20:80. 198.51.100.31:8080 answers it directly, and the client resets that."]
        if around else ["- Each connection is seen twice, to 198.51.100.20:80 and to 198.51.100.31:8080."],
    )  # fmt: skip


def taken(folder: Path, *, early: bool, messy: bool = False) -> None:
    """A client that uses a port again that the server still has a connection of; or has no more."""
    capture = Capture()
    for turn in range(3):
        isn = 0x3A2B3C4D + turn * 7_919
        talk = Talk(capture, after_ms=2_500 * turn, port=PORT + turn, client_isn=isn)
        talk.client("S", options=SYN_OPTIONS)
        if early:
            talk.wait(10)
            talk.server("A", seq=0x51000000 + turn, ack=0x42000000 + turn)
            talk.wait(0.05)
            talk.client("R", seq=0x42000000 + turn, window=0)
            # What it says of the old connection is no part of the new one.
            talk.client_side.next_seq = isn + 1
            talk.wait(1_000)
            talk.client("S", seq=isn, options=SYN_OPTIONS)
        talk.wait(10)
        talk.server("SA", options=SYN_OPTIONS)
        talk.wait(0.05)
        talk.client()
        answered(talk, 10)
    write_case(
        folder, capture, messy=messy, seen="client",
        title="A port that is used again while the server still has its old connection" if early
        else "A port that is used again when the server has forgotten its old connection",
        see=["- The server answers each SYN by an ACK for another connection, which the client resets. A second later",
             "  it sends the SYN again, and is answered."] if early else ["- Each SYN is answered at once."],
    )  # fmt: skip


def fast_open(folder: Path, *, refused: bool, messy: bool = False) -> None:
    """Data in the SYN, which the server leaves in every second connection; or takes."""
    capture = Capture()
    for turn in range(TURNS):
        isn = 0x4A2B3C4D + turn * 7_919
        talk = Talk(capture, after_ms=400 * turn + 137 * turn % 300, port=PORT + turn, client_isn=isn)
        cookie = [*SYN_OPTIONS, (34, bytes(range(turn, turn + 8)))]
        request = get("/list")
        talk.client("S", request, options=cookie)
        talk.wait(40)
        leaves = refused and turn % 2 == 0
        talk.server("SA", ack=isn + 1 if leaves else isn + 1 + len(request), options=SYN_OPTIONS)
        talk.wait(0.05)
        talk.client(seq=isn + 1 if leaves else None)
        if leaves:
            talk.wait(0.05)
            talk.client("PA", request, seq=isn + 1)
            talk.wait(40)
            talk.server("A")
        talk.wait(10)
        talk.server("PA", ok(700))
        talk.wait(0.1)
        talk.client()
        talk.goodbye(40)
    write_case(
        folder, capture, messy=messy, seen="client",
        title="TCP Fast Open that the server refuses" if refused else "TCP Fast Open that the server takes",
        see=["- Every SYN has a request. Every second SYN-ACK acknowledges the SYN alone, and the client",
             "  sends the request again at once."] if refused
        else ["- Every SYN has a request, which the SYN-ACK acknowledges."],
    )  # fmt: skip


CASES: dict[str, Callable[[Path], None]] = {
    "accept-queue-full": partial(queue, full=True),
    "accept-queue-full-messy": partial(queue, full=True, messy=True),
    "accept-queue-full-clean": partial(queue, full=False),
    "nat-answer-bypass": partial(bypass, around=True),
    "nat-answer-bypass-messy": partial(bypass, around=True, messy=True),
    "nat-answer-bypass-clean": partial(bypass, around=False),
    "port-taken": partial(taken, early=True),
    "port-taken-messy": partial(taken, early=True, messy=True),
    "port-taken-clean": partial(taken, early=False),
    "fast-open-refused": partial(fast_open, refused=True),
    "fast-open-refused-messy": partial(fast_open, refused=True, messy=True),
    "fast-open-refused-clean": partial(fast_open, refused=False),
}
