"""The time between two packets, and the side that the connection waits for."""

from types import SimpleNamespace
from typing import Any

from conchart.questions.explain.pauses import Pause, silences
from conchart.report.rows import Row

MS = 1_000_000


def packet(frame: int, at: int, sender: str, flags: str = "PA", size: int = 100) -> Row:
    return {"frame": frame, "seen_at": at * MS, "sender": sender, "flags": flags, "bytes": size}


def phase(kind: str, start: int, end: int) -> dict[str, Any]:
    return {"kind": kind, "start_at": start * MS, "end_at": end * MS}


def found(
    *packets: Row,
    lifetime: int = 100,
    rtt: int = 1,
    quiet: tuple[int, ...] = (),
    **facts: Any,  # noqa: ANN401
) -> list[Pause]:
    about = {"opened_at": 0, "closed_at": lifetime * MS, "unacknowledged_client": 0} | facts.pop("about", {})
    rows: dict[str, Any] = {"packets": packets, "stalls": [], "phases": [], "exchanges": [], **facts}
    connection: Any = SimpleNamespace(about=about, rtt_ns={"client": rtt * MS, "server": rtt * MS}, **rows)
    return list(silences(connection, quiet))


def says(*packets: Row, **facts: Any) -> list[str]:  # noqa: ANN401
    return [one.says for one in found(*packets, **facts)]


REQUEST, RESPONSE = packet(1, 0, "client"), packet(2, 60, "server")


def test_a_wait_is_the_servers_and_tells_how_much_of_it_is_the_way() -> None:
    (one,) = found(REQUEST, RESPONSE, phases=[phase("wait", 0, 60)], rtt=4)
    assert (one.start_frame, one.end_frame, one.took_ns) == (1, 2, 60 * MS)
    assert one.says == "60.0 ms in which the server works on the response; 4.00 ms of it is the way there and back"
    assert says(REQUEST, RESPONSE, phases=[phase("wait", 0, 60)], rtt=3) == [
        "60.0 ms in which the server works on the response"
    ]


def test_what_takes_a_round_trip_is_the_distance() -> None:
    assert says(REQUEST, RESPONSE, rtt=48) == ["60.0 ms on the way to the server and back"]
    assert "nobody owes" in says(REQUEST, RESPONSE, rtt=47)[0]
    assert "nobody owes" in says(REQUEST, packet(2, 60, "client"), rtt=90)[0], "it is no answer"


def test_short_silences_are_not_told() -> None:
    """A fiftieth of the lifetime, and a tenth of a millisecond."""
    assert len(says(REQUEST, RESPONSE, lifetime=3_000)) == 1
    assert says(REQUEST, RESPONSE, lifetime=3_001) == []


def test_a_phase_counts_that_covers_half_of_the_silence() -> None:
    assert "works" in says(REQUEST, RESPONSE, phases=[phase("wait", 30, 90)])[0]
    assert "nobody owes" in says(REQUEST, RESPONSE, phases=[phase("wait", 31, 90)])[0]
    assert "computes" in says(REQUEST, RESPONSE, phases=[phase("wait", 0, 30), phase("tls", 28, 60)])[0]


def test_what_only_acknowledges_ends_no_silence_but_for_the_one_that_opens_the_connection() -> None:
    acknowledges = packet(9, 30, "server", "A", 0)
    assert [one.end_frame for one in found(REQUEST, acknowledges, RESPONSE)] == [2]
    assert [one.end_frame for one in found(REQUEST, packet(9, 30, "server"), RESPONSE, quiet=(9,))] == [2]
    opening = (packet(1, 0, "client", "S", 0), packet(2, 20, "server", "SA", 0), packet(3, 40, "client", "A", 0))
    assert [one.end_frame for one in found(*opening, packet(4, 60, "client"))] == [2, 3, 4]
    assert [one.end_frame for one in found(*opening, packet(4, 60, "client"), packet(5, 80, "client", "A", 0))] == [
        2,
        3,
        4,
    ]
    assert [one.end_frame for one in found(REQUEST, packet(2, 50, "server", "FA", 0))] == [2]


def stall(kind: str = "rto", **facts: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "kind": kind,
        "detail": None,
        "side": "client",
        "start_at": 0,
        "end_at": 60 * MS,
        "unfinished": False,
        **facts,
    }


def test_a_stall_says_why_and_is_one_however_many_packets_lie_in_it() -> None:
    between = packet(3, 30, "client")
    (one,) = found(REQUEST, between, RESPONSE, stalls=[stall()])
    assert (one.start_frame, one.end_frame) == (1, 2)
    assert one.says.startswith("60.0 ms in which the client's next byte does not come: ")
    assert "both wait for each other: " in says(REQUEST, RESPONSE, stalls=[stall("nagle")])[0]


def test_a_program_that_gave_up_says_more_than_its_stall() -> None:
    gone = stall("sender", unfinished=True)
    assert "nobody owes" in says(REQUEST, RESPONSE, stalls=[gone])[0]
    assert "next byte" in says(REQUEST, RESPONSE, stalls=[{**gone, "unfinished": False}])[0]


def test_a_silence_that_ends_the_exchange_says_how() -> None:
    exchange = {"ended_frame": 2, "outcome": "abandoned", "response_at": None}
    waiting = {"phases": [phase("wait", 0, 60)], "exchanges": [exchange]}
    assert says(REQUEST, RESPONSE, **waiting) == [
        "60.0 ms in which the server owes the response, until the client gives up"
    ]
    lost = says(REQUEST, RESPONSE, **waiting, about={"unacknowledged_client": 5})
    assert lost == ["60.0 ms in which the server does not acknowledge the request, until the client gives up"]
    cut = {**exchange, "outcome": "cut", "response_at": 5}
    sentences = says(REQUEST, RESPONSE, phases=[phase("transfer", 0, 60)], exchanges=[cut])
    assert sentences == ["60.0 ms in which the server owes the rest of its response, until the connection is ended"]
    assert "works" in says(REQUEST, RESPONSE, **{**waiting, "exchanges": [{**exchange, "ended_frame": 9}]})[0]
