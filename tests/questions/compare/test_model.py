"""What a comparison is: plain values."""

from dataclasses import replace

from conchart.questions.compare.lanes import Lanes
from conchart.questions.compare.model import Difference, Hop, Side
from conchart.questions.compare.noise import Verdict, spread
from conchart.questions.compare.samples import MEASURES
from tests.questions.compare.test_matching import placed

MS = 1_000_000
SERVER = placed("10.0.0.9", 80).server


def hop(before_role: str = "server", after_role: str = "server", *, same_work: bool = True) -> Hop:
    before = replace(SERVER, role=before_role, requests=4, connections=4, waited_ns=40 * MS)
    after = replace(SERVER, role=after_role, requests=8, connections=0, waited_ns=40 * MS, refused=1_234)
    difference = Difference(measure=MEASURES[1], before=spread([]), after=spread([]), verdict=Verdict.MORE, chance=0.5)
    return Hop(before=before, after=after, tier=0, by="name", same_work=same_work, differences=(difference,))


def test_users_wait_for_what_is_no_backend_in_either_capture() -> None:
    assert hop("backend", "front").in_front
    assert hop("server", "backend").in_front
    assert not hop("backend", "backend").in_front
    assert not hop("closed", "backend").in_front


def test_what_there_was_none_of_is_not_counted() -> None:
    assert [(noun, before, after.replace("\N{THIN SPACE}", " ")) for noun, before, after in hop().counts()] == [
        ("connections", "4", "0"),
        ("requests", "4", "8"),
        ("refused", "0", "1 234"),
    ]


def test_where_the_work_differs_what_users_waited_is_told_per_request() -> None:
    assert next(hop(same_work=False).counts()) == ("waited per request", "10.0 ms", "5.00 ms")
    nothing = replace(hop(same_work=False), before=SERVER)
    assert next(nothing.counts())[0] == "requests"


def test_a_verdict_is_found_by_its_measure() -> None:
    assert hop().verdict(MEASURES[1].name) is Verdict.MORE
    assert hop().verdict(MEASURES[0].name) is None


def test_a_side_says_how_much_was_captured() -> None:
    lanes = Lanes(drawn=(), besides=0)
    side = Side(name="a.pcap", packets=265, span_ns=337 * MS, connections=1, requests=6, only=(), lanes=lanes)
    assert side.extent == "265 packets, 337 ms, 1 connection, 6 requests"
