"""The answer: it is never silent about what is half of the wait, and names the largest in any case."""

from collections import Counter
from typing import Any

from conchart import Trace
from conchart.report.remarks import Remark
from conchart.report.report import Report
from conchart.report.splits import splits
from conchart.report.verdict import missing
from tests.charts.story import MS, Story
from tests.conftest import TellTrace


def parts_of_the_wait(trace: Trace) -> tuple[Counter[tuple[str, ...]], int]:
    """Add up what users waited by phase, by server and by hop, whatever findings say."""
    found: Counter[tuple[str, ...]] = Counter()
    for ip, port, phase, ns in trace.fetch(
        "SELECT server_ip, server_port, phase, waited_ns FROM times SEMI JOIN (FROM servers WHERE role <> 'backend')"
        " USING (server_ip, server_port)"
    ):
        found[("server", ip, str(port))] += ns
        found[("phase", phase)] += ns
    for split in (one for one in splits(trace).values() if one.is_outermost):
        found += Counter({("hop", "proxy"): split.proxy_ns, ("hop", "pool"): split.pool_ns})
        found += Counter({("hop", "backend"): split.backend_ns, ("hop", "way"): split.connect_ns + split.tls_ns})
    ((waited,),) = trace.fetch("SELECT coalesce(sum(waited_ns), 0)::BIGINT FROM servers WHERE role <> 'backend'")
    return found, waited


def explained(trace: Trace, aspect: tuple[str, ...]) -> int:
    kind, *what = aspect
    condition = {"server": "server_ip = ? AND server_port = ?::INTEGER", "phase": "phase = ?", "hop": "false"}[kind]
    ((ns,),) = trace.fetch(
        f"SELECT coalesce(sum(explained_ns), 0)::BIGINT FROM explained SEMI JOIN (FROM servers WHERE role <> 'backend')"
        f" USING (server_ip, server_port) WHERE {condition}",
        [] if kind == "hop" else what,
    )
    return int(ns)


def test_half_of_the_wait_is_explained_or_named(every_trace: Trace) -> None:
    told = Report(every_trace).verdict
    found, waited = parts_of_the_wait(every_trace)
    named = set().union(*(entry.about for entry in told.entries))
    for aspect, ns in found.items():
        if waited and 2 * ns >= waited and aspect not in named:
            assert 2 * explained(every_trace, aspect) >= ns, aspect
    waits = [entry for entry in told.entries if entry.kind == "wait"]
    assert bool(waits) == bool(waited)
    if waits:
        ((most,),) = every_trace.fetch(
            "SELECT max(ns) FROM (SELECT sum(users_ns)::BIGINT AS ns FROM times GROUP BY server_ip, server_port, phase)"
        )
        assert most in {wait.cost_ns for wait in waits}, "what is larger is one server's, or the whole phase's"
    ((beyond,),) = every_trace.fetch(
        "SELECT count(*) FROM explained JOIN (SELECT server_ip, server_port, phase, sum(waited_ns) AS ns FROM times"
        " GROUP BY ALL) USING (server_ip, server_port, phase) WHERE explained_ns > ns OR explained_ns <= 0"
    )
    assert beyond == 0, "findings explain no more of a phase than users waited in it"
    wrong = {"serious", "warning"} & {entry.severity for entry in told.entries}
    assert bool(wrong) == (told.state == "faults") or told.state == "nobody served"
    assert (told.state == "faults") != any(entry.kind == "state" for entry in told.entries)


