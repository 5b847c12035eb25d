"""The README of a case."""

from __future__ import annotations

import json

from cases import Case
from lab.programs import versions
from row import CONTAINERS, CUT, DETOUR, FIREWALL, NAT, ONE_HOST, ROW, SYN_PROXY, TUNNEL, Line
from servers import ANNOUNCED, CADDY, HAPROXY, NGINX, PASSED, RESOLVERS

TOPOLOGIES = {
    ROW: "    client 10.93.1.10 ──line── 10.93.1.20 lb 10.93.2.20 ──line── 10.93.2.30 app",
    NAT: """\
    client 10.93.1.10 ──line── 10.93.1.1 router 10.93.3.1 ── 10.93.3.20 lb
    lb 10.93.2.20 ──line── 10.93.2.30 app""",
    CUT: """\
    client 10.93.3.10 ── 10.93.3.1 router 10.93.1.1 ──line── 10.93.1.20 lb
    lb 10.93.2.20 ──line── 10.93.2.30 app""",
    FIREWALL: """\
    client 10.93.3.10 ── 10.93.3.1 firewall 10.93.1.1 ──line── 10.93.1.20 lb
    lb 10.93.2.20 ──line── 10.93.2.30 app""",
    SYN_PROXY: """\
    client 10.93.3.10 ── 10.93.3.1 SYN proxy 10.93.1.1 ──line── 10.93.1.20 lb
    lb 10.93.2.20 ──line── 10.93.2.30 app""",
    DETOUR: """\
    client 10.93.3.10 ── 10.93.3.1 router 10.93.1.1 ──line── 10.93.1.20 lb
    client 10.93.5.10 ── 10.93.5.20 lb (the way back to 10.93.3.10)
    lb 10.93.2.20 ──line── 10.93.2.30 app""",
    TUNNEL: """\
    client 10.93.3.10 ── 10.93.3.1 router 10.93.1.1 ──line── 10.93.1.20 lb
    client 10.93.6.10 ══VXLAN══ 10.93.6.20 lb
    lb 10.93.2.20 ──line── 10.93.2.30 app""",
    CONTAINERS: """\
    client 10.93.1.10 ──line── 10.93.1.1 node 10.93.7.1 ──br0── 10.93.7.20 pod
    node 10.93.2.20 ──line── 10.93.2.30 app""",
    ONE_HOST: """\
    client 127.0.0.1 ── 127.0.0.1 relay 10.93.4.1 ──br0── 10.93.4.20 lb
    lb 10.93.4.20 ──br0── 10.93.4.30 app""",
}
PROGRAMS = {
    NGINX: "nginx ends TLS at the load balancer and asks `examples/lab/backend.py` over HTTP/1.1.",
    HAPROXY: "HAProxy ends TLS at the load balancer and sends `examples/lab/backend.py` one request at a time.",
    PASSED: "HAProxy (`mode tcp`) passes TLS on to nginx at the application.",
    ANNOUNCED: "HAProxy (`mode tcp`, `send-proxy`) passes TLS on to nginx at the application, behind a PROXY header.",
    CADDY: "Caddy ends QUIC at the load balancer and asks `examples/lab/backend.py` over HTTP/1.1.",
    RESOLVERS: "dnsmasq at the load balancer, without a cache, asks dnsmasq at the application.",
}
VERSIONS = {
    NGINX: (["nginx", "-v"],), HAPROXY: (["haproxy", "-v"],), PASSED: (["haproxy", "-v"], ["nginx", "-v"]),
    ANNOUNCED: (["haproxy", "-v"], ["nginx", "-v"]), RESOLVERS: (["dnsmasq", "--version"],),
    CADDY: (["caddy", "version"],),
}  # fmt: skip


def readme(name: str, case: Case, places: list[str]) -> str:
    """Return README.md of the case ``name``."""
    lines = {"client–lb": case.front, "lb–app": case.back} if case.layout != ONE_HOST else {}
    client = f"`examples/places/ask.py` with the plan `{plan(case)}`"
    if case.names:
        client = "`dig`, a list of names"
    elif case.http3:
        client = f"`examples/http3/ask.py` (aioquic) with `{' '.join(case.http3)}`; its secrets are in `keys.log`"
    clocks = [f"- Clock of {place}: {wrong(clock)}." for place, clock in case.clocks.items()]
    snapshot = f" -s {case.snapshot}" if case.snapshot else ""
    began = " Begun when the connections were open." if case.midstream else ""
    paragraphs = [
        f"# {case.title}",
        "Made by `examples/places/make-captures`; what the set is for is in `examples/places/README.md`.",
        "## Topology",
        TOPOLOGIES[case.layout],
        "Network namespaces on one machine." + " Lines: `examples/lab/delay_line.py`." * bool(lines),
        "## How it was made",
        "\n".join(
            [
                *(f"- {between}: {describe(line)}." for between, line in lines.items()),
                f"- Client: {client}.",
                f"- {PROGRAMS[case.servers]}",
                f"- Captured at {', '.join(places)} at the same time, one file each: `tcpdump -n{snapshot}"
                f" --time-stamp-precision=nano`.{began}",
                *(clocks or ["- All clocks are right."]),
                "- `truth.json`: the clocks, as `examples/places/clocks.py` put them wrong, and the lines.",
                "- `drops.jsonl`: every packet that a line dropped while all listened.",
            ]
        ),
        versions([["tcpdump", "--version"], *VERSIONS[case.servers]]),
        "## What to see",
        case.see,
    ]
    return "\n\n".join(paragraphs) + "\n"


def plan(case: Case) -> str:
    """Return the client's plan as the command line has it."""
    return json.dumps(case.plan)


def describe(line: Line) -> str:
    """Describe a line."""
    back = line.delay_ms if line.back_ms is None else line.back_ms
    parts = [f"{line.delay_ms:g} ms out, {back:g} ms back"]
    parts += [f"{line.rate / 1e6:g} Mbit/s each way"] if line.rate else []
    parts += [f"a queue of {line.queue:,} bytes"] if line.queue else []
    parts += [f"rules {', '.join(f'`{rule}`' for rule in line.rules)}"] if line.rules else []
    parts += [f"{line.loss:.0%} and {line.loss_back:.0%} of packets lost"] if line.loss or line.loss_back else []
    return ", ".join(parts)


def wrong(clock: object) -> str:
    """Describe how wrong a clock is."""
    facts = dict(clock)  # type: ignore[call-overload]
    words = [f"{facts['offset_ns'] / 1e6:+,g} ms"]
    words += [f"set by {by / 1e6:+,g} ms after {since / 1e9:g} s" for since, by in facts.get("steps", {}).items()]
    words += [f"drift {facts['drift_ppb'] / 1000:+g} ppm"] if facts.get("drift_ppb") else []
    return ", ".join(words)
