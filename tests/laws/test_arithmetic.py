"""One arithmetic: in every capture, a count of one thing is one number, parts add up, none exceeds its whole."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import conchart
from conchart import Trace
from conchart.errors import ConchartError
from conchart.outputs.options import DrawOptions
from conchart.outputs.terminal.screen import first_screen
from conchart.report.findings import tally_findings
from conchart.report.report import Report, report_of
from conchart.report.servers import Server
from conchart.store.sql import TO_GROUP
from tests.conftest import CASES, capture_of, keys_of, name_of

KEYED = [case for case in CASES if (case / "keys.log").exists() and not keys_of(case)]
CORPUS = os.environ.get("CONCHART_CORPUS")
FOREIGN = (
    sorted(path for path in Path(CORPUS).iterdir() if path.suffix in (".pcap", ".pcapng", ".cap")) if CORPUS else ()
)

Law = Callable[[Trace, Report], None]


def waits_have_shares(trace: Trace, report: Report) -> None:
    """What users waited is divided without remainder, and each entry of the answer is a part of it."""
    waited_ns = report.totals.waited_ns
    times = [one.ns for one in report.unexplained if one.part]
    assert times == sorted(times, reverse=True)
    assert sum(one.ns for one in report.unexplained) + sum(one.own_ns for one in report.findings) == waited_ns
    assert all(one.ns > 0 for one in report.unexplained)
    answer = report.verdict
    assert all(0 <= ns <= waited_ns for ns in (answer.rest_ns, *(entry.cost_ns for entry in answer.entries)))
    assert sum(entry.cost_ns for entry in answer.entries) + answer.rest_ns == waited_ns
    assert sum(row.cost_ns for row in answer.rows) == waited_ns


def parts_add_up(trace: Trace, report: Report) -> None:
    """Phases add up to lifetimes, servers' times to those, their waits to what users waited, splits to waits."""
    ((lived, phased),) = trace.fetch(
        """
        SELECT (SELECT coalesce(sum(closed_at - opened_at), 0) FROM connections),
            (SELECT coalesce(sum(end_at - start_at), 0) FROM phases)
        """
    )
    listed = report.servers()
    timed = sum(one.total_ns for one in listed)
    assert lived == phased == timed == report.totals.total_ns
    for one in listed:
        assert sum(part.total_ns for part in one.waited) == one.waited_ns
        assert sum(part.total_ns for part in (*one.waited, *one.besides)) == one.total_ns
    waits = {(one.server_ip, one.server_port): _waited_in(one, "wait") for one in listed}
    for place, split in report.splits.items():
        assert sum(ns for _, ns, _ in split.parts() if not split.stores) in (0, split.wait_ns)
        assert split.wait_ns <= waits[place]


def _waited_in(server: Server, phase: str) -> int:
    return sum(part.total_ns for part in server.waited if part.phase.name == phase)


def counts_agree(trace: Trace, report: Report) -> None:
    """Overview, servers, findings and the tables count alike."""
    listed, counted = report.servers(), report.overview
    rows = {table: trace.count(table) for table in ("connections", "exchanges", "handshakes", "findings")}
    assert sum(one.connections for one in listed) == counted.connections == rows["connections"]
    assert sum(one.requests for one in listed) == counted.requests == rows["exchanges"]
    assert counted.handshakes == rows["handshakes"]
    assert sum(one.handshakes_resumed for one in listed) == counted.resumed
    kinds = ("handshakes_full", "handshakes_resumed", "handshakes_failed", "handshakes_incomplete")
    (unknown,) = trace.fetch("SELECT count(*) FROM handshakes WHERE outcome = 'complete' AND kind IS NULL")[0]
    assert sum(getattr(one, kind) for one in listed for kind in kinds) == counted.handshakes - unknown
    ((refused, unanswered),) = trace.fetch(
        f"""
        SELECT count(*) FILTER (state = 'refused'), count(*) FILTER (state = 'unanswered' AND NOT {TO_GROUP})
        FROM connections
        """
    )
    assert (sum(one.refused for one in listed), sum(one.unanswered for one in listed)) == (refused, unanswered)
    assert sum(one.count for one in tally_findings(report.findings)) == len(report.findings)


def the_duration_is_the_files(trace: Trace, report: Report) -> None:
    """From the first packet to the last, whatever an axis leaves out."""
    ((first_at, last_at),) = trace.fetch("SELECT min(first_at), max(last_at) FROM captures")
    assert report.captured_ns == (0 if first_at is None else last_at - first_at)


def instants_lie_in_their_connection(trace: Trace, report: Report) -> None:
    """Whatever the clock does: nothing happens on a connection before it opens, nor after it closes."""
    for table, first, last in (
        ("exchanges", "request_at", "coalesce(response_done_at, response_at, request_done_at, request_at)"),
        ("handshakes", "hello_at", "ready_at"),
        ("phases", "start_at", "end_at"),
    ):
        outside = f"SELECT {table}.stream FROM {table} JOIN connections USING (stream)"
        assert not trace.fetch(f"{outside} WHERE {first} < opened_at"), table
        assert not trace.fetch(f"{outside} WHERE {last} > closed_at"), table


def no_share_is_above_the_whole(trace: Trace, report: Report) -> None:
    """As the first screen prints it."""
    for line in first_screen(report, 100, colours=False, options=DrawOptions()):
        assert all(int(share) <= 100 for share in re.findall(r"(\d+) %", line.plain)), line.plain


LAWS: tuple[Law, ...] = (
    waits_have_shares,
    parts_add_up,
    counts_agree,
    the_duration_is_the_files,
    instants_lie_in_their_connection,
    no_share_is_above_the_whole,
)


def test_arithmetic(every_trace: Trace) -> None:
    laws_hold(every_trace)


def laws_hold(trace: Trace) -> None:
    with report_of(trace) as report:  # as every output finds the tables
        for law in LAWS:
            law(trace, report)


@pytest.mark.thorough
@pytest.mark.parametrize("case", KEYED, ids=name_of)
def test_arithmetic_with_keys(case: Path) -> None:
    all_laws(capture_of(case), case / "keys.log")


@pytest.mark.thorough
@pytest.mark.parametrize("capture", FOREIGN[::8], ids=lambda path: path.name)
def test_arithmetic_of_foreign_captures(capture: Path) -> None:
    all_laws(capture, capture.with_name(f"{capture.name}.keylog"))


def all_laws(capture: Path, keys: Path) -> None:
    try:
        trace = conchart.read(capture, keylog=[keys] if keys.exists() else [])
    except ConchartError:
        pytest.skip("not to be read")
    with trace:
        laws_hold(trace)
