"""Command: where conchart, without TLS secrets, is wrong about exchanges.

python -m tests.keyless [CAPTURE...]          all of captures/handshakes when none is named
"""

from __future__ import annotations

from pathlib import Path

import click

from tests.keyless.comparison import compare
from tests.keyless.report import CAPTURES, inexact, skipped, table
from tests.keyless.truth import read


@click.command()
@click.argument("captures", nargs=-1, type=click.Path(exists=True, path_type=Path))
def main(captures: tuple[Path, ...]) -> None:
    """Print every exchange that is not exact, how many are, and what was not compared."""
    comparisons = [compare(capture, truth) for capture, truth in read(captures or CAPTURES).items()]
    parts = ["\n".join(inexact(comparisons)), table(comparisons)]
    parts.append("\n".join(["Not compared:", *(f"- {line}" for line in skipped(comparisons) or ["nothing"])]))
    click.echo("\n\n".join(part for part in parts if part))


if __name__ == "__main__":
    main()
