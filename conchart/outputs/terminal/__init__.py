"""The summary in text: what the command line prints, and what ``-w out.txt`` holds.

In: a report. Out: lines for a rich console; plain letters where it has no colours, so that pipes and goldens get no
escapes.
"""

from pathlib import Path

from rich.console import Console
from rich.text import Text

from conchart.outputs.limits import TERMINAL
from conchart.outputs.options import DrawOptions
from conchart.outputs.terminal.answer import answer_lines
from conchart.outputs.terminal.attribution import attribution, causes, waits
from conchart.outputs.terminal.facts import facts, hints
from conchart.outputs.terminal.findings import finding_lines
from conchart.outputs.terminal.lanes import lane_lines
from conchart.outputs.terminal.logs import MOST as MOST_LOGGED
from conchart.outputs.terminal.logs import TITLE as LOGGED
from conchart.outputs.terminal.logs import log_lines
from conchart.outputs.terminal.places import TITLE as PLACES
from conchart.outputs.terminal.places import place_lines
from conchart.outputs.terminal.queries import query_lines
from conchart.outputs.terminal.screen import first_screen
from conchart.outputs.terminal.sheet import Sheet, plain_console
from conchart.report.report import Report


def write_text(report: Report, path: Path, options: DrawOptions) -> None:
    """Write what the terminal shows as plain text, 100 columns wide."""
    with path.open("w", encoding="utf-8", newline="\n") as sink:
        print_summary(report, plain_console(sink), options)


def print_findings(report: Report, console: Console) -> None:
    """Print how good the capture is, and all of each finding."""
    sheet = Sheet(console)
    sheet.tell(facts(report))
    sheet.label("Findings", finding_lines(report, sheet.room))


def print_summary(report: Report, console: Console, options: DrawOptions) -> None:
    """Print the first screen, or all there is to tell, within the width."""
    sheet = Sheet(console)
    if not options.verbose:
        for line in first_screen(report, sheet.width, colours=sheet.colours, options=options):
            sheet.show(line)
        return
    width, colours = sheet.width, sheet.colours
    listed = report.servers(TERMINAL.servers)
    answer = report.verdict if options.findings else report.verdict.unsaid
    for line in answer_lines(answer, width):
        sheet.show(line)
    sheet.show(Text())
    sheet.tell(facts(report))
    if options.findings:
        sheet.label("Findings", finding_lines(report, sheet.room))
    sheet.tell(waits(report, listed))
    sheet.tell(hints(report))
    sheet.section(PLACES, place_lines(report, width))
    sheet.section(LOGGED, log_lines(report, width, most=MOST_LOGGED))
    sheet.section(
        "Where the time went (what users waited for, then the rest)",
        attribution(listed[: TERMINAL.servers], report.totals.count, width, colours=colours),
    )
    sheet.section("Why the next byte did not come (part of the times above)", causes(report, width))
    sheet.section("Queries by shape (what was waited for most first)", query_lines(report, width))
    sheet.section("When (one line per connection)", lane_lines(report, width, colours=colours))
    for one in report.details():
        sheet.show(Text())
        sheet.show(Text(one.title, "bold"))
        for fact in one.lines:
            sheet.show(Text(f"  {fact}"))
