"""The page: one HTML file that shows a trace, works offline and loads nothing.

In: a trace. Out: the text of the file. This is the one place where text from a capture meets HTML, and it is hostile:

- Jinja2 escapes everything in the template (autoescape; nothing but our own scripts and styles is marked safe);
- what scripts need is JSON in a block that no browser executes, with every character that could end it escaped;
- scripts put text into the page as text nodes only;
- should all that fail, the Content-Security-Policy runs our scripts alone (by their hashes) and loads nothing.

The same trace gives the same bytes: no dates, no random ids.
"""

import base64
import hashlib
import json
from collections.abc import Iterable
from datetime import datetime, timezone
from functools import cache
from importlib import metadata, resources
from pathlib import Path
from typing import Any

import plotly.offline
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from conchart.charts.swimlanes import swimlanes
from conchart.options import DrawOptions
from conchart.phases import PHASES
from conchart.stalls import STALLS
from conchart.tables import Tables
from conchart.telling.findings import Finding, findings
from conchart.telling.remarks import remarks
from conchart.telling.rows import Columns, Row, rows
from conchart.telling.servers import Part, Server, headline, in_vain, servers, shares
from conchart.telling.splits import STEPS
from conchart.telling.stalls import stall_costs
from conchart.units import SECOND, count_of, format_bytes, format_count, format_ns, format_share

DEFAULT_OPTIONS = DrawOptions()
MAX_FILES = 8
"""Capture files named in the header."""
MAX_FINDINGS = 100
"""Findings in the panel; the page says how many more there are."""
MAX_STREAMS = 500
"""Connections that the page shows of a finding; its button says of how many."""
MAX_SERVERS = 50
"""Servers in "where the time went"; the page says how many more there are."""
SCRIPTS = ("format", "model", "describe", "chart", "lanes", "table", "main")
"""In the order in which they build on each other."""

# What could end the block (WHATWG HTML, "restrictions for contents of script elements").
HARMLESS = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})

OVERVIEW = """
    SELECT * FROM
    (SELECT count(*) AS files, coalesce(sum(selected), 0)::BIGINT AS packets, coalesce(sum(bytes), 0)::BIGINT AS bytes,
        min(first_at) AS first_at, max(last_at) - min(first_at) AS span_ns FROM captures),
    (SELECT count(*) AS connections, count(DISTINCT client_ip) AS clients, count(DISTINCT server_ip) AS servers
        FROM connections),
    (SELECT count(*) AS hosts FROM (SELECT client_ip FROM connections UNION SELECT server_ip FROM connections)),
    (SELECT count(*) AS requests, count(DISTINCT stream) AS with_requests FROM exchanges),
    (SELECT count(*) AS handshakes, count(*) FILTER (outcome = 'complete' AND kind <> 'full') AS resumed
        FROM handshakes)"""


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
    (overview,) = rows(tables, OVERVIEW)
    files = list(rows(tables, "SELECT path, format, link_types, packets, bytes FROM captures ORDER BY capture"))
    listed = servers(tables, names=options.names)
    lanes = swimlanes(tables, listed, options)
    said = remarks(tables)
    wrong = findings(tables, names=options.names)
    shown = _lanes_of(wrong[:MAX_FINDINGS], lanes.data["lanes"]["stream"])
    plotly_script, script = _plotly(), _script()
    page: str = _template().render(
        title=title or _title(files),
        version=_version(),
        policy=_policy(plotly_script, script),
        style=Markup(_style()),
        files=[
            {**f, "packets": format_count(f["packets"]), "bytes": format_bytes(f["bytes"])} for f in files[:MAX_FILES]
        ],
        more_files=max(0, len(files) - MAX_FILES),
        several=len(files) > 1,
        tiles=_tiles(overview),
        warnings=[remark for remark in said if remark.warning],
        hints=[remark for remark in said if not remark.warning],
        headline=[{"server": server, "shares": list(shares(server))} for server in headline(listed)],
        in_vain=in_vain(tables),
        stalls=stall_costs(tables),
        findings=wrong[:MAX_FINDINGS],
        more_findings=max(0, len(wrong) - MAX_FINDINGS),
        shown={number: len(streams) for number, streams in zip(shown["number"], shown["streams"], strict=True)},
        servers=_bars(listed),
        more_servers=max(0, len(listed) - MAX_SERVERS),
        waited_ns=sum(server.waited_ns for server in listed if server.role != "backend"),
        total_ns=sum(server.total_ns for server in listed),
        span_ns=overview["span_ns"] or 0,
        kinds=PHASES,
        steps=STEPS if lanes.data["links"]["stream"] else (),
        stall_kinds=[kind for kind in STALLS if kind.detail is None],
        limits=lanes.limits,
        packets=options.packets,
        retransmits=options.retransmits,
        data=Markup(to_json(lanes.data | {"findings": shown})),
        plotly=Markup(plotly_script),
        script=Markup(script),
    )
    return page


