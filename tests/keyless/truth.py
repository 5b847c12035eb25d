"""What tshark, which has the TLS secrets, says about the HTTP/1 exchanges of captures, and what it leaves out.

In: captures with ``keys.log`` or ``NAME.keylog`` beside each. Out: per exchange the frames that hold its boundaries.
tshark takes longer to start than to read, so it is asked once, about all of them in a row.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests import tshark

FIELDS = (
    "tcp.stream", "frame.number", "frame.time_epoch", "tcp.segment", "tls.segment",
    "http.request.method", "http.request.uri", "http.response.code", "http2.headers.method",
)  # fmt: skip
PREFERENCES = ("tcp.reassemble_out_of_order:TRUE", "http.desegment_body:TRUE")
COLUMN, VALUE = "\x1f", "\x1e"
"""What separates fields, and values of one field: neither stands in a target."""

UNANSWERED = "a request whose final response tshark does not show, or not to its end"
UNASKED = "a response whose request tshark does not show"
OVER_HTTP_2 = "a request over HTTP/2, where turns are not requests"


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
class Skipped:
    """What is not compared, and why not."""

    stream: int
    reason: str


@dataclass(frozen=True, slots=True)
class Truth:
    """The exchanges of a capture, which messages are in none, and when each of its frames passed."""

    exchanges: list[Exchange]
    frame_at: dict[int, int]
    """Frame by nanoseconds since the Unix epoch."""
    skipped: list[Skipped] = field(default_factory=list)

    @property
    def at(self) -> dict[int, int]:
        """Nanoseconds since the Unix epoch by frame."""
        return {frame: at for at, frame in self.frame_at.items()}


def installed() -> bool:
    """Whether there is a tshark to ask, and what comes with it."""
    return bool(tshark.installed() and shutil.which("mergecap") and shutil.which("capinfos"))


def read(captures: Sequence[Path]) -> dict[Path, Truth]:
    """Ask tshark."""
    options = [word for name in FIELDS for word in ("-e", name)]
    options += [word for text in PREFERENCES for word in ("-o", text)]
    options += ["-E", f"separator={COLUMN}", "-E", f"aggregator={VALUE}"]
    with tempfile.TemporaryDirectory() as folder:
        row, secrets = Path(folder, "row.pcapng"), Path(folder, "keys.log")
        subprocess.run(["mergecap", "-a", "-w", row, *captures], check=True, capture_output=True)
        secrets.write_text("".join(secrets_of(capture).read_text() for capture in captures))
        text = tshark.ask(["-n", "-r", row, "-T", "fields", *options, "-o", f"{tshark.KEYLOG}{secrets}"])
        lines = text.rstrip("\n").split("\n")
    rows = iter([line.split(COLUMN) for line in lines])
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
    waiting: dict[int, deque[Message]] = defaultdict(deque)
    responses: dict[int, deque[Message]] = defaultdict(deque)
    """Without a request so far: a server may answer before the request is over."""
    truth = Truth([], {})
    for stream_text, number, at, segments, records, methods, targets, statuses, over_http_2 in of_tcp:
        stream, frame = int(stream_text) - first_stream, int(number) - before
        truth.frame_at[_nanoseconds(at)] = frame
        begins[frame] = min([frame, *_numbers(segments, before)])
        first = min(begins.get(part, part) for part in [frame, *_numbers(records, before)])
        requests = [" ".join(words) for words in zip(_values(methods), _values(targets), strict=True)]
        waiting[stream].extend(_messages(requests, first, frame))
        # RFC 9110 section 15.2: 1xx is no final response.
        finals = [status for status in _values(statuses) if not status.startswith("1")]
        responses[stream].extend(_messages(finals, first, frame))
        while waiting[stream] and responses[stream]:
            request, response = waiting[stream].popleft(), responses[stream].popleft()
            truth.exchanges.append(Exchange(stream=stream, request=request, response=response))
        truth.skipped.extend(Skipped(stream, OVER_HTTP_2) for _ in _values(over_http_2))
    for left, reason in ((waiting, UNANSWERED), (responses, UNASKED)):
        truth.skipped.extend(Skipped(stream, reason) for stream, messages in left.items() for _ in messages)
    return truth


def _messages(texts: list[str], first: int, last: int) -> Iterator[Message]:
    """Give the messages that end in one frame: all but the first began there too."""
    for number, text in enumerate(texts):
        yield Message(text=text, first=last if number else first, last=last)


def _values(text: str) -> list[str]:
    return text.split(VALUE) if text else []


def _numbers(text: str, before: int) -> Iterator[int]:
    return (int(number) - before for number in _values(text))


def _nanoseconds(text: str) -> int:
    seconds, _, fraction = text.partition(".")
    return int(seconds) * 1_000_000_000 + int(fraction.ljust(9, "0"))
