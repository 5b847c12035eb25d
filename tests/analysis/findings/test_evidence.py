"""What rules read of a capture: who can be judged, and what is worked out of connections and requests.

Times are milliseconds after an odd instant: a clock of whole ones says too little of pauses.
"""

from typing import Any

import pytest

from conchart.analysis.findings.evidence import EVIDENCE, FORGET_EVIDENCE, MADE_OF, evidence
from conchart.analysis.findings.rule import chosen_thresholds
from conchart.store.schema import TABLE_BY_NAME
from conchart.store.tables import Tables
from tests.by_hand import Row, connection, tables_of

MS = 1_000_000
T0 = 7
RTT = 20


def at(ms: float | None) -> int | None:
    return None if ms is None else T0 + round(ms * MS)


def ms(instant: int | None) -> float | None:
    return None if instant is None else (instant - T0) / MS


def tcp(stream: int, syn: float = 0, end: float = 900, *, client: str = "10.0.0.1", **facts: Any) -> Row:  # noqa: ANN401
    """A connection whose opening was captured."""
    times = {"opened_at": at(syn), "syn_at": at(syn), "syn_ack_at": at(syn + RTT), "closed_at": at(end)}
    facts = {"rtt_client_ns": 0, "rtt_server_ns": RTT * MS, "first_frame": stream, **times, **facts}
    return connection(stream, f"{client}:{40_000 + stream}", **facts)


def syn(stream: int, start: float = 0) -> Row:
    return {"stream": stream, "kind": "syn", "start_at": at(start), "end_at": at(start + RTT)}


def exchange(stream: int, number: int, *times: float | None, **facts: Any) -> Row:  # noqa: ANN401
    """A request with its beginning and end, and those of its response."""
    names = ("request_at", "request_done_at", "response_at", "response_done_at")
    instants = {name: at(time) for name, time in zip(names, times, strict=True)}
    request, response = times[1], times[2]
    wait = None if request is None or response is None else round((response - request) * MS)
    words = {"protocol": "http/1.1", "kind": "web", "inferred": False, "confidence": 1.0, "request_frame": number + 1}
    return {"stream": stream, "number": number, "wait_ns": wait, **words, **instants, **facts}


def stall(stream: int, kind: str, phase: str, start: float, end: float, **facts: Any) -> Row:  # noqa: ANN401
    times = {"start_at": at(start), "end_at": at(end), "start_frame": 4, "end_frame": 6}
    return {"stream": stream, "kind": kind, "phase": phase, "side": "client", "confidence": 0.9, **times, **facts}


def made(*names: str, **rows: list[Row]) -> Tables:
    """The tables of these rows, with this evidence of them."""
    tables = tables_of(**rows)
    evidence(tables, chosen_thresholds({})).provide(names)
    return tables


def test_of_an_empty_capture_all_evidence_is_empty_and_nothing_of_it_stays() -> None:
    tables = made(*EVIDENCE)
    assert {name: tables.count(name) for name in EVIDENCE} == dict.fromkeys(EVIDENCE, 0)
    tables.execute(FORGET_EVIDENCE)
    left = (
        "SELECT table_name FROM duckdb_tables() WHERE temporary UNION ALL SELECT view_name FROM duckdb_views() WHERE "
    )
    assert tables.fetch(left + "temporary AND NOT internal") == []
    tables.execute(FORGET_EVIDENCE)


def test_evidence_is_made_with_what_it_reads_and_no_more_and_of_what_may_be_empty() -> None:
    tables = made("setups", connections=[tcp(0)])
    held = {name for (name,) in tables.fetch("SELECT table_name FROM duckdb_tables() WHERE temporary")}
    assert held == {"judged", "openings"}
    assert {table for name, table in MADE_OF.items() if name in EVIDENCE} <= TABLE_BY_NAME.keys()


