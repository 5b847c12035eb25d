"""The line: a user far away logs in to her mail and downloads attachments, in clear and over TLS.

client 10.99.2.10 ──26,400 bit/s, 100 ms── 10.99.2.20 nginx: a modem, as in the study
client 10.99.2.10 ──400 kbit/s, 200 ms── 10.99.2.20 nginx: "slow 3G"

In: nothing. Out: captures taken at the client, and what tshark says of them: how long each login and each download
took from the first SYN to the last byte of its answer, in how many round trips, and how many bytes it was.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from lab.clients import SECRETS
from lab.keys import make_keys
from lab.lesson import table
from lab.listening import Listener, settle
from lab.network import Host, Network, tell_kernel
from lab.programs import versions
from mail import INBOX_BYTES, KB, PLAIN_PORT, PORT, MailServer
from tshark import fields, nanoseconds

NEEDED = ("ip", "sysctl", "tcpdump", "tshark", "openssl", "nginx", "curl")

CLIENT = "10.99.2.10"
SERVER = "10.99.2.20"
NAME = "shop.example"
PACKETS = f"tcp port {PLAIN_PORT} or tcp port {PORT}"
CONGESTION_CONTROL = "reno"
"""The one that every kernel lets a network namespace have; the textbook's, too."""
FORM, FORM_BYTES = "form", 300
PATIENCE_SECONDS = 1_200
LOGIN = 0
"""Stands for a login where a download has its size in kB."""
SIZES = (20, 100, 200, 500, 1_000)
DESKS = ((LOGIN, 20), (100,), (200,), (500,), (1_000,))
"""What is asked for on each of the lines that stand side by side. The capture of the first is kept."""
QUICK_DESKS = DESKS[:1]
CPU_SIZE = 500
"""The download whose CPU is looked at. Over the modem, a MB takes longer than nginx keeps a session."""


@dataclass(frozen=True)
class Pace:
    """How fast and how long a line is."""

    title: str
    rate: int
    """Bits a second, each way."""
    rtt_ms: int


MODEM = Pace("a modem", 26_400, 200)
SLOW_3G = Pace("slow 3G", 400_000, 400)


class Way(NamedTuple):
    """What a connection has before its request."""

    protocol: str
    resumed: bool


WAYS = {
    "in clear": Way("plain", False),
    "TLS 1.2, full": Way("tls12", False),
    "TLS 1.2, resumed": Way("tls12", True),
    "TLS 1.3, full": Way("tls13", False),
    "TLS 1.3, resumed": Way("tls13", True),
}
AGAIN = tuple(f"tcp.analysis.{how}retransmission" for how in ("", "fast_", "spurious_"))
"""tshark's fields that say that a packet was sent before."""
ROUND_TRIPS = {"in clear": 2, "TLS 1.2, full": 4, "TLS 1.2, resumed": 3, "TLS 1.3, full": 3, "TLS 1.3, resumed": 3}
"""As the protocols have it: nobody measured these."""
STUDY_LOGIN_S = {"in clear": 1.6, "TLS 1.2, full": 3.15, "TLS 1.2, resumed": 2.3}
STUDY_DOWNLOAD_S = {20: (8, 10), 100: (30, 40), 200: (63, 80), 500: (150, 196), 1_000: (280, 397)}
"""The study of 2000, by kB: in clear, over SSL with a session that was resumed."""


@dataclass(frozen=True)
class Case:
    """One capture."""

    pace: Pace
    protocol: str
    options: tuple[str, ...]
    """Of curl."""
    see: str
    """What to see, in Markdown."""

    @property
    def encrypted(self) -> bool:
        """The client leaves secrets."""
        return self.protocol != "plain"

    @property
    def title(self) -> str:
        """The capture's, in its README."""
        how = {"plain": "in clear", "tls12": "over TLS 1.2", "tls13": "over TLS 1.3"}[self.protocol]
        return f"A login and a download over {self.pace.title}, {how}"

    def command(self, what: int) -> tuple[str, ...]:
        """What the client says: the same thing twice, so that the second connection may resume the first's session."""
        url = f"{'https' if self.encrypted else 'http'}://{NAME}/{what or 'login'}"
        form = () if what else ("--data", f"@{FORM}")
        twice = ("--output", "/dev/null", url) * 2
        return ("curl", "--disable", "--silent", "--show-error", "--fail", *self.options, *form, *twice)


