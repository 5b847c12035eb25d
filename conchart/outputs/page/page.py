"""The page: one HTML file that shows a trace, works offline and loads nothing.

In: a trace. Out: the text of the file. What is hostile in it, ``document`` makes harmless.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from conchart.labels.phases import PHASES
from conchart.labels.stalls import COLOURS, STALLS, stall_kind
from conchart.labels.units import SECOND, count_of, format_bytes, format_count, format_ns, format_share
from conchart.outputs.limits import PAGE
from conchart.outputs.options import DrawOptions
from conchart.outputs.page import places
from conchart.outputs.page.document import prepare, render_document
from conchart.outputs.page.places import between
from conchart.outputs.page.swimlanes import swimlanes
from conchart.report.findings import Finding
from conchart.report.overview import Overview
from conchart.report.report import Report, report_of
from conchart.report.servers import Part, Server, headline, shares
from conchart.report.splits import STEPS
from conchart.report.verdict import ABOUT_THE_CAPTURE
from conchart.store.tables import Tables

DEFAULT_OPTIONS = DrawOptions()
MAX_FILES = 8
"""Capture files named in the header."""
LEAST_HEADLINE = 10
"""One in so many nanoseconds that users waited: for less, only the first server has a headline."""
SCRIPTS = (
    *(
        "decode",
        "format",
        "axis",
        "copy",
        "detail",
        "viewpoint",
        "address",
        "state",
        "drawn",
        "left",
        "model",
        "tree",
        "chart",
    ),
    *(
        "describe",
        "ladder",
        "overview",
        "moving",
        "lanes",
        "ranks",
        "range",
        "series",
        "statistics",
        "language",
        "search",
    ),
    *("listings", "table", "help", "main"),
)
"""In the order in which they build on each other."""
SCRIPTS_OF_PLACES = (*SCRIPTS[:-1], *places.SCRIPTS, SCRIPTS[-1])

TEMPLATE = "page.html.j2"


def prepare_page() -> None:
    """Make ready what every page has; what is written later finds it."""
    prepare(TEMPLATE, SCRIPTS)


def write_html(tables: Tables, path: Path, options: DrawOptions = DEFAULT_OPTIONS, *, title: str | None = None) -> None:
    """Write the page of a trace to ``path``; see :func:`render`.

    Raises:
        OSError: The file cannot be written. Part of it may have been: who needs all or nothing writes :func:`render`'s
            text to a temporary file and renames that.
    """
    path.write_text(render(tables, options, title=title), encoding="utf-8", newline="\n")


def render(tables: Tables, options: DrawOptions = DEFAULT_OPTIONS, *, title: str | None = None) -> str:
    """Return the page as text, to be encoded as UTF-8.

    Args:
        tables: Of the trace; nothing is added to them.
        options: What to draw. Packets are marked only if the trace was read with packets.
        title: Heading; the names of the capture files where it is not given.
    """
    with report_of(tables, names=options.names) as report:
        return _render(tables, report, options, title)


def _render(tables: Tables, report: Report, options: DrawOptions, title: str | None) -> str:
    files = report.files
    listed = report.servers(PAGE.servers)
    whole = report.totals
    lanes = swimlanes(tables, options)
    drawn_kinds, drawn_stalls = _legend(report.times)
    answer = report.verdict
    found = report.findings[: PAGE.findings] if options.findings else []
    wrong = [one for one in found if one.name != ABOUT_THE_CAPTURE]
    by_place = between(report)
    return render_document(
        TEMPLATE,
        SCRIPTS if by_place is None else SCRIPTS_OF_PLACES,
        lanes.data | {"findings": _places(wrong)},
        lanes.blocks,
        {} if by_place is None else {"places": places.drawn(report)},
        title=title or title_of([file.path for file in files]),
        files=[
            {**asdict(one), "packets": format_count(one.packets), "bytes": format_bytes(one.bytes)}
            for one in files[:MAX_FILES]
        ],
        more_files=max(0, len(files) - MAX_FILES),
        several=len(files) > 1,
        tiles=_tiles(report.overview, report.captured_ns),
        answer=answer if options.findings else answer.unsaid,
        with_findings=options.findings,
        warnings=[remark for remark in report.remarks if remark.warning],
        hints=[remark for remark in report.remarks if not remark.warning],
        headline=[
            {"server": server, "shares": list(shares(server))}
            for place, server in enumerate(headline(listed))
            if not place or server.waited_ns * LEAST_HEADLINE >= whole.waited_ns
        ],
        in_vain=answer.in_vain,
        stalls=report.stalls,
        findings=wrong,
        more_findings=len(report.findings) - len(found),
        between=by_place,
        servers=_bars(listed[: PAGE.servers], whole.longest_ns),
        more_servers=max(0, whole.count - PAGE.servers),
        waited_ns=whole.waited_ns,
        total_ns=whole.total_ns,
        span_ns=report.captured_ns,
        kinds=PHASES,
        steps=STEPS if lanes.links else (),
        shown_kinds=drawn_kinds,
        shown_stalls=drawn_stalls,
        stall_kinds=[kind for kind in STALLS if kind.detail is None],
        limits=lanes.limits,
        explained=options.explained is not None,
        seen_from=report.overview.seen_from,
        packets=options.packets,
        retransmits=options.retransmits,
    )


def _legend(times: Iterable[tuple[str, str | None, str | None]]) -> tuple[set[str], list[tuple[str, list[str]]]]:
    """Give the kinds of phase that there are, and the words of stalls with what they mean."""
    kinds = {(kind, detail) for _, kind, detail in times if kind is not None}
    meanings: dict[str, list[str]] = {}
    for stall in STALLS:
        if stall in {stall_kind(*kind) for kind in kinds}:
            meanings.setdefault(stall.word, []).append(stall.meaning)
    # Those that have no colour of their own are drawn alike.
    alike = [word for word in meanings if word not in COLOURS]
    shown = [(word, meanings[word]) for word in meanings if word in COLOURS]
    if alike:
        shown.append((", ".join(alike), [meaning for word in alike for meaning in meanings[word]]))
    return {phase for phase, _, _ in times}, shown


def title_of(paths: Sequence[str]) -> str:
    """Name the captures."""
    if not paths:
        return "Empty capture"
    # Not pathlib: a capture's path may come from another system, or be "-".
    name = "/".join(paths[0].replace("\\", "/").split("/")[-2:])
    return f"{name} and {count_of(len(paths) - 1, 'more file')}" if len(paths) > 1 else name


def _tiles(counted: Overview, span_ns: int) -> list[dict[str, str]]:
    return [
        {
            "name": "Duration",
            "value": format_ns(span_ns),
            "note": _instant(counted.first_at) if counted.first_at is not None else "",
        },
        {"name": "Packets", "value": format_count(counted.selected), "note": format_bytes(counted.bytes)},
        {
            "name": "Connections",
            "value": format_count(counted.connections),
            "note": f"{count_of(counted.handshakes, 'TLS handshake')}, {format_count(counted.resumed)} resumed"
            if counted.handshakes
            else "no TLS",
        },
        {
            "name": "Requests",
            "value": format_count(counted.requests),
            "note": f"on {count_of(counted.with_requests, 'connection')}" if counted.requests else "",
        },
        {
            "name": "Hosts",
            "value": format_count(counted.hosts),
            "note": f"{count_of(counted.clients, 'client')}, {count_of(counted.servers, 'server')}",
        },
    ]


def _instant(at: int) -> str:
    try:
        return f"from {datetime.fromtimestamp(at // SECOND, timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):  # a clock far outside of the calendar
        return f"from {at} ns since 1970"


def _bars(listed: list[Server], longest: int) -> list[dict[str, Any]]:
    """Servers, with what the template needs besides; ``longest``: what users waited for one."""
    return [
        {
            "server": server,
            "width": f"{100 * server.waited_ns / longest if longest else 0:.3f}",
            "waited": [_slice(part, server.waited_ns) for part in server.waited],
            "besides": [_slice(part, server.total_ns) for part in server.besides],
        }
        for server in listed
    ]


def _places(wrong: list[Finding]) -> list[dict[str, Any]]:
    """Say of each finding, consequences too, on which connections it happened; in the order of the panel."""
    named = [one for finding in wrong for one in (finding, *finding.consequences)]
    return [
        {
            "number": one.number,
            "name": one.name,
            "title": one.title,
            "severity": one.severity,
            "where": one.where,
            "count": one.count,
            "cost_ns": one.critical_ns,
            "streams": one.streams,
        }
        for one in named
    ]


def _slice(part: Part, whole_ns: int) -> dict[str, Any]:
    return {
        "part": part,
        "share": format_share(part.total_ns, whole_ns),
        "stalled": [(word, f"{100 * ns / part.total_ns:.3f}") for word, ns in part.stalled.most_common()],
    }
