"""What users waited for, and what stalls explain of it."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conchart.analysis import waits
from tests.charts.story import MS, Story, many
from tests.conftest import TellTrace, empty_trace

SERVER = ("10.0.0.2", 80)


def idling(idle: int = 900 * MS) -> Story:
    """A connection that idles after its response."""
    story = Story()
    story.connect(("10.0.0.1", 1), SERVER, 0, [("request", 50 * MS), ("wait", 50 * MS), ("idle", idle)])
    story.capture()
    return story


def cuts(most: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, 40), min_size=2, max_size=most).map(sorted)


@pytest.mark.parametrize("most_pairs", [0, 10_000])
@settings(deadline=None, max_examples=50)
@given(
    phases=cuts(12),
    kinds=st.lists(st.sampled_from(["idle", "wait", "transfer"]), min_size=12, max_size=12),
    stalls=cuts(12).filter(lambda at: len(set(at)) == len(at)),
)
def test_overlaps_are_those_of_every_stall_with_every_phase(
    most_pairs: int, phases: list[int], kinds: list[str], stalls: list[int]
) -> None:
    """Phases touch and may be empty; between two stalls there may be time. Both ways of finding them agree."""
    phase_rows = list(zip(kinds, phases, phases[1:], strict=False))
    stall_rows = list(zip(stalls[::2], stalls[1::2], strict=False))
    expected: Counter[str] = Counter()
    for kind, start, end in phase_rows:
        for stalled, resumed in stall_rows:
            if (both := min(end, resumed) - max(start, stalled)) > 0:
                expected[kind] += both
    with empty_trace() as trace:
        for kind, start, end in phase_rows:
            trace.execute(
                f"INSERT INTO phases BY NAME SELECT unnest([0, 7]) AS stream, '{kind}' AS kind, {start} AS start_at, "
                f"{end} AS end_at, 1 AS start_frame"
            )
        for stalled, resumed in stall_rows:
            trace.execute(
                f"INSERT INTO stalls BY NAME SELECT 7 AS stream, 'rto' AS kind, {stalled} AS start_at, "
                f"{resumed} AS end_at"
            )
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(waits, "MOST_PAIRS", most_pairs)
            waits.explain_phases(trace)
        found = trace.sql(
            "SELECT stream, phase, kind, sum(end_at - start_at) FROM phase_stalls GROUP BY ALL"
        ).fetchall()
    assert {(stream, kind) for stream, _, kind, _ in found} <= {(7, "rto")}
    assert {phase: ns for _, phase, _, ns in found} == expected


def test_users_wait_for_phases_and_for_stalled_idling_and_not_for_the_rest(trace_of: TellTrace) -> None:
    story = idling()
    story.stall(0, "nagle", 60 * MS, 700 * MS)
    story.stall(0, "rto", 700 * MS, 900 * MS, detail="spurious")
    trace = trace_of(story)
    assert trace.sql("SELECT waited_ns // 1000000 FROM connections").fetchall() == [(700,)]
    query = "SELECT phase, kind, total_ns // 1000000, waited_ns // 1000000 FROM times ORDER BY number"
    assert trace.sql(query).fetchall() == [
        ("request", None, 50, 50),
        ("wait", "nagle", 40, 40),
        ("wait", None, 10, 10),
        ("idle", "nagle", 600, 600),
        ("idle", None, 300, 0),
    ]


@pytest.mark.parametrize("state", ["refused", "unanswered"])
def test_who_was_never_served_waited_for_no_response(trace_of: TellTrace, state: str) -> None:
    story = Story()
    story.connect(("10.0.0.1", 1), SERVER, 0, [("syn", 63_000 * MS)], state=state)
    story.capture()
    trace = trace_of(story)
    assert trace.sql("SELECT waited_ns FROM connections").fetchall() == [(0,)]
    assert trace.sql("SELECT total_ns, waited_ns FROM times").fetchall() == [(63_000 * MS, 0)]


def test_times_add_up_to_lifetimes_and_waits(trace_of: TellTrace) -> None:
    trace = trace_of(many(40))
    sums = "SELECT sum(total_ns), sum(waited_ns) FROM"
    lived = "SELECT sum(closed_at - opened_at), sum(waited_ns) FROM connections"
    assert trace.sql(f"{sums} times").fetchall() == trace.sql(f"{sums} servers").fetchall()
    assert trace.sql(f"{sums} times").fetchall() == trace.sql(lived).fetchall()


def test_a_stall_names_the_exchange_that_it_held_up(trace_of: TellTrace) -> None:
    """Between exchanges a client owes the next one, and a server the last."""
    story = Story()
    story.connect(
        ("10.0.0.1", 1), SERVER, 0,
        [("syn", 10 * MS), ("idle", 60 * MS), ("request", 10 * MS), ("wait", 10 * MS), ("idle", 100 * MS),
         ("request", 10 * MS), ("wait", 10 * MS), ("idle", 50 * MS)],
    )  # fmt: skip
    story.capture()
    story.stall(0, "syn-rto", 0, 10 * MS)
    story.stall(0, "nagle", 20 * MS, 70 * MS)
    story.stall(0, "rto", 90 * MS, 110 * MS, side="server")
    story.stall(0, "nagle", 150 * MS, 195 * MS)
    story.stall(0, "nagle", 215 * MS, 230 * MS)
    found = trace_of(story).sql("SELECT phase, side, exchange FROM phase_stalls ORDER BY start_at").fetchall()
    assert found == [
        ("syn", "client", 0),
        ("idle", "client", 0),
        ("idle", "server", 0),
        ("idle", "client", 1),
        ("request", "client", 1),
        ("idle", "client", None),
    ]


@pytest.mark.parametrize(("gap", "waited"), [(9, 0), (40, 40), (1_500, 0)])
def test_a_client_that_waits_with_its_hello_keeps_its_user_waiting(trace_of: TellTrace, gap: int, waited: int) -> None:
    """Not where a TLS library takes its time, nor where the connection was opened ahead."""
    story = Story()
    story.connect(
        ("10.0.0.1", 1), SERVER, 0,
        [("syn", 10 * MS), ("idle", gap * MS), ("tls", 20 * MS), ("request", MS), ("wait", 5 * MS), ("idle", 70 * MS)],
        tls={"kind": "full"},
    )  # fmt: skip
    story.capture()
    trace = trace_of(story)
    assert trace.sql("SELECT waited_ns // 1000000 FROM connections").fetchall() == [(36 + waited,)]
    expected = [("idle", "sender", "hello", waited)] if waited else []
    found = "SELECT phase, kind, detail, waited_ns // 1000000 FROM times WHERE kind IS NOT NULL"
    assert trace.sql(found).fetchall() == expected
