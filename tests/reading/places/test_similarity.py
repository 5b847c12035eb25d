"""Exchanges of two places that share no packets, paired by what they look like."""

from typing import Any

from conchart.reading.places.similarity import pair_exchanges, pair_places
from conchart.store.tables import Tables
from tests.by_hand import Row, tables_of

MS = 1_000_000
AHEAD = 3_000 * MS
"""How far the clock behind the proxy is ahead."""


def handed_on(count: int = 12, **facts: Any) -> list[Row]:  # noqa: ANN401
    """Give requests at a front (stream 0), at uneven times, each of which is handed on (stream 1) inside its wait."""
    rows: list[Row] = []
    for number in range(count):
        at = (number * 400 + number * number % 7 * 37) * MS
        for stream, begin, end in ((0, at, at + 100 * MS), (1, at + 10 * MS + AHEAD, at + 80 * MS + AHEAD)):
            rows.append(
                {
                    "stream": stream, "number": number, "protocol": "http/1.1", "method": "GET", "status": 200,
                    "target": f"/page/{number}", "request_at": begin, "response_at": end - MS, "response_done_at": end,
                    "request_bytes": 100 + number, "response_bytes": 1_000 + 13 * number, "request_frame": number,
                    **facts,
                }
            )  # fmt: skip
    return rows


def tables(rows: list[Row]) -> Tables:
    return tables_of(exchanges=rows)


def test_requests_with_the_same_method_target_and_status_are_pairs_and_bound_the_clocks() -> None:
    found = pair_exchanges(tables(handed_on()), "FROM exchanges", "stream = 0")
    assert found is not None
    assert found.front_is_first
    assert found.read
    assert found.pairs == [((0, number), (1, number)) for number in range(12)]


def test_which_place_is_in_front_is_found_out() -> None:
    found = pair_exchanges(tables(handed_on()), "FROM exchanges", "stream = 1")
    assert found is not None
    assert not found.front_is_first
    assert found.pairs[0] == ((0, 0), (1, 0)), "in front, and behind"


def test_scheme_and_host_of_a_target_are_the_proxys() -> None:
    rows = handed_on()
    for row in rows[::2]:
        row["target"] = f"http://shop.example{row['target']}"
    found = pair_exchanges(tables(rows), "FROM exchanges", "stream = 0")
    assert found is not None
    assert len(found.pairs) == 12


def test_what_has_nothing_in_common_is_not_paired() -> None:
    rows = [row | {"status": 200 + 100 * row["stream"]} for row in handed_on()]
    assert pair_exchanges(tables(rows), "FROM exchanges", "stream = 0") is None
    assert pair_exchanges(tables(handed_on(protocol="proxy")), "FROM exchanges", "stream = 0") is None
    assert pair_exchanges(tables(handed_on(response_at=None)), "FROM exchanges", "stream = 0") is None
    unread = handed_on(target=None)
    assert pair_exchanges(tables(unread), "FROM exchanges", "stream = 0") is None, "sizes tell of encrypted ones alone"


def test_places_are_told_apart_by_their_part() -> None:
    both = tables([*handed_on()])
    both.execute("CREATE TEMP VIEW all_exchanges AS SELECT stream + 4 AS part, * FROM exchanges")
    found = pair_places(both, 4, 5, (1, 1))
    assert found is not None
    assert (found.front_is_first, len(found.pairs)) == (True, 12)
    assert pair_places(both, 4, 6, (1, 1)) is None
