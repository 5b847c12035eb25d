"""Text for a terminal, or for a file or pipe in its place."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
from rich.console import Console

from conchart.outputs.terminal.sheet import PLAIN_WIDTH


def terminal(otherwise: int = PLAIN_WIDTH) -> Console:
    """Make a console as wide as the terminal, or as ``COLUMNS`` says; ``otherwise`` where there is neither."""
    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = otherwise
    return console


_PIECE = 16 << 10
"""Characters that are printed at once: of fewer, printing takes longer; of more, the first have to wait longer."""


@contextmanager
def printed_on(console: Console) -> Iterator[Callable[[str], None]]:
    """Print the lines that come as long as the block lasts, in pieces, without blanks at their ends.

    Text of any length takes no more memory than a piece. It is printed by click, as in :func:`print_on`.
    """
    waiting: list[str] = []
    size = 0

    def flush() -> None:
        nonlocal size
        if waiting:
            click.echo("\n".join(waiting), color=console.is_terminal)
        waiting.clear()
        size = 0

    def write(line: str) -> None:
        nonlocal size
        waiting.append(line.rstrip())
        size += len(line) + 1
        if size >= _PIECE:
            flush()

    yield write
    flush()


def print_on(console: Console, draw: Callable[[Console], object]) -> None:
    """Print what ``draw`` writes, without blanks at the ends of lines.

    It is printed in one piece by click, so that a reader who has gone is BrokenPipeError here as everywhere.
    """
    with console.capture() as captured:
        draw(console)
    lines = captured.get().split("\n")
    click.echo("\n".join(line.rstrip() for line in lines), nl=False, color=console.is_terminal)
