"""Which connections are listed first, and which of their phases."""

import pytest

from conchart.report.connections import Connection, Phase, connections, phases
from conchart.store.tables import Tables
from tests.by_hand import Row, connection, tables_of


def waited(*waits: int | None) -> Tables:
    """Connections with what was waited for each."""
    return tables_of(connections=[connection(stream, waited_ns=ns) for stream, ns in enumerate(waits)])


def test_nothing_captured_is_no_connection_and_no_phase() -> None:
    nothing = tables_of()
    assert connections(nothing, names=True) == []
    assert phases(nothing, [0], 5) == []


def test_all_that_a_connection_has_is_given() -> None:
    row = connection(7, "[fe80::1]:40001", "10.0.0.9:443", server_name="shop.example", opened_at=12)
    assert connections(tables_of(connections=[row | {"client_ip": "fe80::1"}]), names=True) == [
        Connection(
            stream=7, client_ip="fe80::1", client_port=40001, server_ip="10.0.0.9", server_port=443,
            name="shop.example", opened_at=12,
        )
    ]  # fmt: skip


def test_the_longest_wait_comes_first_then_the_first_of_equal_ones_and_last_what_has_none() -> None:
    found = connections(waited(None, 5, 0, 9, 5), names=True)
    assert [one.stream for one in found] == [3, 1, 4, 2, 0]


@pytest.mark.parametrize(("most", "streams"), [(0, []), (2, [3, 1]), (9, [3, 1, 4, 2, 0]), (None, [3, 1, 4, 2, 0])])
def test_no_more_are_listed_than_are_wanted(most: int | None, streams: list[int]) -> None:
    assert [one.stream for one in connections(waited(None, 5, 0, 9, 5), names=True, most=most)] == streams


def test_a_name_is_given_where_there_is_one_and_it_is_wanted_and_it_is_safe_to_print() -> None:
    rows = [connection(stream, server_name=name) for stream, name in enumerate(("a.example", None, "b\x1b[2J"))]
    tables = tables_of(connections=rows)
    assert [one.name for one in connections(tables, names=True)] == ["a.example", "", "b\ufffd[2J"]
    assert [one.name for one in connections(tables, names=False)] == ["", "", ""]


def phase(stream: int, kind: str, start: int, end: int, **facts: object) -> Row:
    frames = {"start_frame": start + 1, "end_frame": end + 1}
    return {"stream": stream, "kind": kind, "start_at": start, "end_at": end, **frames, **facts}


PHASES = [
    phase(2, "wait", 30, 40),
    phase(1, "syn", 10, 20, inferred=False),
    phase(1, "tls", 20, 20, inferred=False),
    phase(1, "request", 20, 30, inferred=True),
    phase(0, "syn", 10, 20),
]


def listed(most: int, *streams: int) -> list[tuple[int, str]]:
    return [(one.stream, one.kind) for one in phases(tables_of(phases=PHASES), streams, most)]


def test_the_phases_of_these_connections_are_in_the_order_of_time_and_of_the_connections() -> None:
    assert listed(9, 2, 1, 0) == [(0, "syn"), (1, "syn"), (1, "request"), (2, "wait")]
    assert listed(9, 2, 1) == [(1, "syn"), (1, "request"), (2, "wait")]
    assert listed(9) == []


def test_no_more_phases_are_listed_than_are_wanted_of_all_connections_together() -> None:
    assert listed(3, 2, 1, 0) == [(0, "syn"), (1, "syn"), (1, "request")], "one that lasts no time is none of them"
    assert listed(0, 2, 1, 0) == []


def test_a_phase_is_inferred_only_where_the_capture_says_so() -> None:
    assert phases(tables_of(phases=PHASES), [0, 1], 9) == [
        Phase(stream=0, kind="syn", start_at=10, end_at=20, start_frame=11, end_frame=21, inferred=False),
        Phase(stream=1, kind="syn", start_at=10, end_at=20, start_frame=11, end_frame=21, inferred=False),
        Phase(stream=1, kind="request", start_at=20, end_at=30, start_frame=21, end_frame=31, inferred=True),
    ]
