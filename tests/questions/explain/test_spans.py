"""What a packet touches of 100,000 exchanges: the same as a look at each of them, and without it."""

from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from conchart.questions.explain.connection import Connection
from conchart.questions.explain.payload_labels import cargo
from conchart.questions.explain.spans import Spans

Row = dict[str, Any]
INSTANTS = st.one_of(st.none(), st.integers(0, 12))
MOST = 3


def exchange(number: int, first: int | None, last: int | None) -> Row:
    told = {"number": number, "method": "GET", "target": "/", "answer": "200", "protocol": "http/1.1"}
    return told | {"request_at": first, "request_done_at": last, "response_at": None, "response_done_at": None}


def overlapping(exchanges: list[Row], start_at: int, end_at: int) -> list[Row]:
    """Those whose request was under way, each looked at."""
    spans = [(one, one["request_at"], one["request_done_at"]) for one in exchanges]
    return [
        one
        for one, first, last in spans
        if first is not None and end_at >= first and (last is None or start_at <= last)
    ]


@given(st.lists(st.tuples(INSTANTS, INSTANTS), max_size=12), st.lists(st.integers(0, 13), max_size=12))
def test_spans_say_what_a_look_at_each_exchange_says(stretches: list[tuple[int, int]], instants: list[int]) -> None:
    exchanges = [exchange(number, *stretch) for number, stretch in enumerate(stretches)]
    spans = Spans(exchanges, "request")
    for at in sorted(instants):
        found = [one for one in overlapping(exchanges, at, at) if not _backwards(one)]
        ends = [one for one in found if at in (one["request_at"], one["request_done_at"])]
        assert spans.touching(at, MOST) == ((ends or found)[:MOST], len(ends or found))
        for end_at in instants:
            if end_at >= at:
                expected = any(not _backwards(one) for one in overlapping(exchanges, at, end_at))
                assert spans.any_between(at, end_at) == expected


def _backwards(one: Row) -> bool:
    return one["request_done_at"] is not None and one["request_done_at"] < one["request_at"]


class Counting(list[Row]):
    """Exchanges that count how often one is taken."""

    taken = 0

    def __iter__(self) -> Iterator[Row]:
        for one in super().__iter__():
            self.taken += 1
            yield one

    def __getitem__(self, place: Any) -> Any:  # noqa: ANN401
        self.taken += 1
        return super().__getitem__(place)


def pipelined(count: int) -> tuple[int, int]:
    """Of so many requests, each in a packet of its own: how often one was taken, and the words of the last packet."""
    exchanges = Counting(exchange(number, 10 * number, 10 * number + 9) for number in range(count))
    packets = [
        {"frame": 2 * one["number"] + half, "seen_at": one[at], "sender": "client", "bytes": 100}
        for one in list.__iter__(exchanges)
        for half, at in enumerate(("request_at", "request_done_at"))
    ]
    nothing: list[Row] = []
    told = cargo(
        Connection(
            about={},
            packets=packets,
            records=nothing,
            messages=nothing,
            handshakes=nothing,
            exchanges=exchanges,
            contents=nothing,
            message_counts=nothing,
            phases=nothing,
            stalls=nothing,
            places=nothing,
            seen=nothing,
            quic_frames=nothing,
            http3_frames=nothing,
            lost_packets=nothing,
            races=nothing,
            parts=nothing,
        )
    )
    return exchanges.taken, len(told)


def test_a_packet_costs_no_more_where_there_are_more_requests() -> None:
    few, many = pipelined(100), pipelined(400)
    assert (few[1], many[1]) == (200, 800)
    assert many[0] <= 4 * few[0]