SEE = {
    "plain": """\
- Four connections: two logins, two downloads of 20 kB. Each is two round trips to the first byte of its answer.""",
    "tls12": """\
- Four connections: two logins, two downloads of 20 kB. The first of each has a full handshake: four round trips to
  the first byte of the answer. The second resumes its session by its id: three, and no certificate.""",
    "tls13": """\
- Four connections: two logins, two downloads of 20 kB. The first of each has a full handshake, the second resumes its
  session: three round trips to the first byte of the answer either time, but no certificate the second time.""",
}
SEE_LINE = {
    "modem": """\
- A full segment is on the line for 455 ms, longer than two round trips of an empty line. Nobody waits for a window.
- The kernels do not know such a line, and what is late looks lost to them: in `modem-plain` and `modem-tls12`, some of
  it is sent again, in vain.""",
    "slow-3g": """\
- The server sends ten segments and waits for their acknowledgement, though the line is free: slow start (RFC 6928).""",
}
OPTIONS = {
    "plain": (),
    "tls12": ("--cacert", "authority.crt", "--tls-max", "1.2"),
    "tls13": ("--cacert", "authority.crt", "--tlsv1.3"),
}
PACES = {"modem": MODEM, "slow-3g": SLOW_3G}
CASES = {
    f"{line}-{protocol}": Case(pace, protocol, options, f"{SEE[protocol]}\n{SEE_LINE[line]}")
    for line, pace in PACES.items()
    for protocol, options in OPTIONS.items()
}
QUICK = tuple(name for name in CASES if name.startswith("slow-3g"))


class Street(Network):
    """Some lines side by side that know nothing of each other, each with a client and a server."""

    def __init__(self, pace: Pace, count: int) -> None:
        """Say how many lines of which pace."""
        super().__init__(*(f"{role}{number}" for number in range(count) for role in ("client", "server")))
        self.pairs = list(zip(self.hosts[::2], self.hosts[1::2], strict=True))
        self._pace = pace

    def build(self) -> None:
        """Lay the lines, and tell everybody where the server is."""
        for client, server in self.pairs:
            self.long_cable(client, CLIENT, server, SERVER, self._pace.rtt_ms / 2, rate=self._pace.rate)
            for host in (client, server):
                self.name_the_site(host, SERVER, NAME)
                # What a kernel remembers of one connection must not open the next one's window.
                tell_kernel(
                    host, f"net.ipv4.tcp_congestion_control={CONGESTION_CONTROL}", "net.ipv4.tcp_no_metrics_save=1"
                )


class Desk:
    """A client, its line, and the server at the other end."""

    def __init__(
        self, street: Street, case: Case, wanted: tuple[int, ...], pair: tuple[Host, Host], keys: Path
    ) -> None:
        """Start the server."""
        self.wanted = wanted
        self._street, self._case = street, case
        self._client, self._server = pair
        self.folder = street.folder / self._client.role
        self.folder.mkdir()
        shutil.copy(keys / "authority.crt", self.folder)
        (self.folder / FORM).write_bytes(b"x" * FORM_BYTES)
        self._nginx = MailServer(street, self._server, keys, SIZES)

    def begin(self) -> None:
        """Have tcpdump listen, and the client ask for one thing after the other."""
        interface = f"to-{self._server.role}"
        self._listener = Listener(self._street, self._client, interface, PACKETS, self.folder / "input.pcap")
        self._before_ns = self._nginx.cpu_ns()
        self._asking = self._ask(self._client)

    def end(self) -> list[dict[str, Any]]:
        """Wait until it has everything; returns what tshark says of it, and how much CPU the server needed."""
        self._wait(self._asking)
        used_ns = self._nginx.cpu_ns() - self._before_ns
        settle()
        self._listener.stop()
        connections = list(measure(self._case, self.folder))
        rows = [
            {"what": what, "second": self._case.encrypted and number == 1, **connections.pop(0)}
            for what in self.wanted
            for number in range(2)
        ]
        if len(self.wanted) == 1:
            rows[0]["cpu_ms"] = used_ns / 1e6
        return rows

    def at_home_ms(self) -> float:
        """Have the server's own machine ask for the same; returns the server's CPU, milliseconds."""
        before_ns = self._nginx.cpu_ns()
        self._wait(self._ask(self._server))
        return (self._nginx.cpu_ns() - before_ns) / 1e6

    def _ask(self, host: Host) -> subprocess.Popen[bytes]:
        words = "; ".join(shlex.join(self._case.command(what)) for what in self.wanted)
        environment = {**os.environ, "SSLKEYLOGFILE": str(self.folder / SECRETS), "HOME": str(self.folder)}
        with (self.folder / "client.log").open("wb") as sink:
            return self._street.start(
                host, ["sh", "-ec", words], cwd=self.folder, stdout=sink, stderr=sink, env=environment
            )

    def _wait(self, asking: subprocess.Popen[bytes]) -> None:
        if code := asking.wait(PATIENCE_SECONDS):
            raise RuntimeError(
                f"{self.wanted}: exit code {code}; curl said: {(self.folder / 'client.log').read_text()}"
            )


