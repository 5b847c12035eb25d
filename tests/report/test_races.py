"""What a connection won or lost against."""

from typing import Any

from conchart.report.races import OF_STREAMS, are_there, describe
from conchart.report.rows import rows
from tests.by_hand import connection, tables_of

MS = 1_000_000
BEGAN = 1_700_000_000_000_000_000


def sentences(*, state: str = "complete", **race: Any) -> dict[int, str]:  # noqa: ANN401
    """Say it of the loser (0, over TCP), and of the winner (1, over UDP)."""
    facts = {
        "loser_stream": 0, "winner_stream": 1, "kind": "transport", "loser_began_at": BEGAN, "winner_began_at": BEGAN,
        "decided_at": BEGAN + 30 * MS, "delay_ns": 0, "packets": 3, "bytes": 1_500, "confidence": 0.9, **race,
    }  # fmt: skip
    loser = connection(0, server="10.0.0.9:443", state=state)
    tables = tables_of(connections=[loser, connection(1, server="10.0.0.8:443", transport="udp")], races=[facts])
    assert are_there(tables)
    return {row["stream"]: describe(row) for row in rows(tables, OF_STREAMS)}


def test_either_side_is_told_of_the_other() -> None:
    assert sentences(loser_answered_at=BEGAN + 40 * MS) == {
        0: "lost the race against QUIC (stream 1), which was ready 30.0 ms after this one began; "
        "answered after 40.0 ms; 3 packets, 1.50 kB in vain",
        1: "won the race against TCP (stream 0): this one was ready after 30.0 ms",
    }


def test_a_race_between_addresses_names_them() -> None:
    found = sentences(kind="address")
    assert found[0].startswith("lost the race against QUIC to 10.0.0.8 (stream 1),")
    assert found[1].startswith("won the race against TCP to 10.0.0.9 (stream 0):")


def test_who_began_later_says_so_and_counts_from_its_own_beginning() -> None:
    found = sentences(winner_began_at=BEGAN + 20 * MS, delay_ns=20 * MS)
    assert (
        found[1] == "won the race against TCP (stream 0), which began 20.0 ms earlier: this one was ready after 10.0 ms"
    )
    assert "ready 30.0 ms after this one began; no answer" in found[0]


def test_a_loser_that_was_refused_or_used_later_says_so() -> None:
    assert "; refused; 3 packets" in sentences(state="refused", loser_answered_at=BEGAN + 5)[0]
    assert sentences(packets=None, bytes=None)[0].endswith("; no answer")


def test_most_captures_have_none() -> None:
    assert not are_there(tables_of())
