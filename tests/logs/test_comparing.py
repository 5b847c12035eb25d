"""What a log says of a request beside what the wire says, and what explains the difference."""

from typing import Any

import pytest

from conchart.logs.comparing import compare
from conchart.store.tables import Tables
from tests.by_hand import Row, connection, tables_of

MS = 1_000_000
FIELD = "$request_time"
_PAIRS = {"log": "INTEGER", "line": "BIGINT", "stream": "INTEGER", "exchange": "INTEGER"}


def compared(
    logged_ms: int,
    *,
    starts: str = "line_at",
    took: str = "durations[1]",
    number: int = 0,
    **facts: Any,  # noqa: ANN401
) -> Tables:
    """Give a request from 100 to 200 ms, of which the log says that it took so long, and began at ``line_at``."""
    line_at, of = facts.pop("line_at", 100 * MS), facts.pop("of", {})
    exchange: Row = {
        "stream": 0, "number": number, "request_at": 100 * MS, "response_done_at": 200 * MS, **facts,
    }  # fmt: skip
    tables = tables_of(
        connections=[connection(0, **{"syn_at": 60 * MS, "ack_at": 80 * MS, "closed_at": 900 * MS, **of})],
        exchanges=[exchange],
        logs=[{"log": 0, "fields": [FIELD]}],
        log_lines=[{"log": 0, "line": 7, "durations": [logged_ms * MS], "line_at": line_at}],
        expected_log_lines=[{"stream": 0, "exchange": number, "nginx_request_ns": 95 * MS}],
    )
    tables.lend("log_pairs", _PAIRS, [(0, 7, 0, number)])
    compare(tables, 0, starts=starts, grain_ns=0, slack_ns=0, took=took)
    return tables


PARTS = ("setup_ns", "queued_ns", "buffered_ns", "network_ns", "clock_ns")


def parts(tables: Tables) -> dict[str, int]:
    """Give the parts of the difference in ms that are not nothing, and which explains it."""
    columns = f"logged_ns, wire_ns, difference_ns, {', '.join(PARTS)}, explained"
    ((logged_ns, wire_ns, difference_ns, *values, explained),) = tables.fetch(f"SELECT {columns} FROM log_differences")
    assert wire_ns - logged_ns == difference_ns == sum(values), "the parts add up"
    times = {name[:-3]: ns // MS for name, ns in zip(PARTS, values, strict=True) if ns}
    return {"wire": wire_ns // MS, **times, explained: times.get(explained, 0)}


def test_the_set_up_of_a_connection_is_waited_for_by_its_first_request_alone() -> None:
    assert parts(compared(100)) == {"wire": 120, "setup": 20}
    assert parts(compared(100, number=1)) == {"wire": 100, "setup": 0}


def test_where_tls_is_spoken_the_set_up_lasts_until_it_is_ready() -> None:
    tables = compared(100)
    tables.execute(
        "DELETE FROM log_differences; INSERT INTO handshakes BY NAME SELECT 0 AS stream, 0 AS number, "
        f"{95 * MS} AS ready_at"
    )
    compare(tables, 0, starts="line_at", grain_ns=0, slack_ns=0, took="durations[1]")
    assert parts(tables) == {"wire": 135, "setup": 35}


def test_what_the_server_reads_late_was_queued() -> None:
    assert parts(compared(60, line_at=140 * MS, number=1)) == {"wire": 100, "queued": 40}
    assert parts(compared(98, line_at=102 * MS, number=1)) == {"wire": 100, "clock": 2}, "kernel and loop take that"


def test_what_the_log_ends_before_was_still_in_buffers() -> None:
    assert parts(compared(30, number=1)) == {"wire": 100, "buffered": 70}
    assert parts(compared(60, line_at=110 * MS, number=1)) == {"wire": 100, "queued": 10, "buffered": 30}


def test_the_way_to_the_client_is_the_round_trip() -> None:
    assert parts(compared(100, number=1, of={"rtt_client_ns": 30 * MS})) == {"wire": 130, "network": 30}


def test_a_log_that_tells_more_than_the_wire_has_another_clock() -> None:
    assert parts(compared(110, number=1)) == {"wire": 100, "clock": -10}


def test_without_an_instant_of_the_line_nothing_is_queued() -> None:
    assert parts(compared(30, line_at=140 * MS, number=1, starts="NULL::BIGINT")) == {"wire": 100, "buffered": 70}


@pytest.mark.parametrize(
    ("of", "wire"),
    [({"fin_client_at": 150 * MS}, 50), ({"rst_at": 140 * MS}, 40), ({}, 800)],
    ids=["fin", "rst", "close"],
)
def test_a_response_that_never_ended_is_over_when_the_client_goes(of: Row, wire: int) -> None:
    assert parts(compared(10, number=1, response_done_at=None, of=of))["wire"] == wire


def test_each_field_of_the_line_is_beside_what_the_wire_says_of_the_same() -> None:
    tables = compared(90)
    query = "SELECT line, field, stream, exchange, logged_ns, wire_ns, difference_ns FROM log_times"
    assert tables.fetch(query) == [(7, FIELD, 0, 0, 90 * MS, 95 * MS, -5 * MS)]


def test_a_log_without_a_whole_duration_has_no_differences() -> None:
    tables = compared(90, took="NULL")
    assert tables.count("log_differences") == 0
    assert tables.count("log_times") == 1
