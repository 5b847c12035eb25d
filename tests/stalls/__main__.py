"""Command: which of the stalls that the lab made conchart finds, and what else it takes for one.

python -m tests.stalls [FOLDER]

FOLDER has captures made by `examples/stalls/make-captures`; without one, the committed captures are compared. Prints a
table (kind, made, found, right), and then each stall that was missed (-) or wrong (+). Exits with 1 when a kind stays
below 95 %.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.conftest import ROOT
from tests.stalls.comparison import Outcome, compare

LEAST = 0.95


def table(outcome: Outcome) -> str:
    """Lay the outcome out, a line for each kind."""
    lines = [
        "| kind | made | of them found | recall | found | of them right | precision |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {kind} | {outcome.made[kind]} | {outcome.met[kind]} | {outcome.recall(kind):.1%} "
        f"| {outcome.found[kind]} | {outcome.right[kind]} | {outcome.precision(kind):.1%} |"
        for kind in sorted(outcome.made | outcome.found)
    ]  # fmt: skip
    return "\n".join(lines)


def main() -> None:
    """Read the command line, compare, print."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "captures" / "stalls"
    outcome = compare(folder)
    print(table(outcome))  # noqa: T201
    for text in [*(f"- {each}" for each in outcome.missed), *(f"+ {each}" for each in outcome.wrong)]:
        print(text)  # noqa: T201
    for (kind, true, found), times in sorted(outcome.other_details.items(), key=str):
        print(f"detail of {kind}: {true!r} found as {found!r}, {times} times")  # noqa: T201
    kinds = outcome.made | outcome.found
    sys.exit(any(min(outcome.recall(kind), outcome.precision(kind)) < LEAST for kind in kinds))


if __name__ == "__main__":
    main()
