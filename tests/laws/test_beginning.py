"""Law: where the beginning is missing, a finding stays whose evidence lies later.

Captures begin anywhere. Only a rule that judges how connections open needs their first packets, and says so
(``opening: needed``); every other one finds the same without them.
"""

import random
from pathlib import Path
from typing import Any

import pytest

import conchart
from conchart import Trace
from conchart.analysis.findings.evidence import evidence
from conchart.analysis.findings.rule import Rule, chosen_thresholds, load_rules
from conchart.store.sql import with_values
from tests.conftest import ON_ALL, ROOT, capture_of, is_sample, keys_of, logs_of, name_of
from tests.laws import tier_of
from tests.laws.messy import Found, findings_of

RULES = {rule.name: rule for rule in load_rules()}
WITHOUT_SYN = "not tcp or tcp[tcpflags] & tcp-syn == 0"
OF_SYN = {
    "certificate-chain-heavy": "the maximum segment size stands in the SYN",
    "pmtu-blackhole": "the maximum segment size stands in the SYN",
    "receiver-limited": "the scale of the window stands in the SYN",
    "window-limited": "the scale of the window stands in the SYN",
    "slow-start-limited": "the scale of the window stands in the SYN: what the window limits looks like it",
}
"""What TCP says in its first two packets alone."""
ONE_SIDED = (
    "without its SYN, a connection on which the other side says nothing is one of which one side was not captured"
)
EXPECTED_LOSSES = {
    ("findings/connection-forgotten-messy", "connection-forgotten"): ONE_SIDED,
    ("findings/connection-forgotten-messy", "tail-loss-rto"): ONE_SIDED,
    ("findings/request-lost-unfinished", "request-lost"): ONE_SIDED,
    ("findings/request-lost-unfinished", "tail-loss-rto"): ONE_SIDED,
    (
        "stalls/receiver-near-client",
        "needless-retransmission",
    ): "without the scale of the window it is not known whether the window held the next segment: too unsure",
    ("wild/giveup-noack", "request-lost"): ONE_SIDED,
    ("wild/giveup-noack", "tail-loss-rto"): ONE_SIDED,
}
"""Capture and rule that do not stay: the reason."""
EARLIER = {
    ("crafted/rst-after-rest", "connection-forgotten"): "the packets after which the connection rested",
    ("findings/client-verify-slow", "client-no-reuse"): "the connection that could have been used again",
    ("findings/cold-cwnd-after-idle", "cold-cwnd-after-idle"): "what was sent before the rest",
    (
        "findings/full-handshakes-never-resumed-ids",
        "full-handshakes-never-resumed",
    ): "the session that could have been resumed",
    ("findings/haproxy-safe-first-request", "haproxy-safe-first-request"): "the connections that lie idle",
    ("findings/haproxy-safe-first-request", "pool-fragmented"): "the connections that lie idle",
    ("findings/proxy-buffers-upload", "proxy-buffers-upload"): "the upload to the proxy",
    ("handshakes/curl-apache-1.2-certificate-later", "renegotiation"): "the first handshake",
    ("wild/nat-idle-drop", "connection-forgotten"): "the packets after which the connection rested",
    ("wild/nat-idle-drop", "tail-loss-rto"): "all that the server said",
}
"""Capture and rule whose evidence lies before the cut, though what it costs lies later: the evidence."""


OFTEN = {
    "crafted/mysql-access-denied",
    "crafted/mysql-access-granted",
    "wild/grpc-too-many-pings",
    "wild/h2-response-window",
}
"""Of these the SYN alone told who is the server, or that a session begins: always in the thorough tier."""


def captures(attribute: str) -> list[Any]:
    """Give the captures of rules that say ``fault`` or ``clean`` of them: the laws are tried with a sixth."""
    names = sorted({name for rule in RULES.values() for name in getattr(rule, attribute)})
    cases = [ROOT / "captures" / name for name in names]
    return [
        pytest.param(case, id=name, marks=tier_of(name))
        for name, case in zip(names, cases, strict=True)
        if (ON_ALL or name in OFTEN or is_sample(name, 6)) and list(case.glob("input.pcap*"))
    ]


def read(case: Path, **options: Any) -> Trace:  # noqa: ANN401  (those of ``conchart.read``)
    """Read one of our captures, with its keys and logs."""
    return conchart.read(capture_of(case), keylog=keys_of(case), **logs_of(case) | options)


def judging_no_opening(found: Found) -> bool:
    return RULES[found.rule].opening != "needed" and found.rule not in OF_SYN


@pytest.fixture(autouse=True)
def at_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("case", captures("fault"))
def test_without_syn_the_same_is_found(case: Path) -> None:
    with read(case) as whole, read(case, filter=WITHOUT_SYN) as headless:
        before, after = set(findings_of(whole)), set(findings_of(headless))
    assert {
        found for found in filter(judging_no_opening, before) if (name_of(case), found.rule) not in EXPECTED_LOSSES
    } <= after


@pytest.mark.parametrize("case", captures("clean"))
def test_without_syn_nothing_else_is_found(case: Path) -> None:
    with read(case) as whole, read(case, filter=WITHOUT_SYN) as headless:
        before, after = set(findings_of(whole)), set(findings_of(headless))
    assert set(filter(judging_no_opening, after)) <= before


def since(trace: Trace, rule: Rule, at: int) -> bool:
    """Tell whether all that a rule finds is later than an instant: its delays and, where it needs them, openings.

    What QUIC encrypts is opened by what its first packets say.
    """
    steps = evidence(trace, chosen_thresholds({}))
    steps.provide_named(rule.sql)
    sql = with_values(rule.sql.rstrip("\n ;"), chosen_thresholds({}))
    ((first_at, opened_at),) = trace.sql(
        f"""
        SELECT min(CASE WHEN transport = 'udp' THEN opened_at ELSE delay.start_at END), min(opened_at)
        FROM (SELECT unnest(delays) AS delay FROM ({sql})) JOIN connections ON stream = delay.stream
        """
    ).fetchall()
    return bool((opened_at if rule.opening == "needed" else first_at) >= at)


@pytest.mark.parametrize("case", captures("fault"))
def test_a_finding_stays_whose_evidence_lies_later(case: Path) -> None:
    with read(case) as whole:
        before = set(findings_of(whole))
        first_at, last_at = whole.sql("SELECT first_at, last_at FROM captures").fetchall()[0]
        at = random.Random(case.name).randint(first_at, (first_at + last_at) // 2)
        staying = {found for found in before if found.rule not in OF_SYN and since(whole, RULES[found.rule], at)}
        staying = {found for found in staying if (name_of(case), found.rule) not in EXPECTED_LOSSES | EARLIER}
    with read(case, start=at) as later:
        assert staying <= set(findings_of(later))
