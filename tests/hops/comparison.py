"""Compares the links that conchart finds with those that client and servers wrote down."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from pathlib import Path

from conchart import Trace
from tests.hops.truth import Link, open_case, read_truth

SURE = 0.9
BINS = 10


@dataclass(frozen=True)
class Outcome:
    """What became of the links of one capture, or of several."""

    made: int = 0
    unseen: int = 0
    """Of these, conchart does not see both exchanges."""
    found: list[tuple[float, bool]] = field(default_factory=list)
    """Of each link found: its confidence, and whether it is right."""
    wrong: list[Link] = field(default_factory=list)
    missed: list[Link] = field(default_factory=list)

    @property
    def right(self) -> int:
        """Links found that are right."""
        return sum(right for _, right in self.found)

    @property
    def recall(self) -> float:
        """The share of the links made that were found."""
        return self.right / self.made if self.made else 1.0

    @property
    def precision(self) -> float:
        """The share of the links found that are right."""
        return self.right / len(self.found) if self.found else 1.0

    @property
    def sure(self) -> float:
        """The share of the links found that have a confidence of 0.9 or more."""
        return sum(confidence >= SURE for confidence, _ in self.found) / len(self.found) if self.found else 0.0

    @property
    def sure_precision(self) -> float:
        """The share of those that are right."""
        sure = [right for confidence, right in self.found if confidence >= SURE]
        return sum(sure) / len(sure) if sure else 1.0

    @property
    def calibration_error(self) -> float:
        """By how much confidence and the share of what is right differ, on average over ten bins of confidence."""
        bins: list[list[tuple[float, bool]]] = [[] for _ in range(BINS)]
        for confidence, right in self.found:
            bins[min(BINS - 1, int(confidence * BINS))].append((confidence, right))
        off = (abs(sum(confidence for confidence, _ in found) - sum(right for _, right in found)) for found in bins)
        return sum(off) / len(self.found) if self.found else 0.0


def compare(case: Path) -> Outcome:
    """Compare the links of one capture."""
    with open_case(case) as trace:
        truth = read_truth(case, trace)
        links = trace.sql(
            """
            SELECT front_stream, front_exchange, back_stream, back_exchange, confidence FROM links
            WHERE front_exchange IS NOT NULL AND back_exchange IS NOT NULL
            """
        ).fetchall()
    # Of a stream whose exchanges are not those of the truth, nothing counts.
    made = {link for link in truth.links if not {link[0], link[2]} & truth.unjudged}
    judged = {
        tuple(link[:4]): link[4]
        for link in links
        if not {link[0], link[2]} & truth.unjudged and (truth.attributed is None or link[2:4] in truth.attributed)
    }
    return Outcome(
        made=len(made),
        unseen=len(truth.unseen),
        found=[(confidence, link in made) for link, confidence in judged.items()],
        wrong=sorted(judged.keys() - made),
        missed=sorted(made - judged.keys()),
    )


def together(outcomes: Iterable[Outcome]) -> Outcome:
    """Add outcomes up."""
    outcomes = list(outcomes)
    return Outcome(
        made=sum(outcome.made for outcome in outcomes),
        unseen=sum(outcome.unseen for outcome in outcomes),
        found=[link for outcome in outcomes for link in outcome.found],
    )


def assert_no_circle(trace: Trace) -> None:
    """Check that no program's requests cause, however far away, what it is asked itself.

    Raises:
        graphlib.CycleError: they do.
    """
    pairs = trace.sql(
        """
        SELECT DISTINCT f.server_ip, f.server_port, b.server_ip, b.server_port
        FROM links JOIN connections f ON f.stream = front_stream JOIN connections b ON b.stream = back_stream
        """
    ).fetchall()
    causes: TopologicalSorter[tuple[str, int]] = TopologicalSorter()
    for front_ip, front_port, back_ip, back_port in pairs:
        causes.add((back_ip, back_port), (front_ip, front_port))
    causes.prepare()
