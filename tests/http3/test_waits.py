"""What HTTP/3 waits for besides lost packets: entries of QPACK's table, and clients that moved."""

from __future__ import annotations

import json
from typing import Any

import pytest

import conchart
from conchart import Trace
from tests.http3.test_truth import CAPTURES, opened, truth

MS = 1_000_000
LATE_NS = 2 * MS
"""Between a packet's arrival at the interface and the program that reads it, on a busy machine."""
STALLS = "SELECT kind::VARCHAR, detail::VARCHAR, side::VARCHAR, start_at, end_at FROM stalls ORDER BY start_at"
MOVES = {"rebind": 2, "moved": 3, "moved-limited": 2, "rebind-caddy": 1, "rebind-idle": 1}
"""How often the client moves while somebody waits for an answer. (After ``rebind-idle``, it moves once more, to say
goodbye.)"""
WAITS = {
    "rebind": {("validation", 2)},
    "moved": set(),
    "moved-limited": {("validation", 2)},
    "rebind-caddy": {("unanswered", 1)},
    "rebind-idle": {("unreachable", 1), ("validation", 1)},
    "rebind-idle-kept": set(),
}


def keyless(case: str) -> Trace:
    return conchart.read(CAPTURES / case / "input.pcap")


def findings(trace: Trace) -> list[tuple[Any, ...]]:
    question = "SELECT finding, cost_ns FROM findings WHERE finding IN ('qpack-blocked', 'migration-stall')"
    return trace.sql(question).fetchall()


def test_a_section_waits_until_the_program_can_read_it() -> None:
    with opened("qpack-lost") as trace:
        ((kind, _, side, start_at, end_at),) = trace.sql(STALLS).fetchall()
        rows = trace.sql("SELECT target, status, response_at, response_done_at FROM exchanges").fetchall()
        found = findings(trace)
    assert (kind, side) == ("qpack", "server")
    (connection,) = truth("qpack-lost")
    read_at = {request["path"]: request["read_at"] for request in connection["requests"]}
    first, *others = sorted(rows, key=lambda row: row[2])
    assert first[0] == "/bytes-100"
    for target, status, _, done_at in others:
        assert (status, done_at) == (200, end_at)
        assert 0 <= read_at[target] - end_at < LATE_NS
    # But for that in the lost datagram, all had begun to arrive long before.
    assert sum(start_at <= response_at < end_at - 50 * MS for _, _, response_at, _ in others) >= len(others) - 1
    assert found == [("qpack-blocked", end_at - start_at)]


def test_sections_whose_entries_came_before_them_do_not_wait() -> None:
    with opened("qpack") as trace:
        assert trace.sql(STALLS).fetchall() == []
        assert findings(trace) == []
        rows = trace.sql("SELECT count(*), count(status) FROM exchanges").fetchall()
    assert rows == [(7, 7)]


@pytest.mark.parametrize("case", MOVES)
@pytest.mark.parametrize("keys", [True, False])
def test_each_move_is_a_row(case: str, keys: bool) -> None:
    with opened(case) if keys else keyless(case) as trace:
        rows = trace.sql("""
            SELECT old_ip = new_ip, old_port, new_port, answered_at - moved_at, challenge_at IS NOT NULL,
                response_at > challenge_at
            FROM client_moves ORDER BY moved_at""").fetchall()
        counted = trace.sql(f"""
            SELECT count(DISTINCT frame) FROM client_moves JOIN exchanges USING (stream)
            WHERE request_at - moved_at BETWEEN 0 AND {MS}""").fetchall()
    waited_for = rows[: MOVES[case]]
    assert len(rows) - len(waited_for) == (case == "rebind-idle")
    for (_, _, now, *_), (_, before, *_) in zip(rows, rows[1:], strict=False):
        assert now == before
    assert all(same and old != new for same, old, new, *_ in rows)
    if case == "rebind-caddy":
        # Its QUIC library sends to the port that the client has left.
        assert [answer for *_, answer, _, _ in rows] == [None]
    else:
        assert all(answer < 100 * MS for *_, answer, _, _ in waited_for)
        assert {tuple(row[4:]) for row in waited_for} == {(True, True) if keys else (False, None)}
    if keys:
        assert counted == [(MOVES[case],)]


@pytest.mark.parametrize("case", WAITS)
@pytest.mark.parametrize("keys", [True, False])
def test_what_a_moved_client_waits_for_is_told_and_priced(case: str, keys: bool) -> None:
    with opened(case) if keys else keyless(case) as trace:
        stalls = [row for row in trace.sql(STALLS).fetchall() if row[0] == "migration"]
        found = findings(trace)
        confidence = trace.sql("SELECT min(confidence) FROM stalls WHERE detail = 'validation'").fetchall()
    details = [detail for _, detail, *_ in stalls]
    assert {(detail, details.count(detail)) for detail in details} == WAITS[case]
    assert found == ([("migration-stall", sum(end - start for *_, start, end in stalls))] if stalls else [])
    if "validation" in details:
        assert confidence == [(1.0 if keys else 0.7,)]


def test_what_was_sent_in_vain_waits_until_the_server_sends_to_the_new_port() -> None:
    with opened("rebind-idle") as trace:
        stall = next(row for row in trace.sql(STALLS).fetchall() if row[1] == "unreachable")
        (move,) = trace.sql("SELECT moved_at, unanswered_at FROM client_moves ORDER BY moved_at LIMIT 1").fetchall()
        (first,) = trace.sql("SELECT request_at FROM exchanges ORDER BY request_at LIMIT 1").fetchall()
    moved_at, unanswered_at = move
    assert stall[3] == unanswered_at
    # The server thinks for 2.5 s, the client asks again after 4 s.
    assert 2_500 * MS <= unanswered_at - first[0] < 2_650 * MS
    assert 4_000 * MS <= moved_at - first[0] < 4_100 * MS
    assert moved_at < stall[4]


def test_the_truth_says_what_was_answered() -> None:
    """Caddy's answer never came to the client, though it passed the capture point."""
    (connection,) = json.loads((CAPTURES / "rebind-caddy/truth.json").read_text())["connections"]
    assert [request["bytes"] for request in connection["requests"]] == [1000, 0]