def make(name: str, folder: Path, *, quick: bool) -> list[dict[str, Any]]:
    """Make one case; keep the first desk's capture in ``folder``, and return what tshark says of all of them."""
    case, desks = CASES[name], QUICK_DESKS if quick else DESKS
    with Street(case.pace, len(desks)) as street:
        keys = make_keys(street.folder / "keys", "rsa:2048")
        made = [Desk(street, case, wanted, pair, keys) for wanted, pair in zip(desks, street.pairs, strict=True)]
        for desk in made:
            desk.begin()
        rows = []
        for desk in made:
            rows += desk.end()
            if len(desk.wanted) == 1:
                rows[-2]["at_home_cpu_ms"] = desk.at_home_ms()
        shutil.copyfile(made[0].folder / "input.pcap", folder / "input.pcap")
        if case.encrypted:
            shutil.copyfile(made[0].folder / SECRETS, folder / SECRETS)
        (folder / "README.md").write_text(readme(case))
    return rows


class Packet(NamedTuple):
    """What tshark says of one packet."""

    at: int
    """Nanoseconds since the Unix epoch."""
    from_client: bool
    size: int
    """Bytes, with the IP header."""
    speaks: bool
    """It carries data, or opens the connection."""
    again: bool
    """For the second time."""
    answered: bool
    """With it, a response is there to its last byte."""


def measure(case: Case, desk: Path) -> Iterator[dict[str, Any]]:
    """Ask tshark what the capture shows of each connection, up to the last byte of its answer.

    ``ms``: since the first SYN. ``round_trips``: how often the client spoke and the server answered. ``bytes``: of all
    packets that opened the connection or carried data, either way, with their IP headers; acknowledgements are on their
    way meanwhile, and cost no time. ``copies``: packets that somebody sent again; their bytes are not counted.
    """
    names = ("tcp.stream", "frame.time_epoch", "ip.src", "ip.len", "tcp.len", "tcp.flags.syn", "http.response.code")
    streams: dict[str, list[Packet]] = {}
    for stream, at, sender, size, length, syn, code, *again in fields(
        desk / "input.pcap", (*names, *AGAIN), desk / SECRETS if case.encrypted else None
    ):
        speaks = length != "0" or syn in ("1", "True")
        packet = Packet(nanoseconds(at), sender == CLIENT, int(size), speaks, any(again), bool(code))
        streams.setdefault(stream, []).append(packet)
    for packets in streams.values():
        end = next(number for number, packet in enumerate(packets) if packet.answered)
        spoken = [packet for packet in packets[: end + 1] if packet.speaks and not packet.again]
        turns = [packet.from_client for packet in spoken]
        yield {
            "ms": (packets[end].at - packets[0].at) / 1e6,
            "round_trips": sum(now and not before for before, now in zip([False, *turns], turns, strict=False)),
            "bytes": sum(packet.size for packet in spoken),
            "copies": sum(packet.speaks and packet.again for packet in packets[: end + 1]),
        }


def predicted_s(pace: Pace, way: str, size: int) -> float:
    """The study's formula: round trips, and ``size`` bytes at the line's rate."""
    return ROUND_TRIPS[way] * pace.rtt_ms / 1000 + size * 8 / pace.rate


def tables(results: Mapping[str, Any]) -> dict[str, str]:
    """Make the tables of the figures of all cases beside the study's."""
    return {
        "line-login": login_table(results),
        "line-downloads": downloads_table(results),
        "line-beyond": beyond_table(results),
        "line-cpu": cpu_table(results),
    }


def connection(results: Mapping[str, Any], line: str, way: str, what: int) -> Mapping[str, Any] | None:
    """Return the row of one login or download: the first of its kind; None when it was not measured."""
    protocol, resumed = WAYS[way]
    rows = results[f"{line}-{protocol}"]
    return next((row for row in rows if (row["what"], row["second"]) == (what, resumed)), None)


def login_table(results: Mapping[str, Any]) -> str:
    """Predicted and measured, and the study's."""
    rows = []
    for line, pace in PACES.items():
        for way in WAYS:
            row, clear = (connection(results, line, name, LOGIN) for name in (way, "in clear"))
            if row is None or clear is None:
                continue
            studied = STUDY_LOGIN_S.get(way) if pace is MODEM else None
            rows.append([
                pace.title, way, str(row["round_trips"]), f"{row['bytes']:,}",
                f"{predicted_s(pace, way, row['bytes']):.2f}", f"{row['ms'] / 1e3:.2f}",
                f"{row['ms'] / clear['ms']:.1f}",
                *((f"{studied}", f"{studied / STUDY_LOGIN_S['in clear']:.1f}") if studied else ("–", "–")),
            ])  # fmt: skip
    heads = ["line", "", "round trips", "bytes", "predicted, s", "measured, s", "÷ in clear", "2000, s", "÷ in clear"]
    return table(heads, rows)


