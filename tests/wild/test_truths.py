"""Captures after public bug reports (``captures/wild``): what happened in each is known, and conchart says it.

A truth is what an engineer would say: which findings there must and must not be, which is the worst and what it costs,
how long users waited and whose time most of that was, how many requests there were, and what is said of all. It does
not say how a sentence reads.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

import conchart
from conchart import Trace
from conchart.report.report import Report
from conchart.report.verdict import State
from tests.conftest import ROOT

WILD = ROOT / "captures/wild"
SECOND = 1_000_000_000
REQUESTS = "SELECT count(*) FROM exchanges JOIN connections USING (stream) WHERE same_as IS NULL"


@dataclass(frozen=True, kw_only=True)
class Truth:
    """What is true of a capture."""

    state: State = "faults"
    """What is said of all."""
    found: tuple[str, ...] = ()
    """Findings that are there; ``a|b``: one of them. The first of them is the worst of all."""
    cost_s: tuple[float, float] | None = None
    """What users waited for the worst: the least and the most."""
    alone: bool = True
    """No other finding is more than a note, but for what is brought with it, and what is said of the capture."""
    not_found: tuple[str, ...] = ()
    waited_s: tuple[float, float] | None = None
    """How long users waited: the least and the most."""
    owner: str | None = None
    """Whose time most of that was."""
    requests: int | None = None
    """That users waited for."""
    sql: tuple[str, ...] = ()
    """Statements whose one value is true."""


SLOW = "slow-server|slow-requests"
LOSS = ("tail-loss-rto", "mid-loss", "syn-retransmission")
CLOSES = ("server-closes-each-response", "keepalive-idle-too-short", "client-no-reuse")
BESIDE = Truth(found=("slow-requests",), cost_s=(6.27, 6.29), waited_s=(6.35, 6.44), owner="server")
CARRIED = Truth(found=("slow-server",), cost_s=(0.89, 0.9), waited_s=(0.902, 0.904), owner="server", requests=3)
LOST = Truth(
    found=("tail-loss-rto|mid-loss",),
    not_found=("slow-server", "slow-requests"),
    cost_s=(3.9, 4.1),
    waited_s=(3.9, 4.2),
    owner="path",
    sql=("SELECT max(service_ns) < 1e8 FROM exchanges",),
)
DEAF = Truth(found=("receiver-limited",), not_found=CLOSES, cost_s=(89.9, 90.1), waited_s=(90, 90.3), owner="client")
TRUTHS = {
    "accept-queue-full": Truth(
        found=("accept-queue-full",), not_found=LOSS, cost_s=(5.6, 5.7), waited_s=(5.5, 6), owner="server"
    ),
    "beside-nothing": BESIDE,
    "beside-prometheus": BESIDE,
    "beside-ssh-banner": BESIDE,
    "clock-steps-quic": Truth(
        sql=("SELECT bool_and(request_at >= opened_at) FROM exchanges JOIN connections USING (stream)",),
    ),
    "cut-client-rst": Truth(
        found=("clients-give-up",),
        not_found=CLOSES,
        cost_s=(4, 4.1),
        waited_s=(3.9, 4.2),
        owner="server",
        sql=("SELECT bool_and(outcome = 'abandoned' AND ended_by = 'client') FROM exchanges",),
    ),
    "cut-server-fin": Truth(
        found=("response-cut",),
        not_found=CLOSES,
        cost_s=(2, 2.1),
        waited_s=(2, 2.2),
        owner="server",
        sql=("SELECT bool_and(outcome = 'cut' AND ended_by = 'server') FROM exchanges",),
    ),
    "direct-and-proxied": Truth(
        found=("slow-server", "client-no-reuse"),
        alone=False,
        cost_s=(5, 5.02),
        waited_s=(5.43, 5.45),
        owner="server",
        requests=12,
        sql=("SELECT count(*) = 1 FROM on_behalf WHERE exchange >= 0",),
    ),
    "dns-conntrack-race": Truth(waited_s=(19.5, 21), found=("dns-fails",), cost_s=(20, 20.1)),
    "dns-first-resolver-dead": Truth(waited_s=(19.5, 21), found=("dns-fails",), cost_s=(20, 20.1)),
    "giveup-acked": Truth(
        found=("clients-give-up",), not_found=LOSS, cost_s=(9.4, 9.6), waited_s=(9.4, 9.7), owner="server"
    ),
    "giveup-noack": Truth(
        found=("request-lost",),
        not_found=("clients-give-up", SLOW),
        cost_s=(9.4, 9.6),
        waited_s=(9.4, 9.7),
        owner="path",
    ),
    "grpc-too-many-pings": Truth(
        found=("goaway-ends-requests",),
        sql=(
            "SELECT count(*) > 0 FROM exchanges WHERE outcome = 'refused' OR outcome = 'cut' OR outcome = 'unanswered'",
        ),
    ),
    "h2-response-window": Truth(
        found=("http2-flow-control",), cost_s=(14.9, 15.1), waited_s=(14.9, 15.3), owner="client"
    ),
    "hsr-prp": CARRIED,
    "l2tpv3-udp1701": CARRIED,
    "longpoll-consul": Truth(
        found=("slow-server",),
        cost_s=(2.9, 3.1),
        waited_s=(2.8, 3.2),
        owner="server",
        sql=("SELECT count(*) = 6 FROM exchanges WHERE awaits = 'event'",),
    ),
    "lost-request-complete-1seg": LOST,
    "lost-request-midstream-6seg": LOST,
    "lt-pktap149-user2": CARRIED,
    "mysql-greeting-10s": Truth(found=("late-greeting",), cost_s=(40, 40.1), waited_s=(39, 42), owner="server"),
    "mysql-greeting-fast": Truth(
        found=("store-connection-per-query",), not_found=("late-greeting",), waited_s=(0.019, 0.021)
    ),
    "nat-idle-drop": Truth(
        found=("connection-forgotten",),
        not_found=("clients-give-up",),
        cost_s=(44.9, 45.1),
        waited_s=(45, 45.5),
        owner="path",
    ),
    "nat-snat-any": Truth(
        found=("slow-server", "client-no-reuse"),
        alone=False,
        cost_s=(1.3, 1.4),
        waited_s=(1.47, 1.49),
        owner="server",
        requests=4,
    ),
    "nginx-tickets-off": Truth(state="not judged", requests=8),
    "nginx-tickets-on": Truth(state="no known fault", requests=8),
    "noanswer-fin-30s": Truth(
        found=("no-answer",), not_found=CLOSES, cost_s=(149.9, 150.1), waited_s=(149.9, 150.1), owner="server"
    ),
    "noanswer-rst-fast": Truth(
        found=("no-answer",), not_found=CLOSES, cost_s=(0.024, 0.025), waited_s=(0.029, 0.03), owner="server"
    ),
    "post-413-rst": Truth(found=("response-reset",), not_found=CLOSES),
    "pq-hello-rst": Truth(
        found=("big-clienthello-trouble", "full-handshakes-never-resumed"),
        alone=False,
        cost_s=(0.12, 0.13),
        sql=("SELECT bool_and(because = 'big-clienthello-trouble') FROM findings WHERE finding = 'handshake-failure'",),
    ),
    "proxy-502-backend-fin": Truth(
        found=("no-answer",), not_found=CLOSES, cost_s=(20, 20.1), waited_s=(19.5, 20.5), owner="server"
    ),
    "regular-503": Truth(found=("error-responses",), cost_s=(17.9, 18.1), waited_s=(17.5, 18.5), owner="server"),
    "small-hello-alert-all": Truth(state="nobody served", found=("handshake-failure",), cost_s=(0.24, 0.25)),
    "smtp-220-20s": Truth(found=("late-greeting",), cost_s=(39.9, 40.1), waited_s=(39, 42), owner="server"),
    "sse": Truth(found=("slow-server",), cost_s=(1.5, 1.7), waited_s=(1.5, 1.7), owner="server"),
    "tfo": Truth(state="no known fault", found=("fast-open-refused",), not_found=LOSS, cost_s=(0.11, 0.13)),
    "tzsp-mikrotik": CARRIED,
    "ws-60s": Truth(found=("websocket-idle-timeout",), not_found=CLOSES),
    "zero-window-ends-rst": DEAF,
    "zero-window-reopens": DEAF,
}


@contextmanager
def read(name: str) -> Iterator[Trace]:
    keys = WILD / name / "keys.log"
    with conchart.read(next((WILD / name).glob("input.pcap*")), keylog=[keys] if keys.exists() else []) as trace:
        yield trace


def test_every_capture_has_its_truth() -> None:
    assert {path.name for path in WILD.iterdir() if path.is_dir()} == TRUTHS.keys()


@pytest.mark.parametrize("name", TRUTHS)
def test_conchart_says_what_is_true(name: str) -> None:
    truth = TRUTHS[name]
    with read(name) as trace:
        rows = trace.fetch("SELECT finding, severity, because, critical_ns FROM findings ORDER BY number")
        found = {row[0] for row in rows}
        wrong = [one for one in truth.found if found.isdisjoint(one.split("|"))]
        wrong += [one for one in truth.not_found if not found.isdisjoint(one.split("|"))]
        assert not wrong, found
        causes = [row for row in rows if row[2] is None and row[0] != "capture-quality"]
        if truth.found:
            worst, _, _, cost_ns = causes[0]
            assert worst in truth.found[0].split("|")
            assert truth.cost_s is None or truth.cost_s[0] * SECOND <= cost_ns <= truth.cost_s[1] * SECOND
            assert not truth.alone or all(severity == "note" for _, severity, _, _ in causes[1:]), causes
        for query in truth.sql:
            assert trace.fetch(query) == [(True,)], query
        answer = Report(trace).verdict
        assert answer.state == truth.state
        if truth.waited_s:
            least, most = truth.waited_s
            assert least * SECOND <= answer.waited_ns <= most * SECOND
        if truth.owner:
            owned = "SELECT owner FROM wait_owners GROUP BY owner ORDER BY sum(waited_ns) DESC LIMIT 1"
            assert trace.fetch(owned) == [(truth.owner,)]
        if truth.requests is not None:
            assert trace.fetch(REQUESTS) == [(truth.requests,)]
