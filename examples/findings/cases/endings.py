"""How requests end: without an answer, cut off, given up, lost on the path, each beside traffic that has no fault."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from talk import Capture, Talk, get, ok, segments


def opened(capture: Capture, port: int, **where: object) -> Talk:
    """Begin a connection with sequence numbers of its own."""
    return Talk(capture, port=port, client_isn=port * 65_537, server_isn=port * 65_539, **where)  # type: ignore[arg-type]


def answered(talk: Talk, target: str, work_ms: float = 8, size: int = 900) -> None:
    """Ask and be answered: 20 ms round trip."""
    talk.client("PA", get(target))
    talk.wait(20)
    talk.server()
    talk.wait(work_ms)
    for part in segments(ok(size)):
        talk.server("PA", part)
        talk.wait(0.1)
    talk.client()


def send_request(talk: Talk, target: str) -> None:
    """Ask, and have the request acknowledged."""
    talk.client("PA", get(target))
    talk.wait(20)
    talk.server()


def part_of(size: int, sent: int) -> bytes:
    """Give the first bytes of a response of so many bytes."""
    return ok(size)[:sent]


def beside(capture: Capture) -> None:
    """Write what has nothing to do with the fault: an SSH session under way, a scrape every 5 s, a slow client."""
    shell = opened(capture, port=40_022, server_port=22, client="192.0.2.77", after_ms=3)
    for key in range(6):
        shell.client("PA", bytes(36 + 4 * key))
        shell.wait(20)
        shell.server("PA", bytes(44))
        shell.wait(1_700)
    for turn in range(3):
        scrape = opened(
            capture, port=42_000 + turn, server_port=9_100, client="192.0.2.78", after_ms=100 + turn * 5_000
        )
        scrape.handshake()
        answered(scrape, "/metrics", 3, 2_000)
        scrape.goodbye()


def healthy(capture: Capture, count: int, after_ms: float = 40) -> None:
    """Write connections whose requests are answered, and one that was open before."""
    before = opened(capture, port=50_999, after_ms=after_ms)
    for number in range(3):
        answered(before, f"/kept/{number}")
        before.wait(2_400)
    for number in range(count):
        talk = opened(capture, port=50_000 + number, after_ms=after_ms + number * 1_370)
        talk.handshake()
        answered(talk, f"/fine/{number}", 6 + number)
        talk.wait(300)
        answered(talk, f"/fine/{number}/more", 9)
        talk.goodbye()


def no_answer_clean(capture: Capture) -> None:
    """Every request is answered."""
    healthy(capture, 5)


def no_answer_messy(capture: Capture) -> None:
    """Two requests on new connections, and one on a connection that was open before, end by FIN or RST."""
    beside(capture)
    healthy(capture, 5)
    for number, (after_ms, flags) in enumerate([(900, "FA"), (4_300, "RA")]):
        talk = opened(capture, port=51_000 + number, after_ms=after_ms)
        talk.handshake()
        send_request(talk, f"/report/{number}")
        talk.wait(1_800 + 700 * number)
        talk.server(flags)
        if flags == "FA":
            talk.wait(0.1)
            talk.client("FA")
            talk.wait(20)
            talk.server()
    reused = opened(capture, port=51_900, after_ms=60)
    answered(reused, "/before")
    reused.wait(80)
    send_request(reused, "/report/2")
    reused.wait(2_900)
    reused.server("RA")


def foreign_reset(capture: Capture) -> None:
    """A device on the path resets requests for one page in the server's name: its hop limit differs."""
    for number, target in enumerate(["/a", "/blocked", "/b", "/blocked", "/blocked"]):
        talk = opened(capture, port=51_000 + number, after_ms=number * 900)
        talk.client("S")
        talk.wait(20)
        talk.server("SA", ttl=52)
        talk.wait(0.05)
        talk.client()
        talk.client("PA", get(target))
        if target == "/blocked":
            talk.wait(4)
            talk.server("RA", ttl=61)
            continue
        talk.wait(20)
        talk.server(ttl=52)
        talk.wait(8)
        talk.server("PA", ok(900), ttl=52)
        talk.wait(0.05)
        talk.client()
        talk.client("FA")
        talk.wait(20)
        talk.server("FA", ttl=52)
        talk.wait(0.05)
        talk.client()


CHUNK = b"%x\r\n" % 1_000 + b"." * 1_000 + b"\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunked(talk: Talk, target: str, tail: bytes) -> None:
    """Ask, and get five chunks and something after them."""
    send_request(talk, target)
    talk.wait(30)
    talk.server("PA", CHUNKED + CHUNK)
    for _ in range(4):
        talk.wait(60)
        talk.server("PA", CHUNK)
        talk.client()
    talk.wait(90)
    talk.server("PA", tail)
    talk.client()


def response_cut(capture: Capture) -> None:
    """The last chunk of two responses, and the end of a third, never come."""
    beside(capture)
    healthy(capture, 4)
    for number in range(2):
        talk = opened(capture, port=51_000 + number, after_ms=1_100 + number * 2_600)
        talk.handshake()
        chunked(talk, f"/export/{number}", CHUNK[:400])
        talk.wait(40)
        talk.server("FA")
        talk.wait(0.1)
        talk.client("FA")
        talk.wait(20)
        talk.server()
    reused = opened(capture, port=51_900, after_ms=60)
    answered(reused, "/before")
    reused.wait(80)
    send_request(reused, "/export/2")
    reused.wait(30)
    reused.server("PA", part_of(9_000, 1_400))
    reused.client()
    reused.wait(700)
    reused.server("RA")


