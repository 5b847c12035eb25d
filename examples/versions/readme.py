"""The README.md of each capture."""

from __future__ import annotations

from cases import Cell
from lab.programs import versions
from street import PICTURES, SITE, VISITOR
from tables import TITLES

PROGRAMS = (("caddy", "version"), ("chromium", "--version"))


def readme(cell: Cell) -> str:
    """Say how the capture was made and what to see in it."""
    beside = f", {cell.loss:.0%} lost" if cell.loss else ""
    lost = f"{cell.loss:.0%} of the packets get lost in each direction, by chance" if cell.loss else "nothing is lost"
    return f"""\
# A page with {PICTURES} pictures over {TITLES[cell.version]}, {cell.rtt_ms:g} ms away{beside}

Made by `examples/versions/make-captures`; the lesson is `examples/versions/README.md`.

## Topology

    visitor {VISITOR} ──{cell.rtt_ms / 2:g} ms── {SITE}:443 site

Network namespaces on one machine. `examples/lab/delay_line.py` makes the distance: a round trip of
{cell.rtt_ms:g} ms; {lost}.

## How it was made

- Chromium with a new profile visits `https://shop.example/` once. Caddy serves the page and its pictures of 8 kB.
- Captured at the visitor: `tcpdump -i to-site -n --time-stamp-precision=nano -w input.pcap port 443`. `keys.log` has
  the secrets that Chromium wrote, `truth.json` what the page measured in the browser.

{versions(PROGRAMS)}

## What to see

{SEE[cell.version]}
"""


SEE = {
    "h1": "- Six connections at most, each with a handshake of its own; each picture waits until a connection is free.",
    "h2": "- One connection. The pictures are asked for at once, and come mixed on one stream of bytes.",
    "h3": "- One connection, ready after one round trip. A lost packet holds up the pictures whose bytes it had.",
}
