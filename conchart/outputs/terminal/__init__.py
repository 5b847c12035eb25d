"""The summary in text: what the command line prints, and what ``-w out.txt`` holds.

In: a trace. Out: lines for a rich console; plain letters where it has no colours, so that pipes and goldens get no
escapes.
"""

from pathlib import Path

from rich.console import Console
from rich.text import Text

from conchart.analysis.sights import once
from conchart.outputs.limits import TERMINAL
from conchart.outputs.options import DrawOptions
from conchart.outputs.terminal.answer import answer_lines, to_type
from conchart.outputs.terminal.attribution import attribution, causes, waits
from conchart.outputs.terminal.details import details
from conchart.outputs.terminal.facts import facts, hints
from conchart.outputs.terminal.findings import finding_lines
from conchart.outputs.terminal.lanes import lanes
from conchart.outputs.terminal.logs import MOST as MOST_LOGGED
from conchart.outputs.terminal.logs import TITLE as LOGGED
from conchart.outputs.terminal.logs import log_lines
from conchart.outputs.terminal.places import TITLE as PLACES
from conchart.outputs.terminal.places import place_lines
from conchart.outputs.terminal.queries import query_lines
from conchart.outputs.terminal.screen import first_screen
from conchart.outputs.terminal.sheet import Sheet, plain_console
from conchart.report.servers import servers, totals
from conchart.report.verdict import verdict
from conchart.store.tables import Tables


def write_text(tables: Tables, path: Path, options: DrawOptions) -> None:
    """Write what the terminal shows as plain text, 100 columns wide."""
    with path.open("w", encoding="utf-8", newline="\n") as sink:
        print_summary(tables, plain_console(sink), options)


@once
def print_findings(tables: Tables, console: Console) -> None:
    """Print how good the capture is, and all of each finding."""
    sheet = Sheet(console)
    sheet.tell(facts(tables))
    sheet.label("Findings", finding_lines(tables, sheet.room, names=True))


@once
def print_summary(tables: Tables, console: Console, options: DrawOptions) -> None:
    """Print the first screen, or all there is to tell, within the width."""
    sheet = Sheet(console)
    if not options.verbose:
        for line in first_screen(tables, sheet.width, colours=sheet.colours, options=options):
            sheet.show(line)
        return
    width, colours, names = sheet.width, sheet.colours, options.names
    listed = servers(tables, names=names, most=TERMINAL.servers)
    answer = verdict(tables, names=names)
    for line in answer_lines(answer if options.findings else answer.unsaid, to_type(tables), width):
        sheet.show(line)
    sheet.show(Text())
    sheet.tell(facts(tables))
    if options.findings:
        sheet.label("Findings", finding_lines(tables, sheet.room, names=names))
    sheet.tell(waits(tables, listed))
    sheet.tell(hints(tables))
    sheet.section(PLACES, place_lines(tables, width))
    sheet.section(LOGGED, log_lines(tables, width, most=MOST_LOGGED))
    sheet.section(
        "Where the time went (what users waited for, then the rest)",
        attribution(listed[: TERMINAL.servers], totals(tables).count, width, colours=colours),
    )
    sheet.section("Why the next byte did not come (part of the times above)", causes(tables, width))
    sheet.section("Queries by shape (what was waited for most first)", query_lines(tables, width))
    sheet.section("When (one line per connection)", lanes(tables, width, colours=colours, names=names))
    for line in details(tables, names=names):
        sheet.show(line)
