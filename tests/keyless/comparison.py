"""Exchanges that conchart inferred without secrets, held against those that tshark read with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import conchart
from tests.keyless.truth import Exchange, Truth

CERTAIN = 0.9
"""Of an inferred exchange with this confidence docs/phases.md says: boundaries exact."""
TOLERANCE = 1
"""Frames."""
INSTANTS = ("request_at", "request_done_at", "response_at", "response_done_at")
SMALL, CONCURRENT, LARGE, OTHER = "small, one after another", "concurrent", "large", "not of this laboratory"
KINDS = {"concurrent": CONCURRENT, "chromium": CONCURRENT, "large": LARGE}
"""Of traffic, by the first word of the case's name; a browser opens several connections. The others are small."""
TURNS_ELSEWHERE = "turns on connections on which tshark reads no HTTP/1"
SILENT = "connections on which neither finds an exchange"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One exchange: as it was, and as it was inferred. Either may be missing."""

    case: str
    kind: str
    stream: int
    true: Exchange | None
    frames: tuple[int | None, ...] | None
    """Inferred: of :data:`INSTANTS`."""
    confidence: float | None

    @property
    def true_frames(self) -> tuple[int, ...] | None:
        """True: of :data:`INSTANTS`."""
        if self.true is None:
            return None
        return (self.true.request.first, self.true.request.last, self.true.response.first, self.true.response.last)

    @property
    def exact(self) -> bool:
        """Every boundary is in the frame that holds it."""
        return self.within(0)

    @property
    def right(self) -> bool:
        """Every boundary is within :data:`TOLERANCE` of the truth."""
        return self.within(TOLERANCE)

    def within(self, frames: int) -> bool:
        """Every boundary is at most so many frames from the truth."""
        if self.frames is None or self.true_frames is None:
            return False
        return all(
            ours is not None and abs(ours - theirs) <= frames
            for ours, theirs in zip(self.frames, self.true_frames, strict=True)
        )

    @property
    def boast(self) -> bool:
        """It is wrong and does not say that it might be."""
        return not self.right and (self.confidence is None or self.confidence >= CERTAIN)

    def __str__(self) -> str:
        grade = "exact" if self.exact else "near " if self.right else "BOAST" if self.boast else "doubt"
        what = f"{self.true.request.text} {self.true.response.text}" if self.true else "no such exchange"
        return (
            f"{grade} {self.case} stream {self.stream} {what}: "
            f"frames {self.frames}, true {self.true_frames}, confidence {self.confidence}"
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """One capture: a verdict on each exchange, and a count of what has none, by reason."""

    verdicts: list[Verdict]
    skipped: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Turn:
    """An exchange as it was inferred."""

    stream: int
    frames: tuple[int | None, ...]
    """Of :data:`INSTANTS`."""
    confidence: float


def compare(capture: Path, truth: Truth) -> Comparison:
    """Pair every true exchange with the turn whose request is nearest, each once; a turn that is left is a mistake."""
    case = capture.parent.name if capture.stem == "input" else capture.name
    kind = KINDS.get(case.split("-")[0], SMALL) if capture.stem == "input" else OTHER
    turns, connections = infer(capture, truth)
    of_http = {each.stream for each in truth.exchanges}
    skipped = truth.skipped.copy()
    skipped[TURNS_ELSEWHERE] = sum(turn.stream not in of_http for turn in turns)
    skipped[SILENT] = len(connections - of_http - {turn.stream for turn in turns})

    def verdicts() -> Iterator[Verdict]:
        left = [turn for turn in turns if turn.stream in of_http]
        for true in truth.exchanges:
            turn = nearest(true, left)
            if turn:
                left.remove(turn)
            frames, confidence = (turn.frames, turn.confidence) if turn else (None, None)
            yield Verdict(
                case=case, kind=kind, stream=true.stream, true=true, frames=frames, confidence=confidence
            )  # fmt: skip
        for turn in left:
            yield Verdict(
                case=case, kind=kind, stream=turn.stream, true=None, frames=turn.frames, confidence=turn.confidence
            )

    return Comparison(list(verdicts()), skipped)


def nearest(true: Exchange, turns: list[Turn]) -> Turn | None:
    """Find the turn of this connection that begins with the request, or within :data:`TOLERANCE` of it."""

    def distance(turn: Turn) -> int:
        return abs((turn.frames[0] or 0) - true.request.first)

    near = [turn for turn in turns if turn.stream == true.stream and distance(turn) <= TOLERANCE]
    return min(near, key=distance, default=None)


def infer(capture: Path, truth: Truth) -> tuple[list[Turn], set[int]]:
    """Read the turns and the connections without secrets."""
    with conchart.read(capture) as trace:
        rows = trace.sql(
            f"SELECT stream, confidence, {', '.join(INSTANTS)} FROM exchanges ORDER BY request_at, stream, number"
        ).fetchall()
        connections = {stream for (stream,) in trace.sql("SELECT stream FROM connections").fetchall()}
    turns = [Turn(stream, tuple(truth.frame_at.get(at) for at in at), confidence) for stream, confidence, *at in rows]
    return turns, connections