def test_a_connection_is_judged_if_all_of_it_was_captured_and_its_opening_if_that_was() -> None:
    tables = made(
        "setups",
        connections=[
            tcp(0), tcp(1, state="refused"), tcp(2, state="unanswered"), tcp(3, packets_server=0),
            tcp(4, packets_server=0, state="abandoned"), tcp(5, missing_client=1), tcp(6, missing_server=1),
            tcp(7, transport="udp"), tcp(8, state="midstream"), tcp(9, syn_ack_at=None), tcp(10, syn_at=None),
        ],
        phases=[syn(stream) for stream in range(9)],
    )  # fmt: skip
    assert tables.fetch("SELECT list(stream ORDER BY stream) FROM judged") == [([0, 4, 8, 9, 10],)]
    opened = tables.fetch("SELECT stream, syn_at, accepted_at, setup_ns FROM setups ORDER BY stream")
    assert opened == [(0, at(0), at(RTT), RTT * MS), (4, at(0), at(RTT), RTT * MS)]


def test_clocks_of_whole_milliseconds_and_connections_of_checks_alone_are_marked() -> None:
    whole: dict[str, Any] = {"opened_at": 5 * MS, "closed_at": 9 * MS}
    tables = made(
        "judged",
        connections=[tcp(0), tcp(1, **whole), tcp(2, **whole | {"closed_at": 9 * MS + 1}), tcp(3, **whole), tcp(4)],
        phases=[{"stream": 3, "kind": "syn", "start_at": 5 * MS, "end_at": 5 * MS + 1}],
        exchanges=[exchange(stream, number, 20, 21, 22, 23) for stream in (0, 4) for number in (0, 1)],
        checks=[{"stream": 0, "exchange": 0}, {"stream": 0, "exchange": 1}, {"stream": 4, "exchange": 0},
                {"stream": 2, "exchange": -1}],
    )  # fmt: skip
    assert tables.fetch(
        "SELECT list(stream) FILTER (coarse), list(stream ORDER BY stream) FILTER (probe) FROM judged"
    ) == [([1], [0, 2])]


def test_a_request_after_the_servers_fin_is_refused_and_no_part_of_the_connection() -> None:
    tables = made(
        "judged",
        connections=[
            tcp(0, fin_by="server", fin_server_at=at(100), rst_by="server", rst_at=at(140)),
            tcp(1, fin_by="server", fin_server_at=at(100), rst_by="client", rst_at=at(140)),
        ],
        exchanges=[
            one for stream in (0, 1)
            for one in (exchange(stream, 0, 30, 30, 50, 60, status=200), exchange(stream, 1, 120, 121, None, None))
        ],
    )  # fmt: skip
    query = (
        "SELECT exchanges, refused_exchange, refused_at, refused_until, closing_at, last_done_at, answered FROM judged"
    )
    rows = [(*row[:2], *map(ms, row[2:6]), row[6]) for row in tables.fetch(f"{query} ORDER BY stream")]
    assert rows == [(1, 1, 120, 140, 100, 60, True), (2, None, None, None, 100, 121, True)]


@pytest.mark.parametrize(
    ("keeps", "fins", "ended_by"),
    [
        ((True, False), (100, 105), "server"),
        ((False, False), (100, 105), "client"),
        ((None, None), (100, 118), "server"),
        ((None, None), (100, 119), "client"),
        ((None, None), (100, None), "client"),
    ],
    ids=str,
)
def test_who_ends_a_connection_says_so_in_its_last_exchange_or_sends_the_first_fin(
    keeps: tuple[bool | None, bool | None], fins: tuple[int, int | None], ended_by: str
) -> None:
    """A FIN that comes sooner than the other side could answer is no answer: the round trip to the server is 20 ms."""
    tables = made(
        "judged",
        connections=[tcp(0, fin_by="client", fin_client_at=at(fins[0]), fin_server_at=at(fins[1]))],
        exchanges=[
            exchange(0, 0, 30, 30, 50, 60, client_keepalive=True, server_keepalive=True),
            exchange(0, 1, 70, 70, 80, 90, client_keepalive=keeps[0], server_keepalive=keeps[1]),
        ],
    )
    assert tables.fetch("SELECT ended_by, closed_by FROM judged") == [(ended_by, "client")]


