"""All connections as lanes: in which order, what is on them, and what is left out where they are too many."""

from typing import Any

import pytest

from conchart.labels.phases import PHASES
from conchart.report import swimlanes as module
from conchart.report.axis import Fold, TimeAxis
from conchart.report.swimlanes import Lane, LaneStall, Link, Swimlanes, drawn_lanes, swimlanes
from conchart.store.tables import Tables
from tests.by_hand import Row, connection, tables_of

AXIS = TimeAxis(origin=100, span=1_000, folds=())


def opened(stream: int, server: int, at: int, waited: int = 0, **facts: object) -> Row:
    """A connection to a server of a number, open for 50 ns."""
    times = {"opened_at": 100 + at, "closed_at": 150 + at, "first_frame": stream + 1, "waited_ns": waited}
    return connection(stream, f"10.0.0.1:{40_000 + stream}", f"10.0.{server}.9:80", **times, **facts)


def server(number: int, rank: int, *names: str, role: str = "server") -> Row:
    return {"server_ip": f"10.0.{number}.9", "server_port": 80, "rank": rank, "names": names, "role": role}


def phase(stream: int, kind: str, start: int, end: int, **facts: object) -> Row:
    times = {"start_at": 100 + start, "end_at": 100 + end, "start_frame": start, "end_frame": end}
    return {"stream": stream, "kind": kind, **times, **facts}


def stall(stream: int, kind: str, start: int, end: int, **facts: object) -> Row:
    return {"stream": stream, "kind": kind, "start_at": 100 + start, "end_at": 100 + end, "side": "client", **facts}


def drawn(axis: TimeAxis = AXIS, *, names: bool = True, **rows: Any) -> Swimlanes:  # noqa: ANN401
    return swimlanes(tables_of(**rows), axis, names=names)


TWO_SERVERS: dict[str, Any] = {
    "connections": [opened(0, 1, 30), opened(1, 2, 20), opened(2, 1, 10), opened(3, 1, 10)],
    "servers": [server(2, 0, "back.example", role="backend"), server(1, 1, "front.example", "www.example")],
}


def streams(tables: Tables) -> list[int]:
    """Give the connections from the top."""
    with drawn_lanes(tables):
        found = tables.fetch("SELECT lane, stream FROM drawn ORDER BY lane")
    assert [lane for lane, _ in found] == [*range(len(found))]
    return [stream for _, stream in found]


def test_where_nothing_was_captured_there_is_nothing_to_draw() -> None:
    found = drawn()
    assert (found.servers, found.lanes, found.stalls, found.links) == ((), (), (), ())
    assert [len(column) for column in (found.phases.lane, found.phases.kind, found.phases.duration)] == [0, 0, 0]


def test_lanes_are_ordered_by_server_and_time_and_connection() -> None:
    found = drawn(**TWO_SERVERS)
    assert found.servers == (
        "10.0.2.9:80  back.example  (backend)",
        "10.0.1.9:80  front.example, www.example  (server)",
    )
    assert found.lanes == (
        Lane(group=0, client="10.0.0.1", label="1  10.0.0.1:40001", opened=20, closed=70),
        Lane(group=1, client="10.0.0.1", label="2  10.0.0.1:40002", opened=10, closed=60),
        Lane(group=1, client="10.0.0.1", label="3  10.0.0.1:40003", opened=10, closed=60),
        Lane(group=1, client="10.0.0.1", label="0  10.0.0.1:40000", opened=30, closed=80),
    )


def test_without_names_and_of_servers_without_any_the_address_and_role_are_left() -> None:
    assert drawn(names=False, **TWO_SERVERS).servers == ("10.0.2.9:80  (backend)", "10.0.1.9:80  (server)")
    hostile = [server(1, 0), server(2, 0, "a\x1bb")]
    assert drawn(servers=hostile).servers == ("10.0.1.9:80  (server)", "10.0.2.9:80  a\ufffdb  (server)")


