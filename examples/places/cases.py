"""The cases: how the path is, who asks for what, and how wrong the clocks are put."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from row import CONTAINERS, CUT, DETOUR, FIREWALL, NAT, ONE_HOST, ROW, SYN_PROXY, TUNNEL, Line
from servers import ANNOUNCED, CADDY, HAPROXY, NGINX, PASSED, RESOLVERS

MS, SECOND = 1_000_000, 10**9
Request = tuple[str, int, int]
"""Path, pause before it in milliseconds, bytes to upload; see ``ask.py``."""
Clocks = Mapping[str, Mapping[str, object]]
"""By place: what ``clocks.make_clock`` takes. A place without is right."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One run, captured at each place."""

    title: str
    see: str
    plan: tuple[tuple[Request, ...], ...] = ()
    """The client's connections."""
    front: Line = Line(delay_ms=10)
    back: Line = Line(delay_ms=1)
    layout: str = ROW
    servers: str = NGINX
    clocks: Clocks = field(default_factory=dict)
    midstream: bool = False
    """tcpdump begins when the connections are open and each has had a response."""
    names: int = 0
    """The client resolves so many names instead."""
    http3: tuple[str, ...] = ()
    """The client asks over HTTP/3 instead: options and paths of ``http3/ask.py``."""
    least_drops: Mapping[str, int] = field(default_factory=dict)
    """Packets that must have been lost, by line and end: ``client-lb left``. A run with fewer is made again."""
    snapshot: int | None = None
    """Bytes that tcpdump keeps of each packet."""


def requests(count: int, path: str, pause_ms: int = 20, upload: int = 0) -> tuple[Request, ...]:
    """Ask ``count`` times for the same."""
    return tuple((path, pause_ms if number else 0, upload) for number in range(count))


MIXED = (
    requests(4, "/wait-15/bytes-2000"),
    (("/wait-5/bytes-600", 40, 0), ("/wait-40/bytes-12000", 30, 0), ("/wait-5/bytes-300", 90, 3_000)),
    (("/wait-25/bytes-900", 200, 0), ("/wait-5/bytes-5000", 60, 0)),
)
LOSSY = (
    requests(4, "/wait-5/bytes-6000"),
    requests(4, "/wait-10/bytes-3000", 30),
    requests(3, "/wait-5/bytes-300", 50, 5_000),
)
FAULT = tuple(requests(5, "/wait-8/bytes-1500", 25) for _ in range(4))

