"""Health checks: what is asked again and again at equal intervals, succeeds and takes little."""

from typing import Any

import pytest

from conchart.analysis.checks import find_checks
from conchart.store.sql import OPENING
from tests.by_hand import Row, connection, tables_of

MS, S = 1_000_000, 1_000_000_000
THRESHOLDS = {"probe_least": 3, "probe_period_ns": S, "probe_takes_ns": 100 * MS, "probe_spread": 0.1}
CHECK = {"protocol": "http/1.1", "kind": "web", "method": "GET", "target": "/healthz", "status": 200}
EVEN = (0, 10, 20, 30)


def checks(connections: list[Row], exchanges: list[Row]) -> list[tuple[Any, ...]]:
    tables = tables_of(connections=connections, exchanges=exchanges)
    find_checks(tables, thresholds=THRESHOLDS)
    return tables.fetch("FROM checks ORDER BY ALL")


def asking(*seconds: float, took: int = MS, each: dict[int, dict[str, Any]] | None = None, **facts: Any) -> list[Row]:  # noqa: ANN401
    """Give requests on connection 0 at these seconds, of which some differ."""
    return [
        {
            "stream": 0,
            "number": number,
            "request_at": round(at * S),
            "response_done_at": round(at * S) + took,
            **CHECK,
            **facts,
            **(each or {}).get(number, {}),
        }
        for number, at in enumerate(seconds)
    ]


def test_the_same_question_at_equal_intervals_is_a_check() -> None:
    assert checks([connection(0)], asking(*EVEN)) == [(0, 0), (0, 1), (0, 2), (0, 3)]


@pytest.mark.parametrize(
    "facts",
    [
        {"target": "/"},
        {"target": "/healthz/of/the/year"},
        {"method": "POST", "target": "/statusquo"},
    ],
    ids=lambda facts: facts["target"],
)
def test_programs_of_users_poll_too(facts: dict[str, Any]) -> None:
    assert checks([connection(0)], asking(*EVEN, **facts)) == []


@pytest.mark.parametrize(
    "facts",
    [
        {"target": "http://shop.example/api/health?full=1"},
        {"target": "/", "user_agent": "kube-probe/1.29"},
        {"target": "*", "method": "OPTIONS"},
        {"target": None, "method": "PING", "protocol": "redis", "status": 0},
        {"target": None, "method": "version", "protocol": "memcached", "status": None},
    ],
    ids=lambda facts: str(facts["target"]),
)
def test_paths_programs_and_commands_tell_checks(facts: dict[str, Any]) -> None:
    assert len(checks([connection(0)], asking(*EVEN, **facts))) == len(EVEN)


@pytest.mark.parametrize(
    ("seconds", "count"),
    [((0, 10, 20), 0), ((0, 1, 2, 3), 4), ((0, 0.9, 1.8, 2.7), 0), ((0, 10, 20, 30.9), 4), ((0, 10, 20, 34), 0)],
    ids=["few", "often", "too often", "nearly even", "uneven"],
)
def test_intervals_have_to_be_equal_and_long(seconds: tuple[float, ...], count: int) -> None:
    assert len(checks([connection(0)], asking(*seconds))) == count


@pytest.mark.parametrize(
    ("odd", "found"),
    [({"status": 503}, False), ({"status": 302}, True), ({"status": None}, False), ({"response_done_at": None}, False)],
)
def test_a_check_that_fails_or_has_no_answer_is_judged_as_any_request(odd: dict[str, Any], found: bool) -> None:  # noqa: FBT001
    assert ((0, 2) in checks([connection(0)], asking(*EVEN, each={2: odd}))) == found


@pytest.mark.parametrize(("took", "count"), [(100 * MS, 4), (100 * MS + 1, 0)])
def test_a_check_that_takes_long_is_judged_as_any_request(took: int, count: int) -> None:
    assert len(checks([connection(0)], asking(*EVEN, took=took))) == count


def test_each_client_and_server_has_intervals_of_its_own() -> None:
    """Four questions of two clients are two of each: too few to say so."""
    two = [connection(0), connection(1, "10.0.0.2:40000")]
    rows = [{**row, "stream": number % 2} for number, row in enumerate(asking(*EVEN))]
    assert checks(two, rows) == []


def opened(stream: int, **facts: Any) -> Row:  # noqa: ANN401
    at = stream * 10 * S
    return connection(stream, f"10.0.0.1:{40_000 + stream}", syn_at=at, syn_ack_at=at + MS, **facts)


def test_connections_that_carry_nothing_are_checks() -> None:
    assert checks([opened(stream) for stream in range(4)], []) == [(stream, OPENING) for stream in range(4)]


@pytest.mark.parametrize(
    "facts",
    [{"packets_server": 0}, {"missing_client": 1}, {"state": "refused"}, {"transport": "udp"}, {"syn_ack_at": None}],
    ids=lambda facts: next(iter(facts)),
)
def test_connections_of_which_not_all_is_seen_are_none(facts: dict[str, Any]) -> None:
    rows = [{**opened(stream), **facts} for stream in range(4)]
    assert checks(rows, []) == []


def test_a_connection_with_a_handshake_carries_something() -> None:
    handshakes = [{"stream": stream, "number": 0, "outcome": "failed"} for stream in range(4)]
    tables = tables_of(connections=[opened(stream) for stream in range(4)], handshakes=handshakes)
    find_checks(tables, thresholds=THRESHOLDS)
    assert tables.count("checks") == 0
