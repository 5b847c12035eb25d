"""What was predicted came about: real servers, mended for real."""

from dataclasses import replace

import pytest

import conchart
from conchart.analysis.findings.rule import load_rules
from conchart.questions.predict import Change, predict
from tests.conftest import ROOT
from tests.whatif.comparison import CAPTURES, cases, compare, table

MOST_WRONG = 0.15
OWN_NS = 500_000
"""What a client does between its connection and its ClientHello, and between two requests, is no wait of a finding's,
and what-if saves it with the connection: a few tenths of a millisecond each."""
NOT_ALIKE = {"full-handshakes-never-resumed": "TLS 1.3 saves computing alone, which is no stretch of a capture"}
"""Finding: why what it costs is not what the prediction of its fix saves."""


def test_every_change_is_tried_at_two_distances_at_least() -> None:
    tried = {tuple(case.split("-")[:2]) for case in cases()}
    wanted = {(change, rtt) for change in ("keepalive", "resume", "tls13", "nodelay") for rtt in ("0", "20", "80")}
    assert tried >= wanted | {("rtt", "20")}


@pytest.mark.parametrize("case", cases())
def test_the_mended_capture_takes_as_long_as_predicted(case: str) -> None:
    comparison = compare(case)
    assert abs(comparison.error) <= MOST_WRONG


def test_the_article_s_proxy_is_predicted_from_afar() -> None:
    folder = ROOT / "captures" / "reverse-proxy"
    with conchart.read(folder / "https-no-keepalive" / "input.pcap") as trace:
        predicted = predict(trace, Change(keepalive=True, server="shop.example")).predicted.total_ns
    with conchart.read(folder / "https-keepalive" / "input.pcap") as trace:
        measured = predict(trace, Change()).measured.total_ns
    assert abs(predicted - measured) <= MOST_WRONG * measured


@pytest.mark.parametrize("case", cases())
def test_the_row_in_the_documents_is_the_command_s(case: str) -> None:
    text = (ROOT / "docs" / "what-if.md").read_text(encoding="utf-8")
    assert table([compare(case)]).splitlines()[-1] in text


def test_a_finding_is_priced_and_mended_in_these_captures() -> None:
    with conchart.read(CAPTURES / "keepalive-behind-20-before" / "input.pcap") as trace:
        roots = trace.sql("SELECT finding FROM findings WHERE root IS NULL AND severity <> 'note'").fetchall()
        assert ("backend-no-keepalive",) in roots


@pytest.mark.parametrize("case", cases())
def test_what_a_finding_costs_is_what_its_fix_is_predicted_to_save(case: str) -> None:
    """Of findings that land later, too: whichever names a change and is found in a capture of these."""
    rules = {rule.name: rule for rule in load_rules()}
    with conchart.read(CAPTURES / f"{case}-before" / "input.pcap") as trace:
        for name, critical_ns, count, ip, port in trace.sql(
            "SELECT finding, critical_ns, count, server_ip, server_port FROM findings WHERE root IS NULL"
        ).fetchall():
            if rules[name].whatif:
                change = replace(Change.of(rules[name].whatif), server=f"{ip}:{port}" if ip else None)
                prediction = predict(trace, change)
                saved_ns = sum(prediction.measured.requests_ns) - sum(prediction.predicted.requests_ns)
                own_ns = 0 if name in NOT_ALIKE else count * OWN_NS
                alike = abs(saved_ns - critical_ns) <= MOST_WRONG * max(saved_ns, critical_ns) + own_ns
                assert alike != (name in NOT_ALIKE), (name, critical_ns, saved_ns)
