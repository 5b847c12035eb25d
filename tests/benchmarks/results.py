"""All runs on one capture, and what they come to: medians, and ratios to tcpdump's copy of the same round.

In: runs in rounds. Out: one number for each tool and quantity. The ratio is the median of the rounds' ratios: what
slowed one round down slowed both of its tools.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Literal

from tests.benchmarks.tools import CONCHART, REFERENCE, Run

Quantity = Literal["seconds", "busy"]


@dataclass(slots=True)
class Result:
    """All runs on one capture."""

    name: str
    """Of the capture: how it was made, and its shape."""
    shape: str
    capture: Path
    packets: int
    runs: dict[str, list[Run]] = field(default_factory=dict)

    def problem(self, tool: str) -> str | None:
        """Why a tool has no numbers; None when it has."""
        runs = self.runs.get(tool, [])
        return next((run.problem for run in runs if run.problem), None if runs else "left out")

    def middle(self, tool: str) -> Run:
        """Medians of a tool's rounds, with the highest memory; its problem, if any round had one."""
        if problem := self.problem(tool):
            return Run(problem=problem)
        runs = self.runs[tool]
        memory = max(run.memory for run in runs if run.memory is not None)
        note = runs[-1].note or (f"median of {len(runs)}" if len(runs) > 1 else "one run")
        last = runs[-1]
        seconds, busy = (median(measured(getattr(run, each) for run in runs)) for each in ("seconds", "busy"))
        return Run(seconds, busy, memory, note=note, connections=last.connections, written=last.written)

    def ratio(self, tool: str, quantity: Quantity = "seconds", to: str = REFERENCE) -> float | None:
        """A tool's wall or processor time over another's in the same round: the median of the rounds."""
        if self.problem(tool) or self.problem(to):
            return None
        # A slow tool has fewer rounds.
        pairs = zip(self.runs[tool], self.runs[to], strict=False)
        quotients = [
            ours / theirs for one, other in pairs if (theirs := part(other, quantity)) and (ours := part(one, quantity))
        ]
        return median(quotients) if quotients else None

    @property
    def connections(self) -> int:
        """How many `conchart.read` found."""
        return self.middle(CONCHART).connections or 0


def part(run: Run, quantity: Quantity) -> float:
    """Wall or processor time of a run; 0 where there is none."""
    return (run.seconds if quantity == "seconds" else run.busy) or 0.0


def measured(values: Iterable[float | None]) -> list[float]:
    """The values that there are."""
    return [value for value in values if value is not None]
