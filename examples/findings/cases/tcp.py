"""TCP: loss, windows, paths. Most of these faults are in captures/stalls; here is what those lack."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from avenue import BACKEND, FRONT, KEEP_ALIVE, THINKER, Scene, record
from talk import MSS, Capture, Talk, get, ok, segments

NGINX_POOLED = f"""\
    upstream shop {{ server {BACKEND}:8080; keepalive 4; }}
    server {{
        listen {FRONT}:80;
        location / {{ proxy_pass http://shop; {KEEP_ALIVE} }}
    }}
"""


def cold(after_idle: int) -> Scene:
    """A response as large as the one before, after a rest."""
    grown = " ".join(f"/wait-0/bytes-{size}" for size in (12_000, 22_000, 38_000))
    return Scene(
        title="A large response on a connection that had carried as much before a rest"
        + ("" if after_idle else ", and a server that does not forget"),
        see="- Three responses, each twice as large as the one before, leave at once: the window grows with them.\n"
        + ("- After 900 ms of rest the last one is sent again, and begins slowly: the server has forgotten its window."
           if after_idle else "- After 900 ms of rest the last one is sent again, and leaves at once."),
        middle=f"python3 LAB/backend.py {FRONT} 80",
        clients=[f"python3 asks.py {FRONT} 80 {grown} rest-900 /wait-0/bytes-38000"],
        front_ms=30, kernel={"middle": f"net.ipv4.tcp_slow_start_after_idle={after_idle}"},
    )  # fmt: skip


def far(back_ms: float) -> Scene:
    """A backend far away, or near."""
    return Scene(
        title=f"A backend {2 * back_ms:g} ms from its proxy",
        see="- Each request waits for the long way once; the first also for the TCP handshake." if back_ms > 1
        else "- The same, and the backend is near.",
        nginx=NGINX_POOLED, backends=[THINKER % 8080], back_ms=back_ms,
        clients=[f"python3 asks.py {FRONT} 80" + " /wait-5/bytes-700 rest-40" * 6],
    )  # fmt: skip


DELAYED = """\
# {title}

Written by `examples/findings/make-captures` with scapy (`examples/crafted/talk.py`): addresses, times and
sequence numbers are fixed, and nothing on the network was touched.

## Topology

    192.0.2.10 client ──── 198.51.100.20:80 server, seen at the client

## What to see

- A response of twelve full segments, from a server that never has more than one of them on its way.
- {see}
"""


def delayed(folder: Path, *, late_ms: float) -> None:
    """A sender with a window of one segment, and a receiver that acknowledges late or at once."""
    capture = Capture()
    talk = Talk(capture)
    talk.handshake(10)
    talk.wait(1)
    talk.client("PA", get("/list"))
    talk.wait(10)
    talk.server("A")
    talk.wait(2)
    head = len(ok(10_000)) - 10_000
    for number, piece in enumerate(segments(ok(12 * MSS - head))):
        talk.server("PA" if number == 11 else "A", piece)
        talk.wait(late_ms if number else 0.1)
        talk.client()
        talk.wait(10.1)
    talk.goodbye(10)
    capture.write(folder / "input.pcap")
    late = late_ms > 1
    (folder / "README.md").write_text(
        DELAYED.format(
            title="A server that sends one segment at a time, and a client that acknowledges "
            + ("late" if late else "at once"),
            see="The client waits 40 ms for a second segment before it acknowledges: nothing happens meanwhile."
            if late else "Each segment is acknowledged as it comes: the server stands still for a round trip only.",
        )
    )  # fmt: skip


CASES: dict[str, Callable[[Path], None]] = {
    "cold-cwnd-after-idle": partial(record, cold(1)),
    "cold-cwnd-after-idle-clean": partial(record, cold(0)),
    "delayed-ack": partial(delayed, late_ms=40),
    "delayed-ack-clean": partial(delayed, late_ms=0.1),
    "far-backend": partial(record, far(20)),
    "far-backend-clean": partial(record, far(0.2)),
}
