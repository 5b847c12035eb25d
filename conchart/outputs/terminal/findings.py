"""What is wrong, worst first: what it is, what it costs, what to change. In: a report. Out: lines of text."""

from collections.abc import Iterator

from rich.text import Text

from conchart.outputs.terminal.answer import STYLES
from conchart.outputs.terminal.words import wrapped
from conchart.report.findings import Finding
from conchart.report.report import Report

_MOST_FRAMES = 5
_INDENT = "  "


def finding_lines(report: Report, width: int) -> Iterator[Text]:
    """Give the lines of all findings in full."""
    if not report.findings:
        yield Text("none")
    for finding in report.findings:
        first, *others = _sentences(finding)
        for number, line in enumerate(wrapped(first, width, indent=_INDENT)):
            text = Text(line)
            if not number:
                text.stylize(STYLES[finding.severity], 0, len(finding.severity) + 1)
            yield text
        for sentence in others:
            for line in wrapped(sentence, width - len(_INDENT), indent=_INDENT):
                yield Text(_INDENT + line)


def _sentences(finding: Finding) -> Iterator[str]:
    where = f" · {finding.brief_where}" if finding.brief_where else ""
    yield f"{finding.severity}: {finding.full_title}{where}"
    yield finding.cost
    for fix in finding.fixes:
        yield f"fix: {fix}"
    yield f"seen: {finding.seen}"
    yield f"why: {finding.why}"
    if finding.brings:
        yield finding.brings
    if finding.frames:
        shown = ", ".join(map(str, finding.frames[:_MOST_FRAMES]))
        yield f"look at frame{'s' if len(finding.frames) > 1 else ''} {shown}"
    yield f"page: conchart findings {finding.name}"
