"""What tshark, which has the TLS secrets, says about the HTTP/1 exchanges of captures.

In: captures with ``keys.log`` or ``NAME.keylog`` beside each. Out: per exchange the frames that hold its boundaries.
tshark takes longer to start than to read, so it is asked once, about all of them in a row.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

FIELDS = (
    "tcp.stream", "frame.number", "frame.time_epoch", "tcp.segment", "tls.segment",
    "http.request.method", "http.request.uri", "http.response.code",
)  # fmt: skip
PREFERENCES = ("tcp.reassemble_out_of_order:TRUE", "http.desegment_body:TRUE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A request or a response: the frames of its first and its last byte."""

    text: str
    """Method and target, or status."""
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

    @property
    def at(self) -> dict[int, int]:
        """Nanoseconds since the Unix epoch by frame."""
        return {frame: at for at, frame in self.frame_at.items()}


def installed() -> bool:
    """Whether there is a tshark to ask, and what comes with it."""
    return bool(shutil.which("tshark") and shutil.which("mergecap") and shutil.which("capinfos"))


def read(captures: Sequence[Path]) -> dict[Path, Truth]:
    """Ask tshark. A request without a final response (RFC 9110 section 15.2) is no exchange."""
    options = [word for name in FIELDS for word in ("-e", name)]
    options += [word for text in PREFERENCES for word in ("-o", text)]
    with tempfile.TemporaryDirectory() as folder:
        row, secrets = Path(folder, "row.pcapng"), Path(folder, "keys.log")
        subprocess.run(["mergecap", "-a", "-w", row, *captures], check=True, capture_output=True)
        secrets.write_text("".join(secrets_of(capture).read_text() for capture in captures))
        command = ["tshark", "-n", "-r", str(row), "-T", "fields", "-E", "separator=|", *options]
        command += ["-o", f"tls.keylog_file:{secrets}"]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    rows = iter([line.split("|") for line in lines])
    return {capture: _read([next(rows) for _ in range(_packets(capture))]) for capture in captures}


def secrets_of(capture: Path) -> Path:
    """Its key log."""
    own = capture.with_name(f"{capture.name}.keylog")
    return own if own.exists() else capture.with_name("keys.log")


def _packets(capture: Path) -> int:
    command = ["capinfos", "-c", "-M", "-T", "-r", str(capture)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\t")[1])


def _read(rows: list[list[str]]) -> Truth:
    """Read the rows of one capture; its frames and streams are counted from its own first."""
    before = int(rows[0][1]) - 1
    of_tcp = [row for row in rows if row[0]]
    first_stream = int(of_tcp[0][0])
    begins: dict[int, int] = {}
    """Frame that completes a record, to the frame of the record's first byte."""
    frame_at: dict[int, int] = {}
    waiting: dict[int, list[Message]] = {}
    exchanges = []
    for stream_text, number, at, segments, records, method, target, status in of_tcp:
        stream, frame = int(stream_text) - first_stream, int(number) - before
        frame_at[_nanoseconds(at)] = frame
        begins[frame] = min([frame, *_numbers(segments, before)])
        first = min(begins.get(part, part) for part in [frame, *_numbers(records, before)])
        if method:
            waiting.setdefault(stream, []).append(Message(text=f"{method} {target}", first=first, last=frame))
        if status and not status.startswith("1") and waiting.get(stream):
            response = Message(text=status, first=first, last=frame)
            exchanges.append(Exchange(stream=stream, request=waiting[stream].pop(0), response=response))
    return Truth(exchanges, frame_at)


def _numbers(text: str, before: int) -> Iterator[int]:
    return (int(number) - before for number in text.split(",") if number)


def _nanoseconds(text: str) -> int:
    seconds, _, fraction = text.partition(".")
    return int(seconds) * 1_000_000_000 + int(fraction.ljust(9, "0"))