def to_json(value: object) -> str:
    """Write JSON that can stand in a ``<script>`` block: it cannot end the block, whatever texts it holds."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(HARMLESS)


def _title(files: list[Row]) -> str:
    if not files:
        return "Empty capture"
    # Not pathlib: a capture's path may come from another system, or be "-".
    name = "/".join(str(files[0]["path"]).replace("\\", "/").split("/")[-2:])
    return f"{name} and {count_of(len(files) - 1, 'more file')}" if len(files) > 1 else name


def _tiles(overview: Row) -> list[dict[str, str]]:
    first_at = overview["first_at"]
    return [
        {
            "name": "Duration",
            "value": format_ns(overview["span_ns"] or 0),
            "note": _instant(first_at) if first_at is not None else "",
        },
        {"name": "Packets", "value": format_count(overview["packets"]), "note": format_bytes(overview["bytes"])},
        {
            "name": "Connections",
            "value": format_count(overview["connections"]),
            "note": f"{count_of(overview['handshakes'], 'TLS handshake')}, {format_count(overview['resumed'])} resumed"
            if overview["handshakes"]
            else "no TLS",
        },
        {
            "name": "Requests",
            "value": format_count(overview["requests"]),
            "note": f"on {count_of(overview['with_requests'], 'connection')}" if overview["requests"] else "",
        },
        {
            "name": "Hosts",
            "value": format_count(overview["hosts"]),
            "note": f"{count_of(overview['clients'], 'client')}, {count_of(overview['servers'], 'server')}",
        },
    ]


def _instant(at: int) -> str:
    try:
        return f"from {datetime.fromtimestamp(at // SECOND, timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):  # a clock far outside of the calendar
        return f"from {at} ns since 1970"


def _bars(listed: list[Server]) -> list[dict[str, Any]]:
    """The first servers of the list, with what the template needs besides."""
    longest = max((server.waited_ns for server in listed), default=0)
    return [
        {
            "server": server,
            "width": f"{100 * server.waited_ns / longest if longest else 0:.3f}",
            "waited": [_slice(part, server.waited_ns) for part in server.waited],
            "besides": [_slice(part, server.total_ns) for part in server.besides],
        }
        for server in listed[:MAX_SERVERS]
    ]


def _lanes_of(wrong: list[Finding], drawn: Iterable[int]) -> Columns:
    """Say of each finding, consequences too, on which of the lanes it happened."""
    lanes = set(drawn)
    named = [one for finding in wrong for one in (finding, *finding.consequences)]
    streams = ([stream for stream in one.streams if stream in lanes][:MAX_STREAMS] for one in named)
    return {
        "number": [one.number for one in named],
        "title": [one.title for one in named],
        "streams": list(streams),
    }


def _slice(part: Part, whole_ns: int) -> dict[str, Any]:
    return {
        "part": part,
        "share": format_share(part.total_ns, whole_ns),
        "stalled": f"{100 * part.stalled_ns / part.total_ns:.3f}",
    }


def _policy(*scripts: str) -> str:
    """Nothing may be loaded, and only these scripts run (CSP level 3, section 6.7.2: source lists, hashes)."""
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _version() -> str:
    try:
        return metadata.version("conchart")
    except metadata.PackageNotFoundError:  # run from a source tree that was never installed
        return "(not installed)"


@cache
def _template() -> Any:  # noqa: ANN401  (jinja2's template type tells nothing more)
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    environment.filters.update(brief=format_ns, count=format_count)
    return environment.from_string(_resource("page.html.j2"))


@cache
def _plotly() -> str:
    script: str = plotly.offline.get_plotlyjs()
    return script.replace("\r\n", "\n")  # as browsers normalise it before they hash it


@cache
def _script() -> str:
    parts = "\n".join(_resource(f"{name}.js") for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n{parts}\n}})();\n'


@cache
def _style() -> str:
    colours = "\n".join(f"  --{kind.name}: {kind.colour};" for kind in PHASES)
    fills = "\n".join(f".k-{kind.name} {{ --fill: var(--{kind.name}); }}" for kind in PHASES)
    fills += "".join(f"\n.s-{step.name} {{ --fill: {step.colour}; }}" for step in STEPS)
    hatched = ", ".join(f".k-{kind.name}" for kind in PHASES if kind.hatched)
    return (
        f":root {{\n{colours}\n}}\n{_resource('page.css')}\n{fills}\n{hatched} {{ background-image: var(--hatch); }}\n"
    )


def _resource(name: str) -> str:
    return resources.files("conchart.charts").joinpath("templates", name).read_text(encoding="utf-8")
