"""What servers answer: late, with errors, with redirects, over TLS of a version that is out of use."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from avenue import BACKEND, CERTIFIED, FRONT, KEEP_ALIVE, SITE, THINKER, Scene, record

ALONE = f"python3 LAB/backend.py {FRONT} 80"
POLITE = (
    f"limit_req_zone $binary_remote_addr zone=each:1m rate=%s; limit_req_status 429; server {{ listen {FRONT}:80; %s }}"
)
ANSWER = "location / { limit_req zone=each burst=4 nodelay; empty_gif; }"


def thinking(waits_ms: list[int], title: str, see: str) -> Scene:
    """A server that takes so long for each request."""
    steps = " ".join(f"/wait-{ms}/bytes-{700 + number}" for number, ms in enumerate(waits_ms))
    return Scene(title=title, see=see, middle=ALONE, clients=[f"python3 asks.py {FRONT} 80 {steps}"], front_ms=5)


def limiting(rate: str, see: str) -> Scene:
    """A server that lets a client ask so often."""
    return Scene(
        title=f"Twelve requests to nginx that allows {rate}", see=see,
        nginx=POLITE % (rate, ANSWER), clients=[f"curl -s http://{SITE}/[1-12]"], front_ms=5,
    )  # fmt: skip


def behind(broken: bool) -> Scene:
    """A proxy whose only backend gives up on every request, or does not."""
    return Scene(
        title="nginx before a backend" + " that closes each connection without an answer" * broken,
        see="- nginx answers with 502 (Bad Gateway)." if broken else "- The twin of `error-responses-proxy`.",
        nginx=f"upstream shop {{ server {BACKEND}:8080 max_fails=0; keepalive 8; }} "
        f"server {{ listen {FRONT}:80; location / {{ proxy_pass http://shop; {KEEP_ALIVE} }} }}",
        backends=[f"python3 breaks.py {BACKEND} 8080 60" if broken else THINKER % 8080],
        clients=[
            f"python3 asks.py {FRONT} 80" + "".join(f" /wait-5/bytes-{700 + n} rest-{20 + 7 * n}" for n in range(5))
        ],
    )  # fmt: skip


def holding_back(rate: str) -> Scene:
    """A proxy that lets so many requests through."""
    return Scene(
        title=f"Six clients at a time through nginx that lets {rate} through",
        see="- nginx keeps each request for a while (`limit_req` without `nodelay`). The backend answers in 5 ms."
        if rate < "500"
        else "- The twin of `proxy-dominates`.",
        nginx=f"limit_req_zone $server_port zone=all:1m rate={rate}; "
        f"upstream shop {{ server {BACKEND}:8080; keepalive 8; }} "
        f"server {{ listen {FRONT}:80; "
        f"location / {{ limit_req zone=all burst=50; proxy_pass http://shop; {KEEP_ALIVE} }} }}",
        backends=[THINKER % 8080], clients=[f"curl -sZ --parallel-max 6 http://{FRONT}/wait-5/bytes-3[00-17]"],
    )  # fmt: skip


def redirecting(steps: int) -> Scene:
    """A server that sends everybody on, so many times."""
    locations = "".join(f"location /{n}/ {{ return 301 /{n + 1}/; }} " for n in range(steps))
    return Scene(
        title="Six requests that " + (f"nginx sends on {steps} times each" if steps else "are answered at once"),
        see="- Each time 301 (Moved Permanently), from `/0/` to `/1/` and so on. curl forgets where it was sent, and "
        "asks for the first again."
        if steps
        else "- The twin of `redirects`.",
        nginx=f'server {{ listen {FRONT}:80; {locations}location / {{ return 200 "Here you are.\\n"; }} }}',
        clients=["curl -sL " + " ".join([f"http://{SITE}/0/"] * 6)], front_ms=5,
    )  # fmt: skip


def speaking(version: str, option: str) -> Scene:
    """A server and a client of a TLS version."""
    return Scene(
        title=f"nginx and a client that speak {version}", see=f"- A handshake of {version}.",
        nginx=f"server {{ listen {FRONT}:443 ssl; {CERTIFIED} ssl_protocols TLSv1 TLSv1.1 TLSv1.2 TLSv1.3; "
        f'ssl_ciphers DEFAULT@SECLEVEL=0; location / {{ return 200 "Here you are.\\n"; }} }}',
        clients=[f"python3 asks_tls.py {SITE} {option}"], front_ms=5,
    )  # fmt: skip


SCENES = {
    "slow-server": thinking(
        [300, 410, 350, 290, 380, 330], "A server that takes a third of a second for each request",
        "- Each wait is 300 to 400 ms longer than the round trip of 10 ms: the server's own time.",
    ),
    "slow-server-clean": thinking([5] * 6, "A server that answers in 5 ms", "- The twin of `slow-server`."),
    "slow-requests": thinking(
        [8, 8, 8, 900, 8, 8, 8, 8, 1_100, 8, 8, 8], "A server that answers two of twelve requests a second later",
        "- Ten requests take 8 ms beside the round trip of 10 ms, two take 900 and 1,100 ms.",
    ),
    "slow-requests-clean": thinking([8] * 12, "A server that answers in 8 ms", "- The twin of `slow-requests`."),
    "error-responses": limiting("2r/s", "- Five requests are answered, seven get 429 (Too Many Requests)."),
    "error-responses-clean": limiting("500r/s", "- Each is answered: the twin of `error-responses`."),
    "error-responses-proxy": behind(broken=True),
    "error-responses-proxy-clean": behind(broken=False),
    "proxy-dominates": holding_back("20r/s"),
    "proxy-dominates-clean": holding_back("5000r/s"),
    "redirects": redirecting(3),
    "redirects-clean": redirecting(0),
    "old-protocol": speaking("TLS 1.1", "TLSv1_1"),
    "old-protocol-clean": speaking("TLS 1.3", "TLSv1_3"),
}  # fmt: skip
CASES: dict[str, Callable[[Path], None]] = {name: partial(record, scene) for name, scene in SCENES.items()}
