"""What conchart, without secrets, charges the time of HTTP/2 and HTTP/3 to, held against what it does with them.

In: captures with a key log beside them, or secrets inside. Out: per capture how long the phases of its connections are
of another kind than with secrets. Only connections count of which the secrets open everything.
"""

from __future__ import annotations

import gzip
import struct
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import conchart

SECTION, SECRETS = b"\x0a\x0d\x0d\x0a", 0x0000000A
"""Types of a pcapng file's blocks: a section's header, and TLS secrets."""
LITTLE_ENDIAN = b"\x4d\x3c\x2b\x1a"
GZIP = b"\x1f\x8b"

TUNED, HELD_OUT, FRESH = "tuned", "held out", "fresh"
"""Sets of captures, by what their pages say: the first if nothing."""

Tiling = list[tuple[int, int, str]]
"""Phases of one connection: from, to, kind; they touch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """How the life of a capture's connections is charged."""

    case: str
    part: str
    """The reading was tuned on it, held out from it, or stood before it was made."""
    connections: int
    life_ns: int
    wrong_ns: int
    """Charged to another kind of phase than with secrets."""

    @property
    def share(self) -> float:
        """What part of the life is wrong."""
        return self.wrong_ns / self.life_ns if self.life_ns else 0.0


def charge(capture: Path, app: str = "h2") -> Charge:
    """Read a capture with and without secrets, and compare the phases of connections that carry HTTP/2, or `h3`."""
    with conchart.read(capture, keylog=keylogs(capture)) as trace:
        opened = trace.sql(
            "SELECT stream FROM connections WHERE app = ? AND stream IN"
            " (SELECT stream FROM handshakes GROUP BY stream HAVING bool_and(keys = 'all'))",
            [app],
        ).fetchall()
        true = tilings(trace)
    with tempfile.TemporaryDirectory() as folder, conchart.read(without_secrets(capture, Path(folder))) as trace:
        found = tilings(trace)
    streams = [stream for (stream,) in opened]
    ours = capture.stem == "input"
    return Charge(
        case=capture.parent.name if ours else capture.name,
        part=part_of(capture) if ours else TUNED,
        connections=len(streams),
        life_ns=sum(true[stream][-1][1] - true[stream][0][0] for stream in streams if true[stream]),
        wrong_ns=sum(differ(true[stream], found[stream]) for stream in streams),
    )


def part_of(capture: Path) -> str:
    """Tell whether the reading may be tuned on this capture, as its page says."""
    page = capture.with_name("README.md").read_text(encoding="utf-8")
    return next((part for part in (HELD_OUT, FRESH) if f"\n**{part.capitalize()}**" in page), TUNED)


def tilings(trace: conchart.Trace) -> dict[int, Tiling]:
    """Read the phases of each connection."""
    found: dict[int, Tiling] = defaultdict(list)
    for stream, *phase in trace.sql("SELECT stream, start_at, end_at, kind FROM phases ORDER BY 1, 2").fetchall():
        found[stream].append((phase[0], phase[1], phase[2]))
    return found


def differ(one: Tiling, other: Tiling) -> int:
    """Count the nanoseconds in which two tilings of one connection have different kinds."""
    wrong, left, right = 0, iter(one), iter(other)
    a, b = next(left, None), next(right, None)
    while a and b:
        end = min(a[1], b[1])
        if a[2] != b[2]:
            wrong += end - max(a[0], b[0])
        a, b = (next(left, None) if a[1] == end else a), (next(right, None) if b[1] == end else b)
    return wrong


def keylogs(capture: Path) -> list[Path]:
    """Find the key log beside a capture."""
    beside = [capture.with_name(f"{capture.name}.keylog"), capture.with_name("keys.log")]
    return [path for path in beside if path.exists()][:1]


def without_secrets(capture: Path, folder: Path) -> Path:
    """Give the capture, or a copy without the secrets that are inside."""
    content = capture.read_bytes()
    if content.startswith(GZIP):
        content = gzip.decompress(content)
    if not content.startswith(SECTION):
        return capture
    copy, order, blocks, at = folder / "sealed.pcapng", "<", [], 0
    while at + 12 <= len(content):
        if content[at : at + 4] == SECTION:
            order = "<" if content[at + 8 : at + 12] == LITTLE_ENDIAN else ">"
        kind, length = struct.unpack_from(f"{order}II", content, at)
        if kind != SECRETS:
            blocks.append(content[at : at + length])
        at += length
    copy.write_bytes(b"".join(blocks))
    return copy
