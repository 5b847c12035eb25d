"""What is measured of each server, once per connection, handshake or request."""

from typing import Any

from conchart.questions.compare.samples import MEASURES, Samples, samples
from tests.by_hand import Row, connection, tables_of

SERVER = ("10.0.0.9", 80)
EXCHANGES: list[Row] = [
    {"stream": 0, "number": 0, "request_at": 100, "response_done_at": 160, "request_ns": 10, "wait_ns": 40,
     "transfer_ns": 10},
    {"stream": 0, "number": 1, "request_at": 200, "response_done_at": None, "request_ns": 5, "wait_ns": None},
]  # fmt: skip
PHASES: list[Row] = [
    {"stream": 0, "exchange": exchange, "kind": kind, "start_at": start, "end_at": end}
    for kind, exchange, start, end in (
        ("syn", None, 0, 30), ("request", 0, 100, 110), ("wait", 0, 110, 150), ("transfer", 0, 150, 160),
        ("idle", None, 160, 200), ("request", 1, 200, 205),
    )
]  # fmt: skip


def measured(*connections: Row, **more: Any) -> Samples:  # noqa: ANN401
    rows = {"connections": connections or (connection(0),), "exchanges": EXCHANGES, "phases": PHASES, **more}
    return samples(tables_of(**rows))


def test_each_request_is_measured_and_what_nobody_saw_to_its_end_is_left_out() -> None:
    found = measured()[SERVER]
    assert found == {
        "syn": [30], "request": [5, 10], "wait": [40], "transfer": [10], "whole": [60], "waited": [5, 90],
    }  # fmt: skip
    assert found.keys() <= {measure.name for measure in MEASURES}


def test_the_opening_of_a_connection_is_waited_for_by_its_first_request() -> None:
    """90 ns are 30 of the opening and 60 of the request."""
    assert sum(measured()[SERVER]["waited"]) == sum(
        row["end_at"] - row["start_at"] for row in PHASES if row["kind"] != "idle"
    )


def test_handshakes_that_did_not_end_are_no_measure() -> None:
    handshakes: list[Row] = [
        {"stream": 0, "number": number, "hello_at": 30, "ready_at": 80 + number, "outcome": outcome}
        for number, outcome in enumerate(("complete", "failed", "complete"))
    ]
    assert measured(handshakes=handshakes)[SERVER]["tls"] == [50, 52]


def test_the_parts_of_a_wait_at_a_front_are_summed_over_its_backends() -> None:
    link = {"front_stream": 0, "front_exchange": 0, "back_stream": 9, "connect_ns": 1, "tls_ns": 2, "request_ns": 3,
            "wait_ns": 4, "proxy_in_ns": 5, "proxy_out_ns": 6}  # fmt: skip
    rows = [
        {**link, "back_exchange": 0},
        {**link, "back_exchange": 1},
        {**link, "back_exchange": 2, "proxy_in_ns": None},
    ]
    found = measured(links=rows)[SERVER]
    assert {name: found[name] for name in ("backend", "connect", "secure", "proxy")} == {
        "backend": [14], "connect": [2], "secure": [4], "proxy": [22],
    }  # fmt: skip


def test_servers_are_measured_apart_and_who_was_not_served_is_not() -> None:
    assert measured(connection(0, state="refused")) == {}
    assert measured(connection(0, same_as=7)) == {}
    other: list[Row] = [{"stream": 1, "kind": "syn", "start_at": 0, "end_at": 7}]
    found = measured(connection(0), connection(1, server="10.0.0.8:80"), phases=[*PHASES, *other])
    assert found["10.0.0.8", 80] == {"syn": [7]}
