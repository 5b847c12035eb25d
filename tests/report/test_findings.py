"""What is said of a finding: its cost, where it is, what it brings with it."""

from pathlib import Path

import pytest

import conchart
from conchart import Trace
from conchart.report.findings import Finding, Tally, by_severity, findings, tally_findings
from tests.charts.story import MS
from tests.conftest import ROOT, empty_trace

RULES = ROOT / "tests/findings/rules"
CAPTURE = ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap"


def finding(**facts: object) -> Finding:
    """Make one that took 24 times 10 ms of 1 s."""
    usual = {
        "number": 0, "name": "slow", "title": "It is slow", "severity": "serious", "server": "", "client": "",
        "hop": "", "streams": (1, 2), "frames": (), "count": 24, "cost_ns": 240 * MS, "critical_ns": 240 * MS,
        "shared_ns": 0, "vain_ns": 0, "waited_ns": 1000 * MS, "each_ns": 10 * MS, "low_ns": 9 * MS, "high_ns": 11 * MS,
        "confidence": None, "who": "", "evidence": "slow", "why": "it is", "fixes": (),
        "unfinished": 0,
    }  # fmt: skip
    return Finding(**(usual | facts))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("facts", "cost"),
    [
        (
            {},
            "costs 240 ms of 1.00 s that users waited "
            "(24 delays on 2 connections; median 10.0 ms, 9.00–11.0 ms with 95 % confidence)",
        ),
        (
            {"low_ns": None, "high_ns": None, "count": 3, "confidence": 0.8},
            "costs 240 ms of 1.00 s that users waited (3 delays on 2 connections; median 10.0 ms; 80 % sure)",
        ),
        ({"count": 1, "confidence": 1.0}, "costs 240 ms of 1.00 s that users waited (1 delay)"),
        (
            {"count": 1, "unfinished": 1},
            "costs 240 ms of 1.00 s that users waited (1 delay, unfinished at the last packet)",
        ),
        (
            {"count": 3, "unfinished": 2, "low_ns": None},
            "costs 240 ms of 1.00 s that users waited "
            "(3 delays on 2 connections, 2 unfinished at the last packet; median 10.0 ms)",
        ),
        (
            {"shared_ns": 40 * MS, "low_ns": None, "count": 3},
            "costs 200 ms of 1.00 s that users waited, and 40.0 ms that another finding already counts "
            "(3 delays on 2 connections; median 10.0 ms)",
        ),
        (
            {"cost_ns": 500 * MS, "low_ns": None, "each_ns": 20 * MS},
            "costs 240 ms of 1.00 s that users waited (24 delays on 2 connections; 500 ms in all; median 20.0 ms)",
        ),
        ({"shared_ns": 240 * MS}, "no cost of its own: another finding already counts 240 ms"),
        ({"critical_ns": 0}, "costs users nothing: nobody waited for the 240 ms on 2 connections"),
        (
            {"critical_ns": 0, "vain_ns": 240 * MS, "count": 1},
            "cost users 240 ms, who got no answer (1 delay)",
        ),
        ({"critical_ns": 0, "cost_ns": 0, "each_ns": None}, "costs no time"),
    ],
)
def test_the_cost_is_a_sentence(facts: dict[str, object], cost: str) -> None:
    assert finding(**facts).cost == cost


@pytest.mark.parametrize(
    ("facts", "where"),
    [
        ({}, ""),
        ({"client": "10.0.0.5"}, "client 10.0.0.5"),
        ({"server": "a (10.0.0.9:443)", "hop": "server"}, "a (10.0.0.9:443)"),
        ({"server": "10.0.0.9:443", "hop": "backend", "client": "::1"}, "backend 10.0.0.9:443, client ::1"),
    ],
)
def test_it_is_at_a_server_or_a_client_or_in_the_capture(facts: dict[str, object], where: str) -> None:
    assert finding(**facts).where == where


