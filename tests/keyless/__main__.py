"""Command: where conchart, without TLS secrets, is wrong about exchanges, and about the time of HTTP/2 and HTTP/3.

python -m tests.keyless [CAPTURE...]          all of captures/handshakes and captures/multiplexed when none is named
python -m tests.keyless --update              shortens wrong.txt, makes the table in docs/phases.md anew
"""

from __future__ import annotations

from pathlib import Path

import click

from tests.keyless import report
from tests.keyless.charge import charge
from tests.keyless.comparison import compare
from tests.keyless.truth import read


@click.command()
@click.argument("captures", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--update", is_flag=True, help="Shorten wrong.txt, write the table in docs/phases.md.")
def main(captures: tuple[Path, ...], *, update: bool) -> None:
    """Print every exchange that is not exact, how many are, and what was not compared."""
    if captures and update:
        raise click.UsageError("--update is about all captures")
    comparisons = [compare(capture, truth) for capture, truth in read(captures or report.CAPTURES).items()]
    if update:
        report.update(comparisons)
    skipped = "\n".join(f"- {line}" for line in report.skipped(comparisons) or ["nothing"])
    wrong = "\n".join(report.inexact(comparisons)) or "Every exchange is exact."
    click.echo(f"{wrong}\n\n{report.table(comparisons)}\n\nNot compared:\n{skipped}")
    for protocol, app, ours in (("HTTP/2", "h2", report.OF_HTTP_2), ("HTTP/3", "h3", report.OF_HTTP_3)):
        charges = [found for capture in captures or ours if (found := charge(capture, app)).connections]
        if charges:
            click.echo(f"\n{report.charges(charges, protocol)}")


if __name__ == "__main__":
    main()
