"""Text for a terminal, or for a file or pipe in its place."""

import os
from collections.abc import Callable

import click
from rich.console import Console

from conchart.outputs.terminal.sheet import PLAIN_WIDTH


def terminal(otherwise: int = PLAIN_WIDTH) -> Console:
    """Make a console as wide as the terminal, or as ``COLUMNS`` says; ``otherwise`` where there is neither."""
    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = otherwise
    return console


def print_on(console: Console, draw: Callable[[Console], object]) -> None:
    """Print what ``draw`` writes, without blanks at the ends of lines.

    It is printed in one piece by click, so that a reader who has gone is BrokenPipeError here as everywhere.
    """
    with console.capture() as captured:
        draw(console)
    lines = captured.get().split("\n")
    click.echo("\n".join(line.rstrip() for line in lines), nl=False, color=console.is_terminal)
