"""The summary in text: what the command line prints, and what ``-w out.txt`` holds.

In: a trace. Out: lines for a rich console; plain letters where it has no colours, so that pipes and goldens get no
escapes.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import IO

from rich.console import Console
from rich.text import Text

from conchart.exports.text.attribution import attribution, causes, waits
from conchart.exports.text.details import details
from conchart.exports.text.facts import facts, hints
from conchart.exports.text.findings import finding_lines
from conchart.exports.text.lanes import lanes
from conchart.exports.text.words import wrapped
from conchart.options import DrawOptions
from conchart.tables import Tables
from conchart.telling.servers import servers

_LABEL = 12
"""Columns of the labels."""
PLAIN_WIDTH = 100
"""Columns where there is no terminal to ask."""


def write_text(tables: Tables, path: Path, options: DrawOptions) -> None:
    """Write the summary as plain text, 100 columns wide."""
    with path.open("w", encoding="utf-8", newline="\n") as sink:
        print_summary(tables, plain_console(sink), options)


def print_summary(tables: Tables, console: Console, options: DrawOptions, *, verbose: bool = False) -> None:
    """Print facts about the capture, what is wrong, where the time went, why, and the lanes, within the width."""
    # 16 colours cannot tell the phases apart.
    colours = console.color_system in ("256", "truecolor") and not console.no_color
    listed = servers(tables, names=options.names)

    def show(line: Text) -> None:
        line.rstrip()
        console.print(line, no_wrap=True, overflow="ignore", crop=False, soft_wrap=True)

    def show_labelled(label: str, lines: Iterable[str | Text]) -> None:
        for number, line in enumerate(lines):
            show(Text.assemble((f"{'' if number else label:<{_LABEL}}", "bold"), line))

    room = console.width - _LABEL
    for label, text in facts(tables):
        show_labelled(label, wrapped(text, room))
    show_labelled("Findings", finding_lines(tables, room, names=options.names, verbose=verbose))
    for label, text in (*waits(tables, listed), *hints(tables)):
        show_labelled(label, wrapped(text, room))
    for title, lines in (
        (
            "Where the time went (what users waited for, then the rest)",
            attribution(listed, console.width, colours=colours),
        ),
        ("Why the next byte did not come (part of the times above)", causes(tables, console.width)),
        ("When (one line per connection)", lanes(tables, console.width, colours=colours, names=options.names)),
    ):
        for number, line in enumerate(lines):
            if number == 0:
                console.print()
                show(Text(title, "bold underline"))
            show(line)
    if verbose:
        for line in details(tables, names=options.names):
            show(line)


def plain_console(sink: IO[str]) -> Console:
    """Make a console without colours for a file."""
    return Console(file=sink, width=PLAIN_WIDTH, color_system=None, force_terminal=False)