def test_an_opening_knows_what_of_its_pool_was_open_idle_and_closed_before() -> None:
    """Another name, and another client, are another pool."""
    used = {0: (100, 300), 1: (200, 700), 2: (400, 800), 3: (410, 800), 4: (420, 800)}
    tables = made(
        "setups",
        connections=[
            tcp(stream, start - RTT, end, server_name="b.example" if stream == 3 else "a.example",
                client="10.0.0.2" if stream == 4 else "10.0.0.1", fin_by="server", fin_server_at=at(end))
            for stream, (start, end) in used.items()
        ],
        phases=[syn(stream, start - RTT) for stream, (start, _) in used.items()],
        exchanges=[exchange(stream, 0, start, start, start + 50, start + 60) for stream, (start, _) in used.items()],
    )  # fmt: skip
    query = """
        SELECT stream, place, open_before, idle_before, previous_stream, previous_closed_at, previous_done_at
        FROM setups ORDER BY stream"""
    assert [(*row[:5], *map(ms, row[5:])) for row in tables.fetch(query)] == [
        (0, 0, 0, 0, None, None, None),
        (1, 1, 1, 1, None, None, None),
        (2, 2, 1, 1, 0, 300, 160),
        (3, 3, 0, 0, None, None, None),
        (4, 0, 0, 0, None, None, None),
    ]


def test_a_request_has_the_pause_before_it_and_its_links() -> None:
    link = {"front_stream": 0, "front_exchange": 1, "method": "id", "confidence": 1.0}
    tables = made(
        "asked",
        connections=[tcp(0), tcp(1), tcp(2, syn_at=None), tcp(3, missing_client=1)],
        exchanges=[
            exchange(0, 0, 30, 30, 50, 60), exchange(0, 1, 65, 66, None, None), exchange(0, 2, 69, 70, 80, 90),
            exchange(0, 3, 100, 100, None, None, protocol="mysql", kind="store", method="Quit"),
            *(exchange(stream, 0, 70, 70, 80, 80) for stream in (1, 2, 3)),
        ],
        links=[{**link, "back_stream": stream, "back_exchange": 0} for stream in (1, 2)],
        checks=[{"stream": 0, "exchange": 0}, {"stream": 1, "exchange": 0}],
    )  # fmt: skip
    query = "SELECT stream, number, first, idle_ns / 1000000, fronts, backs, probe FROM asked ORDER BY stream, number"
    assert tables.fetch(query) == [
        (0, 0, True, None, 0, 0, True),
        (0, 1, False, 5, 0, 2, False),
        (0, 2, False, 3, 0, 0, False),
        (1, 0, True, None, 1, 0, True),
        (2, 0, False, None, 1, 0, False),
    ]


def test_a_server_answers_by_itself_from_when_it_had_the_request_and_was_free() -> None:
    """What it handed on, what TCP held up, and what is no answer (status 101, abandoned) are left out."""
    tables = made(
        "answers",
        connections=[tcp(0), tcp(1)],
        exchanges=[
            exchange(0, 0, 30, 30, 60, 70), exchange(0, 1, 40, 41, 101, 110), exchange(0, 2, 200, 201, 210, 210),
            exchange(0, 3, 300, 300, 400, 400), exchange(0, 4, 500, 500, 600, 600),
            exchange(0, 5, 700, 700, 750, 750, status=101), exchange(1, 0, 700, 700, 750, 750, outcome="abandoned"),
        ],
        links=[{"front_stream": 0, "front_exchange": 3, "back_stream": 1, "back_exchange": 0, "method": "time",
                "confidence": 1.0}],
        phase_stalls=[stall(0, "rto", "wait", 510, 520, exchange=4), stall(0, "rto", "request", 30, 30, exchange=0)],
    )  # fmt: skip
    query = "SELECT exchange, start_at, ns / 1000000, usual_ns / 1000000, requests FROM answers ORDER BY exchange"
    assert [(number, ms(start), *rest) for number, start, *rest in tables.fetch(query)] == [
        (0, 30, 10, 10, 3),
        (1, 70, 11, 10, 3),
        (2, 201, 0, 10, 3),
    ]


