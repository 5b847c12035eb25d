"""What access logs say, beside what the packets say."""

from typing import Any

import pytest

from conchart.report.logs import are_there, of_stream, says, summaries, where, worst
from conchart.store.tables import Tables
from tests.by_hand import Row, tables_of

MS = 1_000_000
LOG: Row = {
    "log": 0, "path": "/var/log/access.log", "product": "nginx", "lines": 3, "matched": 2, "ahead_ns": -5 * MS,
    "uncertainty_ns": MS, "malformed": 0, "unlogged": 0,
}  # fmt: skip
PARTS = {f"{name}_ns": 0 for name in ("setup", "queued", "buffered", "network", "clock")}


def line(number: int, exchange: int | None = None, **facts: Any) -> Row:  # noqa: ANN401
    matched = {"stream": 0, "exchange": exchange, "confidence": 0.9} if exchange is not None else {}
    return {"log": 0, "line": number, "text": f"line {number}", **matched, **facts}


def differs(number: int, logged: int, wire: int, **parts: int) -> Row:
    difference = {
        "logged_ns": logged * MS,
        "wire_ns": wire * MS,
        "difference_ns": (wire - logged) * MS,
        "explained": "network",
    }
    return {"log": 0, "line": number, "stream": 0, "exchange": 0, **PARTS, **difference, **parts}


def logged(**more: list[Row]) -> Tables:
    exchanges: list[Row] = [
        {"stream": 0, "number": 0, "method": "GET", "target": "/a"},
        {"stream": 0, "number": 1, "method": None, "target": None},
    ]
    rows: dict[str, list[Row]] = {"logs": [LOG], "exchanges": exchanges, **more}
    return tables_of(**rows)


def test_a_log_says_how_many_lines_are_beside_their_requests_and_how_its_clock_is() -> None:
    assert list(summaries(logged())) == [
        "access.log (nginx): 3 lines, 2 beside their requests, clock 5.00 ms behind ± 1.00 ms"
    ]


def test_a_log_says_what_is_wrong_with_it() -> None:
    bad = LOG | {
        "matched": 0, "malformed": 2, "first_malformed": 7, "unlogged": 1, "broken": "gzip: unexpected end",
    }  # fmt: skip
    lines = [line(1, unmatched="request"), line(2, unmatched="outside"), line(3, unmatched="request")]
    assert list(summaries(logged(logs=[bad], log_lines=lines))) == [
        "access.log (nginx): 3 lines, 0 beside their requests, 2 cannot be read (the first is line 7), "
        "1: outside the capture's time, 2: no such request in the capture, 1 request without a line, "
        "the file breaks off (gzip: unexpected end)"
    ]


def test_reasons_are_those_of_their_own_log() -> None:
    other = LOG | {"log": 1, "path": "b.log", "ahead_ns": 0}
    found = list(summaries(logged(logs=[other, LOG], log_lines=[line(1, unmatched="taken") | {"log": 1}])))
    assert [one.partition(" ")[0] for one in found] == ["access.log", "b.log"]
    assert "another line" not in found[0]
    assert "clock 0 ns ahead ± 1.00 ms, 1: every such request has another line" in found[1]


def row(**facts: Any) -> Row:  # noqa: ANN401
    return {**differs(1, 10, 50), "path": "x/access.log", "confidence": 0.905, **facts}


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({"wire_ns": None}, "no duration in the log"),
        ({}, "log 10.0 ms, wire 50.0 ms"),
        (
            {"network_ns": 15 * MS, "buffered_ns": 25 * MS},
            "log 10.0 ms, wire 50.0 ms: response still in buffers 25.0 ms, way between client and capture 15.0 ms",
        ),
        ({"clock_ns": 2 * MS}, "log 10.0 ms, wire 50.0 ms"),
        ({"clock_ns": -3 * MS}, "log 10.0 ms, wire 50.0 ms: clocks -3.00 ms"),
        ({"clock_ns": MS, "explained": "clock"}, "log 10.0 ms, wire 50.0 ms: clocks 1.00 ms"),
    ],
)
def test_a_difference_is_told_with_what_explains_it_the_largest_part_first(facts: Row, sentence: str) -> None:
    assert says(row(**facts)) == sentence


def test_a_line_is_named_by_file_and_number_without_its_folder() -> None:
    assert where(row()) in ("access.log:1 (confidence 0.91)", "access.log:1 (confidence 0.90)")
    assert where(row(confidence=1.0, line=12)) == "access.log:12 (confidence 1.00)"


def test_the_worst_differences_come_first_with_the_name_of_their_request() -> None:
    tables = logged(
        log_lines=[line(1, 0), line(2, 1), line(3, 0), line(4, 1)],
        log_differences=[differs(1, 10, 20), differs(2, 10, 60), differs(3, 10, 30)],
    )
    found = worst(tables, most=2)
    assert [(one.where[:12], one.name, one.exchange) for one in found] == [
        ("access.log:2", "request", 1),
        ("access.log:3", "GET /a", 0),
    ]
    assert len(worst(tables, most=9)) == 3, "the line without a duration is not compared"


def test_lines_of_a_connection_are_in_the_order_of_its_exchanges() -> None:
    tables = logged(log_lines=[line(1, 1), line(2, 0), line(3, None), {**line(4, 0), "stream": 8}])
    assert [(found["exchange"], found["line"]) for found in of_stream(tables, 0)] == [(0, 2), (1, 1)]


def test_without_a_log_nothing_is_asked() -> None:
    tables = logged(logs=[], log_lines=[line(1, 0)], log_differences=[differs(1, 1, 2)])
    assert not are_there(tables)
    assert (list(summaries(tables)), worst(tables, most=3), of_stream(tables, 0)) == ([], [], [])
