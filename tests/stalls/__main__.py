"""Command: which of the stalls that the lab made conchart finds, and what else it takes for one.

python -m tests.stalls [FOLDER]

FOLDER has captures made by `examples/stalls/make-captures`; without one, the committed captures are compared. Prints a
table (kind, made, found, right), and then each stall that was missed (-) or wrong (+). Exits with 1 when a kind stays
below 95 %.
"""

from __future__ import annotations

from pathlib import Path

import click

from tests.conftest import ROOT
from tests.stalls.comparison import Outcome, compare

CAPTURES = ROOT / "captures" / "stalls"
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


@click.command()
@click.argument("folder", default=CAPTURES, type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(folder: Path) -> None:
    """Print the table, then what was missed (-) and what is wrong (+)."""
    outcome = compare(folder)
    click.echo(table(outcome))
    for text in [*(f"- {each}" for each in outcome.missed), *(f"+ {each}" for each in outcome.wrong)]:
        click.echo(text)
    for (kind, true, found), times in sorted(outcome.other_details.items(), key=str):
        click.echo(f"detail of {kind}: {true!r} found as {found!r}, {times} times")
    kinds = outcome.made | outcome.found
    if any(min(outcome.recall(kind), outcome.precision(kind)) < LEAST for kind in kinds):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
