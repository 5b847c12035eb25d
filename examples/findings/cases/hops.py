"""Requests and hops: what a proxy, its backend, or the order of requests does to a wait."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from avenue import BACKEND, CERTIFIED, CLIENT, FRONT, KEEP_ALIVE, THINKER, Scene, record


def nginx(servers: str = f"server {BACKEND}:8080;", directives: str = "") -> str:
    """Pass everything on, over connections that are kept."""
    return f"""\
    upstream shop {{ {servers} keepalive 8; }}
    server {{
        listen {FRONT}:80;
        location / {{ proxy_pass http://shop; {KEEP_ALIVE} {directives} }}
    }}
"""


def haproxy(most: int, reuse: str = "always") -> str:
    """Let so many requests at a time through to the backend."""
    return f"""\
frontend street
    bind {FRONT}:80
    default_backend shop
backend shop
    http-reuse {reuse}
    server one {BACKEND}:8080 maxconn {most}
"""


def service(ms: int) -> Scene:
    """A backend that takes its time."""
    return Scene(
        title=f"A backend that takes {ms} ms to answer",
        see=f"- Of each wait, {ms} ms are the backend's own."
        if ms > 100
        else "- The same, and the backend answers soon.",
        nginx=nginx(), backends=[THINKER % 8080],
        clients=[f"python3 asks.py {FRONT} 80" + "".join(f" /wait-{ms}/bytes-{700 + n} rest-30" for n in range(6))],
    )  # fmt: skip


def queue(most: int, reuse: str = "always") -> Scene:
    """Many requests for a backend to which only some are let through."""
    return Scene(
        title=f"Eight requests at a time for a backend to which HAProxy lets {most} through",
        see="- A request leaves for the backend when the answer to an earlier one comes back."
        if most < 8
        else "- No request waits for another one's answer.",
        haproxy=haproxy(most, reuse) + "    option httpclose\n" * (reuse == "never"), backends=[THINKER % 8080],
        clients=[f"curl -sZ --parallel-max 8 http://{FRONT}/wait-40/bytes-3[00-15]"],
    )  # fmt: skip


def tunnel(think_ms: int, back_ms: float, see: str, conf: str = "tunnels.conf") -> Scene:
    """Clients that ask Squid for a tunnel to a backend, each for a connection of its own."""
    return Scene(
        title=f"Tunnels through Squid to a backend {2 * back_ms:g} ms away, which takes {think_ms} ms",
        see=see, middle=f"squid -N -f {conf}", backends=[THINKER % 8080],
        back_ms=back_ms, heard=f"tcp and host {CLIENT}",
        clients=[f"curl -s --proxytunnel --proxy http://{FRONT}:80 "
                 f"http://{BACKEND}:8080/wait-{think_ms}/bytes-{700 + n}" for n in range(5)],
    )  # fmt: skip


def tunnel_tls(back_ms: float) -> Scene:
    """Clients that ask Squid for a tunnel to a backend that speaks TLS."""
    return Scene(
        title=f"TLS through tunnels of Squid to a backend {2 * back_ms:g} ms away",
        see="- The answer to CONNECT, the ServerHello and the response: each comes a round trip behind the proxy late.",
        middle="squid -N -f tunnels.conf", back_ms=back_ms, heard=f"tcp and host {CLIENT}",
        nginx_behind=f"server {{ listen {BACKEND}:443 ssl; {CERTIFIED} return 200 'fine things'; }}",
        clients=[f"curl -sk --proxy http://{FRONT}:80 https://{BACKEND}/{n}" for n in range(4)],
    )  # fmt: skip


def retry(broken: bool, how: str = "120") -> Scene:
    """One of two backends gives up on every request."""
    first = f"python3 breaks.py {BACKEND} 8080 {how}" if broken else THINKER % 8080
    return Scene(
        title="Two backends"
        + f", of which one {'resets' if 'reset' in how else 'closes'} the connection instead of answering" * broken,
        see=f"- nginx asks the other one then (`proxy_next_upstream`): those requests take {how.split()[0]} ms longer."
        if broken
        else "- Each answers its share.",
        nginx=nginx(f"server {BACKEND}:8080 max_fails=0; server {BACKEND}:8081;"),
        backends=[first, THINKER % 8081],
        clients=[f"python3 asks.py {FRONT} 80" + "".join(f" /wait-5/bytes-{700 + n} rest-30" for n in range(8))],
    )  # fmt: skip


def fan_out(order: str) -> Scene:
    """An application that asks its store four things."""
    return Scene(
        title="An application that asks its store four things for each request, "
        + ("one after the other" if order == "serial" else "all at once"),
        see="- The answer takes as long as all four together."
        if order == "serial"
        else "- The answer takes as long as the longest of the four.",
        middle=f"python3 fans_out.py {FRONT} {BACKEND} {order} 20 45 30 25", backends=[THINKER % 8080],
        clients=[f"python3 asks.py {FRONT} 80" + "".join(f" /{n} rest-60" for n in range(6))],
    )  # fmt: skip


def upload(buffering: str) -> Scene:
    """A slow upload to a backend some way off."""
    return Scene(
        title=f"Uploads through nginx, `proxy_request_buffering {buffering}`",
        see="- The backend gets the first byte when the client has sent the last."
        if buffering == "on"
        else "- The backend gets each byte as it comes.",
        nginx=nginx(directives=f"proxy_request_buffering {buffering}; client_body_buffer_size 256k;"),
        backends=[THINKER % 8080], back_ms=8,
        clients=[f"python3 uploads.py {FRONT} 80 90000 90 3 /wait-5/bytes-300"],
    )  # fmt: skip


def first_byte(waits_for_body: bool) -> Scene:
    """A response that comes piece by piece."""
    return Scene(
        title="A response in forty pieces, through HAProxy"
        + (" with `http-response wait-for-body`" if waits_for_body else ""),
        see="- The client gets the first piece when the backend has sent the last."
        if waits_for_body
        else "- The client gets each piece as it comes.",
        haproxy=haproxy(16) + "    http-response wait-for-body time 2s\n" * waits_for_body, backends=[THINKER % 8080],
        clients=[f"python3 asks.py {FRONT} 80" + " /wait-5/pieces-40-100-5 rest-50" * 3],
    )  # fmt: skip


def expect(continues: bool) -> Scene:
    """An upload that waits to be told to go on."""
    program = f"python3 LAB/backend.py {FRONT} 80" if continues else f"python3 ignores_expect.py {FRONT} 80"
    return Scene(
        title="An upload with `Expect: 100-continue` to a server that " + ("says so" if continues else "never says so"),
        see="- The body follows the 100 (Continue) at once."
        if continues
        else "- curl waits for a second, then sends the body unasked.",
        middle=program,
        clients=[
            "curl "
            + " --next ".join([f"-s -H 'Expect: 100-continue' -d 'a small order' http://{FRONT}/wait-5/bytes-20"] * 3)
        ],
    )  # fmt: skip


CASES: dict[str, Callable[[Path], None]] = {
    "backend-service-dominates": partial(record, service(250)),
    "backend-service-dominates-clean": partial(record, service(5)),
    "proxy-queueing": partial(record, queue(2)),
    "proxy-queueing-new": partial(record, queue(2, "never")),
    "proxy-queueing-new-clean": partial(record, queue(16, "never")),
    "proxy-queueing-clean": partial(record, queue(16)),
    "retries": partial(record, retry(broken=True)),
    "retries-reset": partial(record, retry(broken=True, how="40 reset")),
    "retries-clean": partial(record, retry(broken=False)),
    "serial-fanout": partial(record, fan_out("serial")),
    "serial-fanout-clean": partial(record, fan_out("beside")),
    "proxy-buffers-upload": partial(record, upload("on")),
    "proxy-buffers-upload-clean": partial(record, upload("off")),
    "proxy-delays-first-byte": partial(record, first_byte(waits_for_body=True)),
    "proxy-delays-first-byte-clean": partial(record, first_byte(waits_for_body=False)),
    "slow-tunnel": partial(
        record, tunnel(300, 1, "- The tunnel stands at once. The backend's first byte comes 300 ms after the request.")
    ),
    "slow-tunnel-proxy": partial(
        record,
        tunnel(
            5,
            1,
            "- Squid asks a helper, which takes 300 ms, and connects then. The backend answers soon.",
            "tunnels-decided.conf",
        ),
    ),
    "slow-tunnel-far": partial(
        record,
        tunnel(
            5, 80, "- 160 ms go by before Squid says that the tunnel stands: its own TCP handshake with the backend."
        ),
    ),
    "slow-tunnel-tls": partial(record, tunnel_tls(80)),
    "slow-tunnel-clean": partial(record, tunnel(5, 1, "- The tunnel stands at once, and the backend answers soon.")),
    "expect-100-delay": partial(record, expect(continues=False)),
    "expect-100-delay-clean": partial(record, expect(continues=True)),
}
