"""The answer: what users waited, divided without remainder and overlap, the largest part first."""

from pathlib import Path
from typing import Any

import conchart
from conchart import Trace
from conchart.labels.units import format_ns
from conchart.report.findings import Finding
from conchart.report.partition import LEAST_SHARE
from conchart.report.remarks import Remark
from conchart.report.report import Report
from conchart.report.verdict import LEAST_STANDOUT_NS, MOST_ROWS, missing
from tests.charts.story import MS, Story
from tests.conftest import ROOT, TellTrace, analysed, places_of
from tests.laws.test_beginning import WITHOUT_SYN


def test_the_answer_keeps_the_laws(every_trace: Trace) -> None:
    report = Report(every_trace)
    what_is_divided_has_no_remainder(report)
    what_findings_explain_is_part_of_what_its_owner_has(every_trace, report)
    the_largest_part_comes_first(report)
    the_claim_that_nothing_is_wrong_agrees_with_all_tables(every_trace, report)


def test_the_answer_of_several_places_keeps_the_laws(placed_trace: Trace) -> None:
    the_answer_of_places_holds(placed_trace)


def test_it_keeps_them_where_no_connection_has_its_beginning(every_place: Path) -> None:
    with conchart.read(places=places_of(every_place), filter=WITHOUT_SYN) as trace:
        the_answer_of_places_holds(trace)


def the_answer_of_places_holds(trace: Trace) -> None:
    report = Report(trace)
    what_is_divided_has_no_remainder(report)
    what_findings_explain_is_part_of_what_its_owner_has(trace, report)
    the_largest_part_comes_first(report)
    no_place_has_more_than_was_spent_there(report)


def no_place_has_more_than_was_spent_there(report: Report) -> None:
    spent: dict[tuple[str, str | None, int | None], int] = {
        (part.words, one.server_ip, one.server_port): part.total_ns - part.explained_ns
        for one in report.spent
        for part in one.parts
    }
    for one in report.unexplained:
        assert one.ns <= spent.get((one.part, one.server_ip, one.server_port), one.ns)


def what_is_divided_has_no_remainder(report: Report) -> None:
    waited_ns = report.totals.waited_ns
    assert sum(one.own_ns for one in report.findings) + sum(one.ns for one in report.unexplained) == waited_ns
    assert all(one.ns > 0 for one in report.unexplained)
    answer = report.verdict
    assert sum(entry.cost_ns for entry in answer.entries) + answer.rest_ns == waited_ns
    assert 0 <= answer.rest_ns <= waited_ns
    assert sum(row.cost_ns for row in answer.rows) == waited_ns
    assert {entry for entry in answer.entries if entry.kind != "state"} <= {*answer.rows}


def what_findings_explain_is_part_of_what_its_owner_has(trace: Trace, report: Report) -> None:
    ((explained_ns, wrong),) = trace.fetch(
        "SELECT coalesce(sum(explained_ns), 0), count(*) FILTER ((explained_ns BETWEEN 0 AND waited_ns) IS NOT TRUE)"
        " FROM explained_waits LEFT JOIN wait_owners USING (server_ip, server_port, phase, owner)"
    )
    assert (explained_ns, wrong) == (sum(one.own_ns for one in report.findings), 0)


def size(finding: Finding) -> int:
    """Give what orders it: faults that nobody waits for are as much as a wait that stands out."""
    if finding.critical_ns or finding.vain_ns or finding.severity == "note":
        return finding.own_ns + finding.vain_ns
    return LEAST_STANDOUT_NS


def the_largest_part_comes_first(report: Report) -> None:
    answer = report.verdict
    rows = [entry for entry in answer.entries if entry.kind != "state"]
    found = {one.number: one for one in report.findings}
    sizes = [entry.cost_ns if entry.number is None else size(found[entry.number]) for entry in rows]
    assert len(rows) <= MOST_ROWS
    # The last one may be the worst finding, however small it is.
    assert sizes[:-1] == sorted(sizes[:-1], reverse=True)
    for one in report.unexplained:
        is_listed = (one.ns, one.title) in {(entry.cost_ns, entry.title) for entry in rows}
        assert is_listed or (one.part or "parts below 1 %") in answer.rest
        assert not one.stream or one.detail or one.next_step
        assert is_listed or not one.part or len(rows) == MOST_ROWS
        assert not one.part or LEAST_SHARE * one.ns >= answer.waited_ns
    wrong = {"serious", "warning"} & {entry.severity for entry in answer.entries}
    assert bool(wrong) == (answer.state == "faults") or answer.state == "nobody served"
    assert (answer.state != "faults") == any(entry.kind == "state" for entry in answer.entries)


NOTHING = {"Nothing wrong found", "Nothing found that costs users time", "Nothing serious found"}