CASES = {
    "plain": Case(
        title="Three connections through a load balancer",
        plan=MIXED,
        clocks={"lb": {"offset_ns": 37 * MS}, "app": {"offset_ns": -2 * SECOND}},
        see="""\
- The client's connections end at the load balancer: no packet is at client and application.
- A request of 40 ms: the client waits 62 ms more than a packet's way, of which 40 are the application's.""",
    ),
    "asymmetric": Case(
        title="Packets take 2 ms to the load balancer and 18 ms back",
        plan=MIXED,
        front=Line(delay_ms=2, back_ms=18),
        clocks={"client": {"offset_ns": 5 * SECOND}, "lb": {"offset_ns": -12 * MS}, "app": {"offset_ns": 250_000}},
        see="""\
- A clock between the two ends of the corridor explains the packets as well as any other: 2 and 18 ms cannot be told
  from 10 and 10.""",
    ),
    "loss": Case(
        title="A lossy line between client and load balancer",
        plan=LOSSY,
        front=Line(delay_ms=10, loss=0.03, loss_back=0.03),
        clocks={"lb": {"offset_ns": 37 * MS}, "app": {"offset_ns": -2 * SECOND}},
        least_drops={"client-lb left": 2, "client-lb right": 2},
        see="- `drops.jsonl` has what the line dropped; each is in one capture and not in the other.",
    ),
    "queue": Case(
        title="A download fills the queue before a slow line",
        plan=(
            (("/wait-1/bytes-600", 0, 0), ("/wait-1/bytes-300000", 150, 0)),
            requests(16, "/wait-2/bytes-400", 60),
        ),
        front=Line(delay_ms=8, rate=2_000_000, queue=20_000),
        clocks={"lb": {"offset_ns": -3_600 * SECOND, "drift_ppb": 30_000}, "app": {"offset_ns": 7 * MS}},
        least_drops={"client-lb right": 1},
        snapshot=160,
        see="- While the download goes on, small responses wait in the same queue: up to 80 ms.",
    ),
    "nat": Case(
        title="A router translates addresses and ports in both directions",
        plan=MIXED,
        layout=NAT,
        front=Line(delay_ms=10, loss=0.03, loss_back=0.03),
        least_drops={"client-lb left": 1, "client-lb right": 1},
        clocks={"client": {"offset_ns": -90 * MS}, "lb": {"offset_ns": 4 * SECOND, "drift_ppb": -20_000}},
        see="""\
- The client asks 10.93.1.1:443; the load balancer is asked by 10.93.3.1, from other ports. Sequence numbers, IP IDs
  and payload are the same.""",
    ),
    "offload": Case(
        title="The client's kernel hands over large segments, the load balancer's small ones",
        plan=(
            (("/wait-5/bytes-400", 0, 90_000), ("/wait-5/bytes-90000", 40, 0)),
            requests(3, "/wait-5/bytes-5000"),
        ),
        layout=CUT,
        front=Line(delay_ms=10),
        clocks={"client": {"offset_ns": 37 * MS}},
        snapshot=160,
        see="- The client's capture has segments that its kernel cuts later (TSO) or has joined (GRO); the load "
        "balancer's has up to 1,448 bytes in each.",
    ),
    "reordered": Case(
        title="Packets are held back on the way, and acknowledgements get lost",
        plan=(requests(2, "/wait-5/bytes-30000"), (("/wait-5/bytes-400", 0, 0), ("/wait-5/bytes-400", 20, 9_000))),
        front=Line(
            delay_ms=10,
            rules=(
                "hold:from=right,number=12,ms=4",
                "hold:from=left,number=9,ms=60",
                "drop:from=right,kind=ack,number=1-9",
            ),
        ),
        clocks={"lb": {"offset_ns": 37 * MS}},
        snapshot=160,
        see="- One segment of a response arrives behind others. One of an upload comes so late that it is sent again.",
    ),
    "doubled": Case(
        title="Packets come twice from the line",
        plan=(requests(3, "/wait-5/bytes-30000"), (("/wait-5/bytes-400", 0, 0), ("/wait-5/bytes-400", 20, 9_000))),
        front=Line(
            delay_ms=10,
            rules=(
                "twice:from=right,number=9",
                "twice:from=right,number=21,ms=4",
                "twice:from=left,number=8",
                "twice:from=left,number=12,ms=90",
            ),
        ),
        clocks={"lb": {"offset_ns": 37 * MS}},
        snapshot=160,
        see="- Their sender sent each once. Their receiver says that it had them (D-SACK, RFC 2883).",
    ),
    "firewall": Case(
        title="A firewall changes options, DSCP and ECN",
        plan=MIXED,
        layout=FIREWALL,
        front=Line(delay_ms=10),
        clocks={"lb": {"offset_ns": 37 * MS}},
        see="""\
- `nft`: maximum segment size 1300, no SACK and no timestamps in SYNs, DSCP AF21 and "congestion experienced" on what
  the client sends.""",
    ),
    "syn-proxy": Case(
        title="A SYN proxy answers in place of the server",
        plan=MIXED,
        layout=SYN_PROXY,
        front=Line(delay_ms=10),
        clocks={"lb": {"offset_ns": 37 * MS}},
        see="- The client has a SYN-ACK before its SYN was at the load balancer, with another sequence number.",
    ),
    "detour": Case(
        title="Packets go back on another way, past the router",
        plan=MIXED,
        layout=DETOUR,
        front=Line(delay_ms=10),
        clocks={"lb": {"offset_ns": 37 * MS}, "router": {"offset_ns": -5 * MS}},
        see="- `router` has what the client sends, and nothing of what comes back.",
    ),
    "tunnel": Case(
        title="A VXLAN tunnel between client and load balancer, captured on the way",
        plan=MIXED,
        layout=TUNNEL,
        front=Line(delay_ms=10),
        clocks={"router": {"offset_ns": -5 * MS}, "lb": {"offset_ns": 37 * MS}},
        see="""\
- `router` has the packets in VXLAN (UDP port 4789), `client` without: it captured on the tunnel's interface.
- `lb` was captured with `-i any`: it has each packet of the tunnel twice, wrapped and not.""",
    ),
    "containers": Case(
        title="The load balancer is a container, its port is published by its node",
        plan=(requests(3, "/wait-15/bytes-900"), (("/wait-5/bytes-600", 40, 0), ("/wait-20/bytes-300", 90, 3_000))),
        layout=CONTAINERS,
        front=Line(delay_ms=10),
        clocks={"node": {"offset_ns": 37 * MS}, "pod": {"offset_ns": 37 * MS}, "app": {"offset_ns": -2 * SECOND}},
        see="""\
- The node translates the address of its published port, and what the container opens gets the node's address.
- `node` was captured with `-i any`: it has each packet on the cable, on the bridge and on the container's veth, before
  and after the translation.""",
    ),
    "clock-set": Case(
        title="The clock of the load balancer is set while it captures",
        plan=MIXED,
        front=Line(delay_ms=10),
        clocks={"lb": {"offset_ns": 1_500 * MS, "steps": {250 * MS: -1_500 * MS}}, "app": {"offset_ns": 3 * MS}},
        see="- The clock of `lb` was 1.5 s ahead, and right after 250 ms.",
    ),
    "passthrough": Case(
        title="HAProxy passes TLS on to the application",
        plan=MIXED,
        servers=PASSED,
        clocks={"lb": {"offset_ns": 37 * MS}, "app": {"offset_ns": -2 * SECOND, "drift_ppb": 50_000}},
        see="- The same TLS records on two TCP connections: the handshake is between client and application.",
    ),
    "proxy-header": Case(
        title="HAProxy passes TLS on and says in a PROXY header who asks",
        plan=MIXED,
        servers=ANNOUNCED,
        clocks={"lb": {"offset_ns": 37 * MS}, "app": {"offset_ns": -2 * SECOND}},
        see="- Each connection to the backend begins with `PROXY TCP4 10.93.1.10 10.93.1.20 … 443`; then TLS follows.",
    ),
    "slow-app": Case(
        title="The application answers late",
        plan=(requests(3, "/wait-180/bytes-900"), requests(2, "/wait-250/bytes-900")),
        clocks={"lb": {"offset_ns": 37 * MS}, "app": {"offset_ns": -2 * SECOND}},
        see="- Each request is at the application in time; its response leaves 180 or 250 ms later.",
    ),
    "one-host": Case(
        title="A relay on the loopback interface, containers at a bridge: all on one host",
        plan=MIXED,
        layout=ONE_HOST,
        see="""\
- `client` is captured on `lo`, `bridge` on the bridge: the same host and clock, but no packet in common. HAProxy is
  between them.
- `bridge` and the containers have all other packets in common, microseconds apart.""",
    ),
    "midstream": Case(
        title="tcpdump begins when connections are open",
        plan=MIXED,
        midstream=True,
        clocks={"lb": {"offset_ns": 37 * MS}, "app": {"offset_ns": -2 * SECOND}},
        see="- No connection has a SYN, and no capture has a TLS handshake but those of connections opened later.",
    ),
    "udp": Case(
        title="Names are resolved over a lossy line",
        names=40,
        front=Line(delay_ms=10, loss=0.04, loss_back=0.04),
        servers=RESOLVERS,
        clocks={"lb": {"offset_ns": 37 * MS}, "app": {"offset_ns": -2 * SECOND}},
        least_drops={"client-lb left": 1, "client-lb right": 1},
        see="- dig asks again after a second, with the same ID and from the same port: two packets that are alike.",
    ),
    "http3": Case(
        title="HTTP/3 to the load balancer, over a lossy line",
        http3=("--visits", "2", "--one-by-one", *(f"/wait-{5 * n}/bytes-{700 + 1_500 * n}" for n in range(6))),
        front=Line(delay_ms=10, loss=0.04, loss_back=0.04),
        servers=CADDY,
        clocks={"lb": {"offset_ns": 37 * MS}, "app": {"offset_ns": -2 * SECOND}},
        least_drops={"client-lb left": 1, "client-lb right": 1},
        see="""\
- QUIC's datagrams between client and load balancer, HTTP/1.1 behind it. `keys.log` has the client's secrets: with
  `--keylog`, requests over HTTP/3 are linked to those to the application.
- What gets lost is one datagram of one place; what it carried is sent again in another one, with another number.""",
    ),
    "whose-fault-1": Case(
        title="Whose fault was it? First case",
        plan=FAULT,
        back=Line(delay_ms=28, back_ms=40),
        servers=NGINX,
        clocks={"client": {"offset_ns": 800 * MS}, "app": {"offset_ns": -43 * MS}},
        see="- The answer is in `examples/places/README.md`.",
    ),
    "whose-fault-2": Case(
        title="Whose fault was it? Second case",
        plan=tuple(requests(5, "/wait-74/bytes-1500", 25) for _ in range(4)),
        servers=NGINX,
        clocks={"lb": {"offset_ns": 61 * MS, "drift_ppb": 25_000}, "app": {"offset_ns": -43 * MS}},
        see="- The answer is in `examples/places/README.md`.",
    ),
    "whose-fault-3": Case(
        title="Whose fault was it? Third case",
        plan=tuple(requests(5, "/wait-27/bytes-1500", 25) for _ in range(4)),
        servers=HAPROXY,
        clocks={"client": {"offset_ns": -15 * SECOND}, "lb": {"offset_ns": 5 * MS}, "app": {"offset_ns": 90 * MS}},
        see="- The answer is in `examples/places/README.md`.",
    ),
}
COMMITTED = tuple(name for name in CASES if name != "slow-app")
"""What is in ``captures/places``; all can be made into a folder of your own."""
