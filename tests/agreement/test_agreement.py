"""conchart agrees with tshark: on every capture of ours, and on foreign ones but for the places that are known."""

from __future__ import annotations

import csv
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.agreement import page, places, tshark
from tests.agreement.facts import FACTS, Exchange, Outcome, Packets, Stream, compare
from tests.agreement.places import UNEXPLAINED, Place, Where
from tests.agreement.run import outcomes
from tests.conftest import sampled
from tests.tshark import needs_tshark

CAPTURES = sorted((Path(__file__).parents[2] / "captures").rglob("input.pcap*"))
CORPUS = os.environ.get("CONCHART_CORPUS")
SAMPLE, LARGEST = 60, 60_000
CUT = ("large-transfers",)
"""Folders of captures of 128 bytes of each packet: tshark reads no hello of which the end was not captured."""

SNAPPED = ("logs", "traces")
"""Folders of captures of the first bytes of each packet: tshark follows no HTTP messages that were cut."""
NOT_FOLLOWED = {"request", "status", "response_at"}

TUNNELLED = "slow-tunnel"
"""Captures of requests inside a CONNECT: tshark shows what such a tunnel carries as bytes."""
CARRIED = ("l2tpv3-udp1701", "tzsp-mikrotik")
"""Captures of tunnels that tshark opens only if it is told of their ports and cookies."""
INCOMPLETE = ("post-413-rst",)
"""Captures of uploads that end before their length: tshark shows no request."""


@needs_tshark
@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "capture",
    sampled([path for path in CAPTURES if path.parent.name not in CARRIED], 3),
    ids=lambda path: path.parent.name,
)
def test_every_fact_of_our_captures_agrees(capture: Path) -> None:
    compared = outcomes(capture)
    assert not isinstance(compared, str)
    is_udp = (
        {"udp", "http3"} & {*capture.parts}
        or capture.parent.name.startswith("h3-")
        or capture.parts[-3:-1] == ("dns", "quic")
        or capture.parent.name.endswith("-quic")
    )
    assert is_udp or any(one.fact == "stream" for one in compared)
    differ = [one for one in compared if not one.agrees]
    if capture.parent.parent.name in CUT:
        differ = [one for one in differ if (one.fact, one.expected, one.got) != ("tls", False, True)]
    if capture.parent.parent.name in SNAPPED:
        differ = [one for one in differ if one.fact not in NOT_FOLLOWED]
    if capture.parent.name.startswith((TUNNELLED, *INCOMPLETE)):
        differ = [one for one in differ if (one.fact, one.expected, one.got) != ("request", False, True)]
    assert [str(one) for one in differ] == []


