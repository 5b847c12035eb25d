"""conchart agrees with tshark: on every capture of ours, and on foreign ones where these are present."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest

from conchart.errors import CaptureError
from tests.agreement import ours, tshark
from tests.agreement.__main__ import name_of
from tests.agreement.explained import explanation, places
from tests.agreement.facts import FACTS, HTTP_FACTS, TCP_FACTS, TLS_FACTS, Exchange, Outcome, Stream, Tally, compare

CAPTURES = sorted((Path(__file__).parents[2] / "captures").rglob("input.pcap*"))
CORPUS = os.environ.get("CONCHART_CORPUS")
SAMPLE, LARGEST = 60, 60_000

needs_tshark = pytest.mark.skipif(not tshark.installed(), reason="tshark is not installed")


@needs_tshark
@pytest.mark.timeout(120)
@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.parent.name)
def test_every_fact_of_our_captures_agrees(capture: Path) -> None:
    tally = Tally(explain=explanation)
    tally.add(compare(name_of(capture), tshark.read(capture), ours.read(capture)))
    assert tally.agreed["stream"] > 0
    assert [str(one) for some in tally.disagreements.values() for one in some] == []


def sample(corpus: Path) -> list[Path]:
    """Small captures that between them have as many tags of the corpus's manifest as possible, always the same."""
    with (corpus / "manifest.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if int(row["bytes"]) <= LARGEST and int(row["tcp_streams"] or 0)]
    rows.sort(key=lambda row: (int(row["bytes"]), row["file"]))
    chosen: list[str] = []
    covered: set[str] = set()
    while len(chosen) < SAMPLE:
        # The one with most tags that none so far has; the smallest of these.
        best = max(rows, key=lambda row: len({*row["tags"].split(",")} - covered))
        new = {*best["tags"].split(",")} - covered
        if not new:
            break
        covered |= new
        chosen.append(best["file"])
        rows.remove(best)
    chosen += [row["file"] for row in rows if row["tls_connections"] not in ("", "0")][: SAMPLE - len(chosen)]
    return [corpus / name for name in chosen]


def read_or_none(capture: Path) -> list[Stream] | None:
    """Our streams; None for a link type that conchart refuses (nobody captures TCP on it with tcpdump)."""
    try:
        return ours.read(capture)
    except CaptureError:
        return None


@needs_tshark
@pytest.mark.skipif(CORPUS is None, reason="CONCHART_CORPUS names no folder of captures")
@pytest.mark.timeout(300)
def test_facts_of_foreign_captures_agree() -> None:
    assert CORPUS is not None
    tally = Tally(explain=explanation)
    chosen = sample(Path(CORPUS))
    refused = 0
    for capture in chosen:
        mine = read_or_none(capture)
        refused += mine is None
        tally.add(compare(capture.name, tshark.read(capture), mine) if mine is not None else ())
    assert refused <= len(chosen) // 10
    report = "\n".join(str(one) for some in tally.disagreements.values() for one in some)
    for facts, least in ((TCP_FACTS, 0.995), (TLS_FACTS, 0.99), (HTTP_FACTS, 0.99)):
        rate = tally.rate(facts, explained=True)
        assert rate is not None
        assert rate >= least, report


def test_every_explained_place_is_one_that_can_be_found() -> None:
    assert places()
    for place in places():
        assert place.section
        assert all(fact in FACTS or fact.startswith("stream in ") for fact in place.facts), place
        if CORPUS:
            assert any(Path(CORPUS).glob(place.capture)) or "/" in place.capture, place


def make(*, port: int = 443, sni: str = "a.example") -> Stream:
    """A stream with one fact of each kind."""
    client, server = ("10.0.0.1", 40_000), ("10.0.0.2", port)
    return Stream(
        number=0,
        ends=frozenset((client, server)),
        first_frame=1,
        facts={"client": client, "syn_at": 5},
        by_end={"bytes": {client: 10, server: 20}},
        tls={"sni": sni},
        http=[Exchange(request_at=7, frame=3, facts={"method": "GET"})],
    )


def test_equal_streams_agree_on_every_fact() -> None:
    tally = Tally()
    tally.add(compare("x", [make()], [make()]))
    assert not tally.disagreements
    facts = (
        "stream",
        "number",
        "endpoints",
        "first_frame",
        "client",
        "syn_at",
        "bytes",
        "tls",
        "sni",
        "request",
        "method",
    )
    assert {fact for fact, *_ in tally.rows()} == {*facts}
    assert tally.agreed["bytes"] == 2
    assert tally.rate(facts) == 1.0


def test_an_explained_disagreement_is_counted_as_one_and_not_listed() -> None:
    tally = Tally(explain=lambda outcome: "why" if outcome.fact == "sni" else None)
    tally.add(compare("x", [make()], [make(sni="b.example")]))
    assert ("sni", 1, 0, 1, 1) in list(tally.rows())
    assert not tally.disagreements
    assert (tally.rate(["sni"]), tally.rate(["sni"], explained=True)) == (0, 1)


def test_a_difference_is_one_disagreement_with_its_place() -> None:
    outcomes = list(compare("x", [make()], [make(sni="b.example")]))
    assert [one for one in outcomes if not one.agrees] == [Outcome("sni", False, "x", 0, 1, "a.example", "b.example")]


def test_a_stream_that_we_miss_is_one_disagreement() -> None:
    assert [one.fact for one in compare("x", [make()], [make(port=80)])] == ["stream"]


def test_bytes_are_counted_once_across_overlap_and_wrap() -> None:
    def packet(seq: int, length: int, flags: int = 16) -> tshark.Frame:
        ends = ("10.0.0.1", 1), ("10.0.0.2", 2)
        return tshark.Frame(1, 0, [], *ends, seq % 2**32, 0, flags, length, {})

    syn = packet(-101, 0, flags=2)
    assert tshark.distinct([syn, packet(-100, 60), packet(-60, 100), packet(100, 5)]) == 145
    assert tshark.distinct([packet(7, 10), packet(7, 10)]) == 10
    assert tshark.distinct([]) == 0
