"""Names: resolvers that are slow or silent, and clients that ask more than they have to."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from avenue import BACK, CLIENT, FRONT, PROGRAMS, SITE, Avenue, Scene, words
from lab.listening import Listener, settle
from lab.network import ip
from lab.programs import require, versions

FIRST, SECOND = FRONT, BACK
VISITS = 2

README = """\
# {title}

Made by `examples/findings/make-captures`.

## Topology

    client {client} ──5 ms── {front} middle: a server on port 80, resolvers on {front} and {back}

Network namespaces on one machine; `examples/lab/delay_line.py` makes the distance.

## How it was made

{resolvers}
- The client's `/etc/resolv.conf`: {settings}
- Client, {visits} times: `curl -s http://{site}/wait-5/bytes-300`
- Server: `python3 LAB/backend.py {front} 80`
- Captured in the middle.

{versions}

## What to see

{see}
"""


@dataclass(frozen=True, kw_only=True)
class Street:
    """How names are looked up, and what is to be seen."""

    title: str
    see: str
    resolvers: Sequence[str]
    """How each answers: as the last argument of ``names.py`` says."""
    settings: Sequence[str] = ()
    """Lines of ``resolv.conf`` behind the resolvers."""


def record_names(street: Street, folder: Path) -> None:
    """Let a client visit a server whose name it has to look up each time."""
    require(("ip", "tcpdump", "curl"))
    with Avenue(Scene(title="", see="", clients=(), front_ms=5)) as avenue:
        client, middle = avenue.client, avenue.middle
        ip("-n", client.namespace, "route", "add", f"{BACK}/32", "via", FRONT)
        used = (FIRST, SECOND)[: len(street.resolvers)]
        avenue.set_file(client, "hosts", "127.0.0.1 localhost\n")
        avenue.set_file(client, "nsswitch.conf", "hosts: files dns\n")
        lines = [*(f"nameserver {address}" for address in used), *street.settings]
        avenue.set_file(client, "resolv.conf", "".join(f"{line}\n" for line in lines))
        programs = [
            f"python3 names.py {address} 53 {SITE} {FRONT} {how}"
            for address, how in zip(used, street.resolvers, strict=True)
        ]
        for program in programs:
            avenue.start_server(middle, 53, words(program), folder=PROGRAMS)
        avenue.start_server(middle, 80, words(f"python3 LAB/backend.py {FRONT} 80"))
        settle()
        listener = Listener(avenue, middle, "to-client", "port 53 or tcp port 80 or icmp", avenue.folder / "input.pcap")
        for _ in range(VISITS):
            visit = client.command(["curl", "-s", f"http://{SITE}/wait-5/bytes-300"])
            subprocess.run(visit, check=True, stdout=subprocess.DEVNULL, timeout=60)
        settle()
        listener.stop()
        shutil.copyfile(listener.capture, folder / "input.pcap")
    text = README.format(
        title=street.title, see=street.see, client=CLIENT, front=FRONT, back=BACK, visits=VISITS, site=SITE,
        resolvers="\n".join(f"- Resolver: `{program}`" for program in programs),
        settings=", ".join(f"`{line}`" for line in lines),
        versions=versions([("curl", "--version"), ("python3", "--version"), ("tcpdump", "--version")]),
    )  # fmt: skip
    (folder / "README.md").write_text(text)


SEARCH = "search rack.example hall.example town.example"
STREETS = {
    "dns-slow": Street(
        title="A resolver that takes 300 ms",
        resolvers=["wait-300"],
        see="- Each page waits 300 ms longer than a round trip for the address, before its first packet.",
    ),
    "dns-slow-clean": Street(
        title="A resolver that answers at once",
        resolvers=["wait-0"],
        see="- The twin of `dns-slow`.",
    ),
    "dns-fails": Street(
        title="Two resolvers, of which the first never answers",
        resolvers=["silent", "wait-0"],
        settings=["options timeout:1"],
        see="- Each time the client asks the first one, waits for a second, and asks the other one.",
    ),
    "dns-fails-clean": Street(
        title="Two resolvers that answer",
        resolvers=["wait-0", "wait-0"],
        settings=["options timeout:1"],
        see="- The first one answers at once: the twin of `dns-fails`.",
    ),
    "dns-serial": Street(
        title="A search list that is tried before the name itself",
        resolvers=["wait-0"],
        settings=[SEARCH, "options ndots:5"],
        see=f"- `{SITE}.rack.example`, `{SITE}.hall.example` and `{SITE}.town.example` do not exist:\n"
        f"  three round trips before the client asks for `{SITE}`.",
    ),
    "dns-serial-clean": Street(
        title="A name that is tried before the search list",
        resolvers=["wait-0"],
        settings=[SEARCH, "options ndots:1"],
        see="- One lookup: the twin of `dns-serial`.",
    ),
}
CASES: dict[str, Callable[[Path], None]] = {name: partial(record_names, street) for name, street in STREETS.items()}