def test_phases_are_by_lane_and_time() -> None:
    kinds = [kind.name for kind in PHASES]
    rows = [
        phase(1, "wait", 25, 70, inferred=True),
        phase(1, "syn", 20, 25),
        phase(0, "unseen", 30, 80, inferred=False),
        phase(2, "syn", 10, 10),
    ]
    found = drawn(**TWO_SERVERS, phases=rows).phases
    columns = (found.lane, found.kind, found.duration, found.inferred)
    assert [(lane, kinds[kind], ns, bool(inferred)) for lane, kind, ns, inferred in zip(*columns, strict=True)] == [
        (0, "syn", 5, False),
        (0, "wait", 45, True),
        (1, "syn", 0, False),
        (3, "unseen", 50, False),
    ]


def test_a_stall_has_the_word_of_its_kind_and_detail_and_idle_ones_come_after_the_others() -> None:
    rows: dict[str, Any] = {
        "stalls": [
            stall(0, "rto", 40, 45, detail="spurious"),
            stall(1, "rto", 25, 30, detail="tail"),
            stall(0, "rto", 30, 35, detail="ack"),
            stall(0, "sender", 50, 55),
        ],
        "phase_stalls": [
            stall(1, "nagle", 40, 60, phase="idle"),
            stall(1, "sender", 30, 35, phase="idle", detail="hello"),
            stall(0, "rto", 40, 45, phase="wait"),
        ],
    }
    found = drawn(**TWO_SERVERS, **rows).stalls
    assert [(one.lane, one.word, one.start, one.duration) for one in found if not one.idle] == [
        (0, "lost", 25, 5),
        (0, "deferred", 30, 5),
        (3, "lost", 30, 5),
        (3, "late", 40, 5),
        (3, "paused", 50, 5),
    ]
    assert found[5:] == (
        LaneStall(lane=0, word="held", idle=True, start=40, duration=20),
        LaneStall(lane=0, word="deferred", idle=True, start=30, duration=5),
    )


def link(front: tuple[int, int | None], back: tuple[int, int | None], **steps: int) -> Row:
    (front_stream, front_exchange), (back_stream, back_exchange) = front, back
    ends = {"front_stream": front_stream, "front_exchange": front_exchange, "back_stream": back_stream}
    return {**ends, "back_exchange": back_exchange, "method": "id", "confidence": 1.0, **steps}


def exchange(stream: int, number: int, request: int | None, response: int | None) -> Row:
    return {
        "stream": stream, "number": number, "request_at": None if request is None else 100 + request,
        "response_at": None if response is None else 100 + response,
    }  # fmt: skip


def test_a_link_begins_with_the_request_or_with_the_opening_that_was_for_it() -> None:
    """Where the request is not in the capture, or belongs to nothing that is read, it is the opening, too."""
    rows: dict[str, Any] = {
        "connections": [opened(0, 1, 0), *(opened(stream, 2, 10 * stream) for stream in (1, 2, 3, 4, 5))],
        "servers": TWO_SERVERS["servers"],
        "exchanges": [exchange(0, 0, 0, 90), exchange(4, 0, None, 88)]
        + [exchange(stream, 0, 10 * stream + 5, 80 + stream) for stream in (1, 2, 3)],
        "links": [
            link((0, 0), (1, 0), connect_ns=0, tls_ns=0),
            link((0, 0), (2, 0), connect_ns=3, tls_ns=0),
            link((0, 0), (3, 0), connect_ns=0, tls_ns=2),
            link((0, 0), (4, 0), connect_ns=0, tls_ns=0),
            link((0, 0), (5, None)),
        ],
    }
    assert sorted(drawn(**rows).links, key=lambda one: one.at) == [
        Link(lane=5, back_lane=0, at=15),
        Link(lane=5, back_lane=1, at=20),
        Link(lane=5, back_lane=2, at=30),
        Link(lane=5, back_lane=3, at=40),
        Link(lane=5, back_lane=4, at=50),
    ]


