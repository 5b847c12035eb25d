"""The report: every part is worked out once, and what shows it needs no database."""

import io
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import conchart
from conchart import DrawOptions, Trace
from conchart.labels.commands import commands
from conchart.labels.phases import PHASE_BY_NAME
from conchart.outputs.terminal import print_findings, print_summary
from conchart.outputs.terminal.screen import LINES, first_screen
from conchart.outputs.terminal.sheet import plain_console
from conchart.report.axis import TimeAxis
from conchart.report.findings import Finding
from conchart.report.kinds import CaptureFile, Tallies
from conchart.report.lanes import Lane, Stretch
from conchart.report.overview import Overview
from conchart.report.report import Report, report_of
from conchart.report.servers import Part, Server, ServerGroup, Totals
from conchart.report.verdict import Served, verdict
from tests.conftest import MS, ROOT, T0

CAPTURE = ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap"


def finding(number: int = 0, **others: Any) -> Finding:  # noqa: ANN401
    defaults: dict[str, Any] = {
        "number": number,
        "name": "slow-server",
        "title": "Slow server: it takes long to answer",
        "severity": "serious",
        "server": "shop.example (10.0.0.9:80)",
        "brief_server": "shop.example:80",
        "client": "",
        "hop": "server",
        "streams": (0,),
        "frames": (4,),
        "count": 1,
        "cost_ns": 700 * MS,
        "critical_ns": 700 * MS,
        "shared_ns": 0,
        "vain_ns": 0,
        "waited_ns": 1_000 * MS,
        "each_ns": 700 * MS,
        "low_ns": None,
        "high_ns": None,
        "confidence": 0.9,
        "unfinished": 0,
        "who": "the server's program",
        "evidence": "1 request",
        "why": "It works.",
        "fixes": ("give it an index",),
    }
    return Finding(**(defaults | others))


def server(wait_ns: int) -> Server:
    wait = Part(phase=PHASE_BY_NAME["wait"], total_ns=wait_ns, stalled=Counter())
    counts = dict.fromkeys(
        (
            *("refused", "unanswered", "handshakes_full", "handshakes_resumed", "handshakes_failed"),
            "handshakes_incomplete",
        ),
        0,
    )
    times = dict.fromkeys(
        (
            *("waited_ns", "users_ns", "total_ns", "wall_ns", "connection_median_ns", "connection_max_ns"),
            *("request_median_ns", "request_max_ns"),
        ),
        wait_ns,
    )
    return Server(
        server_ip="10.0.0.9",
        server_port=80,
        names=("shop.example",),
        role="server",
        unread=False,
        connections=1,
        requests=1,
        waited=(wait,),
        besides=(),
        split=None,
        **counts,
        **times,
    )


def by_hand(**others: object) -> Report:
    """A capture of one request that waited for 1 s."""
    findings = others.pop("findings", [finding()])
    assert isinstance(findings, list)
    answer = verdict(
        waited_ns=1_000 * MS,
        findings=findings,
        waits=[],
        in_vain="",
        served=Served(answered=1, responses=1, failed=0, refused=0),
        lacking=[],
        remarks=[],
        commands=commands(["made up.pcap"], ""),
    )
    life = Stretch("wait", 0, 1_000 * MS)
    lane = Lane(
        stream=0,
        server="10.0.0.9:80",
        names=("shop.example",),
        owner="",
        client="10.0.0.1:5000",
        state="reset",
        lasts_ns=1_000 * MS,
        life=life,
    )
    overview = Overview(
        packets=9,
        selected=9,
        bytes=1_200,
        first_at=T0,
        seen_from="capture",
        selection=None,
        paths=["made up.pcap"],
        connections=1,
        clients=1,
        servers=1,
        hosts=2,
        requests=1,
        with_requests=1,
        handshakes=0,
        resumed=0,
    )
    file = CaptureFile(
        path="made up.pcap", format="pcap", link_types="EN10MB", resolution_ns=1_000, packets=9, bytes=1_200
    )
    alike = ServerGroup(server=server(1_000 * MS), others=0, others_connections=0, others_waited_ns=0, one_address=True)
    parts: dict[str, object] = {
        "verdict": answer,
        "findings": findings,
        "overview": overview,
        "totals": Totals(count=1, waited_ns=1_000 * MS, longest_ns=1_000 * MS, total_ns=1_000 * MS),
        "alike": lambda most: [alike][:most],
        "queries": lambda most: [],  # noqa: ARG005
        "have_places": False,
        "logs": [],
        "compared_with_logs": lambda most: [],  # noqa: ARG005
        "axis": TimeAxis(origin=T0, span=1_000 * MS, folds=()),
        "lanes": lambda room: [lane][:room],
        "stretches": lambda lanes, slots: {one.stream: [life] for one in lanes},  # noqa: ARG005
        "files": (file,),
        "captured_ns": 1_000 * MS,
        "tallies": Tallies(connections=(("reset", 1),), handshakes=(), requests=(("http/1.1", 1),)),
        "network": ("1 segment sent again",),
        "remarks": [],
    }
    return Report.of(parts | others)


