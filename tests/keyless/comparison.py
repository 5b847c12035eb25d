"""Exchanges that conchart inferred without secrets, held against those that tshark read with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import conchart
from tests.keyless.truth import Exchange, Truth

CERTAIN = 0.9
"""Of an inferred exchange with this confidence docs/phases.md says: boundaries exact."""
TOLERANCE = 1
"""Frames."""
INSTANTS = ("request_at", "request_done_at", "response_at", "response_done_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One exchange: as it was, and as it was inferred. Either may be missing."""

    case: str
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
    def right(self) -> bool:
        """Every boundary is within :data:`TOLERANCE` of the truth."""
        if self.frames is None or self.true_frames is None:
            return False
        return all(
            ours is not None and abs(ours - theirs) <= TOLERANCE
            for ours, theirs in zip(self.frames, self.true_frames, strict=True)
        )

    @property
    def boast(self) -> bool:
        """It is wrong and does not say that it might be."""
        return not self.right and (self.confidence is None or self.confidence >= CERTAIN)

    def __str__(self) -> str:
        what = f"{self.true.request.text} {self.true.response.text}" if self.true else "no such exchange"
        return (
            f"{self.case} stream {self.stream} {what}: "
            f"frames {self.frames}, true {self.true_frames}, confidence {self.confidence}"
        )


def compare(capture: Path, truth: Truth) -> Iterator[Verdict]:
    """Pair every true exchange with the inferred one whose request is nearest, each once."""
    ours = inferred(capture, truth)
    case = capture.parent.name if capture.stem == "input" else capture.name
    for true in truth.exchanges:
        same = [each for each in ours if each[0] == true.stream]
        near = min(same, key=lambda each: abs((each[1][0] or 0) - true.request.first), default=None)
        if near is not None and abs((near[1][0] or 0) - true.request.first) > TOLERANCE:
            near = None
        if near is not None:
            ours.remove(near)
        frames, confidence = (near[1], near[2]) if near else (None, None)
        yield Verdict(case=case, stream=true.stream, true=true, frames=frames, confidence=confidence)
    of_http = {each.stream for each in truth.exchanges}
    for stream, frames, confidence in (each for each in ours if each[0] in of_http):
        yield Verdict(case=case, stream=stream, true=None, frames=frames, confidence=confidence)


def inferred(capture: Path, truth: Truth) -> list[tuple[int, tuple[int | None, ...], float]]:
    """Read the exchanges without secrets: stream, frames of :data:`INSTANTS`, confidence."""
    with conchart.read(capture) as trace:
        rows = trace.sql(
            f"SELECT stream, confidence, {', '.join(INSTANTS)} FROM exchanges ORDER BY request_at"
        ).fetchall()
    return [(stream, tuple(truth.frame_at.get(at) for at in at), confidence) for stream, confidence, *at in rows]
