"""What page and terminal tell of where a wait was spent: each host and each path once, and no nanosecond is missing."""

import io
import itertools
import re
import shutil
from pathlib import Path

import pytest
from rich.console import Console

import conchart
from conchart import Trace
from conchart.outputs.terminal.ladder import print_ladder
from conchart.outputs.terminal.sheet import Sheet
from conchart.questions.explain import Ladder, connections, ladder
from conchart.report.axis import time_axis
from conchart.report.delays import delays
from conchart.report.phase_places import Where, phase_places
from conchart.report.places import KINDS, Part, clocks, losses, spent
from conchart.report.request_paths import MAX_ARROWS, journeys
from tests.conftest import ROOT, places_of

PLACES = ROOT / "captures/places"


def read(case: str) -> Trace:
    return conchart.read(places={place: [path] for place, path in places_of(PLACES / case).items()})


def test_parts_are_told_once_and_add_up(placed_trace: Trace) -> None:
    for (stream,) in placed_trace.sql("SELECT stream FROM connections").fetchall():
        for where in phase_places(placed_trace, stream):
            names = [(part.kind, part.place, part.to_place) for part in where.parts]
            assert len(names) == len(set(names))
            assert sum(part.total_ns for part in where.parts) <= where.total_ns
    whole = "SELECT coalesce(sum(end_at - start_at), 0) FROM phase_places"
    ((expected,),) = placed_trace.sql(whole).fetchall()
    streams = [stream for (stream,) in placed_trace.sql("SELECT stream FROM connections").fetchall()]
    parts_ns = [part.total_ns for stream in streams for one in phase_places(placed_trace, stream) for part in one.parts]
    assert sum(parts_ns) == expected


def test_a_place_that_sees_one_direction_does_not_hide_those_behind_it() -> None:
    """The way back goes around the router: the path from client to load balancer is told all the same."""
    with read("detour") as trace:
        (where,) = (one for one in phase_places(trace, 0) if (one.phase, one.exchange) == ("wait", 0))
    # The load balancer alone saw its backend.
    assert [part.words for part in where.parts] == ["path client–lb", "at lb", "behind lb"]
    assert where.parts[0].total_ns == pytest.approx(10_000_000, rel=0.05)  # the line's 10 ms out; back it is none


def test_words() -> None:
    path = Part(kind="path", place="client", to_place="lb", total_ns=21_300_000, uncertainty_ns=310_000)
    host = Part(kind="host", place="app", to_place=None, total_ns=62_400_000, uncertainty_ns=0)
    where = Where(phase="wait", exchange=0, total_ns=84_000_000, parts=(path, host))
    assert str(where) == "wait 84.0 ms = path client–lb 21.3 ms ± 310 µs, at app 62.4 ms, not known 300 µs"


def test_explain_tells_the_same_of_each_request() -> None:
    with read("plain") as trace:
        (found,) = connections(trace, 0)
        facts = [says for name, says in ladder(found).facts if name == "where"]
        expected = phase_places(trace, 0)
    waits = [f"request {one.exchange}: {one}" for one in expected if one.phase == "wait"]
    assert len(waits) == 4
    assert facts[2:] == waits
    assert all(one.startswith(("syn", "tls")) for one in facts[:2])


