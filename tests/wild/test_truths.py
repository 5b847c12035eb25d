"""Captures after public bug reports (``captures/wild``): what happened in each is known, and conchart says it.

A truth is what an engineer would say: which findings there must and must not be, how long users waited, how many
requests there were. It does not say how a sentence reads.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

import conchart
from conchart import Trace
from conchart.telling.servers import totals
from tests.conftest import ROOT

WILD = ROOT / "captures/wild"
SECOND = 1_000_000_000
REQUESTS = "SELECT count(*) FROM exchanges JOIN connections USING (stream) WHERE same_as IS NULL"


@dataclass(frozen=True, kw_only=True)
class Truth:
    """What is true of a capture."""

    found: tuple[str, ...] = ()
    """Findings that are there; ``a|b``: one of them."""
    not_found: tuple[str, ...] = ()
    waited_s: tuple[float, float] | None = None
    """How long users waited: the least and the most."""
    requests: int | None = None
    """That users waited for."""
    sql: tuple[str, ...] = ()
    """Statements whose one value is true."""


SLOW = "slow-server|slow-requests"
LOSS = ("tail-loss-rto", "mid-loss", "syn-retransmission")
CLOSES = ("server-closes-each-response", "keepalive-idle-too-short", "client-no-reuse")
TRUTHS = {
    "accept-queue-full": Truth(found=("accept-queue-full",), not_found=LOSS, waited_s=(5.5, 6)),
    "clock-steps-quic": Truth(
        sql=("SELECT bool_and(request_at >= opened_at) FROM exchanges JOIN connections USING (stream)",),
    ),
    "cut-client-rst": Truth(
        found=("clients-give-up",),
        not_found=CLOSES,
        waited_s=(3.9, 4.2),
        sql=("SELECT bool_and(outcome = 'abandoned' AND ended_by = 'client') FROM exchanges",),
    ),
    "cut-server-fin": Truth(
        found=("response-cut",),
        not_found=CLOSES,
        waited_s=(2, 2.2),
        sql=("SELECT bool_and(outcome = 'cut' AND ended_by = 'server') FROM exchanges",),
    ),
    "dns-conntrack-race": Truth(waited_s=(19.5, 21), found=("dns-fails|dns-slow|dns-conntrack-race|dns-reply-lost",)),
    "dns-first-resolver-dead": Truth(waited_s=(19.5, 21), found=("dns-fails",)),
    "giveup-acked": Truth(found=("clients-give-up",), not_found=LOSS, waited_s=(9.4, 9.7)),
    "giveup-noack": Truth(
        found=("request-lost|tail-loss-rto",), not_found=("clients-give-up", SLOW), waited_s=(9.4, 9.7)
    ),
    "grpc-too-many-pings": Truth(
        found=("goaway-ends-requests",),
        sql=(
            "SELECT count(*) > 0 FROM exchanges WHERE outcome = 'refused' OR outcome = 'cut' OR outcome = 'unanswered'",
        ),
    ),
    "h2-response-window": Truth(found=("http2-flow-control",), waited_s=(14.9, 15.3)),
    "longpoll-consul": Truth(
        waited_s=(2.8, 3.2), sql=("SELECT count(*) = 0 FROM findings WHERE severity = 'serious' AND critical_ns > 4e9",)
    ),
    "lost-request-complete-1seg": Truth(
        found=("tail-loss-rto|mid-loss",),
        not_found=("slow-server", "slow-requests"),
        waited_s=(3.9, 4.2),
        sql=("SELECT max(service_ns) < 1e8 FROM exchanges",),
    ),
    "lost-request-midstream-6seg": Truth(
        found=("tail-loss-rto|mid-loss",),
        not_found=("slow-server", "slow-requests"),
        waited_s=(3.9, 4.2),
        sql=("SELECT max(service_ns) < 1e8 FROM exchanges",),
    ),
    "mysql-greeting-10s": Truth(found=("late-greeting",), waited_s=(39, 42)),
    "mysql-greeting-fast": Truth(not_found=("late-greeting",), waited_s=(0, 0.1)),
    "nat-idle-drop": Truth(found=("connection-forgotten",), not_found=("clients-give-up",)),
    "nat-snat-any": Truth(waited_s=(1.3, 1.6), requests=4),
    "nginx-tickets-off": Truth(requests=8),
    "nginx-tickets-on": Truth(requests=8),
    "noanswer-fin-30s": Truth(found=("no-answer",), not_found=CLOSES),
    "noanswer-rst-fast": Truth(found=("no-answer",), not_found=CLOSES),
    "post-413-rst": Truth(found=("response-reset|no-answer",), not_found=CLOSES),
    "pq-hello-rst": Truth(found=("big-clienthello-trouble",)),
    "proxy-502-backend-fin": Truth(found=("no-answer",), not_found=CLOSES, waited_s=(19.5, 20.5)),
    "regular-503": Truth(found=("error-responses",), waited_s=(17.5, 18.5)),
    "small-hello-alert-all": Truth(found=("handshake-failure",)),
    "smtp-220-20s": Truth(found=("late-greeting",), waited_s=(39, 42)),
    "sse": Truth(waited_s=(0, 2), sql=("SELECT count(*) = 0 FROM findings WHERE critical_ns > 2e9",)),
    "tfo": Truth(found=("fast-open-refused",), not_found=LOSS),
    "ws-60s": Truth(found=("websocket-idle-timeout",), not_found=CLOSES),
    "zero-window-ends-rst": Truth(found=("receiver-limited",), not_found=CLOSES, waited_s=(89, 92)),
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
        found = {finding for (finding,) in trace.fetch("SELECT DISTINCT finding FROM findings")}
        wrong = [one for one in truth.found if found.isdisjoint(one.split("|"))]
        wrong += [one for one in truth.not_found if not found.isdisjoint(one.split("|"))]
        assert not wrong, found
        for query in truth.sql:
            assert trace.fetch(query) == [(True,)], query
        if truth.waited_s:
            least, most = truth.waited_s
            assert least * SECOND <= totals(trace).waited_ns <= most * SECOND
        if truth.requests is not None:
            assert trace.fetch(REQUESTS) == [(truth.requests,)]