def downloads_table(results: Mapping[str, Any]) -> str:
    """Seconds of each download, and the study's."""
    rows = []
    for line, pace in PACES.items():
        for what in SIZES:
            found = [connection(results, line, way, what) for way in WAYS]
            if None in found:
                continue
            seconds = [row["ms"] / 1e3 for row in found if row]
            clear, ssl = STUDY_DOWNLOAD_S[what]
            studied = [str(clear), str(ssl), f"{ssl / clear:.2f}"] if pace is MODEM else ["–"] * 3
            ours = [*(f"{wait:.1f}" for wait in seconds), f"{seconds[-1] / seconds[0]:.2f}"]
            rows.append([pace.title, f"{what:,}", *ours, *studied])
    heads = ["line", "kB", *WAYS, "last ÷ first", "2000: in clear", "2000: SSL, resumed", "÷"]
    return table(heads, rows)


def beyond_table(results: Mapping[str, Any]) -> str:
    """How much longer than predicted each took, and how many packets were sent twice."""
    rows = []
    for line, pace in PACES.items():
        for what in (LOGIN, *SIZES):
            found = {way: connection(results, line, way, what) for way in WAYS}
            cells = [
                f"{round(row['ms'] - 1e3 * predicted_s(pace, way, row['bytes'])):+,} / {row['copies']}"
                for way, row in found.items()
                if row
            ]
            if cells:
                rows.append([pace.title, f"{what:,} kB" if what else "login", *cells])
    return table(["line", "ms / packets sent twice", *WAYS], rows)


def cpu_table(results: Mapping[str, Any]) -> str:
    """CPU of nginx for each kB, over each line, and asked from its own machine."""
    rows = []
    for protocol, name in (("plain", "in clear"), ("tls12", "TLS 1.2"), ("tls13", "TLS 1.3")):
        cases = [results[f"{line}-{protocol}"] for line in PACES]
        home = [each_kb(case, "at_home_cpu_ms") for case in cases]
        if None in home:
            continue
        ours, least = [each_kb(case, "cpu_ms") for case in cases], min(home)
        rows.append([name, *(f"{cost:.1f}" for cost in (*ours, least)), *(f"{cost / least:.0f} ×" for cost in ours)])
    titles = [pace.title for pace in PACES.values()]
    return table(["µs of CPU a kB", *titles, "its own machine", *(f"{title} ÷ own machine" for title in titles)], rows)


def each_kb(case: list[Mapping[str, Any]], figure: str) -> float | None:
    """What a kB costs, microseconds: two downloads of CPU_SIZE, handshakes and all; None when they were not made."""
    return next((1e3 * row[figure] / (2 * CPU_SIZE) for row in case if row["what"] == CPU_SIZE and figure in row), None)


def readme(case: Case) -> str:
    """Say how the capture was made and what to see in it."""
    commands = "\n".join(f"    {shlex.join(case.command(what))}" for what in DESKS[0])
    programs = (("nginx", "-v"), ("curl", "--version"), ("tcpdump", "--version"))
    secrets = """
- `keys.log` has the TLS secrets, as the client wrote them: `conchart input.pcap --keylog keys.log`."""
    port = PORT if case.encrypted else PLAIN_PORT
    pace = case.pace
    return f"""\
# {case.title}

Made by `examples/far-away/make-captures`; what the set is for is in `examples/far-away/README.md`.

## Topology

    client {CLIENT} ──{pace.rate:,} bit/s, {pace.rtt_ms / 2:g} ms── {SERVER}:{port} nginx

Two network namespaces on one machine. Each direction carries {pace.rate:,} bits of IP packets a second, one packet
after the other, and every packet takes {pace.rtt_ms / 2:g} ms more (`examples/lab/delay_line.py`).

## How it was made

Client, one command after the other; `{FORM}` has {FORM_BYTES} bytes:

{commands}

- Server: nginx with `examples/far-away/nginx.conf`: an inbox of {INBOX_BYTES:,} bytes, a file of {SIZES[0] * KB:,}
  zeros; it closes each connection after its answer. RSA-2048 certificate signed by a like authority.
- Both kernels: congestion control {CONGESTION_CONTROL}, nothing kept of earlier connections.{secrets * case.encrypted}
- Captured on the client: `tcpdump -n --time-stamp-precision=nano -w input.pcap {PACKETS}`.

{versions(programs)}

## What to see

{case.see}
"""