def query(number: int, begin: float, took: float, text: str | None, *, stream: int = 0, **facts: Any) -> Row:  # noqa: ANN401
    words = {
        "protocol": "mysql",
        "kind": "store",
        "store": "sql",
        "method": "Query",
        "target": text,
        "shape": text or "Query",
    }
    return exchange(stream, number, begin, begin, begin + took, begin + took, **words | facts)


def test_queries_that_follow_at_once_or_have_one_front_are_a_burst() -> None:
    redis = {"protocol": "redis", "store": "cache", "method": "GET"}
    back = {"front_stream": 9, "front_exchange": 0, "back_stream": 0, "method": "id"}
    tables = made(
        "queries",
        connections=[tcp(0), tcp(1)],
        exchanges=[
            query(0, 30, 1, None, method="Authenticate"),
            query(1, 40, 1, "SELECT 1"),
            query(2, 46, 1, "SELECT 2"),
            query(3, 52.5, 1, "SELECT 3"),
            query(4, 60, 1, "a"),
            query(5, 90, 1, "b"),
            query(6, 91, 1, "c", wait_ns=None),
            query(0, 30, 1, "user:17:name", stream=1, **redis),
            query(1, 37, 1, "user:4b-1:name", stream=1, **redis),
            query(2, 38, 1, "items", stream=1, **redis | {"store": "document", "method": "find"}),
        ],
        links=[{**back, "back_exchange": 4, "confidence": 0.8}, {**back, "back_exchange": 5, "confidence": 0.8},
               {**back, "back_exchange": 3, "confidence": 0.79}],
    )  # fmt: skip
    rows = tables.fetch(
        "SELECT stream, exchange, opening, dense_rank() OVER (ORDER BY burst), front_stream FROM queries "
        "ORDER BY stream, exchange"
    )
    assert [(stream, number) for stream, number, opening, *_ in rows if opening] == [(0, 0)]
    bursts: dict[int, list[tuple[int, int]]] = {}
    for stream, number, _, burst, _ in rows:
        bursts.setdefault(burst, []).append((stream, number))
    assert sorted(bursts.values()) == [
        [(0, 0)], [(0, 1), (0, 2)], [(0, 3)], [(0, 4), (0, 5)], [(1, 0)], [(1, 1), (1, 2)],
    ]  # fmt: skip
    assert [number for _, number, *_, front in rows if front is not None] == [4, 5]


def test_the_first_query_of_a_connection_is_of_one_burst_with_those_that_follow_at_once() -> None:
    tables = made(
        "queries", connections=[tcp(0)], exchanges=[query(number, 30 + number, 1, "a") for number in range(3)]
    )
    assert tables.fetch("SELECT count(DISTINCT burst) FROM queries") == [(1,)]


FLOORS: tuple[tuple[int, dict[str, float], float | None], ...] = (
    (8, {"SELECT ?": 4, "a": 5}, 4),
    (8, {"SELECT ?": 2.9, "a": 5}, None),
    (8, {"a": 4, "b": 5, "c": 6}, None),
    (8, {"a": 4, "b": 5, "c": 6, "d": 6}, 4),
    (8, {"a": 4, "b": 5, "c": 6, "d": 6.1}, None),
    (8, {"SELECT ?": 4}, None),
    (4, {"SELECT ?": 4, "a": 5}, 4),
    (3, {"SELECT ?": 4, "a": 5}, None),
)
"""How often each command comes, what it takes at least beyond the round trip, and what all of them do."""


def test_a_store_has_a_floor_where_idle_commands_or_four_kinds_take_as_long() -> None:
    """Each case is a server of its own."""
    tables = made(
        "floors",
        connections=[tcp(stream, end=9000, server=f"10.0.1.{stream}:3306") for stream in range(len(FLOORS))],
        exchanges=[
            query(8 * kind + n, 800 * kind + 100 * n + 30, RTT + least + n, shape, stream=stream)
            for stream, (times, shapes, _) in enumerate(FLOORS)
            for kind, (shape, least) in enumerate(shapes.items())
            for n in range(times)
        ],
    )
    assert tables.fetch("SELECT server_ip, floor_ns / 1000000, commands, shapes FROM floors ORDER BY server_ip") == [
        (f"10.0.1.{stream}", floor, times * len(shapes), len(shapes))
        for stream, (times, shapes, floor) in enumerate(FLOORS)
        if floor is not None
    ]


