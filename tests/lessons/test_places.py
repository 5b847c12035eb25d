"""The lab of several places stands where it can, and what it writes is true."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

import conchart
from conchart.report.places import spent
from conchart.report.request_paths import journeys
from tests.conftest import ROOT, places_of
from tests.lessons.running import conchart_commands, make_captures, run_conchart, skip_unless_root_with
from tests.reading.places.truth import Truth

LESSON = ROOT / "examples/places"
FAULTS = {"whose-fault-1": "path lb–app", "whose-fault-2": "at app", "whose-fault-3": "at lb"}
PROGRAMS = ("ip", "tcpdump", "openssl", "nginx", "haproxy", "dnsmasq", "dig", "curl", "sysctl")


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("case", "tools"), [("loss", ()), ("nat", ("nft",)), ("one-host", ())])
def test_a_case_is_made_and_every_packet_is_accounted_for(case: str, tools: tuple[str, ...], tmp_path: Path) -> None:
    skip_unless_root_with([*PROGRAMS, *tools])
    make_captures("places", "--to", str(tmp_path / "out"), "--right", case, temporary=tmp_path / "temporary")
    truth = Truth(tmp_path / "out" / case)
    assert bool(truth.losses) == (case != "one-host")
    for here, there in pairwise(truth.captures):
        assert not truth.unaccounted(here, there)
        assert bool(truth.place_packets(here, there)) == ((here, there) != ("client", "bridge"))


def test_the_lesson_s_table_is_that_of_its_results() -> None:
    results = json.loads((LESSON / "results.json").read_text())
    rows = [line for line in (LESSON / "README.md").read_text().splitlines() if line.endswith(" ms |")]
    for leg, row in zip(("client", "lb, from the client", "lb, to the app", "app"), rows, strict=True):
        waits = [f"{results[case][leg]} ms" for case in results]
        assert [cell.strip() for cell in row.split("|")[2:-1]] == waits


COMMANDS = conchart_commands(LESSON / "README.md")


@pytest.mark.parametrize("command", COMMANDS, ids=range(len(COMMANDS)))
def test_a_command_of_the_page_writes_its_page(command: str, tmp_path: Path) -> None:
    run_conchart(command, tmp_path)
    (page,) = tmp_path.glob("*.html")
    text = page.read_text(encoding="utf-8")
    alone = "--at" not in command
    assert ("Where it was spent" in text) != alone
    assert ("One exchange, from place to place" in text) != alone


def test_the_client_s_capture_alone_makes_the_cases_look_alike() -> None:
    """Some 95 ms each, 20 of them the round trip; and it says nothing of where the rest is spent."""
    for case in FAULTS:
        with conchart.read(ROOT / "captures/places" / case / "client.pcap") as trace:
            ((wait,),) = trace.sql("SELECT median(wait_ns) / 1e6 FROM exchanges").fetchall()
            assert wait == pytest.approx(95, abs=3)
            assert trace.sql("FROM phase_places").fetchall() == []


@pytest.mark.parametrize(("case", "fault"), FAULTS.items())
def test_the_page_of_all_three_shows_whose_fault_it_is(case: str, fault: str) -> None:
    """In the bar of all waits, but for the line to the client, and in each exchange that can be chosen."""
    places = {name: [path] for name, path in places_of(ROOT / "captures/places" / case).items()}
    with conchart.read(places=places) as trace:
        (whole,) = (one for one in spent(trace) if one.server_port == 443)
        drawn = list(journeys(trace, 20))
    parts = {part.words: part.total_ns for part in whole.parts if part.words != "path client–lb"}
    assert max(parts, key=lambda words: parts[words]) == fault
    assert len(drawn) == 20
    for one in drawn:
        assert one.wait is not None
        waited = {part.words: part.total_ns for part in one.wait.parts if part.words != "path client–lb"}
        # The first of four requests at once does not wait in the load balancer.
        assert max(waited, key=lambda words: waited[words]) in {fault, *({"at app"} if fault == "at lb" else ())}


def test_no_capture_tells_the_halves_of_a_path() -> None:
    """28 ms there and 40 ms back look like 34 and 34: the truth lies within the ± that is told."""
    with conchart.read(places={n: [p] for n, p in places_of(ROOT / "captures/places/whose-fault-1").items()}) as trace:
        ((there, doubt),) = trace.sql("""
            SELECT median(end_at - start_at) / 1e6, max(uncertainty_ns) / 1e6 FROM phase_places
            WHERE phase = 'wait' AND place = 'lb' AND to_place = 'app' AND uncertainty_ns > 0
        """).fetchall()
    assert (round(there), round(doubt)) == (34, 34)
    assert abs(there - 28) <= doubt
