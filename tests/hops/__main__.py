"""Command: which of the links that the lab made conchart finds, and how far its confidence is to be trusted.

python -m tests.hops [FOLDER] [-v]

FOLDER has captures made by `examples/hops/make-captures`; without one, the committed captures are compared. Prints a
line per capture: links made, how many of them are found (recall), how many found are right (precision), the same of
those with a confidence of 0.9 or more, and the calibration error. Exits with 1 when a capture stays below what is asked
for.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import click

from tests.conftest import ROOT
from tests.hops.comparison import Outcome, compare, together

CAPTURES = ROOT / "captures" / "hops"
LEAST_SURE = 0.98
MOST_OFF = 0.05
LEAST_FOUND = {1: 0.95, 4: 0.95, 16: 0.95, 64: 0.85, 128: 0.85}
"""Recall by the number of requests at a time, which ends a capture's name."""


def is_enough(name: str, outcome: Outcome) -> bool:
    """Say whether a capture's links are as good as asked for."""
    least = LEAST_FOUND.get(int(name.rsplit("-", 1)[1]), 0.95)
    return outcome.recall >= least and outcome.sure_precision >= LEAST_SURE and outcome.calibration_error <= MOST_OFF


def line(name: str, outcome: Outcome) -> str:
    """Lay an outcome out."""
    return (
        f"| {name} | {outcome.made} | {outcome.recall:.1%} | {outcome.precision:.1%} | {outcome.sure:.1%} "
        f"| {outcome.sure_precision:.1%} | {outcome.calibration_error:.3f} | {outcome.unseen or ''} |"
    )


@click.command()
@click.argument("folder", default=CAPTURES, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("-v", "--verbose", is_flag=True, help="Name the links that were missed (-) and that are wrong (+).")
def main(folder: Path, *, verbose: bool) -> None:
    """Print a line per capture, and what is not good enough."""
    cases = sorted((truth.parent for truth in folder.glob("*/truth.csv")), key=lambda case: case.name)
    with ProcessPoolExecutor(2) as pool:
        outcomes = dict(zip((case.name for case in cases), pool.map(compare, cases), strict=True))
    click.echo("| capture | made | found | right | sure | of these right | calibration error | unseen |")
    click.echo("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name, outcome in outcomes.items():
        click.echo(line(name, outcome))
        if verbose:
            for link in outcome.missed:
                click.echo(f"- {link}")
            for link in outcome.wrong:
                click.echo(f"+ {link}")
    click.echo(line(f"**all {len(outcomes)}**", together(outcomes.values())))
    if short := [name for name, outcome in outcomes.items() if not is_enough(name, outcome)]:
        click.echo(f"not enough: {', '.join(short)}")
        raise SystemExit(1)


if __name__ == "__main__":
    main()
