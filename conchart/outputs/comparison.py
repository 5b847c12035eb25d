"""Files made from a comparison: page, text, or a document for tools; chosen by suffix, written whole or not at all.

In: a comparison, a path. Out: the file.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from conchart.errors import UsageError
from conchart.files.whole import whole_file
from conchart.outputs.terminal.comparison import write_comparison_text
from conchart.questions.compare.model import Comparison, Difference, FindingChange, Hop, Side
from conchart.questions.compare.noise import CHANCE, Spread
from conchart.report.servers import Part, Server
from conchart.store.schema import SCHEMA_VERSION


def check_comparison(path: Path) -> None:
    """Refuse what ``write_comparison`` would refuse, before captures are read.

    Raises:
        UsageError: No format of a comparison has this suffix.
    """
    if path.suffix.lower() not in COMPARISON_SUFFIXES:
        given = f"the suffix {path.suffix!r}" if path.suffix else "no suffix"
        raise UsageError(
            f"cannot write {path}: {given}; conchart writes a comparison as {' '.join(COMPARISON_SUFFIXES)}"
        )


def write_comparison(comparison: Comparison, path: Path) -> None:
    """Write ``path`` in the format of its suffix.

    Raises:
        UsageError: As ``check_comparison``.
        OutputError: The file cannot be written; what was there before is untouched.
    """
    check_comparison(path)
    with whole_file(path) as unfinished:
        _FORMATS[path.suffix.lower()](comparison, unfinished)


def dump_comparison(comparison: Comparison, sink: IO[str]) -> None:
    """Write the document to an open file; ``docs/comparing.md`` describes it."""
    json.dump(_document(comparison), sink, ensure_ascii=False, indent=1)
    sink.write("\n")


def _write_page(comparison: Comparison, path: Path) -> None:
    """The page loads only when asked: plotly is slow."""
    from conchart.outputs.page.comparison import render_comparison

    path.write_text(render_comparison(comparison), encoding="utf-8", newline="\n")


def _write_json(comparison: Comparison, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as sink:
        dump_comparison(comparison, sink)


_FORMATS: dict[str, Callable[[Comparison, Path], None]] = {
    ".html": _write_page,
    ".txt": write_comparison_text,
    ".json": _write_json,
}
COMPARISON_SUFFIXES = tuple(_FORMATS)


def _document(comparison: Comparison) -> dict[str, Any]:
    return {
        "conchart": SCHEMA_VERSION,
        "chance": CHANCE,
        "headlines": [{"sentence": one.sentence, "remark": one.remark} for one in comparison.headlines],
        "before": _side(comparison.before),
        "after": _side(comparison.after),
        "servers": [_hop(hop) for hop in comparison.hops],
        "findings": [_finding(change) for change in comparison.findings],
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        "name": side.name,
        "packets": side.packets,
        "span_ns": side.span_ns,
        "connections": side.connections,
        "requests": side.requests,
        "only": [_server(server) for server in side.only],
    }


def _hop(hop: Hop) -> dict[str, Any]:
    return {
        "before": _server(hop.before),
        "after": _server(hop.after),
        "tier": hop.tier,
        "matched_by": hop.by,
        "same_work": hop.same_work,
        "measures": [_difference(one) for one in hop.differences],
    }


def _server(server: Server) -> dict[str, Any]:
    counts = ("connections", "requests", "refused", "unanswered")
    handshakes = ("handshakes_full", "handshakes_resumed", "handshakes_failed", "handshakes_incomplete")
    return {
        **{name: getattr(server, name) for name in ("server_ip", "server_port", "role", *counts, *handshakes)},
        "names": list(server.names),
        "waited_ns": server.waited_ns,
        "waited": [_part(part) for part in server.waited],
    }


def _part(part: Part) -> dict[str, Any]:
    return {"phase": part.phase.name, "stall": part.word, "ns": part.total_ns}


def _difference(one: Difference) -> dict[str, Any]:
    verdict = one.verdict.name.lower()
    both = {"before": _spread(one.before), "after": _spread(one.after)}
    return {"measure": one.measure.name, **both, "verdict": verdict, "p": one.chance}


def _spread(spread: Spread) -> dict[str, Any]:
    return {"n": spread.n, "median_ns": spread.median, "p95_ns": spread.p95}


def _finding(change: FindingChange) -> dict[str, Any]:
    return {
        "change": change.change,
        "finding": change.finding,
        "title": change.title,
        "severity": change.severity,
        "server": change.server,
        "before": {"count": change.before_count, "own_ns": change.before_ns},
        "after": {"count": change.after_count, "own_ns": change.after_ns},
    }