def test_a_session_fails_with_the_first_error_while_it_starts_or_for_lack_of_a_login() -> None:
    tables = made(
        "sessions",
        connections=[tcp(stream) for stream in range(4)],
        exchanges=[
            query(0, 30, 5, None, method="Authenticate", status=0, status_text="OK", response_frame=8),
            query(1, 40, 5, "x", status=1, status_text="SYNTAX"),
            query(0, 30, 5, None, method="Authenticate", stream=1, status=0),
            query(1, 40, 5, None, method="Authenticate", stream=1, status=2, status_text="DENIED", response_frame=8),
            query(2, 50, 5, None, method="Authenticate", stream=1, status=3, status_text="AGAIN", response_frame=9),
            query(0, 30, 5, "x", stream=2, status=1, status_text="NOAUTH", response_frame=9),
            query(0, 30, 5, "x", stream=3, status=1, status_text="SYNTAX"),
        ],
    )
    rows = tables.fetch("SELECT stream, exchange, failed_at, frame, error FROM sessions ORDER BY stream")
    assert rows == [(0, None, None, None, None), (1, 1, at(45), 8, "DENIED"), (2, 0, at(35), 9, "NOAUTH")]


def test_a_lookup_knows_when_it_was_repeated_and_what_was_opened_after_its_answer() -> None:
    udp: dict[str, Any] = {"transport": "udp", "server_port": 53, "packets_client": 1}
    names = {"protocol": "dns", "kind": "name", "dns_over": "udp", "dns_type": "A", "dns_name": "A.example"}
    tables = made(
        "lookups",
        connections=[
            tcp(0, **udp | {"packets_client": 2}), tcp(1, **udp), tcp(2, **udp | {"client_ip": "10.0.0.3"}),
            tcp(3, **udp | {"server_port": 5353}), tcp(4, syn=40), tcp(5, syn=70), tcp(6, syn=41, client="10.0.0.3"),
            tcp(7, **udp),
        ],
        exchanges=[
            exchange(0, 0, 10, 10, None, None, **names),
            exchange(1, 0, 60, 60, 70, 70, **names | {"dns_name": "a.EXAMPLE"}),
            exchange(2, 0, 15, 15, 41.5, 41.5, **names), exchange(3, 0, 11, 11, 12, 12, **names),
            exchange(7, 0, 11, 11, 12, 12, **names | {"dns_type": "PTR"}),
        ],
        nodes=[{"address": "10.0.0.1", "node": 4, "role": "client"}],
    )  # fmt: skip
    query = "SELECT stream, home, name, resent, again_at, follows_at FROM lookups ORDER BY stream"
    assert [(*row[:4], *map(ms, row[4:])) for row in tables.fetch(query)] == [
        (0, "node 4", "a.example", True, 60, 40),
        (1, "node 4", "a.example", False, None, 70),
        (2, "10.0.0.3", "a.example", False, None, None),
    ]


def test_what_is_held_up_has_a_sender_and_a_receiver_until_the_connection_closes() -> None:
    back = {"front_stream": 0, "front_exchange": 0, "back_stream": 1, "back_exchange": 0}
    tables = made(
        "held",
        connections=[
            tcp(0), tcp(1), tcp(2, missing_client=1), tcp(3, opened_at=5 * MS, closed_at=9 * MS),
            tcp(4, transport="udp"), tcp(5),
        ],
        exchanges=[exchange(stream, 0, 30, 30, 50, 60) for stream in (0, 1, 5)],
        on_behalf=[{"stream": 1, "exchange": 0, "front_stream": 0, "front_exchange": 0, "method": "link"}],
        links=[{**back, "method": "id", "confidence": 1.0}],
        checks=[{"stream": 5, "exchange": 0}],
        phase_stalls=[
            stall(0, "nagle", "request", 30, 35, exchange=0), stall(0, "rto", "transfer", 50, 60, side="server"),
            stall(0, "rto", "close", 70, 80), stall(0, "sender", "idle", 20, 30, detail="hello"),
            *(stall(stream, "rto", "wait", 40, 45, exchange=0) for stream in range(1, 6)),
            stall(4, "pto", "wait", 46, 48, side="server"),
        ],
    )  # fmt: skip
    query = "SELECT stream, kind, sender, receiver, ns / 1000000, delay, frames FROM held ORDER BY ALL"
    assert tables.fetch(query) == [
        (0, "nagle", "client", "server", 5, delay(0, 0, 30, 35), [4, 6]),
        (0, "rto", "server", "client", 10, delay(0, -1, 50, 60), [4, 6]),
        (1, "rto", "proxy", "backend", 5, delay(1, 0, 40, 45), [4, 6]),
        (4, "pto", "server", "client", 2, delay(4, -1, 46, 48), [4, 6]),
    ]


