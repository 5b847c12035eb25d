"""Command: where conchart, without TLS secrets, is wrong about exchanges.

python -m tests.keyless [CAPTURE...]          all of captures/handshakes when none is named
"""

from __future__ import annotations

from pathlib import Path

import click

from tests.keyless.comparison import compare
from tests.keyless.test_exchanges import CAPTURES
from tests.keyless.truth import read


@click.command()
@click.argument("captures", nargs=-1, type=click.Path(exists=True, path_type=Path))
def main(captures: tuple[Path, ...]) -> None:
    """Print every exchange that is wrong, and how many are right."""
    truths = read(captures or CAPTURES)
    verdicts = [verdict for capture, truth in truths.items() for verdict in compare(capture, truth)]
    for verdict in verdicts:
        if not verdict.right:
            click.echo(f"{'BOAST ' if verdict.boast else 'doubt '}{verdict}")
    right = sum(verdict.right for verdict in verdicts)
    click.echo(f"{right} of {len(verdicts)} right, {sum(verdict.boast for verdict in verdicts)} wrong and sure of it")


if __name__ == "__main__":
    main()
