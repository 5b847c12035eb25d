"""Clients that still wait when the capture ends, and streams of events, for which nobody waits."""

from typing import Any

import pytest

from conchart.analysis.waiting import LARGEST_EVENT, LEAST_NS, MOST_NS, wait_on
from conchart.store.tables import Tables
from tests.by_hand import connection, tables_of

S = 1_000_000_000
LAST, SEEN = 5 * S, 20 * S
"""The last packet of the connection, and of its client on another one."""
REQUEST = {"stream": 0, "number": 0, "protocol": "http/1.1", "request_at": S, "request_done_at": 2 * S}
OPEN = {"outcome": "unknown", "confidence": 1.0, "inferred": False, "request_bytes": 100}


def ended(seen_at: int = SEEN, *, of: dict[str, Any] | None = None, beside: str = "", **facts: Any) -> Tables:  # noqa: ANN401
    """Give tables of a request under way at the last packet of its connection.

    Args:
        seen_at: When the client is seen last, on another connection.
        of: Columns of the connection.
        beside: Another server, whose connection that is.
        facts: Columns of the exchange.
    """
    exchange = {**REQUEST, **OPEN, **facts}
    began = exchange.get("response_at")
    answered = [{"kind": "transfer", "start_at": began, "end_at": LAST}] if began else []
    tables = tables_of(
        connections=[
            connection(
                0,
                closed_at=LAST,
                last_frame=7,
                **{"unacknowledged_client": 0, "unacknowledged_server": 0, **(of or {})},
            ),
            connection(1, server=beside or "10.0.0.8:80", closed_at=seen_at),
        ],
        exchanges=[exchange],
        phases=[
            {"stream": 0, "exchange": 0, **phase, "start_frame": number}
            for number, phase in enumerate([{"kind": "wait", "start_at": 2 * S, "end_at": began or LAST}, *answered])
        ],
    )
    wait_on(tables)
    return tables


def lasts(tables: Tables) -> tuple[int, int]:
    """Give when the connection, and its last phase, ends."""
    ((closed_at, end_at),) = tables.fetch(
        "SELECT closed_at, max(end_at) FROM phases JOIN connections USING (stream) GROUP BY closed_at"
    )
    return closed_at, end_at


def test_who_is_owed_a_response_waits_as_long_as_the_capture_shows_it() -> None:
    tables = ended()
    assert lasts(tables) == (SEEN, SEEN)
    assert tables.fetch("SELECT inferred FROM phases") == [(True,)]
    assert tables.count("stalls") == 0


def test_the_server_may_be_seen_last() -> None:
    tables = ended(of={"client_ip": "10.0.0.3"}, beside="10.0.0.9:443")
    assert lasts(tables) == (SEEN, SEEN)


@pytest.mark.parametrize(("after", "goes_on"), [(LEAST_NS - 1, 0), (LEAST_NS, 1), (MOST_NS, 1), (MOST_NS + 1, 0)])
def test_less_is_no_silence_and_after_more_nobody_knows(after: int, goes_on: int) -> None:
    assert lasts(ended(LAST + after)) == (LAST + after * goes_on,) * 2


def test_a_response_that_stops_is_the_servers_stall() -> None:
    tables = ended(response_at=3 * S)
    assert lasts(tables) == (SEEN, SEEN)
    columns = "kind, side, start_by, end_by, start_at, end_at, start_frame, end_frame, unfinished"
    assert tables.fetch(f"SELECT {columns} FROM stalls") == [
        ("sender", "server", "server", "server", LAST, SEEN, 7, 7, True)
    ]
    assert tables.fetch("SELECT kind, end_at FROM phases ORDER BY start_at") == [("wait", 3 * S), ("transfer", SEEN)]


@pytest.mark.parametrize(
    "facts",
    [
        {"outcome": "answered"},
        {"response_done_at": LAST},
        {"awaits": "event"},
        {"confidence": 0.69},
        {"inferred": True, "confidence": 0.89},
        {"protocol": "tls", "request_bytes": 59},
        {"request_done_at": LAST},
        {"protocol": "ssh", "number": 1},
        {"response_at": 3 * S, "protocol": "redis"},
        {"response_at": 3 * S, "tunnel": "websocket"},
        {"of": {"fin_by": "client"}},
        {"of": {"rst_by": "server"}},
        {"of": {"missing_server": 1}},
        {"of": {"unacknowledged_client": 1}},
        {"of": {"unacknowledged_server": 1}, "response_at": 3 * S},
        {"of": {"transport": "udp"}},
    ],
    ids=str,
)
def test_nobody_waits_where_nothing_is_owed_or_known(facts: dict[str, Any]) -> None:
    assert lasts(ended(**facts))[0] == LAST


@pytest.mark.parametrize(
    "facts",
    [
        {"confidence": 0.7},
        {"inferred": True, "confidence": 0.9},
        {"protocol": "tls", "request_bytes": 60},
        {"of": {"unacknowledged_server": 1}},
        {"protocol": "redis"},
    ],
    ids=str,
)
def test_what_is_just_sure_enough_is_waited_for(facts: dict[str, Any]) -> None:
    assert lasts(ended(**facts))[0] == SEEN


def pushed(*, size: int, pauses: int = 2, pause_ns: int = 3 * S, **facts: Any) -> Tables:  # noqa: ANN401
    """Give tables of bytes from the server over ten seconds, with pauses, of which nobody knows the request."""
    tables = tables_of(
        connections=[connection(0, closed_at=10 * S)],
        exchanges=[
            {
                "stream": 0,
                "number": 0,
                "protocol": "unknown",
                "response_at": 0,
                "response_done_at": 10 * S,
                "response_bytes": size,
                **facts,
            }
        ],
        phases=[{"stream": 0, "exchange": 0, "kind": "transfer", "start_at": 0, "end_at": 10 * S}],
        stalls=[
            {"stream": 0, "kind": "sender", "side": "server", "start_at": start, "end_at": start + pause_ns}
            for start in (number * 4 * S for number in range(pauses))
        ],
    )
    wait_on(tables)
    return tables


def kinds(tables: Tables) -> tuple[str | None, str, int]:
    ((awaits, kind),) = tables.fetch("SELECT awaits, phases.kind FROM exchanges JOIN phases USING (stream)")
    return awaits, kind, tables.count("stalls")


def test_small_parts_with_pauses_are_events_and_nobody_waits_for_them() -> None:
    assert kinds(pushed(size=3 * LARGEST_EVENT)) == ("stream", "idle", 0)


@pytest.mark.parametrize(
    "facts",
    [
        {"size": 3 * LARGEST_EVENT + 1},
        {"size": 100, "pause_ns": 2 * S},
        {"size": 100, "request_at": 0},
        {"size": 1, "protocol": "tls"},
    ],
    ids=["large parts", "short pauses", "its request is known", "a protocol that is read"],
)
def test_a_file_that_comes_slowly_is_no_stream_of_events(facts: dict[str, Any]) -> None:
    assert kinds(pushed(**facts)) == (None, "transfer", 2)


def test_pauses_of_half_the_time_are_enough() -> None:
    assert kinds(pushed(size=1, pause_ns=5 * S // 2))[0] == "stream"
