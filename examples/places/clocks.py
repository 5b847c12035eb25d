"""Put a capture's clock wrong by a known amount, and say by how much.

    python3 clocks.py CAPTURE OUTPUT [--offset TIME] [--drift PPM] [--step AT:TIME...] [--slew AT:PPM...]
                      [--resolution ns|us|ms] [--zero NANOSECONDS] [--truth FILE]

A wrong clock is ``offset`` ahead and gains ``drift`` parts in a million. A step moves it at once, a slew changes its
drift; both say when, counted from ``zero``, by default the first packet. Times have a unit: ``37ms``, ``-2s``, ``3h``.
The resolution cuts digits off, as kernels do; nothing is rounded up.

    python3 clocks.py lb.pcap wrong.pcap --offset -2s --drift 40 --step 3s:150ms --slew 5s:-60 --resolution us

In: a pcap file (not pcapng), of either byte order and precision. Out: the same packets with other times, in the byte
order of the input. All arithmetic is of integers: nanoseconds, and parts in 10^9.

The truth is JSON. ``pieces`` are stretches of true time in which the clock is a straight line; each has the frames
that are in it. In a piece, the clock reads ``written_at + (t - true_at) + floor((t - true_at) * drift_ppb / 10^9)`` at
the true instant ``t``. The file has that, rounded down to a multiple of ``resolution_ns``. True is the time in the
input.
"""

from __future__ import annotations

import argparse
import json
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

SECOND = 10**9
MICRO, NANO = 0xA1B2C3D4, 0xA1B23C4D
"""Magic numbers of pcap files: the second word of a time counts microseconds or nanoseconds."""
UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": SECOND, "min": 60 * SECOND, "h": 3_600 * SECOND}
RESOLUTIONS = {"ns": 1, "us": 1_000, "ms": 1_000_000}


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A stretch of true time in which a clock is a straight line. It ends where the next piece begins."""

    true_at: int
    """Nanoseconds since the Unix epoch. The first piece holds for earlier instants, too."""
    ahead_ns: int
    """The clock's time less the true time, at ``true_at``."""
    drift_ppb: int

    def reads(self, at: int) -> int:
        """Return what the clock reads at a true instant."""
        return at + self.ahead_ns + (at - self.true_at) * self.drift_ppb // SECOND


@dataclass(frozen=True, kw_only=True)
class Clock:
    """A clock as a function of the true time."""

    pieces: tuple[Piece, ...]
    """At least one, in the order of time."""
    resolution_ns: int = 1

    def piece_at(self, at: int) -> int:
        """Return the number of the piece that holds at a true instant."""
        return max((number for number, piece in enumerate(self.pieces) if piece.true_at <= at), default=0)

    def reads(self, at: int) -> int:
        """Return what the clock reads at a true instant, to the nanosecond."""
        return self.pieces[self.piece_at(at)].reads(at)

    def writes(self, at: int) -> int:
        """Return what a capture says of a packet at a true instant."""
        reads = self.reads(at)
        return reads - reads % self.resolution_ns


def make_clock(
    *,
    zero_at: int,
    offset_ns: int = 0,
    drift_ppb: int = 0,
    steps: dict[int, int] | None = None,
    slews: dict[int, int] | None = None,
    resolution_ns: int = 1,
) -> Clock:
    """Build a clock.

    Args:
        zero_at: The instant at which it is ``offset_ns`` ahead.
        offset_ns: How far it is ahead.
        drift_ppb: How many nanoseconds it gains in a second.
        steps: By how much it jumps, by the time since ``zero_at``.
        slews: The drift from then on, by the time since ``zero_at``.
        resolution_ns: Times are multiples of this.
    """
    pieces = [Piece(true_at=zero_at, ahead_ns=offset_ns, drift_ppb=drift_ppb)]
    steps, slews = steps or {}, slews or {}
    for since in sorted({*steps, *slews}):
        last, at = pieces[-1], zero_at + since
        ahead = last.reads(at) - at + steps.get(since, 0)
        piece = Piece(true_at=at, ahead_ns=ahead, drift_ppb=slews.get(since, last.drift_ppb))
        pieces[-1 if piece.true_at == last.true_at else len(pieces) :] = [piece]
    return Clock(pieces=tuple(pieces), resolution_ns=resolution_ns)


@dataclass(frozen=True)
class Record:
    """A packet of a pcap file."""

    at: int
    lengths: bytes
    """Both lengths, as they stand in the file."""
    data: bytes


def read_records(file: BinaryIO) -> tuple[str, bytes, Iterator[Record]]:
    """Read a pcap file: its byte order (``<`` or ``>``), its header, its packets.

    Raises:
        ValueError: it is none.
    """
    header = file.read(24)
    for order in "<>":
        if len(header) == 24 and (magic := struct.unpack(f"{order}I", header[:4])[0]) in (MICRO, NANO):
            return order, header, _records(file, order, 1_000 if magic == MICRO else 1)
    raise ValueError("not a pcap file: its magic number is unknown")


