"""The README.md of each capture."""

from __future__ import annotations

from cases import PAGES, Case
from lab.programs import versions
from office import APPLICATION, BRIDGE, ROUTER, STORE, VISITOR, WEB
from servers import FPM_PORT, PAGE, STORE_PORT, WEB_PORT

PROGRAMS = (
    ("nginx", "-v"), ("php-fpm8.2", "--version"), ("mariadbd", "--version"), ("curl", "--version"),
    ("tcpdump", "--version"),
)  # fmt: skip


def readme(case: Case) -> str:
    """Say how the capture was made and what to see in it."""
    return f"""\
# {case.title}

Made by `examples/one-page/make-captures`; the lesson is `examples/one-page/README.md`.

## Topology

    visitor {VISITOR}, web {WEB}:{WEB_PORT}, application {APPLICATION}:{FPM_PORT} at one switch
    switch ── router {ROUTER} ──{case.rtt_ms / 2:g} ms── {STORE}:{STORE_PORT} store

Network namespaces on one machine. `examples/lab/delay_line.py` makes the distance between application and store: a
round trip of {case.rtt_ms:g} ms.

## How it was made

- Visitors at once: {case.visitors}. Each asks for {PAGES} pages with one curl: `curl http://{WEB}/{PAGE} …`.
- nginx asks PHP-FPM (`pm = static`, `pm.max_children = {case.workers}`) on a new connection for each page.
- The page is `examples/one-page/pages/{case.page}.php`. PHP has compiled it before the capture begins.
- MariaDB has a user with a password (`mysql_native_password`), and all rows in memory.
- Captured at the switch: `tcpdump -i {BRIDGE} -n -B 16384 --time-stamp-precision=nano -w input.pcap tcp`.

{versions(PROGRAMS)}

## What to see

{case.see}
"""