def delay(stream: int, number: int, start: float, end: float) -> dict[str, int | None]:
    return {"stream": stream, "exchange": number, "start_at": at(start), "end_at": at(end)}


def test_slow_start_after_a_rest_is_told_where_that_side_had_sent_as_much_before() -> None:
    sizes = [(100, 9), (100, 5), (101, 9), (100, 9)]
    starts = [30, 60 + 220, 500 + 219, 900 + 300]
    tables = made(
        "held",
        connections=[tcp(0, end=2000)],
        exchanges=[
            exchange(0, number, begin, begin, begin + 10, begin + 30, request_bytes=asking, response_bytes=answering)
            for number, (begin, (asking, answering)) in enumerate(zip(starts, sizes, strict=True))
        ],
        phase_stalls=[
            stall(0, "slow-start", "request", begin, begin + 1, exchange=number) for number, begin in enumerate(starts)
        ],
    )
    assert tables.fetch("SELECT exchange, rested_ns / 1000000 FROM held ORDER BY exchange") == [
        (0, None),
        (1, 220),
        (2, None),
        (3, 900 + 300 - 749),
    ]


def waited(**rows: list[Row]) -> list[tuple[int, int, int, int, float | None, float | None]]:
    query = "SELECT user_stream, user_exchange, stream, exchange, start_at, end_at FROM waited ORDER BY ALL"
    return [(*row[:4], ms(row[4]), ms(row[5])) for row in made("waited", **rows).fetch(query)]


def test_users_wait_from_the_opening_that_was_for_their_request_until_the_last_byte() -> None:
    """Without a response, until the connection closes; from where the request was held up, if it was."""
    assert waited(
        connections=[tcp(0), tcp(1), tcp(2), tcp(3)],
        phases=[syn(stream) for stream in range(4)],
        exchanges=[
            exchange(0, 0, 120, 121, 140, 150), exchange(0, 1, 200, 201, None, None),
            exchange(1, 0, 121, 121, 140, 150), exchange(2, 0, 130, 131, 140, 150), exchange(3, 0, 30, 31, 40, 50),
            exchange(3, 1, 90, 91, 95, 99),
        ],
        phase_stalls=[
            stall(2, "nagle", "idle", 110, 130, exchange=0), stall(3, "nagle", "idle", 80, 90, exchange=1),
            stall(3, "rto", "idle", 99, 105, exchange=1, side="server"),
        ],
    ) == [
        (0, 0, 0, 0, 0, 150),
        (0, 1, 0, 1, 200, 900),
        (1, 0, 1, 0, 121, 150),
        (2, 0, 2, 0, 0, 150),
        (3, 0, 3, 0, 0, 50),
        (3, 1, 3, 1, 80, 105),
    ]  # fmt: skip


def test_users_wait_for_what_failed_before_it_carried_anything_but_scanners_for_nothing() -> None:
    failed = {"stream": 2, "number": 0, "outcome": "failed", "hello_at": at(20)}
    scanned = [
        tcp(100 + n, client="10.0.0.66", state="refused", server=f"10.1.0.{n}:80") for n in range(15)
    ]  # fmt: skip
    connections = [tcp(0, state="refused"), tcp(1, state="unanswered"), tcp(2), tcp(3), tcp(4, transport="udp")]
    assert waited(connections=[*connections, *scanned], handshakes=[failed]) == [
        (stream, -1, stream, -1, 0, 900) for stream in (0, 1, 2)
    ]
    assert len(waited(connections=scanned[1:])) == 14, "fewer are no scan"
    for one in scanned[:5]:
        one["state"] = "complete"
    assert len(waited(connections=scanned)) == 10, "nor is it where a third answers"