def _records(file: BinaryIO, order: str, unit_ns: int) -> Iterator[Record]:
    while head := file.read(16):
        if len(head) < 16:
            raise ValueError("the file ends within a packet's header")
        seconds, rest, captured = struct.unpack(f"{order}III", head[:12])
        data = file.read(captured)
        if len(data) < captured:
            raise ValueError("the file ends within a packet")
        yield Record(seconds * SECOND + rest * unit_ns, head[8:], data)


def distort(source: Path, target: Path, clock: Clock) -> dict[str, object]:
    """Write ``source`` anew with the times of a wrong ``clock``; returns the truth, see the module.

    Raises:
        ValueError: ``source`` is no pcap file, or a time is before 1970 or after 2106.
    """
    frames: dict[int, list[int]] = {}

    def wrong(frame: int, at: int) -> int:
        first_last = frames.setdefault(clock.piece_at(at), [frame, frame])
        first_last[0], first_last[1] = min(first_last[0], frame), max(first_last[1], frame)
        return clock.writes(at)

    _rewrite(source, target, wrong, 1 if clock.resolution_ns % 1_000 else 1_000)
    return truth(clock, frames)


def restore(source: Path, target: Path, clock_truth: Mapping[str, Any]) -> None:
    """Write ``source`` anew with true times; ``clock_truth`` is the truth of its clock.

    Digits that the clock cut off stay lost: the time is the earliest at which the clock reads what the file says.
    """

    def right(frame: int, written_at: int) -> int:
        (piece,) = (
            each for each in clock_truth["pieces"] if each["frames"] and each["frames"][0] <= frame <= each["frames"][1]
        )
        # reads() grows by at least one in two nanoseconds, so that the guess is at most two off.
        since = (written_at - piece["written_at"]) * SECOND // (SECOND + piece["drift_ppb"]) - 2
        clock = Piece(
            true_at=piece["true_at"], ahead_ns=piece["written_at"] - piece["true_at"], drift_ppb=piece["drift_ppb"]
        )
        at = piece["true_at"] + since
        while clock.reads(at) < written_at:
            at += 1
        return at

    _rewrite(source, target, right, 1)


def _rewrite(source: Path, target: Path, time_of: Callable[[int, int], int], unit_ns: int) -> None:
    """Write packets with other times: ``time_of`` their frame and their time in ``source``."""
    with source.open("rb") as file, target.open("wb") as out:
        order, header, records = read_records(file)
        out.write(struct.pack(f"{order}I", NANO if unit_ns == 1 else MICRO) + header[4:])
        for frame, record in enumerate(records, start=1):
            seconds, rest = divmod(time_of(frame, record.at), SECOND)
            if not 0 <= seconds < 1 << 32:
                raise ValueError(f"frame {frame}: a pcap file cannot say the time {seconds} s")
            out.write(struct.pack(f"{order}II", seconds, rest // unit_ns) + record.lengths + record.data)


def truth(clock: Clock, frames: dict[int, list[int]] | None = None) -> dict[str, object]:
    """Say what is true of a clock; ``frames``: the first and the last of each piece."""
    return {
        "resolution_ns": clock.resolution_ns,
        "pieces": [
            {
                "true_at": piece.true_at, "written_at": piece.reads(piece.true_at), "drift_ppb": piece.drift_ppb,
                "frames": (frames or {}).get(number),
            }
            for number, piece in enumerate(clock.pieces)
        ],
    }  # fmt: skip


def first_at(capture: Path) -> int:
    """Return the time of a capture's first packet."""
    with capture.open("rb") as file:
        return next(read_records(file)[2]).at


def read_time(word: str) -> int:
    """Read a time with a unit into nanoseconds: ``-37.5ms``."""
    number = word.rstrip("abcdefghijklmnopqrstuvwxyz")
    return round(float(number) * UNITS[word[len(number) :]])


def read_drift(word: str) -> int:
    """Read parts in a million into parts in 10^9."""
    return round(float(word) * 1_000)


def main() -> None:
    """Read the command line, write the capture and the truth."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("capture", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--offset", type=read_time, default=0, metavar="TIME")
    parser.add_argument("--drift", type=read_drift, default=0, metavar="PPM")
    parser.add_argument("--step", action="append", default=[], metavar="AT:TIME")
    parser.add_argument("--slew", action="append", default=[], metavar="AT:PPM")
    parser.add_argument("--resolution", choices=RESOLUTIONS, default="ns")
    parser.add_argument("--zero", type=int, metavar="NANOSECONDS", help="since the Unix epoch")
    parser.add_argument("--truth", type=Path, metavar="FILE")
    options = parser.parse_args()
    steps, slews = ([word.partition(":") for word in words] for words in (options.step, options.slew))
    clock = make_clock(
        zero_at=first_at(options.capture) if options.zero is None else options.zero,
        offset_ns=options.offset,
        drift_ppb=options.drift,
        steps={read_time(at): read_time(by) for at, _, by in steps},
        slews={read_time(at): read_drift(drift) for at, _, drift in slews},
        resolution_ns=RESOLUTIONS[options.resolution],
    )
    text = json.dumps(distort(options.capture, options.output, clock), indent=2) + "\n"
    if options.truth:
        options.truth.write_text(text)
    print(text, end="")  # noqa: T201


if __name__ == "__main__":
    main()
