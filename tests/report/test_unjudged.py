"""What could not be judged, with words."""

from conchart.report.unjudged import Unjudged, unjudged
from tests.by_hand import tables_of


def test_rows_are_listed_in_their_order_with_their_words() -> None:
    rows = [
        {"number": 1, "what": "packets", "why": "dropped"},
        {"number": 0, "what": "content", "why": "sealed", "connections": 3, "waited_ns": 60_300_000},
        {"number": 2, "what": "waits", "why": "missing", "connections": 1},
    ]
    found = unjudged(tables_of(unjudged=rows))
    assert found[0] == Unjudged(what="content", why="sealed", connections=3, waited_ns=60_300_000)
    assert [one.words for one in found] == [
        "what 3 connections said (encrypted, no keys), 60.3 ms of waits",
        "packets that the capturing machine lost",
        "1 connection with bytes missing from the capture",
    ]
    assert [one.timeless for one in found] == [False, False, True]
    assert unjudged(tables_of()) == []
