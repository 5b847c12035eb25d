"""What is wrong, worst first: what it is, what it costs, what to change. In: a trace. Out: lines of text."""

from collections.abc import Iterator

from rich.text import Text

from conchart.exports.text.words import wrapped
from conchart.schema import SEVERITIES
from conchart.tables import Tables
from conchart.telling.findings import Finding, by_severity, findings, tally_findings
from conchart.units import count_of

MOST_FINDINGS = 5
_MOST_FRAMES = 5
_STYLES = {"serious": "bold red", "warning": "bold yellow", "note": "bold"}
_INDENT = "  "


def finding_lines(tables: Tables, width: int, *, names: bool, verbose: bool) -> Iterator[Text]:
    """Give the lines. Unless all are asked for, notes are counted, and so is what is beyond ``MOST_FINDINGS``."""
    if verbose:
        told = findings(tables, names=names)
    else:
        told = findings(tables, names=names, most=MOST_FINDINGS, severities=SEVERITIES[1:])
    left = tally_findings(tables, without=told) if not verbose else []
    if not told and not left:
        yield Text("none")
    for finding in told:
        first, *others = _sentences(finding, verbose=verbose)
        for number, line in enumerate(wrapped(first, width, indent=_INDENT)):
            text = Text(line)
            if not number:
                text.stylize(_STYLES[finding.severity], 0, len(finding.severity) + 1)
            yield text
        for sentence in others:
            for line in wrapped(sentence, width - len(_INDENT), indent=_INDENT):
                yield Text(_INDENT + line)
    if left:
        titles = dict.fromkeys(one.title for one in left)
        what = f"{by_severity(left)}: {'; '.join(titles)} (-v tells all)"
        for line in wrapped(f"and {what}" if told else what, width, indent=_INDENT):
            yield Text(line)


def _sentences(finding: Finding, *, verbose: bool) -> Iterator[str]:
    where = f" · {finding.brief_where}" if finding.brief_where else ""
    yield f"{finding.severity}: {finding.title}{where}"
    yield finding.cost
    fixes = finding.fixes if verbose else finding.fixes[:1]
    for fix in fixes:
        yield f"fix: {fix}"
    if more := len(finding.fixes) - len(fixes):
        others = count_of(more, "other way", "other ways")
        yield f"     or {others}, for other software: conchart findings {finding.name}"
    yield f"seen: {finding.seen}"
    if verbose:
        yield f"why: {finding.why}"
    if finding.brings:
        yield finding.brings
    if verbose and finding.frames:
        shown = ", ".join(map(str, finding.frames[:_MOST_FRAMES]))
        yield f"look at frame{'s' if len(finding.frames) > 1 else ''} {shown}"