def test_the_first_screen_is_shown_without_a_database() -> None:
    lines = [line.plain for line in first_screen(by_hand(), 100, colours=False, options=DrawOptions())]
    text = "\n".join(lines)
    assert len(lines) <= LINES
    assert lines[0] == "Users waited 1.00 s."
    assert lines[1].startswith("serious  Slow server: it takes long to answer")
    assert lines[1].endswith("700 ms (70 %)")
    assert "change: give it an index" in text
    assert "conchart findings 'made up.pcap'" in text
    assert "10.0.0.1:5000 " + "w" * 10 in text
    assert "1.00 s reset" in text
    assert "1 connection (reset); 1 request (http/1.1); 1 segment sent again" in text


def test_all_findings_are_shown_without_a_database() -> None:
    sink = io.StringIO()
    print_findings(by_hand(findings=[finding(), finding(1, severity="note", title="Another")]), plain_console(sink))
    assert "serious: Slow server: it takes long to answer · shop.example:80" in sink.getvalue()
    assert "note: Another" in sink.getvalue()
    assert "look at frame 4" in sink.getvalue()


def test_without_findings_the_state_says_so() -> None:
    lines = [line.plain for line in first_screen(by_hand(findings=[]), 100, colours=False, options=DrawOptions())]
    assert lines[1] == "Nothing wrong found"


@pytest.mark.parametrize("verbose", [False, True])
def test_no_query_of_a_summary_runs_twice(verbose: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part is worked out once, whoever asks for it."""
    queries: Counter[tuple[str, str]] = Counter()
    fetch: Callable[..., Any] = Trace.fetch_typed

    def counting(self: Trace, query: str, params: object = None) -> object:
        queries[query, repr(params)] += 1
        return fetch(self, query, params)

    with conchart.read(CAPTURE) as trace:
        trace.provide("findings")
        monkeypatch.setattr(Trace, "fetch_typed", counting)
        with report_of(trace) as report:
            print_summary(report, plain_console(io.StringIO()), DrawOptions(verbose=verbose))
    assert [query for query, times in queries.items() if times > 1] == []


def test_an_anonymous_report_has_no_names() -> None:
    with conchart.read(CAPTURE) as trace, report_of(trace) as report:
        assert any(one.names for one in report.servers())
        assert not any(one.names for one in report.anonymous().servers())
        assert "shop.example" not in repr(report.anonymous().findings)


@pytest.mark.parametrize(("count", "rest"), [(100, []), (3_000, ["2\u2009899 smaller parts"])])
def test_of_very_many_parts_the_smallest_are_one_row_and_the_worst_fault_has_its_own(
    count: int, rest: list[str]
) -> None:
    notes = [finding(number, severity="note", critical_ns=10 * MS + number) for number in range(1, count)]
    waited_ns = 1 + sum(note.own_ns for note in notes)
    answer = verdict(
        waited_ns=waited_ns,
        findings=[finding(critical_ns=1), *notes],
        waits=(),
        in_vain="",
        served=Served(answered=1, responses=1, failed=0, refused=0),
        lacking=(),
        remarks=(),
    )
    assert sum(row.cost_ns for row in answer.rows) == waited_ns
    assert [row.title for row in answer.rows if row.kind == "rest"] == rest
    assert len(answer.rows) == min(count, 101) + len(rest)
    assert 0 in {row.number for row in answer.rows}
