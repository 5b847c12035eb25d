"""What could not be judged, why, and how much waiting that is."""

from typing import Any

from conchart.analysis.unjudged import tell_unjudged
from tests.by_hand import Row, connection, tables_of

WAITS = {0: 10, 1: 20, 2: 5, 4: 40, 5: 7, 6: 1_000, 7: 300, 8: 9}
"""What users waited on each connection."""
CONNECTIONS = (
    connection(0, packets_server=0),
    connection(1, missing_client=5),
    connection(2, missing_server=1),
    connection(3, state="midstream"),
    connection(4, app="tls"),
    connection(5),
    connection(6),
    connection(7, app="tls"),
    connection(8, state="refused", missing_client=5),
    connection(9, transport="udp", app="unknown"),
)
HANDSHAKES = (
    {"stream": 4, "number": 0, "outcome": "complete", "keys": "none"},
    {"stream": 7, "number": 0, "outcome": "complete", "keys": "all"},
)
EXCHANGES = tuple({"stream": stream, "number": 0, "inferred": stream == 5} for stream in range(10))


def unjudged_of(*connections: Row, remarks: tuple[Row, ...] = ()) -> list[tuple[Any, ...]]:
    streams = {row["stream"] for row in connections}
    tables = tables_of(
        connections=connections,
        handshakes=[row for row in HANDSHAKES if row["stream"] in streams],
        exchanges=[row for row in EXCHANGES if row["stream"] in streams],
        phases=[
            {"stream": stream, "exchange": 0, "kind": "wait", "start_at": 100, "end_at": 100 + ns}
            for stream, ns in WAITS.items()
            if stream in streams
        ],
        remarks=remarks,
    )
    tell_unjudged(tables)
    return tables.fetch("SELECT number, what, why, connections, waited_ns FROM unjudged ORDER BY number")


def test_each_connection_is_told_for_the_first_reason_that_hides_something() -> None:
    assert unjudged_of(*CONNECTIONS) == [
        (0, "waits", "missing", 2, 25),
        (1, "waits", "one-sided", 1, 10),
        (2, "waits", "unread", 1, None),
        (3, "opening", "midstream", 1, None),
        (4, "content", "sealed", 1, 40),
        (5, "content", "unread", 1, 7),
    ]


def test_where_all_can_be_judged_there_is_no_row() -> None:
    assert unjudged_of(CONNECTIONS[6], CONNECTIONS[7], CONNECTIONS[8]) == []


def test_tls_without_a_handshake_is_sealed_and_a_failed_handshake_is_not() -> None:
    assert unjudged_of(connection(6, app="tls")) == [(0, "content", "sealed", 1, 1_000)]
    tables = tables_of(
        connections=[connection(6, app="tls")], handshakes=[{"stream": 6, "number": 0, "outcome": "failed"}]
    )
    tell_unjudged(tables)
    assert tables.count("unjudged") == 0


def test_of_a_connection_with_missing_bytes_content_and_opening_are_not_told_besides() -> None:
    assert unjudged_of(connection(4, app="tls", state="midstream", missing_client=1)) == [
        (0, "waits", "missing", 1, 40)
    ]


def test_warnings_of_packets_are_told_where_no_connection_tells_of_them() -> None:
    remarks = (
        {"number": 0, "warning": True, "kind": "dropped"},
        {"number": 1, "warning": True, "kind": "dropped"},
        {"number": 2, "warning": False, "kind": "snapped"},
        {"number": 3, "warning": True, "kind": "missing"},
        {"number": 4, "warning": True, "kind": "unseen"},
    )
    assert unjudged_of(CONNECTIONS[6], remarks=remarks) == [
        (0, "packets", "dropped", None, None),
        (1, "packets", "unseen", None, None),
    ]
    assert unjudged_of(CONNECTIONS[3], remarks=remarks) == [
        (0, "opening", "midstream", 1, None),
        (1, "packets", "dropped", None, None),
    ]


def test_what_was_made_for_another_request_is_nobodys_wait() -> None:
    tables = tables_of(
        connections=[connection(0, missing_client=5)],
        phases=[{"stream": 0, "exchange": 0, "kind": "wait", "start_at": 0, "end_at": 10}],
        on_behalf=[{"stream": 0, "exchange": 0}],
    )
    tell_unjudged(tables)
    assert tables.fetch("SELECT why, connections, waited_ns FROM unjudged") == [("missing", 1, None)]
