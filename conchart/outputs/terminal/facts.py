"""What was captured and how good the capture is. In: a report. Out: labelled lines."""

from collections.abc import Iterable, Iterator

from conchart.labels.printable import printable
from conchart.labels.units import count_of, format_bytes, format_count, format_instant, format_ns
from conchart.report.kinds import Kinds
from conchart.report.overview import Overview
from conchart.report.report import Report

_TIMESTAMPS = {1: "ns", 1_000: "µs", 1_000_000: "ms", 1_000_000_000: "s"}

_MOST_KINDS = 3


def facts(report: Report) -> Iterator[tuple[str, str]]:
    """Give label and text of each fact; the label is empty where a line continues the one before."""
    for file in report.files:
        resolution = file.resolution_ns
        stamps = f"{_TIMESTAMPS.get(resolution, format_ns(resolution))} timestamps" if resolution else None
        yield "Capture", f"{_path(file.path)} ({_joined((file.format, file.link_types, stamps))})"
    yield "Packets", _packets(report) + "".join(f" {began}" for began in _began(report.overview))
    yield "Connections", _tally(report.tallies.connections) or "none"
    if handshakes := _tally(report.tallies.handshakes):
        yield "TLS", handshakes
    for remark in report.remarks:
        if remark.kind == "keys":
            yield "Keys", remark.title
    if requests := _tally(report.tallies.requests):
        yield "Requests", requests
    if report.network:
        yield "Network", ", ".join(report.network)
    if nothing := _nothing_selected(report.overview):
        yield "Selection", nothing
    else:
        yield from _quality(report)


def brief_facts(report: Report) -> Iterator[tuple[str, str]]:
    """Give label and text: what was captured, what is in it, how good it is and when it was."""
    paths = report.overview.paths
    more = f" and {count_of(len(paths) - 1, 'more file')}" if len(paths) > 1 else ""
    yield "capture", f"{_path(paths[0])}{more}: {_packets(report)}" if paths else _packets(report)
    counts = (
        _counted(report.tallies.connections, "connection"),
        _counted(report.tallies.handshakes, "TLS handshake"),
        _counted(report.tallies.requests, "request"),
        *report.network,
    )
    yield "", "; ".join(filter(None, counts)) or "no connection"
    if nothing := _nothing_selected(report.overview):
        yield "selected", nothing
    else:
        beside = [remark.title for remark in report.remarks if remark.kind in ("keys", "translated", "checks")]
        yield "", "; ".join((report.verdict.quality, *beside, *_began(report.overview)))


def _packets(report: Report) -> str:
    """``265 packets, 199 kB, 337 ms``."""
    counted = report.overview
    number = count_of(counted.packets, "packet")
    if counted.selected != counted.packets:
        number = f"{format_count(counted.selected)} of {number} selected"
    if counted.first_at is None:
        return number
    return f"{number}, {format_bytes(counted.bytes)}, {format_ns(report.captured_ns)}"


def _began(counted: Overview) -> list[str]:
    return [] if counted.first_at is None else [f"from {format_instant(counted.first_at)}"]


def _nothing_selected(counted: Overview) -> str:
    """Say that a choice of packets chose none; empty where it did not."""
    if not counted.packets or counted.selected:
        return ""
    return f"nothing: none of {count_of(counted.packets, 'packet')} fits {printable(counted.selection or 'it')}"


def _quality(report: Report) -> Iterator[tuple[str, str]]:
    """Say what limits the capture; what is said of keys has a place of its own.

    The advice of a note is left out: the command line warns of damage in full.
    """
    label = "Quality"
    for remark in report.remarks:
        if remark.warning and remark.kind != "keys":
            advice = f": {remark.advice}" if remark.advice and remark.kind != "note" else ""
            yield label, remark.title + advice
            label = ""
    if label:
        yield label, "no packet lost, cut or unreadable"


def hints(report: Report) -> Iterator[tuple[str, str]]:
    """Say in a line what is good to know of the capture, and changes no number."""
    if titles := [remark.title for remark in report.remarks if not remark.warning and remark.kind != "keys"]:
        yield "Note", ". ".join(titles)


def _counted(found: Kinds, noun: str) -> str:
    """``3 connections (2 complete, 1 reset)``, the most frequent kinds; empty where there is none."""
    if not found:
        return ""
    kinds = [f"{format_count(count)} {printable(name or 'unknown')}" for name, count in found[:_MOST_KINDS]]
    if len(found) == 1:
        kinds = [printable(found[0][0] or "unknown")]
    elif len(found) > _MOST_KINDS:
        kinds.append(count_of(sum(count for _, count in found[_MOST_KINDS:]), "other"))
    return f"{count_of(_sum(found), noun)} ({', '.join(kinds)})"


def _tally(found: Kinds) -> str:
    """Count in all and by kind: ``3: 2 complete, 1 reset``; empty where there is none."""
    parts = ", ".join(f"{format_count(count)} {printable(kind or 'unknown')}" for kind, count in found)
    return f"{format_count(_sum(found))}: {parts}" if found else ""


def _sum(found: Kinds) -> int:
    return sum(count for _, count in found)


def _path(path: str) -> str:
    return "standard input" if path == "-" else printable(path)


def _joined(parts: Iterable[str | None]) -> str:
    return ", ".join(printable(part) for part in parts if part)
