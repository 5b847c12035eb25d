"""The directory: an address book is asked for 0 to 50 entries, in clear, over TLS and after StartTLS.

client 10.99.1.10 ──0.2 ms── 10.99.1.20 slapd, as far apart as two ends of a large Ethernet

In: nothing. Out: captures taken at the client, and what tshark says of them: how long each search took from the first
SYN to the last byte of its answer, how much of that came before the first request, how many bytes it was.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import linear_regression
from typing import NamedTuple

from lab.clients import SECRETS, run_clients
from lab.keys import make_keys
from lab.lesson import table
from lab.listening import Listener, settle
from lab.network import Network
from lab.programs import versions
from slapd import PEOPLE, PORT, TLS_PORT, TOWNS, start_slapd
from tshark import fields, nanoseconds

NEEDED = ("ip", "tcpdump", "tshark", "openssl", "slapd", "slapadd", "ldapsearch")

CLIENT = "10.99.1.10"
SERVER = "10.99.1.20"
NAME = "shop.example"
DELAY_MS = 0.2
RUNS = 15
"""Of so many the quickest is kept: what else a machine does makes the others longer."""
TOWN_LIST = "towns.txt"
OPENLDAP = "sed -n 's/.*\\(OpenLDAP\\): \\(.*\\) (.*/\\1 \\2/p'"
"""Makes a name and a version of what OpenLDAP's programs call themselves."""
PACKETS = f"tcp port {PORT} or tcp port {TLS_PORT}"

STUDY_MS = {0: (5, 9), 10: (9, 14), 20: (13, 21), 30: (17, 28), 40: (21, 35), 50: (26, 42)}
"""The study of 2000, by entries: in clear, over SSL."""

BIND_REQUEST, SEARCH_REQUEST, SEARCH_DONE = "0", "3", "5"
"""Of tshark's ``ldap.protocolOp``: the tags of RFC 4511."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One capture."""

    title: str
    options: tuple[str, ...]
    """Of ldapsearch: where, and how."""
    see: str
    """What to see, in Markdown."""
    encrypted: bool = True
    """The client leaves secrets."""
    reuses_connection: bool = False
    """All searches go over one connection."""

    def commands(self) -> list[tuple[str, ...]]:
        """What the client says, one after the other."""
        words = ("ldapsearch", "-x", "-LLL", *self.options, "-b", PEOPLE)
        if self.reuses_connection:
            return [(*words, "-f", TOWN_LIST, "(l=%s)")]
        return [(*words, f"(l={town})") for town in TOWNS]


WAITS = (
    "entries",
    "in clear",
    "LDAPS",
    "StartTLS",
    "LDAPS ÷ in clear",
    "2000: in clear",
    "2000: SSL",
    "SSL ÷ in clear",
)
PARTS = ("", "in clear", "LDAPS", "StartTLS", "in clear, kept", "LDAPS, kept", "2000: in clear", "2000: SSL")
CASES = {
    "directory-plain": Case(
        title="An address book is asked in clear",
        options=("-H", f"ldap://{NAME}"),
        encrypted=False,
        see="""\
- Six connections. On each: `bind` with no name, and its answer; `search`, and its entries; `unbind`, and the end.
- Every entry is a message of its own, and the last message says `success`.
- Ten entries come at once. After the eleventh segment of a connection the server waits for an acknowledgement: each
  entry is a segment of its own, and a new connection may send ten (RFC 6928), however small.""",
    ),
    "directory-ldaps": Case(
        title="An address book is asked over TLS",
        options=("-H", f"ldaps://{NAME}"),
        see="""\
- Without keys: a TLS 1.3 handshake, and records that take turns. With them: the operations of `directory-plain`.
- Every entry is a record of its own: 22 bytes more.
- Before the ClientHello and before the first request the client is silent for a while, though it could speak.""",
    ),
    "directory-starttls": Case(
        title="An address book is asked after StartTLS",
        options=("-H", f"ldap://{NAME}", "-ZZ"),
        see="""\
- Each connection begins in clear: `extended StartTLS`, answered by `success`, and TLS follows on the same connection.
  That is a round trip more than in `directory-ldaps`.
- Anybody can see that this is LDAP, also without keys.""",
    ),
    "directory-plain-kept": Case(
        title="An address book is asked in clear, six times on one connection",
        options=("-H", f"ldap://{NAME}"),
        encrypted=False,
        reuses_connection=True,
        see="""\
- One connection, one bind, six searches: from the second on, a search costs a search.
- Fifty entries come without a pause: the server may send more at once on a connection that it has used before.""",
    ),
    "directory-ldaps-kept": Case(
        title="An address book is asked over TLS, six times on one connection",
        options=("-H", f"ldaps://{NAME}"),
        reuses_connection=True,
        see="""\
- One connection, one handshake, one bind, six searches. But for the handshake, it is `directory-plain-kept` with
  22 bytes more for each message.""",
    ),
}
QUICK = tuple(CASES)


