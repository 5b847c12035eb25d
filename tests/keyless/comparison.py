"""Exchanges that conchart inferred without secrets, held against those that tshark read with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import conchart
from tests.keyless.truth import Exchange, Skipped, Truth

CERTAIN = 0.9
"""Of an inferred exchange with this confidence docs/phases.md says: boundaries exact."""
TOLERANCE = 1
"""Frames."""
INSTANTS = ("request_at", "request_done_at", "response_at", "response_done_at")
SMALL, CONCURRENT, LARGE, OTHER = "small, one after another", "concurrent", "large", "not of this laboratory"
KINDS = {"concurrent": CONCURRENT, "chromium": CONCURRENT, "large": LARGE}
"""Of traffic, by the first word of the case's name; a browser opens several connections. The others are small."""
UNREAD = "a turn on a connection on which tshark reads no HTTP"
SILENT = "a connection on which neither finds an exchange"


@dataclass(frozen=True, slots=True)
class Turn:
    """An exchange as it was inferred."""

    stream: int
    frames: tuple[int | None, ...]
    """Of :data:`INSTANTS`."""
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One exchange: as it was, and as it was inferred. Either may be missing."""

    case: str
    kind: str
    stream: int
    true: Exchange | None
    turn: Turn | None

    @property
    def true_frames(self) -> tuple[int, ...] | None:
        """Of :data:`INSTANTS`."""
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
        if self.turn is None or self.true_frames is None:
            return False
        return all(
            ours is not None and abs(ours - theirs) <= frames
            for ours, theirs in zip(self.turn.frames, self.true_frames, strict=True)
        )

    @property
    def boast(self) -> bool:
        """It is not exact and does not say that it might not be."""
        return not self.exact and (self.turn is None or self.turn.confidence >= CERTAIN)

    def __str__(self) -> str:
        grade = "exact" if self.exact else "BOAST" if self.boast else "near " if self.right else "doubt"
        what = f"{self.true.request.text} {self.true.response.text}" if self.true else "no such exchange"
        found = f"frames {self.turn.frames}, confidence {self.turn.confidence}" if self.turn else "not found"
        return f"{grade} {self.case} stream {self.stream} {what}: {found}, true {self.true_frames}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One capture: a verdict on each exchange, and what has none."""

    verdicts: list[Verdict]
    skipped: list[Skipped]


def compare(capture: Path, truth: Truth) -> Comparison:
    """Pair every true exchange with the turn whose request is nearest, each once; a turn that is left is a mistake.

    On a connection on which tshark read no exchange there is nothing to hold a turn against: it is skipped.
    """
    ours = capture.stem == "input"
    case = capture.parent.name if ours else capture.name
    kind = KINDS.get(case.split("-")[0], SMALL) if ours else OTHER
    turns, connections = infer(capture, truth)
    comparable = {true.stream for true in truth.exchanges}
    left = [turn for turn in turns if turn.stream in comparable]
    verdicts = []
    for true in truth.exchanges:
        turn = nearest(true, left)
        if turn:
            left.remove(turn)
        verdicts.append(Verdict(case=case, kind=kind, stream=true.stream, true=true, turn=turn))
    verdicts += [Verdict(case=case, kind=kind, stream=turn.stream, true=None, turn=turn) for turn in left]
    without = [turn for turn in turns if turn.stream not in comparable]
    silent = connections - comparable - {turn.stream for turn in without} - {each.stream for each in truth.skipped}
    skipped = [*truth.skipped, *_turns_skipped(without, truth), *(Skipped(stream, SILENT) for stream in silent)]
    return Comparison(verdicts, skipped)


def _turns_skipped(turns: Iterable[Turn], truth: Truth) -> Iterator[Skipped]:
    """Say of turns on connections without an exchange what tshark reads there instead."""
    instead = {each.stream: each.reason for each in truth.skipped}
    for turn in turns:
        why = instead.get(turn.stream)
        yield Skipped(turn.stream, f"a turn on a connection with {why}" if why else UNREAD)


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