def the_claim_that_nothing_is_wrong_agrees_with_all_tables(trace: Trace, report: Report) -> None:
    verdict = report.verdict
    ((unjudged,),) = trace.fetch("SELECT count(*) FROM unjudged")
    ((bad,),) = trace.fetch("SELECT count(*) FROM findings WHERE severity <> 'note' AND root IS NULL")
    titles = {entry.title for entry in verdict.entries}
    if verdict.state == "healthy":
        assert (unjudged, bad, verdict.in_vain) == (0, 0, ""), "as --fail-on warning and unjudged say"
    assert (verdict.state == "healthy") == bool(titles & NOTHING)
    assert bool(verdict.unjudged) == bool(unjudged and verdict.state not in ("faults", "nobody served"))
    ((beyond,),) = trace.fetch("SELECT count(*) FROM unjudged WHERE connections < 1 OR waited_ns <= 0")
    assert beyond == 0


def test_a_wait_that_nothing_was_found_about_is_told_with_its_worst_request(trace_of: TellTrace) -> None:
    story = Story()
    for port, wait in ((1, 300), (2, 5_700)):
        story.connect(
            ("10.0.0.1", port),
            ("10.0.0.2", 80),
            0,
            [("syn", MS), ("request", MS), ("wait", wait * MS), ("transfer", MS)],
        )
    story.capture()
    verdict = Report(trace_of(story)).verdict
    (entry,) = (one for one in verdict.entries if one.kind == "wait")
    assert (entry.title, entry.where, entry.cost_ns, entry.share) == (
        "Wait for the server, its own time",
        "www.example.com:80",
        5_999_910_000,
        ">99 %",
    )
    assert "the longest" in entry.detail
    assert "5.70 s at frame" in entry.detail
    assert entry.next_step.startswith("look into the server's log")
    assert (verdict.rest_ns, verdict.rest) == (6_090_000, "parts below 1 %")


def test_small_parts_at_many_servers_are_one(trace_of: TellTrace) -> None:
    story = Story()
    for number in range(200):
        story.connect(("10.0.0.1", number), (f"10.0.1.{number}", 80), 0, [("syn", 3 * MS)])
    story.connect(("10.0.0.1", 999), ("10.0.0.2", 80), 0, [("request", 10 * MS), ("transfer", 390 * MS)])
    story.capture()
    verdict = Report(trace_of(story)).verdict
    assert [(entry.title, entry.where, entry.share) for entry in verdict.entries if entry.kind == "wait"] == [
        ("TCP handshake", "200 servers", "60 %"),
        ("Transfer", "www.example.com:80", "39 %"),
        ("Request", "www.example.com:80", "1 %"),
    ]
    assert (verdict.rest_ns, verdict.rest) == (0, "")


def test_a_small_finding_is_never_above_a_large_part_that_nothing_explains() -> None:
    with conchart.read(ROOT / "captures/far-away/modem-tls12/input.pcap") as trace:
        entries = Report(trace).verdict.entries
    assert [(one.kind, one.title.partition(":")[0]) for one in entries] == [
        ("wait", "Transfer"),
        ("wait", "Wait for the server, its own time"),
        ("finding", "No keepalive"),
        ("wait", "Wait for the server, on the path"),
        ("wait", "TLS handshake, on the path"),
    ]


def test_a_fault_that_nobody_waits_for_stands_above_trifles() -> None:
    with conchart.read(ROOT / "captures/wild/grpc-too-many-pings/input.pcap") as trace:
        fault, wait = Report(trace).verdict.entries
    assert (fault.title.partition(":")[0], fault.cost_ns, wait.kind) == ("GOAWAY", 0, "wait")
    assert wait.cost_ns < LEAST_STANDOUT_NS


def test_a_pooler_s_queue_is_told_beside_its_own_time() -> None:
    """Waiting for a pooled connection is the pooler's time, the database's is what stands behind it."""
    with conchart.read(ROOT / "captures/hops/pgbouncer-transaction-2-both-8/input.pcap") as trace:
        parts = {one.part: one for one in Report(trace).unexplained}
        owned = dict(trace.fetch("SELECT owner::VARCHAR, waited_ns FROM wait_owners WHERE phase = 'wait'"))
    pooled = parts["wait for the server, waiting for a pooled connection"]
    behind = parts["wait for the server, the backend"]
    assert pooled.detail.startswith(f"{format_ns(owned['proxy'])} less ")
    assert behind.detail.startswith(f"{format_ns(owned['server'])} less ")


def test_a_lookup_is_no_wait_for_a_server_whose_log_one_could_read() -> None:
    with conchart.read(ROOT / "captures/udp/services/input.pcap") as trace:
        lookup, *_ = Report(trace).unexplained
    assert lookup.title == "DNS lookup"
    assert "resolver" in lookup.next_step


