"""What tshark, which has the TLS secrets, says about the HTTP/1 exchanges of a capture.

In: a capture with ``keys.log`` beside it. Out: per exchange the frames that hold its boundaries.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FIELDS = (
    "tcp.stream", "frame.number", "frame.time_epoch", "tcp.segment", "tls.segment",
    "http.request.method", "http.response.code",
)  # fmt: skip
PREFERENCES = ("tcp.reassemble_out_of_order:TRUE", "http.desegment_body:TRUE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A request or a response: the frames of its first and its last byte."""

    text: str
    """Method or status."""
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A request and its response."""

    stream: int
    request: Message
    response: Message


@dataclass(frozen=True, slots=True)
class Truth:
    """The exchanges of a capture, and when each of its frames passed."""

    exchanges: list[Exchange]
    frame_at: dict[int, int]
    """Frame by nanoseconds since the Unix epoch."""


def installed() -> bool:
    """Whether there is a tshark to ask."""
    return shutil.which("tshark") is not None


def read(capture: Path) -> Truth:
    """Ask tshark. A request without a final response (RFC 9110 section 15.2) is no exchange."""
    options = [word for name in FIELDS for word in ("-e", name)]
    options += [word for text in PREFERENCES for word in ("-o", text)]
    options += ["-o", f"tls.keylog_file:{capture.with_name('keys.log')}"]
    command = ["tshark", "-n", "-r", str(capture), "-T", "fields", "-E", "separator=|", *options]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return _read([line.split("|") for line in lines])


def _read(rows: list[list[str]]) -> Truth:
    begins: dict[int, int] = {}
    """Frame that completes a record, to the frame of the record's first byte."""
    frame_at: dict[int, int] = {}
    waiting: dict[int, list[Message]] = {}
    exchanges = []
    for stream, number, at, segments, records, method, status in rows:
        frame = int(number)
        frame_at[_nanoseconds(at)] = frame
        begins[frame] = min([frame, *_numbers(segments)])
        first = min(begins.get(part, part) for part in [frame, *_numbers(records)])
        if method:
            waiting.setdefault(int(stream), []).append(Message(text=method, first=first, last=frame))
        if status and not status.startswith("1") and waiting.get(int(stream)):
            request = waiting[int(stream)].pop(0)
            response = Message(text=status, first=first, last=frame)
            exchanges.append(Exchange(stream=int(stream), request=request, response=response))
    return Truth(exchanges, frame_at)


def _numbers(text: str) -> Iterator[int]:
    return (int(number) for number in text.split(",") if number)


def _nanoseconds(text: str) -> int:
    seconds, _, fraction = text.partition(".")
    return int(seconds) * 1_000_000_000 + int(fraction.ljust(9, "0"))
