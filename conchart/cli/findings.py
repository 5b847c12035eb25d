"""``conchart findings``: the rules, the page of each, and what they find in captures."""

import os
import re
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import click
from rich.console import RenderableType
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

from conchart.analysis.findings.rule import Fix, Rule, load_rules, thresholds
from conchart.cli.reading import IN_PLACES, Reading, ReadingCommand, read_captures, reading_options
from conchart.cli.terminal import print_on, terminal
from conchart.errors import UsageError
from conchart.labels.printable import printable, printable_lines
from conchart.labels.units import format_ns
from conchart.outputs.terminal import print_findings
from conchart.report.report import report_of

_KINDS = {"cost": "by its cost", "note": "note", "failure": "at least warning", "quality": "quality"}
_LONGEST_LINE = 10_000


@click.command("findings", cls=ReadingCommand)
@click.argument("names", metavar="[ID | CAPTURE...]", nargs=-1)
@reading_options
def findings(*, names: tuple[str, ...], reading: Reading) -> None:
    """List the rules, show the page of rule ID, or print the findings in captures in full.

    The page of a rule explains the finding, what resembles it, how conchart detects it and computes its cost, what to
    change, and its thresholds (override them with --threshold). The severity of most findings follows from their cost
    as a share of the time that users waited. Some are never more than a note. Some are at least a warning, because
    a user got no answer. Others concern the quality of the capture.

    \b
    Examples:
      conchart findings
      conchart findings backend-no-keepalive
      conchart findings --findings our-rules
      conchart findings slow.pcap
    """  # noqa: D301  (click's mark for lines it must not wrap)
    rules = {rule.name: rule for rule in load_rules(reading.options.findings)}
    if not names:
        _show(_listed(rules.values()))
    elif len(names) == 1 and names[0] in rules:
        text = printable_lines(page(rules[names[0]]).expandtabs(), _LONGEST_LINE)
        _show(Markdown(text), otherwise=text)
    elif len(names) == 1 and not (
        names[0] in ("-", IN_PLACES) or Path(names[0]).exists() or set(names[0]) & {os.sep, "."}
    ):
        raise UsageError(f"{names[0]!r} is neither a rule nor a capture; 'conchart findings' lists the rules")
    else:
        with read_captures(names, reading) as trace, report_of(trace) as report:
            print_on(terminal(), partial(print_findings, report))


def page(rule: Rule) -> str:
    """Give the page of a finding: what its file says, what to change, from where on it is one."""
    parts = [rule.page]
    if rule.fixes:
        parts.append("\n".join(("## What to change", "", *_changes(rule.fixes))))
    by_name = thresholds()
    if used := [name for name in by_name if re.search(rf"\${name}\b", rule.sql)]:
        lines = [f"- `{name}` = {_value(name, by_name[name].value)}: {by_name[name].means}" for name in used]
        parts.append("\n".join(("## Thresholds", "", *lines)))
    return "\n\n".join(parts)


def _changes(fixes: Iterable[Fix]) -> Iterator[str]:
    for fix in fixes:
        product = " ".join(filter(None, (fix.product, fix.versions)))
        yield f"- at the {fix.at}{f', {product}' if product else ''}: {fix.line}"


def _value(name: str, value: float) -> str:
    return f"{value} ({format_ns(int(value))})" if name.endswith("_ns") else str(value)


def _listed(rules: Iterable[Rule]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("ID", "severity", "what is wrong"):
        table.add_column(heading, overflow="fold", no_wrap=heading != "what is wrong")
    for rule in sorted(rules, key=lambda rule: rule.name):
        table.add_row(*(Text(printable(words)) for words in (rule.name, _KINDS[rule.severity], rule.title)))
    return table


def _show(shown: RenderableType, *, otherwise: str | None = None) -> None:
    """Print for a terminal; where there is none, something else if it is given."""
    console = terminal()
    if otherwise is not None and not console.is_terminal:
        click.echo(otherwise)
        return
    print_on(console, lambda console: console.print(shown))
