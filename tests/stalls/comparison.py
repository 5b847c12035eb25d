"""Stalls that conchart finds, held against those that the lab made: ``truth.json`` beside a capture.

A stall that the truth lists and conchart finds is right: same connection, kind and side, and either half of the longer
one in common, or both bounding frames at most two apart. Not asked for are stalls under 5 ms, and those that a capture
cannot show (``evident`` is false: behind the loss of a flight's last segment). Found ones are held against conchart
where the truth is sure of a kind: not in the stretches that it calls ``unjudged``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import conchart

LEAST_NS = 5_000_000
NEAR_FRAMES = 2
EITHER_SIDE = ("syn-rto",)
"""Whether the SYN or its answer was lost cannot be told at the client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """A stall, true or found."""

    stream: int
    kind: str
    detail: str | None
    side: str
    start_at: int
    end_at: int
    start_frame: int
    end_frame: int

    @property
    def long(self) -> bool:
        return self.end_at - self.start_at >= LEAST_NS

    def __str__(self) -> str:
        took = (self.end_at - self.start_at) / 1e6
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.kind}{detail} {self.side} {self.stream}: {self.start_frame}→{self.end_frame}, {took:.1f} ms"


@dataclass(frozen=True, kw_only=True)
class Truth:
    """What is true of a capture."""

    stalls: list[Stall]
    evident: list[bool]
    """For each of them, whether the capture shows it."""
    sure_of: set[str]
    """Kinds of which all stalls are listed."""
    unjudged: list[dict[str, Any]]

    def judges(self, found: Stall) -> bool:
        """Say whether ``found`` would have been listed, had it happened, and names nothing that cannot be seen."""
        hidden = (stall for stall, evident in zip(self.stalls, self.evident, strict=True) if not evident)
        if any(stall.start_at < found.end_at and found.start_at < stall.end_at for stall in hidden):
            return False
        return found.kind in self.sure_of and not any(
            found.stream == each["stream"]
            and found.kind in each["kinds"]
            and each["start_at"] <= found.start_at
            and found.end_at <= each["end_at"]
            for each in self.unjudged
        )


@dataclass(kw_only=True)
class Outcome:
    """What came of a comparison."""

    made: Counter[str] = field(default_factory=Counter)
    met: Counter[str] = field(default_factory=Counter)
    """Of those made, found."""
    found: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    """Of those found, made."""
    missed: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    other_details: Counter[tuple[str, str | None, str | None]] = field(default_factory=Counter)
    """Kind, true and found detail, where they differ."""

    def recall(self, kind: str) -> float:
        return self.met[kind] / self.made[kind] if self.made[kind] else 1.0

    def precision(self, kind: str) -> float:
        return self.right[kind] / self.found[kind] if self.found[kind] else 1.0

    def compare(self, name: str, truth: Truth, found: list[Stall]) -> None:
        """Hold the stalls of one capture against its truth."""
        for stall, evident in zip(truth.stalls, truth.evident, strict=True):
            partner = next((each for each in found if is_same(stall, each)), None)
            if stall.long and (evident or partner):
                self.made[stall.kind] += 1
                self.met[stall.kind] += partner is not None
                if partner is None:
                    self.missed.append(f"{name}: {stall}")
                elif partner.detail != stall.detail:
                    self.other_details[stall.kind, stall.detail, partner.detail] += 1
        for each in found:
            partner = next((stall for stall in truth.stalls if is_same(stall, each)), None)
            if each.long and (partner or truth.judges(each)):
                self.found[each.kind] += 1
                self.right[each.kind] += partner is not None
                if partner is None:
                    self.wrong.append(f"{name}: {each}")


def is_same(true: Stall, found: Stall) -> bool:
    """Say whether ``found`` is that stall."""
    if (true.stream, true.kind) != (found.stream, found.kind):
        return False
    if true.side != found.side and true.kind not in EITHER_SIDE:
        return False
    frames = max(abs(true.start_frame - found.start_frame), abs(true.end_frame - found.end_frame))
    common = min(true.end_at, found.end_at) - max(true.start_at, found.start_at)
    longer = max(true.end_at - true.start_at, found.end_at - found.start_at)
    return frames <= NEAR_FRAMES or common * 2 >= longer


def read_truth(path: Path) -> Truth:
    """Read a ``truth.json`` of the lab."""
    document = json.loads(path.read_text())
    evident = [each.pop("evident", True) for each in document["stalls"]]
    stalls = [Stall(**{**each, "detail": each["detail"] or None}) for each in document["stalls"]]
    sure_of = {*document["clean_of"], *(stall.kind for stall in stalls)}
    return Truth(stalls=stalls, evident=evident, sure_of=sure_of, unjudged=document.get("unjudged", []))


def read_found(capture: Path) -> list[Stall]:
    """Ask conchart."""
    with conchart.read(capture) as trace:
        rows = trace.sql(
            "SELECT stream, kind, detail, side, start_at, end_at, start_frame, end_frame FROM stalls ORDER BY start_at"
        )
        return [Stall(**dict(zip(rows.columns, row, strict=True))) for row in rows.fetchall()]


def cases(folder: Path) -> Iterator[Path]:
    """Yield the captures below ``folder`` that have a truth about stalls."""
    yield from sorted(path.parent for path in folder.rglob("truth.json") if '"stalls"' in path.read_text())


def compare(folder: Path) -> Outcome:
    """Compare all captures below ``folder``."""
    outcome = Outcome()
    for case in cases(folder):
        outcome.compare(case.name, read_truth(case / "truth.json"), read_found(case / "input.pcap"))
    return outcome