class Hall(Network):
    """The two hosts."""

    def __init__(self) -> None:
        """Name the hosts."""
        super().__init__("client", "server")
        self.client, self.server = self.hosts

    def build(self) -> None:
        """Lay the cable, and tell the client where the directory is."""
        self.long_cable(self.client, CLIENT, self.server, SERVER, DELAY_MS)
        self.name_the_site(self.client, SERVER, NAME)


def make(name: str, folder: Path, *, quick: bool) -> list[dict[str, float]]:
    """Make one case, several times; keep one run in ``folder``, and return what tshark says of it."""
    case = CASES[name]
    with Hall() as hall:
        keys = make_keys(hall.folder / "keys", "rsa:2048")
        start_slapd(hall, hall.server, keys)
        runs = []
        # A first answer pays for start-up: it is not kept.
        for number in range(2 if quick else RUNS + 1):
            desk = hall.folder / f"run-{number}"
            desk.mkdir()
            record(hall, case, desk, keys)
            if number:
                runs.append((measure(case, desk), desk))
        measured, desk = min(runs, key=lambda run: sum(search["ms"] for search in run[0]))
        shutil.copyfile(desk / "input.pcap", folder / "input.pcap")
        if case.encrypted:
            shutil.copyfile(desk / SECRETS, folder / SECRETS)
        (folder / "README.md").write_text(readme(case, len(runs)))
    return measured


def record(hall: Hall, case: Case, desk: Path, keys: Path) -> None:
    """Let the client ask with tcpdump listening."""
    (desk / TOWN_LIST).write_text("".join(f"{town}\n" for town in TOWNS))
    listener = Listener(hall, hall.client, "to-server", PACKETS, desk / "input.pcap")
    for words in case.commands():
        trusting = ("env", f"LDAPTLS_CACERT={keys / 'authority.crt'}", *words)
        run_clients(hall, hall.client, [trusting], desk, {})
    settle()
    listener.stop()


def measure(case: Case, desk: Path) -> list[dict[str, float]]:
    """Ask tshark what the capture shows of each search.

    ``ms``: from the first SYN, on a connection that was used before from the request, to the last byte of the answer.
    Of that, ``before_ms``: from the client's ACK of the TCP handshake to its first request that is no StartTLS;
    ``search_ms``: from the request to the last byte of its answer. ``bytes``: what TCP carried both ways in ``ms``.
    """
    names = ("tcp.stream", "frame.time_epoch", "tcp.len", "tcp.flags.syn", "ldap.protocolOp")
    streams: dict[str, list[Packet]] = {}
    for stream, at, length, syn, operations in fields(
        desk / "input.pcap", names, desk / SECRETS if case.encrypted else None
    ):
        packet = Packet(nanoseconds(at), int(length), syn in ("1", "True"), operations.split(","))
        streams.setdefault(stream, []).append(packet)
    searches = [search for packets in streams.values() for search in _searches(packets)]
    return [{"entries": entries, **search} for entries, search in zip(TOWNS.values(), searches, strict=True)]


class Packet(NamedTuple):
    """What tshark says of one packet."""

    at: int
    """Nanoseconds since the Unix epoch."""
    bytes: int
    syn: bool
    operations: list[str]


