"""What findings about TCP cost, worked out by hand."""

from pathlib import Path

import conchart

CAPTURES = Path(__file__).parents[2] / "captures"


def costs(capture: str, finding: str) -> list[tuple[int, int, int]]:
    with conchart.read(CAPTURES / capture / "input.pcap") as trace:
        found = trace.sql("SELECT count, cost_ns, critical_ns FROM findings WHERE finding = ?", params=[finding])
        return found.fetchall()


def test_of_a_pause_only_what_the_acknowledgement_was_late_is_counted() -> None:
    """Ten pauses: the client acknowledges 40 ms after the segment, and 0.05 ms are its own way."""
    late_ns = 40_000_000 - 50_000
    assert costs("findings/delayed-ack", "delayed-ack") == [(10, 10 * late_ns, 10 * late_ns)]


def test_a_lost_syn_costs_until_it_is_sent_again() -> None:
    """Frame 1 is the SYN, frame 2 its copy; the user waits for the whole of it."""
    ((count, cost_ns, critical_ns),) = costs("stalls/syn-rto-once-client", "syn-retransmission")
    with conchart.read(CAPTURES / "stalls" / "syn-rto-once-client" / "input.pcap", packets=True) as trace:
        first, second = trace.sql("SELECT seen_at FROM packets WHERE frame <= 2 ORDER BY frame").fetchall()
    assert (count, cost_ns, critical_ns) == (1, second[0] - first[0], second[0] - first[0])


def test_what_is_held_between_requests_is_waited_for() -> None:
    """Each of twenty requests is held behind a Finished, in idling: all of that is a user's wait."""
    ((count, cost_ns, critical_ns),) = costs("stalls/resumed-held-client", "nagle-delayed-ack")
    assert (count, critical_ns) == (20, cost_ns)
