"""How requests end, who ended them, and what is found of that: in whole captures, and in parts of them."""

from pathlib import Path

import pytest

import conchart
from tests.conftest import ROOT

ENDINGS = {
    "wild/giveup-acked": {("abandoned", "client"): 1},
    "wild/giveup-noack": {("abandoned", "client"): 1},
    "wild/noanswer-fin-30s": {("unanswered", "server"): 5},
    "wild/noanswer-rst-fast": {("unanswered", "server"): 5},
    "wild/post-413-rst": {("answered", None): 4},
    "wild/cut-client-rst": {("abandoned", "client"): 4},
    "wild/cut-server-fin": {("cut", "server"): 4},
    "wild/ws-60s": {("answered", None): 3},
    "wild/nat-idle-drop": {("answered", None): 12, ("abandoned", "client"): 3},
    "wild/proxy-502-backend-fin": {("answered", None): 5, ("unanswered", "server"): 5},
    "findings/foreign-reset": {("answered", None): 2, ("unanswered", "path"): 3},
    "findings/keepalive-race": {("answered", None): 6, ("unanswered", "server"): 3},
    "findings/response-cut-clean": {("answered", None): 4},
}

OF_KEEPALIVE = {"server-closes-each-response", "client-no-reuse", "keepalive-idle-too-short", "keepalive-request-cap"}


@pytest.mark.parametrize("case", ENDINGS)
def test_every_request_says_how_it_ended_and_who_ended_it(case: str) -> None:
    with conchart.read(ROOT / "captures" / case / "input.pcap") as trace:
        rows = trace.sql("SELECT outcome, ended_by, count(*) FROM exchanges GROUP BY ALL").fetchall()
        assert {(outcome, by): count for outcome, by, count in rows} == ENDINGS[case]
        # Who broke it off did so after the request, and nobody waits after that.
        assert trace.sql("SELECT count(*) FROM exchanges WHERE ended_at < request_at").fetchall() == [(0,)]
        late = """
            SELECT count(*) FROM phases JOIN exchanges ON phases.stream = exchanges.stream AND exchange = number
            WHERE phases.kind IN ('wait', 'transfer') AND end_at > ended_at"""
        assert trace.sql(late).fetchall() == [(0,)]


@pytest.mark.parametrize("case", [case for case in ENDINGS if case.startswith("wild/")])
def test_what_was_not_answered_says_nothing_of_keepalive(case: str) -> None:
    with conchart.read(ROOT / "captures" / case / "input.pcap") as trace:
        found = {name for (name,) in trace.sql("SELECT finding FROM findings").fetchall()}
        assert not found & OF_KEEPALIVE


@pytest.mark.parametrize(
    ("case", "finding"),
    [
        ("wild/noanswer-rst-fast", "no-answer"),
        ("wild/cut-server-fin", "response-cut"),
        ("wild/cut-client-rst", "clients-give-up"),
        ("wild/nat-idle-drop", "connection-forgotten"),
    ],
)
def test_a_fault_is_found_without_the_beginning_of_its_connections(case: str, finding: str, tmp_path: Path) -> None:
    with conchart.read(ROOT / "captures" / case / "input.pcap", filter="tcp[tcpflags] & tcp-syn == 0") as trace:
        assert (finding,) in trace.sql("SELECT finding FROM findings").fetchall()


def test_requests_that_are_under_way_at_the_end_are_unknown_and_their_loss_is_told() -> None:
    with conchart.read(ROOT / "captures/findings/request-lost-unfinished/input.pcap") as trace:
        assert trace.sql("SELECT count(*) FROM exchanges WHERE outcome = 'unknown'").fetchall() >= [(1,)]
        assert trace.sql("SELECT count FROM findings WHERE finding = 'request-lost'").fetchall() == [(2,)]
