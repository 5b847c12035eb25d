"""Which connections a text draws, and what fills their lanes."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from conchart.report.axis import TimeAxis
from conchart.report.lanes import MOST_LANES, Lane, Stretch, costliest, lanes, stretches
from conchart.store.tables import Tables
from tests.by_hand import connection, tables_of

AXIS = TimeAxis(origin=100, span=1_000, folds=())


def waited(*waits: tuple[int, int], **facts: Any) -> Tables:  # noqa: ANN401
    """Connections, each to a server of a number, with what was waited for it; the first server ranks last."""
    return tables_of(
        connections=[
            connection(
                stream, f"10.0.0.1:{40_000 + stream}", f"10.0.{server}.9:80", waited_ns=ns, opened_at=100 + stream,
                closed_at=150, **facts,
            )
            for stream, (server, ns) in enumerate(waits)
        ],
        servers=[
            {"server_ip": f"10.0.{server}.9", "server_port": 80, "rank": -server, "names": [f"s{server}.example"]}
            for server in {server for server, _ in waits}
        ],
    )  # fmt: skip


def test_the_longest_wait_is_drawn_first_as_long_as_there_is_room() -> None:
    """A connection takes a line, its server another one, and the count of the rest one more."""
    tables = waited((0, 5), (0, 9), (1, 7), (0, 1))
    assert costliest(tables, 4, 100) == [1, 2, 0, 3]
    assert costliest(tables, 4, 6) == [1, 2, 0, 3]
    assert costliest(tables, 4, 5) == [1, 2], "the third would need a line for what is left out"
    assert costliest(tables, 4, 4) == [1]
    assert costliest(tables, 4, 1) == [1], "one is drawn in any case"


def test_no_more_than_so_many_are_drawn() -> None:
    assert len(costliest(waited(*[(0, 1)] * (MOST_LANES + 1)), MOST_LANES + 1, 1_000)) == MOST_LANES


def test_datagrams_that_nobody_reads_come_last() -> None:
    tables = waited((0, 5), (0, 9))
    tables.execute("UPDATE connections SET transport = 'udp', app = NULL WHERE stream = 1")
    assert costliest(tables, 2, 100) == [0, 1]


def test_lanes_stand_by_rank_of_their_server_and_then_by_time() -> None:
    tables = waited((0, 1), (1, 1), (0, 1), (0, 1))
    found = lanes(tables, [2, 1, 0], AXIS, names=True)
    assert [lane.stream for lane in found] == [1, 0, 2]
    assert found[0] == Lane(
        stream=1, server="10.0.1.9:80", names=("s1.example",), owner="", client="10.0.0.1:40001", state="complete",
        lasts_ns=49, life=Stretch("unseen", 1, 50),
    )  # fmt: skip


def test_owners_and_names_are_told_where_they_are_wanted() -> None:
    tables = waited((0, 1), (0, 1))
    tables.execute(
        "UPDATE connections SET client_process = 'curl', client_pid = 7, server_pod = 'web' WHERE stream = 0"
    )
    named, other = lanes(tables, [0, 1], AXIS, names=True)
    assert (named.client, named.owner) == ("curl (pid 7)", "pod web")
    assert (other.client, other.owner) == ("10.0.0.1:40001", "pod web"), "who owns the server is the same for all of it"
    without = lanes(tables, [0, 1], AXIS, names=False)
    assert {(lane.client[:8], lane.owner, lane.names) for lane in without} == {("10.0.0.1", "", ())}


def filled(phases: list[tuple[str, int]], slots: int) -> tuple[list[Stretch], int]:
    """Give what fills the lane of a connection with these phases, end to end, and how long they are together."""
    tables, at = waited((0, 1)), 0
    rows: list[tuple[Any, ...]] = []
    for kind, lasts in phases:
        rows.append((100 + at, 100 + at + lasts, kind))
        at += lasts
    for start, end, kind in rows:
        tables.execute(
            f"INSERT INTO phases BY NAME SELECT 0 AS stream, {start} AS start_at, {end} AS end_at, '{kind}' AS kind"
        )
    drawn = lanes(tables, [0], AXIS, names=True)
    return stretches(tables, drawn, TimeAxis(origin=100, span=max(at, 1), folds=()), slots)[0], at


def test_phases_of_one_kind_in_one_slot_become_one() -> None:
    phases = [("wait", 10), ("idle", 20), ("wait", 30), ("idle", 40)]
    assert filled(phases, 1)[0] == [Stretch("wait", 0, 40), Stretch("idle", 10, 70)]
    assert filled(phases, 1_000)[0] == [
        Stretch("wait", 0, 10),
        Stretch("idle", 10, 30),
        Stretch("wait", 30, 60),
        Stretch("idle", 60, 100),
    ]


def test_a_connection_without_phases_is_drawn_as_unseen() -> None:
    assert filled([], 10)[0] == [Stretch("unseen", 0, 50)]


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(("wait", "idle", "tls")), st.integers(1, 10**9)), min_size=1, max_size=12),
    st.integers(1, 8),
)
def test_no_time_is_lost_when_phases_are_joined(phases: list[tuple[str, int]], slots: int) -> None:
    drawn, whole = filled(phases, slots)
    assert sum(one.end - one.start for one in drawn) == whole
    for kind in ("wait", "idle", "tls"):
        drawn_ns = sum(one.end - one.start for one in drawn if one.kind == kind)
        assert drawn_ns == sum(lasts for name, lasts in phases if name == kind)