def test_what_two_have_in_common_is_shown_once() -> None:
    one = finding(shared_ns=40 * MS)
    assert (one.own_ns, one.share) == (200 * MS, "20 %")
    assert finding(shared_ns=300 * MS, critical_ns=240 * MS).own_ns == 0


def test_they_are_counted_by_severity() -> None:
    listed = [Tally(severity=word, title=word, count=n) for word, n in (("note", 2), ("serious", 1), ("warning", 1))]
    assert (
        by_severity([*listed, Tally(severity="serious", title="another", count=1)]) == "2 serious, 1 warning, 2 notes"
    )
    assert by_severity([]) == ""


def test_a_consequence_stands_inside_what_causes_it() -> None:
    with conchart.read(CAPTURE, findings=[RULES]) as trace:
        listed = findings(trace)
    first = next(one for one in listed if one.name == "slow-opening")
    assert [one.name for one in first.consequences] == ["slow-tls"]
    assert first.brings == "brings with it: TLS handshakes take time (3 delays on 3 connections, 205 ms)"
    assert first.where == "front shop.example (10.77.1.1:443), client 10.77.1.10"
    assert first.fixes == ("keep connections", "nginx: keepalive_timeout 75s;")


def test_names_are_left_out_where_they_are_not_wanted() -> None:
    with conchart.read(CAPTURE, findings=[RULES]) as trace:
        assert findings(trace, names=False)[0].where == "front 10.77.1.1:443, client 10.77.1.10"


def row(trace: Trace, number: int, root: int | None = None, **facts: object) -> None:
    """Put a finding into a trace."""
    values: dict[str, object] = {
        "number": number,
        "root": root,
        "finding": f"f{number}",
        "title": "T",
        "severity": "note",
        "waited_ns": 1,
    }
    values |= {"streams": [], "frames": [], "evidence": "e", "why": "w", "count": 0}
    values |= dict.fromkeys(("cost_ns", "critical_ns", "shared_ns", "vain_ns"), 0) | facts
    columns = ", ".join(f"${name} AS {name}" for name in values)
    trace.execute(f"INSERT INTO findings BY NAME SELECT {columns}", values)


def test_a_consequence_may_be_worse_than_what_causes_it() -> None:
    with empty_trace() as trace:
        row(trace, 0, root=1)
        row(trace, 1)
        row(trace, 2, root=1)
        (only,) = findings(trace)
    assert (only.number, [one.number for one in only.consequences]) == (1, [0, 2])


def test_text_is_safe_to_print_and_ways_to_change_stay_apart() -> None:
    with empty_trace() as trace:
        row(trace, 0, who="\x1b[31m", advice="one\ntwo\x07", server="\u202ea", server_ip="10.0.0.9", server_port=443)
        (only,) = findings(trace)
    assert (only.who, only.fixes) == ("\ufffd[31m", ("one", "two\ufffd"))
    assert only.server == "\ufffda (10.0.0.9:443)"


def test_whoever_saves_a_trace_saves_its_findings(tmp_path: Path) -> None:
    with conchart.read(CAPTURE, findings=[RULES]) as trace:
        listed = findings(trace)
        trace.write(tmp_path / "a.duckdb")
    with Trace.load(tmp_path / "a.duckdb") as again:
        assert findings(again) == listed


def test_of_many_findings_some_are_told_and_the_others_counted() -> None:
    with empty_trace() as trace:
        for number in range(40):
            row(trace, number, title=f"T{number % 2}", severity=("serious", "warning", "note")[number % 3])
        listed = findings(trace)
    assert [one.number for one in listed] == [*range(40)]
    left = tally_findings(listed, without=[listed[number] for number in (0, 1, 3, 4, 6)])
    assert sum(one.count for one in left) == 35
    assert {(one.severity, one.title) for one in left} == {
        (word, title) for word in ("serious", "warning", "note") for title in ("T0", "T1")
    }
    assert [(one.severity, one.count) for one in tally_findings(listed)][:2] == [("serious", 7), ("warning", 7)]