def test_what_a_front_caused_is_in_the_order_in_which_its_wait_was_charged() -> None:
    """By the answers; before them all stands what the front did not wait for: it was answered later, or never."""
    rows: dict[str, Any] = {
        "connections": [opened(0, 1, 0), *(opened(stream, 2, stream) for stream in (1, 2, 3, 4))],
        "servers": TWO_SERVERS["servers"],
        "exchanges": [
            exchange(0, 0, 0, 50), exchange(0, 1, 51, 99), exchange(1, 0, 1, 60), exchange(2, 0, 2, 40),
            exchange(3, 0, 3, 30), exchange(4, 0, 60, 70),
        ],
        "links": [link((0, 1), (4, 0)), *(link((0, 0), (stream, 0)) for stream in (1, 2, 3))],
    }  # fmt: skip
    tables = tables_of(**rows)
    with drawn_lanes(tables):
        found = tables.fetch(f"SELECT lane, exchange, back_stream FROM ({module.link_rows()})")
    assert found == [(4, 0, 1), (4, 0, 3), (4, 0, 2), (4, 1, 4)]


def test_instants_are_those_of_the_axis() -> None:
    axis = TimeAxis(origin=90, span=1_000, folds=(Fold(until_at=125, at=5, left_out_ns=7, silent_ns=8),))
    found = drawn(axis, **TWO_SERVERS, stalls=[stall(0, "rto", 30, 40)])
    assert [(lane.opened, lane.closed) for lane in found.lanes] == [(30, 80), (20, 70), (20, 70), (33, 83)]
    assert [one.start for one in found.stalls] == [33]


COSTS: dict[str, Any] = {
    "connections": [opened(0, 1, 0, 1), opened(1, 1, 1, 9), opened(2, 1, 2, 5), opened(3, 2, 3, 0)],
    "servers": [server(1, 0), server(2, 1)],
    "phases": [phase(stream, kind, 0, 1) for stream in range(4) for kind in ("syn", "wait")],
}


def test_where_there_are_too_many_the_costliest_of_each_server_and_finding_are_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert streams(tables_of(**COSTS)) == [0, 1, 2, 3]
    monkeypatch.setattr(module, "_OF_EACH", 1)
    monkeypatch.setattr(module, "MAX_LANES", 3)
    assert streams(tables_of(**COSTS)) == [1, 2, 3], "the first of each server, then the longest wait"
    findings = [{"number": 0, "finding": "slow", "streams": [0, 2]}]
    assert streams(tables_of(**COSTS, findings=findings)) == [0, 1, 3], "the first of the finding's, too"
    monkeypatch.setattr(module, "MAX_LANES", 1)
    assert streams(tables_of(**COSTS)) == [1]


def test_a_lane_is_drawn_while_the_phases_of_what_cost_more_leave_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PHASES", 5)
    assert streams(tables_of(**COSTS)) == [0, 1, 2], "four phases come before those of the third"
    assert len(swimlanes(tables_of(**COSTS), AXIS, names=True).phases.lane) == 5, "and it is cut"
    monkeypatch.setattr(module, "MAX_PHASES", 4)
    assert streams(tables_of(**COSTS)) == [1, 2]


def test_what_is_linked_with_a_lane_that_is_left_out_has_no_end_to_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_LANES", 1)
    links = [link((1, 0), (3, 0)), link((0, 0), (1, 0))]
    (found,) = drawn(**COSTS, links=links).links
    assert (found.lane, found.back_lane) == (0, None)


def test_lanes_are_forgotten_when_the_block_ends_also_with_an_error() -> None:
    tables = tables_of(**COSTS)
    with pytest.raises(KeyError), drawn_lanes(tables):
        raise KeyError
    assert streams(tables) == [0, 1, 2, 3]
    assert tables.fetch("SELECT table_name FROM duckdb_tables() WHERE temporary") == []
