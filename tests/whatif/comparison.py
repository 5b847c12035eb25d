"""Predictions from faulty captures held against captures of what was mended for real.

In: folders ``CASE-before`` and ``CASE-after``. Out: :class:`Comparison`.
"""

import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import conchart
from conchart.questions.predict import Change, Prediction, predict
from tests.conftest import MS, ROOT

CAPTURES = ROOT / "captures" / "whatif"
CHANGES = {
    "keepalive": Change(keepalive=True),
    "resume": Change(resume=True),
    "resume13": Change(resume=True),
    "tls13": Change(tls13=True),
    "nodelay": Change(nodelay=True),
    "rtt": Change(rtt_ns=80 * MS),
    "all": Change(keepalive=True, tls13=True, rtt_ns=80 * MS),
}
"""By the first word of a case's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A prediction and what became of it."""

    case: str
    prediction: Prediction
    after: Prediction
    """Of the mended capture, with nothing changed."""

    @property
    def error(self) -> float:
        """Of the total time, as a share of what was measured."""
        return self.prediction.predicted.total_ns / self.after.measured.total_ns - 1

    @property
    def median_error(self) -> float:
        """Of the median request."""
        return self.prediction.predicted.percentile(50) / self.after.measured.percentile(50) - 1


def cases(folder: Path = CAPTURES) -> list[str]:
    """Give the cases of which a folder has both captures."""
    before = {path.parent.name.removesuffix("-before") for path in folder.glob("*-before/input.pcap")}
    return sorted(case for case in before if (folder / f"{case}-after" / "input.pcap").exists())


@cache
def compare(case: str, folder: Path = CAPTURES) -> Comparison:
    """Predict a case, and read what became of it."""
    with conchart.read(folder / f"{case}-before" / "input.pcap") as trace:
        prediction = predict(trace, CHANGES[case.split("-")[0]])
    with conchart.read(folder / f"{case}-after" / "input.pcap") as trace:
        after = predict(trace, Change())
    return Comparison(case=case, prediction=prediction, after=after)


def table(comparisons: list[Comparison]) -> str:
    """Write the table of ``docs/what-if.md``."""
    lines = [
        "| case | before | predicted | measured after | error | median request: predicted | measured after | error |"
    ]
    lines += ["|---|---:|---:|---:|---:|---:|---:|---:|"]
    for each in comparisons:
        before, predicted, after = each.prediction.measured, each.prediction.predicted, each.after.measured
        totals = [f"{side.total_ns / MS:.1f} ms" for side in (before, predicted, after)]
        medians = [f"{side.percentile(50) / MS:.1f} ms" for side in (predicted, after)]
        words = [each.case, *totals, f"{100 * each.error:+.1f} %", *medians, f"{100 * each.median_error:+.1f} %"]
        lines.append(f"| {' | '.join(words)} |")
    return "\n".join(lines)


def main() -> None:
    """Print the table: of a folder, or of the captures that are kept."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else CAPTURES
    sys.stdout.write(table([compare(case, folder) for case in cases(folder)]) + "\n")