def test_one_place_has_no_such_fact() -> None:
    with conchart.read(places_of(PLACES / "plain")["client"]) as trace:
        found = itertools.chain.from_iterable(ladder(one).facts for one in connections(trace))
        assert [fact for fact in found if fact[0] == "where"] == []


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_the_columns_of_all_places_fit_a_narrow_terminal(count: int, tmp_path: Path) -> None:
    """A copy of a capture is another place."""
    files = places_of(PLACES / "one-host")
    for place in ("bridge", "app"):
        shutil.copyfile(files[place], tmp_path / f"{place}.pcap")
    names = ["lb", "app", "bridge", "copy", "five"][:count]
    paths = [files["lb"], files["app"], files["bridge"], tmp_path / "bridge.pcap", tmp_path / "app.pcap"]
    where_from = dict(zip(names, paths[:count], strict=True))
    with conchart.read(places={name: [path] for name, path in where_from.items()}) as trace:
        most = "SELECT stream FROM paths GROUP BY stream ORDER BY count(*) DESC, stream LIMIT 1"
        ((stream,),) = trace.sql(most).fetchall()
        (found,) = connections(trace, stream)
        drawn = ladder(found)
    assert {name for name, _ in drawn.places} == set(names)
    lines = printed(drawn)
    assert max(map(len, lines)) <= 80
    packets = [line for line in lines if sum(arrow in line for arrow in ("──▶", "◀──"))]
    assert all(line.count("──▶") + line.count("◀──") == count - 1 for line in packets)
    ends = {line.index(".") for line in packets}
    assert len(ends) == 1, "columns stand below each other"


@pytest.mark.parametrize("case", ["loss", "nat", "offload", "reordered", "detour", "midstream", "udp", "http3"])
def test_the_ladder_of_any_connection_fits(case: str) -> None:
    with read(case) as trace:
        for found in connections(trace):
            drawn = ladder(found)
            lines = printed(drawn)
            assert max(map(len, lines)) <= 84  # so long is the heading of connections that one place saw
            lost = sum(rung.lost_to is not None for rung in drawn.rungs)
            assert sum("✕" in line for line in lines) == lost


def printed(drawn: Ladder) -> list[str]:
    out = io.StringIO()
    print_ladder(drawn, Sheet(Console(file=out, width=80)))
    return out.getvalue().partition("What other programs")[0].splitlines()


def test_a_proxys_own_place_is_enough_to_follow_a_request() -> None:
    """Nobody captured at the client: the wait is divided between load balancer, path and application all the same."""
    files = places_of(PLACES / "plain")
    with conchart.read(places={"lb": [files["lb"]], "app": [files["app"]]}) as trace:
        streams = [stream for (stream,) in trace.sql("SELECT DISTINCT front_stream FROM links ORDER BY ALL").fetchall()]
        divisions = [one for stream in streams for one in phase_places(trace, stream)]
        (whole,) = (one for one in spent(trace) if one.server_port == 443)
    waits = [one for one in divisions if one.phase == "wait"]
    assert len(waits) == 9
    assert {tuple(part.words for part in one.parts) for one in waits} == {("at lb", "path lb–app", "at app")}
    assert all(sum(part.total_ns for part in one.parts) == one.total_ns for one in divisions)
    # The client and the way to it are before the load balancer: nobody can divide those.
    assert "before lb" in [part.words for part in whole.parts]
    assert whole.rest_ns == 0
    with read("plain") as trace:
        (three,) = (one for one in spent(trace) if one.server_port == 443)
    for words in ("path lb–app", "at app"):
        (one,), (other,) = ([part for part in where.parts if part.words == words] for where in (whole, three))
        assert one.total_ns == pytest.approx(other.total_ns, rel=1e-3)


def test_a_request_is_followed_through_all_hops_of_one_host() -> None:
    with read("one-host") as trace:
        (where,) = (one for one in phase_places(trace, 0) if one.exchange == 0)
    # Behind the client's loopback interface is the relay, which nobody else saw from that side.
    words = ["behind client", "path bridge–lb", "at lb", "path lb–bridge", "path bridge–app", "at app"]
    assert [part.words for part in where.parts] == words
    assert sum(part.total_ns for part in where.parts) == where.total_ns


def test_a_client_that_waits_for_its_timer_is_not_taken_for_a_proxy() -> None:
    """The request arrived, its answer was lost: until the client sends again, the time is the loss's."""
    with read("queue") as trace:
        (where,) = (one for one in phase_places(trace, 1) if one.exchange == 3 and one.phase == "wait")
    assert [part.words for part in where.parts] == ["losses lb → client", "path client–lb"]
    assert where.parts[0].total_ns > 200_000_000