def sample(corpus: Path) -> list[Path]:
    """Small captures, always the same: of each class of disagreements the smallest, and of each tag of the manifest."""
    with (corpus / "manifest.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if int(row["bytes"]) <= LARGEST and int(row["tcp_streams"] or 0)]
    rows.sort(key=lambda row: (int(row["bytes"]), row["file"]))
    chosen: list[str] = []
    covered: set[str] = set()
    classes: dict[str, set[str]] = {}
    for place in places.load():
        classes.setdefault(place.where.capture, set()).add(place.section)
    for row in rows:
        new = classes.get(row["file"], set()) - covered
        if new:
            covered |= new
            chosen.append(row["file"])
    while len(chosen) < SAMPLE:
        # The one with most tags that none so far has; the smallest of these.
        best = max(rows, key=lambda row: len({*row["tags"].split(",")} - covered))
        new = {*best["tags"].split(",")} - covered
        if not new:
            break
        covered |= new
        chosen.append(best["file"])
    return [corpus / name for name in dict.fromkeys(chosen)]


@needs_tshark
@pytest.mark.skipif(CORPUS is None, reason="CONCHART_CORPUS names no folder of captures")
@pytest.mark.timeout(300)
def test_foreign_captures_disagree_where_it_is_known_and_nowhere_else() -> None:
    assert CORPUS is not None
    chosen = sample(Path(CORPUS))
    found: list[Outcome] = []
    compared = set()
    for capture in chosen:
        result = outcomes(capture)
        if not isinstance(result, str):
            compared.add(capture.name)
            found += result
    assert len(compared) >= len(chosen) * 9 // 10
    assert places.match(places.load(), found, compared).problems() == []


@pytest.mark.parametrize("path", [places.LIVE, places.STORED], ids=lambda path: path.name)
def test_every_place_is_of_a_class_that_the_page_has(path: Path) -> None:
    recorded, classes = places.load(path), {*page.sections(), UNEXPLAINED}
    assert recorded == sorted(recorded)
    for place in recorded:
        assert place.section in classes, place
        assert place.where.fact in FACTS or place.where.fact.startswith("stream in "), place
        assert place.where.tshark != place.where.conchart, place


def test_the_page_counts_the_places() -> None:
    text = page.PAGE.read_text()
    assert page.rewritten(text, places.load(), None) == text


def test_figures_count_what_is_explained_what_is_wrong_and_what_nobody_looked_up() -> None:
    where = Where("x", 0, 1, "sni", "", "a", "b")
    recorded = [
        Place("One", where, "hand"),
        Place("Two", where, "rule"),
        Place("One", where),
        Place(UNEXPLAINED, where),
    ]
    drawn = page.figures(Counter({("sni", True): 6, ("sni", False): 4, ("stream in gre", True): 1}), recorded, {"Two"})
    assert "| TLS | 10 | 6 (60.00%) | 2 | 1 | 2 |" in drawn
    assert "| TCP | 1 | 1 (100.00%) | 0 | 0 | 0 |" in drawn


def make(*, port: int = 443, number: int = 0, sni: str = "a.example", resent: tuple[int, ...] = ()) -> Stream:
    """A stream with one fact of each kind."""
    client, server = ("10.0.0.1", 40_000), ("10.0.0.2", port)
    return Stream(
        number=number,
        ends=frozenset((client, server)),
        first_frame=1,
        facts={"client": client, "syn_at": 5, "last_frame": 4},
        by_end={"bytes": {client: 10, server: 20}},
        packets={client: Packets(frames=[1, 3, 4], resent=[*resent], counted=len(resent)), server: Packets(frames=[2])},
        tls={"sni": sni},
        http=[Exchange(request_at=7, frame=3, facts={"method": "GET", "target": "/"})],
    )


def differing(theirs: list[Stream], mine: list[Stream]) -> list[Outcome]:
    return [one for one in compare("x", theirs, mine) if not one.agrees]


def test_equal_streams_agree_on_every_fact() -> None:
    compared = list(compare("x", [make()], [make()]))
    assert all(one.agrees for one in compared)
    facts = "stream number endpoints first_frame client syn_at last_frame bytes resent frames resent_frames tls sni"
    assert {one.fact for one in compared} == {*facts.split(), "request", "request_at", "method", "target"}
    assert sum(one.fact == "bytes" for one in compared) == 2


def test_a_difference_is_one_disagreement_with_its_place() -> None:
    assert differing([make()], [make(sni="b.example")]) == [Outcome("sni", False, "x", 0, 1, "a.example", "b.example")]


def test_a_stream_that_one_of_the_two_misses_is_one_disagreement_each() -> None:
    theirs, mine = differing([make()], [make(port=80)])
    assert (theirs.fact, theirs.expected, theirs.got) == ("stream", 0, None)
    assert (mine.fact, mine.expected, mine.got) == ("stream", None, 0)


def test_two_connections_with_the_same_ends_and_first_frame_are_two() -> None:
    assert differing([make(), make(number=1)], [make(), make(number=1)]) == []
    (lost,) = differing([make(), make(number=1)], [make()])
    assert (lost.fact, lost.stream) == ("stream", 1)


def test_tls_and_requests_that_only_we_see_are_disagreements() -> None:
    theirs = make()
    theirs.tls, theirs.http = None, []
    tls, request = differing([theirs], [make()])
    assert (tls.fact, tls.expected, tls.got) == ("tls", False, True)
    assert (request.fact, request.expected, request.got, request.frame) == ("request", False, True, 3)


def test_a_request_at_another_time_is_the_same_request() -> None:
    late = make()
    late.http[0].request_at = 8
    (outcome,) = differing([make()], [late])
    assert (outcome.fact, outcome.expected, outcome.got) == ("request_at", 7, 8)


def test_packets_are_compared_by_frame_and_copies_are_apart() -> None:
    client = ("10.0.0.1", 40_000)
    count, frames = differing([make(resent=(3,))], [make(resent=(4, 3))])
    assert (count.fact, count.expected, count.got, count.sender) == ("resent", 1, 2, client)
    assert (frames.fact, frames.expected, frames.got, frames.frame) == ("resent_frames", [], [4], 4)
    theirs, mine = make(resent=(3, 4)), make(resent=(3,))
    assert theirs.packets is not None
    assert mine.packets is not None
    mine.packets[client].copies = {4}
    mine.facts["last_frame"] = theirs.facts["last_frame"] = 3
    (copy,) = differing([theirs], [mine])  # tshark's fields show no twin of frame 4
    assert (copy.fact, copy.expected, copy.got) == ("copies", [], [4])
    theirs.packets[client].twins = {4}
    assert differing([theirs], [mine]) == []


def test_a_place_explains_one_disagreement_and_no_other() -> None:
    (outcome,) = differing([make()], [make(sni="b.example")])
    place = Place("Why", Where.of(outcome), "hand")
    assert places.match([place], [outcome], {"x"}).problems() == []
    other = replace(outcome, got="c.example")
    found = places.match([place], [other], {"x"})
    assert (found.new, found.gone) == ([other], [place])
    assert places.match([place], [], {"another"}).problems() == []
    assert places.match([place], [outcome, outcome], {"x"}).new == [outcome]
    ruled = replace(place, checked="rule")
    assert places.match([ruled], [outcome], {"x"}).broken == [ruled]
    assert places.match([ruled], [replace(outcome, rules=("Why",))], {"x"}).problems() == []


def test_recording_keeps_what_matches_and_never_explains_what_nobody_looked_at(tmp_path: Path) -> None:
    (outcome,) = differing([make()], [make(sni="b.example")])
    place = Place("Why", Where.of(outcome), "hand")
    changed, ruled = replace(outcome, got="c.example"), replace(outcome, fact="alpn", rules=("Rule",))
    unknown = replace(outcome, fact="ja3")
    recorded = places.renewed([place], places.match([place], [changed, ruled, unknown], {"x"}))
    assert {(one.where.fact, one.section, one.checked) for one in recorded} == {
        ("sni", "Why", "no"),
        ("alpn", "Rule", "rule"),
        ("ja3", UNEXPLAINED, "no"),
    }
    places.save(recorded, tmp_path / "places.csv")
    assert places.load(tmp_path / "places.csv") == sorted(recorded)


def test_bytes_are_the_plain_union_of_ranges_on_the_circle() -> None:
    def packet(seq: int, length: int, flags: int = 16) -> tshark.Frame:
        ends = ("10.0.0.1", 1), ("10.0.0.2", 2)
        return tshark.Frame(1, 0, [], *ends, seq % 2**32, 0, flags, length, {})

    syn = packet(-101, 0, flags=2)
    assert tshark.distinct([syn, packet(-100, 60), packet(-60, 100), packet(100, 5)]) == 145
    assert tshark.distinct([syn, packet(-101, 10)]) == 10  # nothing is trimmed
    assert tshark.distinct([packet(7, 10), packet(7, 10)]) == 10
    assert tshark.distinct([]) == 0


def test_a_place_keeps_little_of_what_people_wrote() -> None:
    outcome = Outcome("target", False, "x", 0, 1, "/short", "/something/that/somebody/asked/for")
    where = Where.of(outcome)
    assert (where.tshark, where.conchart[:9], "somebody" in where.conchart) == ("/short", "/somethi…", False)
    assert where != Where.of(replace(outcome, got="/something/that/somebody/asked/now"))
