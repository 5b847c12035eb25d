"""Findings about lost packets count those of QUIC, where there are keys."""

import pytest

from tests.http3.test_truth import CASES, opened

LOSSES = {
    "lossy": ["mid-loss"],
    "steps-lossy": ["tail-loss-rto", "mid-loss", "mid-loss", "tail-loss-rto"],
    "tail-lost": ["tail-loss-rto"],
    "first-lost": ["quic-pto-handshake"],
    "chromium": ["quic-pto-handshake"],
    "chromium-far": ["quic-pto-handshake"],
    "flight-lost": ["quic-pto-handshake"],
    "rebind-idle": ["mid-loss"],
}
QUESTION = """
    SELECT finding, cost_ns FROM findings
    WHERE finding IN (
        'mid-loss', 'tail-loss-rto', 'handshake-flight-loss', 'needless-retransmission', 'quic-pto-handshake')
"""


@pytest.mark.parametrize("case", CASES)
def test_losses_are_found_with_their_cost_where_packets_were_lost_and_nowhere_else(case: str) -> None:
    with opened(case) as trace:
        found = trace.sql(QUESTION).fetchall()
        held = trace.sql("SELECT end_at - start_at FROM stalls WHERE kind IN ('pto', 'loss')").fetchall()
    assert [finding for finding, _ in found] == LOSSES.get(case, [])
    assert all((cost_ns,) in held for _, cost_ns in found)
