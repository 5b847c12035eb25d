"""The lanes of both captures, to be drawn side by side."""

from typing import Any

from conchart.labels.stalls import stall_kind
from conchart.questions.compare.lanes import MOST_LANES, Lane, Lanes, Piece, lanes
from conchart.store.tables import Tables
from tests.by_hand import Row, connection, tables_of

A, B = ("10.0.0.8", 80), ("10.0.0.9", 80)


def captured(*connections: Row, **more: Any) -> Tables:  # noqa: ANN401
    return tables_of(captures=[{"first_at": 1_000}], connections=connections, **more)


def at(stream: int, server: tuple[str, int], opened: int, waited: int = 0) -> Row:
    return connection(
        stream, f"10.0.0.1:{40_000 + stream}", f"{server[0]}:{server[1]}", opened_at=1_000 + opened,
        closed_at=1_100 + opened, waited_ns=waited,
    )  # fmt: skip


def test_a_lane_counts_from_the_first_packet_and_has_its_phases_and_stalls() -> None:
    tables = captured(
        at(0, A, 50),
        phases=[
            {"stream": 0, "kind": kind, "start_at": start, "end_at": end, "inferred": kind == "wait"}
            for kind, start, end in (("wait", 1_080, 1_150), ("syn", 1_050, 1_080))
        ],
        stalls=[{"stream": 0, "kind": "nagle", "detail": "round-trip", "start_at": 1_090, "end_at": 1_110}],
    )
    assert lanes(tables, [A]) == Lanes(
        drawn=(
            Lane(
                server=0, stream=0, client="10.0.0.1:40000", start_ns=50, end_ns=150,
                pieces=(
                    Piece(kind="syn", start_ns=50, end_ns=80, inferred=False),
                    Piece(kind="wait", start_ns=80, end_ns=150, inferred=True),
                ),
                stalls=((stall_kind("nagle", None), 90, 110),),
            ),
        ),
        besides=0,
    )  # fmt: skip


def test_lanes_are_in_the_order_of_the_servers_compared_and_then_of_time() -> None:
    tables = captured(at(0, A, 50), at(1, B, 70), at(2, A, 10), at(3, ("10.0.0.7", 80), 0))
    found = lanes(tables, [B, A])
    assert [(lane.server, lane.stream) for lane in found.drawn] == [(0, 1), (1, 2), (1, 0)]
    assert found.besides == 1, "a server that is not compared is not drawn"


def test_of_many_those_are_drawn_whose_users_waited_the_longest() -> None:
    found = lanes(captured(*(at(stream, A, stream, waited=stream) for stream in range(MOST_LANES + 2))), [A])
    assert [lane.stream for lane in found.drawn] == [*range(2, MOST_LANES + 2)]
    assert found.besides == 2


def test_without_servers_in_common_nothing_is_drawn() -> None:
    assert lanes(captured(at(0, A, 0)), []) == Lanes(drawn=(), besides=1)
