"""What page and terminal tell of where a wait was spent: each host and each path once, and no nanosecond is missing."""

import itertools
import re
from pathlib import Path

import pytest

import conchart
from conchart import Trace
from conchart.questions.explain import connections, ladder
from conchart.telling.places import Part, clocks
from conchart.telling.whereabouts import Where, whereabouts
from tests.conftest import ROOT, places_of

PLACES = ROOT / "captures/places"
CASES = sorted(folder.name for folder in PLACES.iterdir())


def read(case: str) -> Trace:
    return conchart.read(places={place: [path] for place, path in places_of(PLACES / case).items()})


@pytest.mark.parametrize("case", CASES)
def test_parts_are_told_once_and_add_up(case: str) -> None:
    with read(case) as trace:
        for (stream,) in trace.sql("SELECT stream FROM connections").fetchall():
            for told in whereabouts(trace, stream):
                names = [(part.kind, part.place, part.to_place) for part in told.parts]
                assert len(names) == len(set(names))
                assert sum(part.total_ns for part in told.parts) <= told.total_ns
        whole = "SELECT coalesce(sum(end_at - start_at), 0) FROM whereabouts"
        ((expected,),) = trace.sql(whole).fetchall()
        streams = [stream for (stream,) in trace.sql("SELECT stream FROM connections").fetchall()]
        told_ns = [part.total_ns for stream in streams for one in whereabouts(trace, stream) for part in one.parts]
        assert sum(told_ns) == expected


def test_a_place_that_sees_one_direction_does_not_hide_those_behind_it() -> None:
    """The way back goes around the router: the path from client to load balancer is told all the same."""
    with read("detour") as trace:
        (told,) = (one for one in whereabouts(trace, 0) if (one.phase, one.exchange) == ("wait", 0))
    assert [part.words for part in told.parts] == ["path client–lb", "at lb"]
    assert told.parts[0].total_ns == pytest.approx(10_000_000, rel=0.05)  # the line's 10 ms out; back it is none


def test_words() -> None:
    path = Part(kind="path", place="client", to_place="lb", total_ns=21_300_000, uncertainty_ns=310_000)
    host = Part(kind="host", place="app", to_place=None, total_ns=62_400_000, uncertainty_ns=0)
    told = Where(phase="wait", exchange=0, total_ns=84_000_000, parts=(path, host))
    assert str(told) == "wait 84.0 ms = path client–lb 21.3 ms ± 310 µs, at app 62.4 ms, not known 300 µs"


def test_explain_tells_the_same_of_each_request() -> None:
    with read("plain") as trace:
        (found,) = connections(trace, 0)
        facts = [says for name, says in ladder(found).facts if name == "where"]
        expected = whereabouts(trace, 0)
    waits = [f"request {one.exchange}: {one}" for one in expected if one.phase == "wait"]
    assert len(waits) == 4
    assert facts[2:] == waits
    assert all(one.startswith(("syn", "tls")) for one in facts[:2])


def test_one_place_has_no_such_fact(tmp_path: Path) -> None:
    with conchart.read(places_of(PLACES / "plain")["client"]) as trace:
        found = itertools.chain.from_iterable(ladder(one).facts for one in connections(trace))
        assert [fact for fact in found if fact[0] == "where"] == []


def test_a_clock_that_is_bound_to_an_unknown_one_alone_is_told_by_that_one() -> None:
    """Client and application share nothing, and no request is named: only app and load balancer are compared."""
    files = places_of(PLACES / "plain")
    other = places_of(PLACES / "udp")
    with conchart.read(places={"client": [other["client"]], "lb": [files["lb"]], "app": [files["app"]]}) as trace:
        told = {clock.place: str(clock) for clock in clocks(trace)}
    assert told["lb"] == "unknown: lb shares neither packets nor requests with the places before it"
    assert re.fullmatch(
        r"2\.04 s ± 1\.0\d ms behind lb; nothing bounds both against client \(\d+ packets\)", told["app"]
    )


def test_a_clock_by_causality_says_so() -> None:
    with read("one-host") as trace:
        told = [str(clock) for clock in clocks(trace) if clock.method == "causality"]
    assert told
    assert all(one.endswith("(no packet in common: by what was handed on)") and " ± " in one for one in told)
