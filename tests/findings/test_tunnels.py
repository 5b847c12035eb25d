"""Who is late where a client asks a proxy for a tunnel, and what that costs: from the client's side alone."""

import pytest

import conchart
from tests.conftest import ROOT

CAPTURES = ROOT / "captures" / "findings"
MS = 1_000_000


@pytest.mark.parametrize(("case", "who", "least_ms", "most_ms"), [
    ("slow-tunnel", "the target", 5 * 298, 5 * 305),
    ("slow-tunnel-proxy", "the proxy", 5 * 300, 5 * 310),
    ("slow-tunnel-far", "the way from the proxy", 5 * 2 * 160, 5 * (160 + 170)),
])  # fmt: skip
def test_it_says_who_is_late_and_what_it_costs(case: str, who: str, least_ms: int, most_ms: int) -> None:
    with conchart.read(CAPTURES / case / "input.pcap") as trace:
        ((sentence, cost_ns, critical_ns, lanes),) = trace.sql(
            "SELECT who, cost_ns, critical_ns, len(streams) FROM findings WHERE finding = 'slow-tunnel'"
        ).fetchall()
        ((first,),) = trace.sql("SELECT finding FROM findings WHERE because IS NULL AND severity <> 'note'").fetchall()
    assert sentence.startswith(who)
    assert least_ms * MS <= cost_ns <= most_ms * MS
    assert (critical_ns, lanes, first) == (cost_ns, 5, "slow-tunnel")


def test_who_asked_for_a_tunnel_waits_for_tls_in_it_too() -> None:
    with conchart.read(CAPTURES / "slow-tunnel-tls" / "input.pcap") as trace:
        ((cost_ns, critical_ns),) = trace.sql(
            "SELECT cost_ns, critical_ns FROM findings WHERE finding = 'slow-tunnel'"
        ).fetchall()
    # Four answers to CONNECT, and four ServerHellos, a round trip behind the proxy each.
    assert 8 * 160 * MS <= critical_ns == cost_ns <= 8 * 166 * MS
