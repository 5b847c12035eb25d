"""Replays of small stories, where what has to come out can be counted by hand."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import conchart
from conchart import Trace
from conchart.analysis.findings.rule import parse_rule
from conchart.errors import UsageError
from conchart.labels.changes import CHANGES
from conchart.questions.predict import Change, Prediction, predict
from conchart.questions.predict.costs import Window
from conchart.questions.predict.model import NEAR_NS
from conchart.report.servers import totals
from tests.charts.story import MS, Row, Story
from tests.conftest import ROOT, empty_trace, is_sample, name_of

SERVER = ("10.0.0.2", 443)
RTT = 20 * MS
FACTS: dict[str, Any] = {"rtt_client_ns": 0, "rtt_server_ns": RTT, "mss_client": 1460, "mss_server": 1460}
VISIT = [("syn", RTT), ("idle", MS), ("tls", 2 * RTT + 4 * MS), ("request", 0), ("wait", RTT + 5 * MS), ("transfer", 0)]
VISIT_NS = sum(ns for _, ns in VISIT)
FULL = {
    "version": "TLSv1.2", "kind": "full", "outcome": "complete", "round_trips": 2, "client_compute_ns": MS,
    "server_compute_ns": 3 * MS,
}  # fmt: skip
EXCHANGE = {"request_bytes": 100, "response_bytes": 1000}
THINKING = 7 * MS
CAPTURES = sorted(
    {
        *(path for path in ROOT.glob("captures/*/*/input.pcap") if is_sample(name_of(path.parent), 15)),
        # A request that is never answered, and linked: it ends as it begins.
        ROOT / "captures/hops/retries-16/input.pcap",
    }
)


def visits(times: int, *, transfer_ns: int = 0, exchange: Row = EXCHANGE, **changed: object) -> Story:
    """The same client comes anew, ``THINKING`` after each response, which takes ``transfer_ns`` to pass."""
    story = Story()
    for number in range(times):
        at = number * (VISIT_NS + transfer_ns + THINKING)
        story.connect(
            ("10.0.0.1", 1000 + number), SERVER, at,
            [*VISIT[:-1], ("transfer", transfer_ns), ("close", MS)], tls={**FULL, **changed},
            exchange=exchange, syn_at=0, server_name="shop.example", **FACTS,
        )  # fmt: skip
    story.capture()
    return story


def replayed(story: Story, change: Change) -> Prediction:
    with empty_trace() as trace:
        story.fill(trace)
        trace.execute("UPDATE connections SET syn_at = opened_at, syn_ack_at = opened_at + rtt_server_ns")
        return predict(trace, change)


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: f"{path.parent.parent.name}/{path.parent.name}")
def test_without_a_change_the_prediction_is_what_was_measured(capture: Path) -> None:
    with conchart.read(capture) as trace:
        try:
            prediction = predict(trace, Change())
        except UsageError:
            assert trace.sql("FROM exchanges WHERE response_done_at IS NOT NULL").fetchall() == []
            return
        assert prediction.measured == prediction.predicted
        bars = {(bar.stream, bar.exchange, bar.phase): (bar.start_at, bar.end_at) for bar in prediction.measured.bars}
        for stream, number, request_at, done_at, away in trace.sql(
            f"""
            SELECT stream, number, request_at, response_done_at,
                CASE WHEN rtt_client_ns > {NEAR_NS} THEN rtt_client_ns // 2 ELSE 0 END
            FROM exchanges JOIN connections USING (stream)
            WHERE request_at <= request_done_at AND request_done_at <= response_at AND response_at <= response_done_at
                AND protocol NOT IN ('proxy', 'socks')
            """
        ).fetchall():
            assert bars[stream, number, "request"][0] == request_at - away
            assert bars[stream, number, "transfer"][1] == done_at + away


def test_every_change_has_a_name_that_gives_it_back() -> None:
    for name in CHANGES:
        assert Change.of([name]).words == (name,)
    assert Change.of(CHANGES).words == CHANGES


def test_a_finding_names_only_changes_that_there_are() -> None:
    path = ROOT / "conchart/analysis/findings/rules/backend-no-keepalive.md"
    text = path.read_text(encoding="utf-8")
    assert parse_rule(path.name, text).whatif == ("keepalive",)
    with pytest.raises(UsageError, match=r"whatif knows keepalive, .*, not faster"):
        parse_rule(path.name, text.replace("whatif: [keepalive]", "whatif: [faster]"))


def test_kept_connections_save_every_opening_but_the_first() -> None:
    prediction = replayed(visits(4), Change(keepalive=True))
    opening = RTT + MS + 2 * RTT + 4 * MS
    assert prediction.measured.total_ns == 4 * VISIT_NS + 3 * THINKING
    assert prediction.predicted.total_ns == prediction.measured.total_ns - 3 * opening
    assert (prediction.measured.connections, prediction.predicted.connections) == (4, 1)
    assert {bar.lane for bar in prediction.predicted.bars} == {0}
    assert prediction.predicted.percentile(50) == RTT + 5 * MS


def test_a_connection_is_not_shared_with_who_needs_it_at_the_same_time() -> None:
    story = Story()
    for port in (1, 2):
        story.connect(("10.0.0.1", port), SERVER, port * MS, VISIT, tls=FULL, exchange=EXCHANGE, syn_at=0, **FACTS)
    story.capture()
    prediction = replayed(story, Change(keepalive=True))
    assert prediction.predicted.connections == 2
    assert prediction.predicted.total_ns == prediction.measured.total_ns


def test_a_connection_is_not_kept_for_ever() -> None:
    story = Story()
    for number in range(2):
        at = number * (VISIT_NS + 61_000 * MS)
        story.connect(("10.0.0.1", number), SERVER, at, VISIT, tls=FULL, exchange=EXCHANGE, syn_at=0, **FACTS)
    story.capture()
    assert replayed(story, Change(keepalive=True)).predicted.connections == 2


def test_resumption_saves_a_round_trip_before_tls_1_3_and_computing() -> None:
    prediction = replayed(visits(3), Change(resume=True))
    saved = RTT + round(4 * MS * 0.8)
    assert prediction.measured.total_ns - prediction.predicted.total_ns == 2 * saved
    assert (prediction.predicted.handshakes_full, prediction.predicted.handshakes_resumed) == (1, 2)


def test_resumption_in_tls_1_3_saves_computing_alone() -> None:
    story = visits(3, version="TLSv1.3", round_trips=1)
    prediction = replayed(story, Change(resume=True))
    assert prediction.measured.total_ns - prediction.predicted.total_ns == 2 * round(4 * MS * 0.6)


def test_resumed_handshakes_of_the_capture_say_what_others_would_compute() -> None:
    story = visits(3)
    story.handshakes[2] |= {"kind": "ticket", "round_trips": 1, "client_compute_ns": MS, "server_compute_ns": MS}
    prediction = replayed(story, Change(resume=True))
    assert prediction.measured.total_ns - prediction.predicted.total_ns == RTT + 2 * MS


def test_tls_1_3_saves_a_round_trip_of_every_full_handshake() -> None:
    prediction = replayed(visits(3), Change(tls13=True))
    assert prediction.measured.total_ns - prediction.predicted.total_ns == 3 * RTT


def test_0_rtt_leaves_the_servers_computing() -> None:
    story = visits(3, version="TLSv1.3", round_trips=1, kind="psk")
    prediction = replayed(story, Change(zero_rtt=True))
    tls_ns, server_ns = 2 * RTT + 4 * MS, 3 * MS
    assert prediction.measured.total_ns - prediction.predicted.total_ns == 3 * (tls_ns - server_ns)


def test_0_rtt_needs_a_resumed_session() -> None:
    story = visits(3, version="TLSv1.3", round_trips=1)
    assert replayed(story, Change(zero_rtt=True)).predicted.total_ns == VISIT_NS * 3 + THINKING * 2
    assert replayed(story, Change(zero_rtt=True, resume=True)).predicted.handshakes_resumed == 2


def test_without_tls_its_handshake_is_gone_and_what_came_before_it() -> None:
    prediction = replayed(visits(3), Change(tls_off=True))
    assert prediction.measured.total_ns - prediction.predicted.total_ns == 3 * (MS + 2 * RTT + 4 * MS)
    assert "tls" not in {bar.phase for bar in prediction.predicted.bars}


@pytest.mark.parametrize("rtt_ms", [0, 5, 80])
def test_each_round_trip_takes_as_long_as_it_is_said_to(rtt_ms: int) -> None:
    prediction = replayed(visits(3), Change(rtt_ns=rtt_ms * MS))
    longer = rtt_ms * MS - RTT
    assert prediction.predicted.total_ns - prediction.measured.total_ns == 3 * 4 * longer


def test_what_is_held_back_falls_away() -> None:
    story = visits(2)
    story.stall(0, "nagle", RTT + 2 * MS, RTT + 42 * MS, detail="delayed-ack", ack_delay_ns=39 * MS)
    prediction = replayed(story, Change(nodelay=True))
    assert prediction.measured.total_ns - prediction.predicted.total_ns == 40 * MS


def test_changes_work_together() -> None:
    both = replayed(visits(4), Change(keepalive=True, tls13=True, rtt_ns=80 * MS))
    first = 80 * MS + MS + 80 * MS + 4 * MS + 80 * MS + 5 * MS
    assert both.predicted.total_ns == first + 3 * (THINKING + 80 * MS + 5 * MS)


def test_only_the_chosen_server_is_changed() -> None:
    story = visits(2)
    for port in (3, 4):
        at = port * 500 * MS
        story.connect(("10.0.0.1", port), ("10.0.0.3", 443), at, VISIT, tls=FULL, exchange=EXCHANGE, syn_at=0, **FACTS)
    for server in ("10.0.0.2:443", "shop.example", "10.0.0.2", "10.0.0.3"):
        prediction = replayed(story, Change(keepalive=True, server=server))
        assert prediction.predicted.connections == 3
    with pytest.raises(UsageError, match=r"no server '10\.0\.0\.4'"):
        replayed(story, Change(keepalive=True, server="10.0.0.4"))


def chained() -> Story:
    """A proxy that opens a connection to its backend inside each wait of its client."""
    story = Story()
    front: dict[str, Any] = {"exchange": EXCHANGE, "syn_at": 0, **FACTS, "rtt_server_ns": 0}
    for number in range(2):
        at = number * 200 * MS
        story.connect(
            ("10.0.0.1", number), ("10.0.0.2", 80), at,
            [("syn", 0), ("request", 0), ("wait", 100 * MS), ("transfer", MS)], **front,
        )  # fmt: skip
        story.connect(
            ("10.0.0.2", number), ("10.0.0.3", 80), at + 10 * MS,
            [("syn", RTT), ("request", 0), ("wait", 40 * MS), ("transfer", 0)], exchange=EXCHANGE, syn_at=0, **FACTS,
        )  # fmt: skip
    story.capture()
    return story


def test_a_front_waits_less_when_what_it_waits_for_takes_less() -> None:
    with empty_trace() as trace:
        chained().fill(trace)
        trace.execute(
            """
            UPDATE connections SET syn_at = opened_at, syn_ack_at = opened_at + rtt_server_ns;
            INSERT INTO links BY NAME SELECT unnest([0, 2]) AS front_stream, 0 AS front_exchange,
                unnest([1, 3]) AS back_stream, 0 AS back_exchange, 'time' AS method, 1.0 AS confidence;
            """
        )
        prediction = predict(trace, Change(keepalive=True, server="10.0.0.3"))
    waits = {bar.stream: bar.end_at - bar.start_at for bar in prediction.predicted.bars if bar.phase == "wait"}
    assert waits == {0: 100 * MS, 1: 40 * MS, 2: 100 * MS - RTT, 3: 40 * MS}


@pytest.mark.parametrize(
    ("size", "rounds"), [(1, 0), (14_480, 0), (14_481, 1), (3 * 14_480, 1), (3 * 14_480 + 1, 2), (7 * 14_480, 2)]
)
def test_a_new_connection_sends_ten_segments_then_twice_as_many(size: int, rounds: int) -> None:
    assert Window().send(size, 0, 0, 1460, RTT) == rounds


def test_a_window_that_has_grown_shrinks_when_it_idles() -> None:
    window = Window()
    assert window.send(100_000, 0, 100 * MS, 1460, RTT) == 2
    assert window.send(200_000, 200 * MS, 300 * MS, 1460, RTT) == 1
    assert window.send(200_000, 9_000 * MS, 9_100 * MS, 1460, RTT) == 3


def test_more_is_sent_at_once_on_a_connection_that_was_kept() -> None:
    story = visits(2, transfer_ns=RTT, exchange={**EXCHANGE, "response_bytes": 40_000})
    changes = (Change(), Change(keepalive=True))
    cold, warm = (
        sum(bar.end_at - bar.start_at for bar in replayed(story, change).predicted.bars if bar.phase == "transfer")
        for change in changes
    )
    assert cold == 2 * RTT
    assert warm == RTT


@pytest.fixture
def nothing() -> Iterator[Trace]:
    with empty_trace() as trace:
        yield trace


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ("SELECT 1", "no packets"),
        ("INSERT INTO captures BY NAME SELECT 0 AS capture, 3 AS selected", "no connections"),
        (
            """INSERT INTO captures BY NAME SELECT 0 AS capture, 3 AS selected;
            INSERT INTO connections BY NAME SELECT 0 AS stream, 'tcp' AS transport, '10.0.0.1' AS client_ip,
                '10.0.0.2' AS server_ip, 80 AS server_port, 0 AS opened_at, 1 AS closed_at, 'open' AS state""",
            "no requests",
        ),
        (
            """INSERT INTO captures BY NAME SELECT 0 AS capture, 3 AS selected;
            INSERT INTO connections BY NAME SELECT 0 AS stream, 'udp' AS transport, '10.0.0.1' AS client_ip,
                '10.0.0.2' AS server_ip, 53 AS server_port, 0 AS opened_at, 1 AS closed_at, 'unanswered' AS state;
            INSERT INTO exchanges BY NAME SELECT 0 AS stream, 0 AS number, 5 AS request_at, 'dns' AS protocol,
                'name' AS kind""",
            "no request of which",
        ),
    ],
)
def test_of_what_nothing_can_be_predicted_it_says_why(nothing: Trace, rows: str, why: str) -> None:
    nothing.execute(rows)
    with pytest.raises(UsageError, match=f"nothing can be predicted.*{why}"):
        predict(nothing, Change(keepalive=True))


times = st.integers(-5, 40) | st.none()


ROWS = st.lists(
    st.tuples(st.integers(0, 2), times, times, times, times, st.integers(0, 60_000)), min_size=1, max_size=8
)
OPENINGS = st.lists(st.tuples(times, times, times, times), min_size=3, max_size=3)
EMPTY = "".join(f"DELETE FROM {name};" for name in ("connections", "phases", "handshakes", "exchanges"))


def sql(value: object) -> str:
    return "NULL" if value is None else str(value)


def test_no_capture_is_too_strange(nothing: Trace) -> None:
    """Instants in any order, and missing: no bar ends before it begins, and no error but the one that is meant."""
    nothing.execute("INSERT INTO captures BY NAME SELECT 0 AS capture, 3 AS selected")

    @settings(max_examples=40, deadline=None)
    @given(
        rows=ROWS, openings=OPENINGS, words=st.sets(st.sampled_from(CHANGES)),
        rtt_ns=st.sampled_from([None, 0, 3, 1000]),
    )  # fmt: skip
    def replay(
        rows: list[tuple[int | None, ...]], openings: list[tuple[int | None, ...]], words: set[str], rtt_ns: int | None
    ) -> None:
        statements = [EMPTY]
        for stream, (syn, accepted, hello, ready) in enumerate(openings):
            statements.append(
                f"""
                INSERT INTO connections BY NAME SELECT {stream} AS stream, 'tcp' AS transport, '10.0.0.1' AS client_ip,
                    '10.0.0.2' AS server_ip, 80 AS server_port, 0 AS opened_at, 50 AS closed_at, 'open' AS state,
                    {sql(syn)} AS syn_at, 3 AS rtt_client_ns, 2 AS rtt_server_ns;
                INSERT INTO phases BY NAME
                    SELECT {stream} AS stream, 'syn' AS kind, 0 AS start_at, {sql(accepted)} AS end_at;
                INSERT INTO handshakes BY NAME SELECT {stream} AS stream, 0 AS number, {sql(hello)} AS hello_at,
                    {sql(ready)} AS ready_at, 'TLSv1.2' AS version, 'full' AS kind, 'complete' AS outcome,
                    2 AS round_trips;"""
            )
        for number, row in enumerate(rows):
            of, requested, sent, answered, done, size = map(sql, row)
            statements.append(
                f"""
                INSERT INTO exchanges BY NAME SELECT {of} AS stream, {number} AS number, {requested} AS request_at,
                    {sent} AS request_done_at, {answered} AS response_at, {done} AS response_done_at,
                    {size} AS response_bytes, 'http/1.1' AS protocol, 'web' AS kind;"""
            )
        nothing.execute("".join(statements))
        try:
            prediction = predict(nothing, replace(Change.of(words), rtt_ns=rtt_ns))
        except UsageError:
            return
        for side in (prediction.measured, prediction.predicted):
            assert all(bar.start_at <= bar.end_at for bar in side.bars)

    replay()


@pytest.mark.parametrize(
    ("case", "change"),
    [("keepalive-20", Change(keepalive=True)), ("tls13-20", Change(tls13=True)), ("resume-20", Change(resume=True))],
)
def test_what_users_will_wait_is_what_they_waited_when_it_was_mended(case: str, change: Change) -> None:
    waited = {}
    for when in ("before", "after"):
        with conchart.read(ROOT / f"captures/whatif/{case}-{when}/input.pcap") as trace:
            waited[when] = totals(trace).waited_ns
            if when == "before":
                prediction = predict(trace, change)
    assert prediction.measured.waited_ns == waited["before"]
    assert prediction.predicted.waited_ns == pytest.approx(waited["after"], rel=0.03)


def test_what_is_held_behind_an_opening_is_no_wait_when_it_is_sent_at_once() -> None:
    with conchart.read(ROOT / "captures/stalls/resumed-held-client/input.pcap") as trace:
        ((held_ns,),) = trace.sql("SELECT sum(waited_ns) FROM times WHERE phase = 'idle'").fetchall()
        prediction = predict(trace, Change(nodelay=True))
    assert prediction.measured.waits["idle"] == held_ns > 20 * 40 * MS
    assert "idle" not in prediction.predicted.waits
    assert prediction.predicted.waited_ns == prediction.measured.waited_ns - held_ns


def test_requests_side_by_side_on_a_connection_wait_once() -> None:
    with conchart.read(ROOT / "captures/multiplexed/h2load-nginx-thirty/input.pcap") as trace:
        measured = predict(trace, Change(rtt_ns=0)).measured
        assert measured.waited_ns == totals(trace).waited_ns < sum(measured.requests_ns) / 10