def test_of_what_a_front_caused_users_wait_for_the_last_and_for_earlier_ones_until_it_began() -> None:
    """Of the opening that was for one of them, too; not after the front's own end."""
    backs = {1: (150, 300), 2: (200, 400), 3: (280, 390), 4: (500, 800)}
    ends = {"front_stream": 0, "front_exchange": 0}
    assert waited(
        connections=[tcp(0), *(tcp(stream, begin - 30) for stream, (begin, _) in backs.items())],
        phases=[syn(0), syn(4, 470)],
        exchanges=[
            exchange(0, 0, 100, 100, 590, 600),
            *(exchange(stream, 0, begin, begin, end, end) for stream, (begin, end) in backs.items()),
        ],
        links=[{**ends, "back_stream": n, "back_exchange": 0, "method": "id", "confidence": 1.0} for n in backs],
        on_behalf=[{**ends, "stream": n, "exchange": 0, "method": "link"} for n in backs],
    ) == [
        (0, 0, 0, 0, 0, 600),
        (0, 0, 1, 0, 150, 280),
        (0, 0, 2, 0, 200, 400),
        (0, 0, 4, 0, 470, 600),
    ]


def test_a_handshake_knows_the_last_session_of_its_client_with_the_name_and_what_it_had_saved() -> None:
    def hello(stream: int, begin: float, **facts: Any) -> Row:  # noqa: ANN401
        times = {"hello_at": begin, "server_hello_at": begin + 20, "server_done_at": begin + 25, "ready_at": begin + 45}
        words = {"number": 0, "outcome": "complete", "kind": "full", "version": "TLSv1.2", "sni": "a.example"}
        instants = {name: at(time) for name, time in times.items()}
        return {"stream": stream, "complete_at": instants["ready_at"], **words, **instants, **facts}

    hour = 3_600_000
    modern = {
        "version": "TLSv1.3", "hello_retry": False, "server_hello_at": at(325), "server_compute_ns": 5 * MS,
        "client_finished_at": at(345), "client_compute_ns": 3 * MS, "server_done_at": at(330),
    }  # fmt: skip
    tables = made(
        "secured",
        connections=[
            tcp(stream, end=2 * hour, client="10.0.0.2" if stream == 5 else "10.0.0.1") for stream in range(10)
        ],
        handshakes=[
            hello(0, 30, ticket_issued=True), hello(1, 100, session_id_issued=False, ticket_issued=False),
            hello(2, 145), hello(3, 150, sni="b.example"), hello(4, hour), hello(5, 200), hello(6, 210, kind="ticket"),
            hello(7, 220, outcome="failed"), hello(8, 300, sni="c.example", **modern),
            hello(9, 300, sni="d.example", **modern),
        ],
        phase_stalls=[stall(9, "rto", "tls", 321, 322), stall(8, "slow-start", "tls", 321, 322)],
    )  # fmt: skip
    query = "SELECT stream, before_at, before_issued, needless FROM secured ORDER BY stream"
    rows = tables.fetch(query)
    assert [(stream, ms(before), issued) for stream, before, issued, _ in rows] == [
        (0, None, None), (1, 75, True), (2, 145, False), (3, None, None), (4, None, None), (5, None, None),
        (6, 190, None), (8, None, None), (9, None, None),
    ]  # fmt: skip
    needless = {stream: spans for stream, _, _, spans in rows}
    assert needless[1] == [delay(1, -1, 125, 145)], "the second round trip"
    assert needless[8] == [delay(8, -1, 320.4, 330), delay(8, -1, 342.4, 345)], "but 0.4 ms of what each end computes"
    assert needless[9] == [delay(9, -1, 345, 345)], "what was lost hides it"