def test_the_claim_that_nothing_is_wrong_agrees_with_all_tables(every_trace: Trace) -> None:
    told = Report(every_trace).verdict
    ((unjudged,),) = every_trace.fetch("SELECT count(*) FROM unjudged")
    ((bad,),) = every_trace.fetch("SELECT count(*) FROM findings WHERE severity <> 'note' AND root IS NULL")
    titles = {entry.title for entry in told.entries}
    if told.state == "healthy":
        assert (unjudged, bad) == (0, 0), "as --fail-on warning says"
    assert (told.state == "healthy") == bool(titles & {"Nothing wrong found", "Nothing found that costs users time"})
    assert bool(told.unjudged) == bool(unjudged and told.state not in ("faults", "nobody served"))
    ((beyond,),) = every_trace.fetch("SELECT count(*) FROM unjudged WHERE connections < 1 OR waited_ns <= 0")
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
    told = Report(trace_of(story)).verdict
    (entry,) = (one for one in told.entries if one.kind == "wait")
    assert (entry.title, entry.where, entry.cost_ns, entry.share) == (
        "Largest wait: Wait for the server",
        "www.example.com:80",
        6_000 * MS,
        ">99 %",
    )
    assert "the longest" in entry.detail
    assert "5.70 s at frame" in entry.detail


def test_a_phase_that_is_half_of_all_over_many_servers_is_told(trace_of: TellTrace) -> None:
    story = Story()
    for number in range(5):
        story.connect(("10.0.0.1", number), (f"10.0.1.{number}", 80), 0, [("syn", 30 * MS)])
    story.connect(("10.0.0.1", 9), ("10.0.0.2", 80), 0, [("request", 10 * MS), ("transfer", 90 * MS)])
    story.capture()
    waits = [entry for entry in Report(trace_of(story)).verdict.entries if entry.kind == "wait"]
    assert [(entry.title, entry.where, entry.share) for entry in waits] == [
        ("Most of the wait: TCP handshake", "5 servers", "60 %"),
        ("Largest wait at one server: Transfer", "www.example.com:80", "36 %"),
    ]


def test_nothing_is_wrong_only_where_nothing_is(trace_of: TellTrace) -> None:
    story = Story()
    story.connect(("10.0.0.1", 1), ("10.0.0.2", 80), 0, [("unseen", 0)])
    story.capture()
    told = Report(trace_of(story)).verdict
    (entry,) = told.entries
    assert (entry.kind, entry.title, told.state) == ("state", "Nothing wrong found", "healthy")


PHASES = [("syn", MS), ("request", MS), ("wait", MS), ("transfer", MS)]


def state_of(trace_of: TellTrace, *connections: dict[str, Any]) -> tuple[str, str, str]:
    """Give the state of connections with these columns, its sentence, and what was not judged."""
    story = Story()
    for port, columns in enumerate(connections):
        phases = columns.pop("phases", PHASES)
        story.connect(("10.0.0.1", port), ("10.0.0.2", 80), 0, phases, **columns)
    story.capture()
    told = Report(trace_of(story)).verdict
    entry = told.entries[0]
    return told.state, ": ".join(filter(None, (entry.title, entry.detail))), told.unjudged


def test_a_beginning_that_is_missing_leaves_the_opening_unjudged(trace_of: TellTrace) -> None:
    assert state_of(trace_of, {}, {"state": "midstream", "syn_at": None}) == (
        "not judged",
        "Nothing wrong found in what could be judged",
        "how 1 connection opened (before the capture began)",
    )


def test_of_one_direction_nothing_is_judged(trace_of: TellTrace) -> None:
    state, said, unjudged = state_of(trace_of, {"packets_server": 0})
    assert (state, said) == ("not judged", "Nothing wrong found in what could be judged")
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
        "No known fault: 97 % of what users waited is one part: wait for the server",
        "",
    )


def test_where_nobody_was_served_nothing_else_is_said(trace_of: TellTrace) -> None:
    state, said, unjudged = state_of(trace_of, {"phases": [("syn", MS)], "state": "unanswered"})
    assert (state, unjudged) == ("nobody served", "")
    assert said.startswith("Nobody was served: 1 unanswered")


def test_what_follows_from_a_gap_is_not_told_beside_it() -> None:
    def remark(kind: str, *, warning: bool = True) -> Remark:
        return Remark(warning=warning, kind=kind, title=kind, effect="", advice="")

    assert [*missing([remark("truncated"), remark("note"), remark("unseen"), remark("keys")])] == ["truncated"]
    assert [*missing([remark("unseen"), remark("silent", warning=False)])] == ["unseen"]
    assert [*missing([remark("note")])] == ["note"]