def response_whole(capture: Capture) -> None:
    """Chunks with their end, and a response whose end is that of the connection."""
    for number in range(3):
        talk = opened(capture, port=51_000 + number, after_ms=number * 1_500)
        talk.handshake()
        chunked(talk, f"/export/{number}", b"0\r\n\r\n")
        talk.goodbye()
    old = opened(capture, port=51_100, after_ms=600)
    old.handshake()
    send_request(old, "/old")
    old.wait(30)
    old.server("PA", b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n" + b"." * 1_200)
    old.wait(10)
    old.server("FA")
    old.wait(0.1)
    old.client("FA")
    old.wait(20)
    old.server()


def clients_give_up(capture: Capture) -> None:
    """Two clients wait for 2 s; of one, the response comes later. A third stops in the middle of a response."""
    beside(capture)
    healthy(capture, 4)
    for number in range(2):
        talk = opened(capture, port=51_000 + number, after_ms=1_100 + number * 3_900)
        talk.handshake()
        send_request(talk, f"/search/{number}")
        talk.wait(1_980)
        talk.client("FA")
        talk.wait(20)
        talk.server()
        if number:
            talk.wait(600)
            talk.server("PA", ok(700))
            talk.wait(0.05)
            talk.client("R", seq=talk.client_side.next_seq)
    download = opened(capture, port=51_900, after_ms=60)
    answered(download, "/before")
    download.wait(80)
    send_request(download, "/search/image")
    download.wait(30)
    download.server("PA", part_of(90_000, 1_400))
    download.client()
    download.wait(1_900)
    download.client("RA")


def again(talk: Talk, data: bytes, times: int) -> None:
    """Send data that nobody acknowledges, and again after 0.2 s, 0.4 s, 0.8 s and so on."""
    first = talk.client("PA", data)
    for turn in range(times):
        talk.wait(200 * 2**turn)
        talk.client("PA", data, seq=first)


def request_lost(capture: Capture) -> None:
    """Requests of one client never arrive; the capture ends before it gives up the second."""
    beside(capture)
    healthy(capture, 3)
    for number, after_ms in enumerate([500, 4_000]):
        talk = opened(capture, port=51_000 + number, after_ms=after_ms)
        talk.handshake()
        talk.wait(1)
        again(talk, get(f"/upload/{number}"), 4)
        if not number:
            talk.wait(1_000)
            talk.client("RA")


def connection_forgotten(capture: Capture) -> None:
    """After 400 s of rest, requests are never acknowledged. A new connection works; one is unfinished."""
    beside(capture)
    healthy(capture, 3)
    for number in range(2):
        talk = opened(capture, port=51_000 + number, after_ms=500 + number * 700)
        talk.handshake()
        answered(talk, f"/first/{number}")
        talk.wait(400_000)
        again(talk, get(f"/later/{number}"), 5)
        if not number:
            talk.wait(1_000)
            talk.client("RA")
            anew = opened(capture, port=52_000, after_ms=408_600)
            anew.handshake()
            answered(anew, "/later/0")


STORIES: dict[str, tuple[Callable[[Capture], None], str, str]] = {
    "no-answer-clean": (no_answer_clean, "Every request is answered", "- Thirteen requests, thirteen answers."),
    "no-answer-messy": (
        no_answer_messy, "Requests without an answer, beside other traffic, one on a connection that was open before",
        "- `/report/0` ends by FIN after 1.8 s, `/report/1` by RST after 2.5 s, `/report/2` by RST after 2.9 s.\n"
        "- The connection of `/report/2` was open when the capture began. All other requests are answered.",
    ),
    "foreign-reset": (
        foreign_reset, "A device on the path resets requests in the server's name",
        "- The server's packets arrive with a hop limit of 52. The RST, 4 ms after a request for `/blocked`, has 61,\n"
        "  and comes sooner than the server could answer.",
    ),
    "response-cut-messy": (
        response_cut, "Responses that are cut off, beside other traffic and on a connection that was open before",
        "- Two responses in chunks end in the middle of a chunk. A third announces 9,000 bytes: 1,400 come before RST.",
    ),
    "response-cut-clean": (
        response_whole, "Responses in chunks that are complete, and one that ends with its connection",
        "- The twin of `response-cut-messy`.",
    ),
    "clients-give-up-messy": (
        clients_give_up, "Clients that stop waiting, beside other traffic and on a connection that was open before",
        "- Two clients wait for 2 s and close. Of the second, the response comes 0.6 s later, and RST answers it.\n"
        "- A third resets its connection after 1,400 of 90,000 bytes.",
    ),
    "request-lost-unfinished": (
        request_lost, "Requests that never arrive, and a capture that ends before the client gives up",
        "- Both handshakes work. Each request is sent five times, and nobody acknowledges it.",
    ),
    "connection-forgotten-messy": (
        connection_forgotten, "Connections that were forgotten on the path, beside others that work",
        "- After 400 s of rest, each request is sent six times, never acknowledged. A new connection works at once.",
    ),
}  # fmt: skip

PAGE = """\
# {title}

Written with scapy by `examples/findings/make-captures` (`cases/endings.py`): no program does this on demand. Not a
recording.

    client 192.0.2.10 ── 20 ms round trip ── 198.51.100.20:80 server

Plain HTTP/1.1, Ethernet, microsecond times, valid checksums. Seen from the client.

{see}
"""


def write(story: Callable[[Capture], None], title: str, see: str, folder: Path) -> None:
    """Write a story down."""
    capture = Capture()
    story(capture)
    capture.write(folder / "input.pcap")
    (folder / "README.md").write_text(PAGE.format(title=title, see=see), encoding="utf-8")


CASES: dict[str, Callable[[Path], None]] = {name: partial(write, *story) for name, story in STORIES.items()}
