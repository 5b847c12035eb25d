"""Spans of programs beside their requests."""

from conchart.report.rows import rows
from conchart.report.spans import BY_EXCHANGE, are_there, describe
from tests.by_hand import Row, tables_of

MS = 1_000_000
CLIENT: Row = {
    "number": 0, "kind": "client", "service": "visitor", "name": "GET /", "begin_at": 0, "end_at": 100 * MS,
    "stream": 3, "exchange": 1, "confidence": 0.99, "before_ns": 5 * MS, "behind_ns": 7 * MS, "wire_ns": 88 * MS,
}  # fmt: skip
SERVER: Row = {
    "number": 1, "kind": "server", "service": "", "name": "page", "begin_at": 10 * MS, "end_at": 90 * MS,
    "stream": 3, "exchange": 1, "confidence": 0.94, "before_ns": 2 * MS, "behind_ns": 3 * MS,
}  # fmt: skip


def sentences(*spans: Row) -> list[str]:
    return [sentence for row in rows(tables_of(spans=spans), BY_EXCHANGE) for sentence in describe(row)]


def test_the_parts_of_a_clients_span_add_up() -> None:
    assert sentences(CLIENT) == [
        "span of 100 ms (visitor: GET /): 5.00 ms before the request, 88.0 ms on the wire and behind it, "
        "7.00 ms after the response"
    ]


def test_what_is_left_is_in_the_span_of_the_server() -> None:
    (found,) = sentences({**CLIENT, "wire_ns": 20 * MS})
    assert "20.0 ms on the wire between the programs, 68.0 ms in the span of the server, 7.00 ms after" in found


def test_a_match_that_is_not_sure_says_so() -> None:
    assert sentences(SERVER) == [
        "span of 80.0 ms (a program: page) (94 % sure): begun 2.00 ms after the request, "
        "over 3.00 ms before the end of the response"
    ]
    assert "% sure" not in sentences({**SERVER, "confidence": 0.95})[0]


def test_of_several_spans_of_a_side_the_first_is_told_and_either_side_has_its_own() -> None:
    later = {**CLIENT, "number": 5, "kind": "producer", "name": "later"}
    found = sentences(later, SERVER, CLIENT)
    assert len(found) == 2
    assert "(visitor: GET /)" in found[0]
    assert "(a program: page)" in found[1]


def test_spans_without_a_request_are_told_of_none() -> None:
    assert sentences({**CLIENT, "stream": None, "exchange": None}) == []
    assert are_there(tables_of(spans=[CLIENT]))
    assert not are_there(tables_of())
