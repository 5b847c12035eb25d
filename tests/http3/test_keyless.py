"""HTTP/3 without keys: exchanges are inferred, round trips come from the spin bit, resets are known without tokens."""

from __future__ import annotations

from pathlib import Path

import pytest

import conchart
from conchart import Trace
from tests.http3.test_truth import CAPTURES, CASES, opened
from tests.tshark import ask, needs_tshark

SPINNING = ("lossy", "steps-lossy", "download")
"""aioquic spins; Caddy and Chromium do not. In the others, the bit changes too seldom."""
CLOSE_NS = 1_500_000
RESETS = {"restarted": ("server", 9)}

every_case = pytest.mark.parametrize("case", CASES)


def sealed(case: str) -> Trace:
    return conchart.read(CAPTURES / case / "input.pcap")


@every_case
def test_every_exchange_without_keys_is_inferred_and_doubted(case: str) -> None:
    with sealed(case) as trace:
        found = trace.sql("SELECT protocol, inferred, confidence < 0.75, method, status FROM exchanges").fetchall()
    assert found
    assert set(found) == {("h3", True, True, None, None)}


@every_case
def test_phases_without_keys_touch_and_add_up_to_the_connection(case: str) -> None:
    with sealed(case) as trace:
        phases = trace.sql("SELECT stream, start_at, end_at FROM phases ORDER BY ALL").fetchall()
        lives = trace.sql("SELECT stream, opened_at, closed_at FROM connections ORDER BY stream").fetchall()
    for stream, opened_at, closed_at in lives:
        mine = [(start, end) for each, start, end in phases if each == stream]
        assert (mine[0][0], mine[-1][1]) == (opened_at, closed_at)
        assert all(before[1] == after[0] for before, after in zip(mine, mine[1:], strict=False))


@pytest.mark.parametrize("case", ["one", "visits", "key-update", "resumed", "retry", "steps"])
def test_requests_that_follow_each_other_begin_in_the_frames_that_keys_show(case: str) -> None:
    question = "SELECT stream, request_frame, response_frame FROM exchanges ORDER BY ALL"
    with opened(case) as trace:
        true = trace.sql(question).fetchall()
    with sealed(case) as trace:
        assert trace.sql(question).fetchall() == true


@pytest.mark.parametrize("case", ["http3/rounds", "versions/h3-80ms", "versions/h3-80ms-3"])
def test_answers_that_come_mixed_are_one_transfer_and_nobody_waits_behind_them(case: str) -> None:
    folder = CAPTURES.parent / case
    question = "SELECT kind::VARCHAR, sum(end_at - start_at)::BIGINT FROM phases GROUP BY ALL"
    with conchart.read(folder / "input.pcap", keylog=folder / "keys.log") as trace:
        true = dict(trace.sql(question).fetchall())
    with conchart.read(folder / "input.pcap") as trace:
        found = dict(trace.sql(question).fetchall())
    assert all(abs(found[kind] - true[kind]) < 4_000_000 for kind in ("wait", "transfer", "idle"))


def test_a_long_poll_alone_is_a_wait() -> None:
    question = "SELECT wait_ns FROM exchanges ORDER BY request_at"
    with opened("held-alone") as trace:
        true = trace.sql(question).fetchall()
    with sealed("held-alone") as trace:
        assert trace.sql(question).fetchall() == true
    assert [wait_ns // 500_000_000 for (wait_ns,) in true] == [3, 4, 1]


QUESTION = "SELECT rtt_server_ns, rtt_client_ns FROM connections"


@pytest.mark.parametrize("case", SPINNING)
def test_the_spin_bit_shows_the_round_trip_that_acknowledgements_show_with_keys(case: str) -> None:
    with opened(case) as trace:
        true = trace.sql(QUESTION).fetchall()
    with sealed(case) as trace:
        found = trace.sql(QUESTION).fetchall()
    assert all(
        0 <= ours - theirs < CLOSE_NS + (side == "client") * CLOSE_NS
        for one, other in zip(found, true, strict=True)
        for side, ours, theirs in zip(("server", "client"), one, other, strict=True)
        if case != "download" or side == "client"
    )


@needs_tshark
@pytest.mark.parametrize("case", SPINNING)
def test_round_trips_are_the_second_shortest_of_those_that_tshark_shows(case: str) -> None:
    words: list[str | Path] = ["-r", CAPTURES / case / "input.pcap", "-Y", "quic.header_form==0", "-T", "fields"]
    text = ask([*words, "-e", "frame.time_epoch", "-e", "udp.srcport", "-e", "quic.spin_bit"])
    changes: dict[bool, tuple[str, int]] = {}
    samples = []
    for line in text.splitlines():
        at, port, bit = line.split("\t")
        is_server, bit = port == "443", bit.split(",")[-1]
        if changes.get(is_server, ("", 0))[0] == bit:
            continue
        whole, _, part = at.partition(".")
        now = int(whole) * 1_000_000_000 + int(part.ljust(9, "0"))
        if is_server and is_server in changes:
            samples.append(now - changes[False][1])
        changes[is_server] = (bit, now)
    with sealed(case) as trace:
        ((rtt,),) = trace.sql("SELECT rtt_server_ns FROM connections").fetchall()
    assert rtt == sorted(samples)[1]


def test_a_bit_that_does_not_spin_leaves_the_round_trip_of_the_handshake() -> None:
    with sealed("steps") as trace:
        ((rtt,),) = trace.sql("SELECT rtt_server_ns FROM connections").fetchall()
        ((handshake,),) = trace.sql("SELECT server_hello_at - hello_at FROM handshakes").fetchall()
    assert rtt == handshake


@every_case
@pytest.mark.parametrize("keys", [True, False], ids=["keys", "sealed"])
def test_a_stateless_reset_is_told_where_there_is_one_and_nowhere_else(case: str, keys: bool) -> None:
    question = "SELECT rst_by::VARCHAR, rst_frame FROM connections WHERE rst_frame IS NOT NULL"
    with opened(case) if keys else sealed(case) as trace:
        assert trace.sql(question).fetchall() == [RESETS[case] for case in (case,) if case in RESETS]


@needs_tshark
def test_tshark_sees_the_same_reset() -> None:
    folder = CAPTURES / "restarted"
    text = ask(["-r", folder / "input.pcap", "-o", f"tls.keylog_file:{folder / 'keys.log'}"])
    resets = [int(line.split()[0]) for line in text.splitlines() if "Stateless Reset" in line]
    assert resets[0] == RESETS["restarted"][1]


@pytest.mark.parametrize("keys", [True, False], ids=["keys", "sealed"])
def test_version_negotiation_costs_a_round_trip_of_the_handshake(keys: bool) -> None:
    question = "SELECT version_negotiation_at - hello_at, hello_frame, quic_version, outcome::VARCHAR FROM handshakes"
    with opened("negotiated") if keys else sealed("negotiated") as trace:
        ((cost_ns, frame, version, outcome),) = trace.sql(question).fetchall()
        ((opened_at, start_at, kind),) = trace.sql(
            "SELECT opened_at, start_at, kind::VARCHAR FROM phases JOIN connections USING (stream) ORDER BY 2 LIMIT 1"
        ).fetchall()
    assert 20_000_000 <= cost_ns < 30_000_000
    assert (frame, version, outcome) == (1, "v1", "complete")
    assert (start_at, kind) == (opened_at, "tls")
