"""The summary in text: what the command line prints, and what ``-w out.txt`` holds.

In: a trace. Out: lines for a rich console; plain letters where it has no colours, so that pipes and goldens get no
escapes.
"""

from pathlib import Path
from typing import IO, TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from conchart.exports.text.attribution import attribution, causes
from conchart.exports.text.details import details
from conchart.exports.text.facts import facts
from conchart.exports.text.lanes import lanes
from conchart.options import DrawOptions

if TYPE_CHECKING:
    from conchart.trace import Trace

PLAIN_WIDTH = 100
"""Columns where there is no terminal to ask."""


def write_text(trace: "Trace", path: Path, options: DrawOptions) -> None:
    """Write the summary as plain text, 100 columns wide."""
    with path.open("w", encoding="utf-8", newline="\n") as sink:
        print_summary(trace, plain_console(sink), options)


def print_summary(trace: "Trace", console: Console, options: DrawOptions, *, verbose: bool = False) -> None:
    """Print facts about the capture, where the time went, why, and the lanes, within the console's width."""
    # 16 colours cannot tell the phases apart.
    colours = console.color_system in ("256", "truecolor") and not console.no_color
    look = {"colours": colours, "names": options.names}

    def show(line: Text) -> None:
        line.rstrip()
        console.print(line, no_wrap=True, overflow="ignore", crop=False, soft_wrap=True)

    for label, text in facts(trace):
        show(Text.assemble((f"{label:<12}", "bold"), text))
    for title, lines in (
        ("Where the time went (all connections to a server added up)", attribution(trace, console.width, **look)),
        ("Why the next byte did not come (part of the times above)", causes(trace, console.width)),
        ("When (one line per connection)", lanes(trace, console.width, **look)),
    ):
        for number, line in enumerate(lines):
            if number == 0:
                console.print()
                show(Text(title, "bold underline"))
            show(line)
    if verbose:
        for line in details(trace, names=options.names):
            show(line)


def plain_console(sink: IO[str]) -> Console:
    """Make a console without colours for a file."""
    return Console(file=sink, width=PLAIN_WIDTH, color_system=None, force_terminal=False)