def test_a_forward_proxy_is_no_server_and_has_nobody_s_name() -> None:
    with conchart.read(ROOT / "captures/findings/slow-tunnel/input.pcap") as trace:
        analysed(trace, "UPDATE connections SET server_name = 'shop.example'")
        wait, *_ = (one for one in Report(trace).unexplained if one.kind == "wait" and one.owner == "server")
    assert wait.part == "wait for the server, the proxy and what stands behind it"
    assert wait.where == "10.98.1.20:80"


def test_connections_that_open_late_are_not_told_to_be_kept_open() -> None:
    with conchart.read(ROOT / "captures/findings/nat-answer-bypass/input.pcap") as trace:
        (opening,) = (one for one in Report(trace).unexplained if one.part == "TCP handshake")
    assert "6 SYNs or SYN-ACKs sent again" in opening.detail
    assert opening.next_step.startswith("look for where packets are lost")


def test_nothing_is_wrong_only_where_nothing_is(trace_of: TellTrace) -> None:
    story = Story()
    story.connect(("10.0.0.1", 1), ("10.0.0.2", 80), 0, [("unseen", 0)])
    story.capture()
    verdict = Report(trace_of(story)).verdict
    (entry,) = verdict.entries
    assert (entry.kind, entry.title, verdict.state) == ("state", "Nothing wrong found", "healthy")


PHASES = [("syn", MS), ("request", MS), ("wait", MS), ("transfer", MS)]


def state_of(trace_of: TellTrace, *connections: dict[str, Any]) -> tuple[str, str, str]:
    """Give the state of connections with these columns, its sentence, and what was not judged."""
    story = Story()
    for port, columns in enumerate(connections):
        phases = columns.pop("phases", PHASES)
        story.connect(("10.0.0.1", port), ("10.0.0.2", 80), 0, phases, **columns)
    story.capture()
    verdict = Report(trace_of(story)).verdict
    entry = verdict.entries[0]
    return verdict.state, ": ".join(filter(None, (entry.title, entry.detail))), verdict.unjudged


def test_a_beginning_that_is_missing_leaves_the_opening_unjudged(trace_of: TellTrace) -> None:
    assert state_of(trace_of, {}, {"state": "midstream", "syn_at": None}) == (
        "not judged",
        "Nothing wrong found in what could be judged",
        "how 1 connection opened (before the capture began)",
    )


def test_of_one_direction_nothing_is_judged(trace_of: TellTrace) -> None:
    state, sentence, unjudged = state_of(trace_of, {"packets_server": 0})
    assert (state, sentence) == ("not judged", "Nothing wrong found in what could be judged")
    assert unjudged.startswith("1 connection with one direction only")


def test_what_encryption_hides_is_not_judged(trace_of: TellTrace) -> None:
    tls = [("syn", MS), ("tls", MS), *PHASES[1:]]
    assert state_of(trace_of, {"phases": tls, "app": "tls"})[::2] == (
        "not judged",
        "what 1 connection said (encrypted, no keys), 5.00 ms of waits",
    )


def test_half_of_the_wait_in_one_part_is_no_fault_and_not_healthy_either(trace_of: TellTrace) -> None:
    late = [("syn", MS), ("request", MS), ("wait", 97 * MS), ("transfer", MS)]
    assert state_of(trace_of, {"phases": late}) == (
        "no known fault",
        "No known fault: 97 % of what users waited is one part: "
        "wait for the server, its own time at www.example.com:80",
        "",
    )


def test_who_was_never_served_is_not_content(trace_of: TellTrace) -> None:
    state, sentence, unjudged = state_of(trace_of, {}, {"phases": [("syn", MS)], "state": "unanswered"})
    assert (state, sentence, unjudged) == ("not judged", "Nothing wrong found in what was served", "")


def test_where_nobody_was_served_nothing_else_is_said(trace_of: TellTrace) -> None:
    state, sentence, unjudged = state_of(trace_of, {"phases": [("syn", MS)], "state": "unanswered"})
    assert (state, unjudged) == ("nobody served", "")
    assert sentence.startswith("Nobody was served: 1 unanswered")


def test_what_follows_from_a_gap_is_not_told_beside_it() -> None:
    def remark(kind: str, *, warning: bool = True) -> Remark:
        return Remark(warning=warning, kind=kind, title=kind, effect="", advice="")

    assert [*missing([remark("truncated"), remark("note"), remark("unseen"), remark("keys")])] == ["truncated"]
    assert [*missing([remark("unseen"), remark("silent", warning=False)])] == ["unseen"]
    assert [*missing([remark("note")])] == ["note"]