def test_a_loss_is_counted_among_the_packets_that_left() -> None:
    """Of UDP, a place may see nothing of a connection whose only packet was lost."""
    with read("udp") as trace:
        by_direction = {(one.from_place, one.to_place): one for one in losses(trace)}
        ((left,),) = trace.sql(
            "SELECT count(*) FROM place_packets WHERE place = 'client' AND sender = 'client'"
        ).fetchall()
        ways = {(one.from_place, one.to_place): one for one in delays(trace, time_axis(trace))}
    assert by_direction["client", "lb"].packets == left
    assert all(one.lost + one.packets == by_direction[way].packets for way, one in ways.items() if way in by_direction)


def test_of_a_long_transfer_both_ends_and_every_loss_are_shown() -> None:
    with read("queue") as trace:
        one = next(one for one in journeys(trace, 20) if one.more)
        ((lost,),) = trace.sql(f"""
            SELECT count(*) FROM losses WHERE NOT captured_elsewhere AND stream = {one.stream} AND bytes > 0
                AND seen_at BETWEEN {one.start_at} AND {one.end_at}
        """).fetchall()
    assert len(one.arrows) + one.more > MAX_ARROWS
    assert sum(arrow.lost_to is not None for arrow in one.arrows) == lost > 4
    assert {one.start_at, one.end_at} <= {at for arrow in one.arrows for _, at in arrow.seen}


def test_lanes_of_a_place_lie_where_it_saw_their_packets(every_place: Path, placed_trace: Trace) -> None:
    """Bars of a lane touch; and the wait of a place begins when it saw the last packet of the request."""
    drawn = list(journeys(placed_trace, 5))
    for one in drawn:
        for lane in one.lanes:
            assert all(a.end_at == b.start_at or a.end_at <= b.start_at for a, b in itertools.pairwise(lane.bars))
            assert all(bar.end_at >= bar.start_at for bar in lane.bars)
        marked = next((arrow for arrow in one.arrows if arrow.marks == "response" and not arrow.lost_to), None)
        if marked is None or marked.stream != one.stream:
            continue
        for place, at in marked.seen:
            (lane,) = (lane for lane in one.lanes if (lane.place, lane.stream) == (place, one.stream))
            ends = {bar.end_at for bar in lane.bars if bar.kind == "wait"}
            assert at in ends, (every_place.name, place)


def test_a_clock_that_is_bound_to_an_unknown_one_alone_is_told_by_that_one() -> None:
    """Client and application share nothing, and no request is named: only app and load balancer are compared."""
    files = places_of(PLACES / "plain")
    other = places_of(PLACES / "udp")
    with conchart.read(places={"client": [other["client"]], "lb": [files["lb"]], "app": [files["app"]]}) as trace:
        texts = {clock.place: str(clock) for clock in clocks(trace)}
    assert texts["lb"] == (
        "unknown: lb shares neither packets nor requests with the places before it; "
        "capture at the proxy between them, too"
    )
    assert re.fullmatch(
        r"2\.04 s ± 1\.0\d ms behind lb; nothing bounds both against client \(\d+ packets\)", texts["app"]
    )


def test_a_clock_by_causality_says_so() -> None:
    with read("one-host") as trace:
        texts = [str(clock) for clock in clocks(trace) if clock.method == "causality"]
    assert texts
    assert all(one.endswith("(no packet in common: by what was handed on)") and " ± " in one for one in texts)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_part_has_a_colour_on_the_page(kind: str) -> None:
    css = (ROOT / "conchart/outputs/page/templates/places.css").read_text()
    assert re.search(rf"\.at-{kind}\b[^{{]*\{{ --fill", css)
    assert re.search(rf"\.stay-{kind}\b[^{{]*\{{ fill", css)