def _searches(packets: list[Packet]) -> Iterator[dict[str, float]]:
    """Say of each search on one connection how long it took, and how many bytes it was."""
    start = packets[0].at
    connected = next(packet.at for packet in packets if not packet.syn)
    bound = next(packet.at for packet in packets if BIND_REQUEST in packet.operations)
    before = bound - connected
    requests = [packet.at for packet in packets if SEARCH_REQUEST in packet.operations]
    answered = [packet.at for packet in packets if SEARCH_DONE in packet.operations]
    for request, answer in zip(requests, answered, strict=True):
        start = start or request
        yield {
            "ms": (answer - start) / 1e6,
            "before_ms": before / 1e6,
            "search_ms": (answer - request) / 1e6,
            "bytes": sum(packet.bytes for packet in packets if start <= packet.at <= answer),
        }
        start = before = 0


def tables(results: Mapping[str, list[dict[str, float]]]) -> dict[str, str]:
    """Make the tables of the figures of all cases beside the study's."""
    cases = [results[name] for name in CASES]
    waits = []
    for plain, tls, start_tls in zip(*cases[:3], strict=True):
        before, after = STUDY_MS[int(plain["entries"])]
        ours = [*(f"{search['ms']:.1f}" for search in (plain, tls, start_tls)), f"{tls['ms'] / plain['ms']:.1f}"]
        waits.append([str(plain["entries"]), *ours, str(before), str(after), f"{after / before:.1f}"])
    parts = []
    for name, text, figures in (
        ("no entries, ms", ".1f", [*(case[0]["ms"] for case in cases), *STUDY_MS[0]]),
        ("before the first request, ms", ".1f", [case[0]["before_ms"] for case in cases]),
        ("each 10 entries more, ms", ".2f", [*(10 * _each(case, "search_ms") for case in cases), *_study_each()]),
        ("no entries, bytes", ",.0f", [case[0]["bytes"] for case in cases]),
        ("each 10 entries more, bytes", ",.0f", [10 * _each(case, "bytes") for case in cases]),
    ):
        parts.append([name, *(format(figure, text) for figure in figures), *[""] * (7 - len(figures))])
    return {"directory-waits": table(WAITS, waits), "directory-parts": table(PARTS, parts)}


def _each(case: list[dict[str, float]], figure: str) -> float:
    """What one entry more costs: the slope of a line through all searches but the one that finds nobody."""
    found = [search for search in case if search["entries"]]
    return linear_regression([search["entries"] for search in found], [search[figure] for search in found]).slope


def _study_each() -> Iterator[float]:
    """The same of the study, per 10 entries, in clear and over SSL."""
    for column in zip(*STUDY_MS.values(), strict=True):
        yield 10 * linear_regression(list(STUDY_MS)[1:], column[1:]).slope


def readme(case: Case, runs: int) -> str:
    """Say how the capture was made, in so many runs, and what to see in it."""
    commands = "\n".join(f"    {shlex.join(words)}" for words in case.commands())
    programs = (
        ("sh", "-c", f"slapd -VV 2>&1 | {OPENLDAP}"),
        ("sh", "-c", f"ldapsearch -VV 2>&1 | {OPENLDAP}"),
        ("tcpdump", "--version"),
    )
    repeats = f",\n  {runs} times; the quickest run was kept" if runs > 1 else ""
    secrets = """
- `keys.log` has the TLS secrets, as the client wrote them: `conchart input.pcap --keylog keys.log`."""
    return f"""\
# {case.title}

Made by `examples/far-away/make-captures`; what the set is for is in `examples/far-away/README.md`.

## Topology

    client {CLIENT} ──{DELAY_MS} ms── {SERVER}:{PORT}, {SERVER}:{TLS_PORT} slapd

Two network namespaces on one machine. Every packet takes {DELAY_MS} ms each way (`examples/lab/delay_line.py`), as on a
large Ethernet.

## How it was made

Client, one command after the other:

{commands}

- Server: slapd with a database of its own (`examples/far-away/slapd.py`): {sum(TOWNS.values())} people in six towns,
  which are named after how many live there: {", ".join(TOWNS)}. RSA-2048 certificate
  signed by a like authority; OpenLDAP is built with GnuTLS here, at both ends.{secrets * case.encrypted}
- Captured on the client: `tcpdump -n --time-stamp-precision=nano -w input.pcap {PACKETS}`{repeats}.

{versions(programs)}

## What to see

{case.see}
"""
